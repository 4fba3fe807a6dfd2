//! A wake-up for a thread that sleeps on a ring.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::task::Wake;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// A counter of wake-ups in the kernel (`eventfd`), which a ring can watch. Any number of them before it is cleared are
/// one.
pub(super) struct WakeEvent(OwnedFd);

impl WakeEvent {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(
            0,
            EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK,
        )?))
    }

    /// Forgets the wake-ups so far.
    pub(super) fn clear(&self) {
        // Fails if there were none.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }

    /// Sleeps without a ring until a wake-up, which stays, or the end of `patience`.
    pub(super) fn sleep(&self, patience: Duration) {
        let time = Timespec::try_from(patience).ok();
        let mut files = [PollFd::new(&self.0, PollFlags::IN)];
        // Interrupted: the caller sees to what may have happened meanwhile.
        let _ = poll(&mut files, time.as_ref());
    }
}

impl AsRawFd for WakeEvent {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Wake for WakeEvent {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Fails only if the counter is at its limit, so that it wakes anyway.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}
