//! The server above a group: it has the clients.

use std::sync::Arc;

use kreon_base::Lsn;
use kreon_engine::Engine;

use crate::machine::primary::ReadId;
use crate::machine::{Known, Term};

/// The office of a primary, as the server above sees it.
#[derive(Clone)]
pub struct Serving {
    /// Its term.
    pub term: Term,
    /// The store. Writes go by [`Engine::write_ahead`]; a reply waits until its position is acknowledged.
    pub engine: Arc<Engine>,
    /// Whether writes are taken.
    pub takes_writes: bool,
    /// The configuration that shows it.
    pub known: Known,
}

/// What a group tells the server above.
///
/// Called with the group's machines locked: it must neither wait nor call the group.
pub trait Host: Send + Sync {
    /// This server is the primary from now on.
    fn serve(&self, serving: Serving);

    /// The primary goes by another configuration from now on.
    fn configured(&self, known: &Known) {
        let _ = known;
    }

    /// Whether new writes are taken: not while the set has too few members.
    fn take_writes(&self, takes: bool);

    /// Replies to writes that end up to here may leave.
    fn acknowledge(&self, upto: Lsn);

    /// The log up to here is durable on all counted members.
    fn durable(&self, upto: Lsn) {
        let _ = upto;
    }

    /// The reply of a read may leave.
    fn show(&self, read: ReadId);

    /// The read is not answered here.
    fn drop_read(&self, read: ReadId);

    /// The office is over: nobody is answered any more, and handles of the store are dropped.
    fn leave_office(&self);
}
