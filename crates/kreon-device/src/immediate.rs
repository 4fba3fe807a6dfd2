//! A queue for devices that have none.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use kreon_base::Result;
use parking_lot::{Condvar, Mutex};

use crate::device::Device;
use crate::transfer_queue::{QUEUE_DEPTH_MAX, Transfer, TransferQueue, Transferred};

/// Carries out each transfer when it is submitted, in the order of the pushes, by calls that wait.
pub(crate) struct Immediate<D: ?Sized> {
    pushed: VecDeque<(u64, Transfer)>,
    ended: Vec<Transferred>,
    depth: usize,
    bell: Arc<Bell>,
    device: Arc<D>,
}

impl<D: Device + ?Sized> Immediate<D> {
    /// Over `device`; `depth` is what it claims.
    pub(crate) fn new(device: Arc<D>, depth: usize) -> Self {
        Self {
            pushed: VecDeque::new(),
            ended: Vec::new(),
            depth: depth.clamp(1, QUEUE_DEPTH_MAX),
            bell: Arc::default(),
            device,
        }
    }
}

/// Carries out one transfer by a call that waits.
pub(crate) fn carry_out<D: Device + ?Sized>(
    device: &D,
    tag: u64,
    mut transfer: Transfer,
) -> Transferred {
    let outcome = attempt(device, &mut transfer);
    transfer.ended(tag, outcome)
}

fn attempt<D: Device + ?Sized>(device: &D, transfer: &mut Transfer) -> Result<()> {
    // Says what is wrong with the length; afterwards it is right.
    transfer.bytes()?;
    match transfer {
        Transfer::Read {
            offset,
            buffer,
            len_bytes,
        } => match buffer.get_mut(..*len_bytes) {
            Some(bytes) => device.read_at(*offset, bytes),
            None => Ok(()),
        },
        Transfer::Write {
            offset,
            buffer,
            len_bytes,
        } => match buffer.get(..*len_bytes) {
            Some(bytes) => device.write_at(*offset, bytes),
            None => Ok(()),
        },
        Transfer::Flush => device.flush(),
    }
}

impl<D: Device + ?Sized> TransferQueue for Immediate<D> {
    fn push(&mut self, tag: u64, transfer: Transfer) {
        self.pushed.push_back((tag, transfer));
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn in_flight(&self) -> usize {
        self.pushed.len() + self.ended.len()
    }

    fn submit(&mut self) {
        while let Some((tag, transfer)) = self.pushed.pop_front() {
            self.ended.push(carry_out(&*self.device, tag, transfer));
        }
    }

    fn wait(&mut self, patience: Duration) {
        self.submit();
        if self.ended.is_empty() {
            self.bell.wait(patience);
        }
    }

    fn reap(&mut self, ended: &mut Vec<Transferred>) {
        ended.append(&mut self.ended);
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.bell))
    }
}

/// Wakes a sleeper, or keeps the next one from going to sleep.
#[derive(Default)]
struct Bell {
    has_rung: Mutex<bool>,
    rings: Condvar,
}

impl Bell {
    /// Sleeps until it rings, if it has not rung since the last wait.
    fn wait(&self, patience: Duration) {
        let end = Instant::now().checked_add(patience);
        let mut has_rung = self.has_rung.lock();
        while !*has_rung {
            match end {
                Some(end) if self.rings.wait_until(&mut has_rung, end).timed_out() => break,
                Some(_) => {}
                None => self.rings.wait(&mut has_rung),
            }
        }
        *has_rung = false;
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        *self.has_rung.lock() = true;
        self.rings.notify_one();
    }
}
