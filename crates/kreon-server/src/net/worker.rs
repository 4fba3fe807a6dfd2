//! What the connections of a thread share.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use super::buffers::Buffers;
use crate::clients::ClientEntry;
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
    /// To be woken at the end.
    connections: RefCell<HashMap<u64, Arc<ClientEntry>>>,
    is_ending: Cell<bool>,
    is_empty: Notify,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("connections", &self.connections.borrow().len())
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
            connections: RefCell::default(),
            is_ending: Cell::new(false),
            is_empty: Notify::new(),
        })
    }

    /// Whether connections end when they have answered.
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.get()
    }

    pub(super) fn end_connections(&self) {
        self.is_ending.set(true);
        for entry in self.connections.borrow().values() {
            entry.mailbox.wake();
        }
    }

    pub(super) fn add(&self, id: u64, entry: &Arc<ClientEntry>) {
        let mut connections = self.connections.borrow_mut();
        connections.insert(id, Arc::clone(entry));
    }

    pub(super) fn remove(&self, id: u64) {
        self.connections.borrow_mut().remove(&id);
        if self.connections.borrow().is_empty() {
            self.is_empty.notify_waiters();
        }
    }

    /// Number of its connections.
    pub(super) fn count(&self) -> usize {
        self.connections.borrow().len()
    }

    /// Completes when it has none.
    pub(super) async fn all_ended(&self) {
        loop {
            let notified = self.is_empty.notified();
            if self.count() == 0 {
                return;
            }
            notified.await;
        }
    }
}
