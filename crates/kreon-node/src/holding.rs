//! The groups that a server holds.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use kreon_base::{Error, Result};
use kreon_fabric::Link;
use kreon_replica::drive::Clients;
use kreon_wire::Member;

use crate::node::Parts;
use crate::settings::NodeSettings;
use crate::talk::Talk;

/// The groups that a server holds.
pub(crate) struct Holding;

struct NoClients;

impl Clients for NoClients {
    fn linked(&self, link: Arc<dyn Link>) {
        link.close("clients are not served yet");
    }
}

impl Holding {
    pub fn new(_: &NodeSettings, _: Member) -> Self {
        Self
    }

    pub fn clients(&self) -> Arc<dyn Clients> {
        Arc::new(NoClients)
    }

    pub fn settle(&self) {}
}

/// The thread that watches which groups name this server.
pub(crate) struct Watcher(JoinHandle<()>);

impl Watcher {
    pub fn start(_: &Arc<Parts>, talk: Talk) -> Result<Self> {
        let thread = Builder::new()
            .name("kreon-watch".into())
            .spawn(move || drop(talk));
        thread
            .map(Self)
            .map_err(|error| Error::io("start a thread of a server", error))
    }

    pub fn end(self) {
        let _ = self.0.join();
    }
}
