//! What the connections of a thread share.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;

use super::buffers::Buffers;
use super::roster::Roster;
use crate::command::Combiner;
use crate::keyspace::SyncGroup;
use crate::metrics::Recorder;
use crate::shared::Shared;

/// What the connections of a thread share.
pub(crate) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) buffers: Buffers,
    pub(super) combiner: Combiner,
    pub(super) syncs: SyncGroup,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) connections: Roster,
    is_ending: Cell<bool>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("connections", &self.connections.count())
            .finish_non_exhaustive()
    }
}

impl Worker {
    pub(crate) fn new(shared: &Arc<Shared>, thread: usize, tls: Option<TlsAcceptor>) -> Rc<Self> {
        Rc::new(Self {
            shared: Arc::clone(shared),
            recorder: shared.recorders.of(thread),
            buffers: Buffers::default(),
            combiner: Combiner::default(),
            syncs: SyncGroup::default(),
            tls,
            connections: Roster::default(),
            is_ending: Cell::new(false),
        })
    }

    /// Whether connections end when they have answered.
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.get()
    }

    pub(super) fn end_connections(&self) {
        self.is_ending.set(true);
        self.connections.wake_all();
    }
}
