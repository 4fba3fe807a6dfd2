//! Control messages and streams that are lost.

use std::sync::{Arc, Weak};

use kreon_base::Error;
use kreon_fabric::Bytes;
use kreon_sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use kreon_wire::{Control, Frame, Member, Role, ServerId, Violation};

use super::super::Server;
use super::super::links::{Receiver, Wire};

type Drops = Box<dyn Fn(&Control) -> bool + Send + Sync>;

/// What comes in from other servers, but for what is to be lost.
#[derive(Default)]
pub struct Filter {
    server: Mutex<Weak<Server>>,
    drops: Mutex<Option<Drops>>,
    pub dropped: AtomicU64,
    /// Packets of streams are lost.
    pub is_deaf: AtomicBool,
}

impl Filter {
    /// What is not lost goes to this server.
    pub fn hand_on_to(&self, server: &Arc<Server>) {
        *self.server.lock() = Arc::downgrade(server);
    }

    /// Loses those from now on.
    pub fn lose(&self, drops: impl Fn(&Control) -> bool + Send + Sync + 'static) {
        *self.drops.lock() = Some(Box::new(drops));
    }

    /// Loses nothing any more.
    pub fn let_pass(&self) {
        *self.drops.lock() = None;
    }

    fn there(&self) -> Option<Arc<Server>> {
        self.server.lock().upgrade()
    }
}

impl Receiver for Filter {
    fn control(&self, from: Member, packet: &[u8]) -> Result<(), Violation> {
        let frame = Frame::open(packet, Role::PeerControl)?;
        let message = Control::decode(&frame)?;
        if self
            .drops
            .lock()
            .as_ref()
            .is_some_and(|drops| drops(&message))
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        self.there()
            .map_or(Ok(()), |server| server.control(from, packet))
    }

    fn stream(&self, wire: &Arc<Wire>, packets: &[Bytes]) -> Result<(), Violation> {
        if self.is_deaf.load(Ordering::Acquire) {
            return Ok(());
        }
        self.there()
            .map_or(Ok(()), |server| server.stream(wire, packets))
    }

    fn room(&self, wire: &Arc<Wire>) {
        if let Some(server) = self.there() {
            server.room(wire);
        }
    }

    fn closed(&self, wire: &Arc<Wire>, why: &Error) {
        if let Some(server) = self.there() {
            server.closed(wire, why);
        }
    }

    fn unreachable(&self, server: ServerId) {
        if let Some(there) = self.there() {
            there.unreachable(server);
        }
    }
}
