//! One direction of a link.

use std::collections::VecDeque;

use kreon_base::Error;

use crate::bytes::Bytes;

/// What is under way.
pub(super) enum Item {
    Packet(Bytes),
    /// The link ends for the receiver.
    End(Error),
}

/// What one end has sent and the other has not received. In order: what is due waits for all before it.
#[derive(Default)]
pub(super) struct Lane {
    under_way: VecDeque<(u64, Item)>,
    /// Of packets that were sent and not taken by a poll of the receiver, those that were delivered included.
    pub(super) held_bytes: usize,
    /// Nothing of it is delivered by time.
    pub(super) is_stalled: bool,
    /// A send was refused as busy since there was room last.
    pub(super) is_room_wanted: bool,
}

impl Lane {
    /// Puts `item` behind all others, due at `due_us` or when the one before it is.
    pub(super) fn push(&mut self, due_us: u64, item: Item) {
        let last_us = self.under_way.back().map_or(0, |(due_us, _)| *due_us);
        if let Item::Packet(packet) = &item {
            self.held_bytes += packet.len();
        }
        self.under_way.push_back((due_us.max(last_us), item));
    }

    /// How many packets are under way.
    pub(super) fn packets(&self) -> usize {
        let packets = self.under_way.iter();
        packets
            .filter(|(_, item)| matches!(item, Item::Packet(_)))
            .count()
    }

    /// When the next is due.
    pub(super) fn next_due_us(&self) -> Option<u64> {
        self.under_way.front().map(|(due_us, _)| *due_us)
    }

    /// Takes the next out.
    pub(super) fn pop(&mut self) -> Option<Item> {
        self.under_way.pop_front().map(|(_, item)| item)
    }

    /// Loses all but the first `keep`.
    pub(super) fn keep(&mut self, keep: usize) {
        for (_, item) in self.under_way.drain(keep.min(self.under_way.len())..) {
            if let Item::Packet(packet) = item {
                self.held_bytes -= packet.len();
            }
        }
    }
}
