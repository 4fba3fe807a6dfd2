//! Transfers in flight together, of a file or a block device.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::file_device::FileDevice;
use crate::immediate::carry_out;
use crate::transfer::RingTransfers;
use crate::transfer_queue::{Transfer, TransferQueue, Transferred};

/// Longest transfer that is carried out by a plain call if it is alone. What that saves is little beside the time of a
/// longer one, during which a waker would not be heard.
const LONE_BYTES_MAX: usize = 64 << 10;

/// A queue on a ring of its own. When the ring breaks it goes on with calls that wait.
pub(super) struct FileQueue {
    // Dropped before the device, which is locked as long as anything is in flight.
    ring: RingTransfers,
    device: Arc<FileDevice>,
    /// Not yet given to the ring, in the order of the pushes.
    pushed: VecDeque<(u64, Transfer)>,
    /// Not yet reaped.
    ended: Vec<Transferred>,
    depth: usize,
}

impl FileQueue {
    pub(super) fn new(device: Arc<FileDevice>, ring: RingTransfers, depth: usize) -> Self {
        Self {
            ring,
            device,
            pushed: VecDeque::new(),
            ended: Vec::new(),
            depth,
        }
    }

    /// Gives the ring what was pushed, as far as it has room.
    fn depart(&mut self) {
        while let Some((tag, transfer)) = self.pushed.pop_front() {
            match self.ring.push(tag, transfer) {
                Ok(()) => {}
                Err((tag, transfer)) if self.ring.is_broken() => {
                    self.ended.push(carry_out(&*self.device, tag, transfer));
                }
                Err(back) => return self.pushed.push_front(back),
            }
        }
    }

    /// Collects what has ended.
    fn land(&mut self) {
        let Self {
            ring,
            device,
            ended,
            ..
        } = self;
        ring.land(|mut transferred| {
            transferred.outcome = transferred.outcome.map_err(|error| device.named(&error));
            ended.push(transferred);
        });
    }

    /// The only transfer under way, if a plain call is quicker for it and nobody needs to be heard meanwhile.
    fn take_lone(&mut self) -> Option<(u64, Transfer)> {
        if self.pushed.len() != 1 || self.ring.len() != 0 || !self.ended.is_empty() {
            return None;
        }
        let is_short = |(_, transfer): &(u64, Transfer)| match transfer {
            Transfer::Read { len_bytes, .. } | Transfer::Write { len_bytes, .. } => {
                *len_bytes <= LONE_BYTES_MAX
            }
            Transfer::Flush => false,
        };
        self.pushed.pop_front_if(|lone| is_short(lone))
    }
}

impl TransferQueue for FileQueue {
    fn push(&mut self, tag: u64, transfer: Transfer) {
        match self.device.check_transfer(&transfer) {
            Ok(()) if !transfer.is_empty() => self.pushed.push_back((tag, transfer)),
            checked => self.ended.push(transfer.ended(tag, checked)),
        }
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn in_flight(&self) -> usize {
        self.pushed.len() + self.ring.len() + self.ended.len()
    }

    fn submit(&mut self) {
        // In a forked child nothing is pushed, and what is in flight belongs to the parent.
        if !self.device.is_home() {
            return;
        }
        self.depart();
        if self.ring.has_waiting() {
            self.ring.submit();
        }
    }

    fn wait(&mut self, patience: Duration) {
        self.wait_for(1, patience);
    }

    fn wait_for(&mut self, count: usize, patience: Duration) {
        if !self.device.is_home() {
            return;
        }
        self.land();
        let patience = match self.ring.is_woken() {
            true => Duration::ZERO,
            false => patience,
        };
        if !patience.is_zero()
            && let Some((tag, transfer)) = self.take_lone()
        {
            self.ended.push(carry_out(&*self.device, tag, transfer));
            return;
        }
        self.depart();
        if self.ended.is_empty() {
            self.ring.enter(count, patience);
            self.land();
        } else if self.ring.has_waiting() {
            self.ring.submit();
        }
        self.ring.hear();
    }

    fn reap(&mut self, ended: &mut Vec<Transferred>) {
        if self.device.is_home() {
            self.land();
        }
        ended.append(&mut self.ended);
    }

    fn waker(&self) -> Waker {
        self.ring.waker()
    }
}
