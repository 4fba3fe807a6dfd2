//! An end of a simulated link.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::Result;

use super::network::{Shared, gone};
use super::terms::LinkId;
use crate::bytes::Bytes;
use crate::link::{Event, Link};
use crate::packet::sendable_bytes;
use crate::peer::PeerId;

pub(super) struct SimLink {
    pub(super) shared: Arc<Shared>,
    pub(super) id: LinkId,
    pub(super) end: usize,
    pub(super) peer: PeerId,
}

impl SimLink {
    fn end(&self, why: &str, is_dropped: bool) {
        self.shared.change(|network| {
            let due_us = network.due_us();
            let Some(cable) = network.cables.get_mut(&self.id) else {
                return;
            };
            let packets = cable.lanes[self.end].packets();
            let keep = match network.settings.is_close_orderly {
                true => packets,
                false => network.dice.upto(packets as u64) as usize,
            };
            cable.close(self.end, why, keep, due_us);
            cable.ends[self.end].is_dropped |= is_dropped;
            match cable.is_over() {
                true => drop(network.cables.remove(&self.id)),
                false => network.deliver_due_on(self.id),
            }
        });
    }
}

impl Link for SimLink {
    fn peer(&self) -> PeerId {
        self.peer
    }

    fn send(&self, parts: &[IoSlice<'_>]) -> Result<()> {
        let bytes = sendable_bytes(parts, self.peer.role)?;
        let mut packet = Vec::with_capacity(bytes);
        parts.iter().for_each(|part| packet.extend_from_slice(part));
        self.shared.change(|network| {
            let window_bytes = network.settings.window_bytes as usize;
            let due_us = network.due_us();
            let cable = network.cables.get_mut(&self.id).ok_or_else(gone)?;
            cable.send(self.end, Bytes::from(packet), due_us, window_bytes)?;
            network.deliver_due_on(self.id);
            Ok(())
        })
    }

    fn poll(&self, out: &mut Vec<Event>, patience: Duration) -> Result<()> {
        let start = Instant::now();
        let mut network = self.shared.lock();
        loop {
            if network.poll((self.id, self.end), out)? {
                // The sender may have been told that there is room.
                self.shared.changed().notify_all();
                return Ok(());
            }
            let left = patience.saturating_sub(start.elapsed());
            if !network.settings.is_parking || left.is_zero() {
                return Ok(());
            }
            self.shared.changed().wait_for(&mut network, left);
        }
    }

    fn close(&self, why: &str) {
        self.end(why, false);
    }
}

impl Drop for SimLink {
    fn drop(&mut self) {
        self.end("its last handle was dropped", true);
    }
}
