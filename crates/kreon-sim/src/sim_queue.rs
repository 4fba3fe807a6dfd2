//! Transfers in flight together on a simulated device.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Wake, Waker};
use std::time::Duration;

use kreon_base::Result;
use kreon_device::{Transfer, TransferQueue, Transferred};

use crate::dice::Dice;
use crate::sim_device::SimDevice;
use crate::state::Begun;

/// Most transfers that it has in flight, as of a real device.
const DEPTH_MAX: usize = 4096;

/// A queue in which dice decide. Transfers begin and end in any order; between the two a write shows to readers, and any
/// part of it may be on the device. A flush speaks for no more than it must: what had ended when it was pushed.
///
/// No time passes: a wait ends one transfer, or more, of those in flight, and returns at once.
pub(crate) struct SimQueue {
    device: Arc<SimDevice>,
    dice: Dice,
    depth: usize,
    /// Pushed, not submitted, in the order of the pushes.
    pushed: VecDeque<Queued>,
    in_flight: Vec<Queued>,
    /// Not yet reaped.
    ended: Vec<Transferred>,
    wakes: Arc<Woken>,
}

/// A transfer on its way.
struct Queued {
    tag: u64,
    transfer: Transfer,
    /// How it began; `None`: it has not.
    begun: Option<Result<Begun>>,
}

impl SimQueue {
    pub(crate) fn new(device: Arc<SimDevice>, dice: Dice, depth: usize) -> Self {
        Self {
            device,
            dice,
            depth: depth.clamp(1, DEPTH_MAX),
            pushed: VecDeque::new(),
            in_flight: Vec::new(),
            ended: Vec::new(),
            wakes: Arc::default(),
        }
    }

    /// Lets some begin, and at least `least` end, if so many are in flight.
    fn go_on(&mut self, least: usize) {
        let more = self.in_flight.len().saturating_sub(least) as u64;
        let ends = least + self.dice.below(more + 1) as usize;
        let begins = self.dice.below(self.in_flight.len() as u64 + 1);
        for _ in 0..begins {
            let index = self.pick();
            self.begin(index);
        }
        for _ in 0..ends {
            let index = self.pick();
            self.end(index);
        }
    }

    /// The index of any transfer in flight.
    fn pick(&mut self) -> usize {
        self.dice.below(self.in_flight.len() as u64) as usize
    }

    fn begin(&mut self, index: usize) {
        let depth = self.in_flight.len();
        if let Some(queued) = self.in_flight.get_mut(index) {
            queued.begin(&self.device, depth);
        }
    }

    fn end(&mut self, index: usize) {
        if index >= self.in_flight.len() {
            return;
        }
        let depth = self.in_flight.len();
        let queued = self.in_flight.swap_remove(index);
        self.ended.push(queued.end(&self.device, depth));
    }
}

impl Queued {
    /// Begins it, if it has not begun.
    fn begin(&mut self, device: &SimDevice, depth: usize) {
        if self.begun.is_none() {
            self.begun = Some(device.begin_transfer(&mut self.transfer, depth));
        }
    }

    fn end(mut self, device: &SimDevice, depth: usize) -> Transferred {
        self.begin(device, depth);
        let outcome = match self.begun.unwrap_or(Ok(None)) {
            Ok(begun) => {
                device.end_transfer(&self.transfer, begun);
                Ok(())
            }
            Err(error) => Err(error),
        };
        self.transfer.ended(self.tag, outcome)
    }
}

impl TransferQueue for SimQueue {
    fn push(&mut self, tag: u64, transfer: Transfer) {
        if let Err(error) = self.device.check_transfer(&transfer) {
            return self.ended.push(transfer.ended(tag, Err(error)));
        }
        if transfer.is_empty() {
            return self.ended.push(transfer.ended(tag, Ok(())));
        }
        let mut queued = Queued {
            tag,
            transfer,
            begun: None,
        };
        if matches!(queued.transfer, Transfer::Flush) {
            queued.begin(&self.device, 0);
        }
        self.pushed.push_back(queued);
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn in_flight(&self) -> usize {
        self.pushed.len() + self.in_flight.len() + self.ended.len()
    }

    fn submit(&mut self) {
        let room = self.depth - self.in_flight.len();
        let submitted = room.min(self.pushed.len());
        self.in_flight.extend(self.pushed.drain(..submitted));
        // Some are quick.
        if submitted != 0 && self.dice.below(4) == 0 {
            self.go_on(0);
        }
    }

    /// After a wake-up it may end nothing.
    fn wait(&mut self, _: Duration) {
        self.submit();
        let is_woken = self.wakes.0.swap(false, SeqCst);
        let least = usize::from(self.ended.is_empty() && !is_woken);
        self.go_on(least.min(self.in_flight.len()));
    }

    fn reap(&mut self, ended: &mut Vec<Transferred>) {
        ended.append(&mut self.ended);
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.wakes))
    }
}

impl Drop for SimQueue {
    fn drop(&mut self) {
        while !self.in_flight.is_empty() {
            self.go_on(1);
        }
    }
}

/// Whether somebody called the waker since the last wait.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}
