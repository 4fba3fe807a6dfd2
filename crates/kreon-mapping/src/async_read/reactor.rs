//! The thread that takes completions where no other thread does.
//!
//! A task that waits cannot take the completion of its own read, because its executor's thread sleeps on something
//! else. So this thread sleeps in the device's queue. While a thread [drives](crate::Mapping::drive) its reads itself,
//! the reactor only looks in every millisecond: the driving thread may be busy with work that waits for a page whose
//! read it would have to end first.
//!
//! Whoever has put a read in flight calls [`Reactor::rouse`] afterwards. The thread marks itself as asleep and then looks for
//! reads in flight once more, so either it sees the read or it is called.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst, fence};
use std::sync::{Arc, Weak};

use super::wakeup::Wakeup;

/// What the thread looks after.
pub(crate) trait Rounds: Send + Sync {
    /// Whether reads are in flight that no thread waits for in a call.
    fn is_in_flight(&self) -> bool;

    /// Waits a while for completions and takes them. `gathers` is passed from one round to the next. False if nothing is
    /// left to look after.
    fn round(&self, gathers: &mut bool) -> bool;
}

/// The handle of the thread.
#[derive(Default)]
pub(super) struct Reactor {
    /// The thread sleeps, or is about to, and must be called.
    is_asleep: AtomicBool,
    is_ended: AtomicBool,
    wakeup: Wakeup,
}

impl Reactor {
    /// Starts the thread. `None` if the system has no thread to give.
    pub(super) fn start(rounds: Weak<dyn Rounds>) -> Option<Arc<Self>> {
        let reactor = Arc::new(Self::default());
        let own = Arc::clone(&reactor);
        let thread = std::thread::Builder::new().name("kreon-reads".to_owned());
        match thread.spawn(move || own.run(&rounds)) {
            Ok(_) => Some(reactor),
            Err(error) => {
                tracing::warn!(%error, "no thread for asynchronous reads");
                None
            }
        }
    }

    /// Reads were put in flight: makes sure that their completions are taken.
    pub(super) fn rouse(&self) {
        // Either the thread, about to sleep, sees the reads, or this call sees that it sleeps.
        fence(SeqCst);
        if self.is_asleep.load(SeqCst) {
            self.wakeup.call();
        }
    }

    /// Ends the thread: there is nothing to look after any more.
    pub(super) fn end(&self) {
        self.is_ended.store(true, SeqCst);
        self.wakeup.call();
    }

    fn run(&self, rounds: &Weak<dyn Rounds>) {
        self.wakeup.attach();
        loop {
            self.is_asleep.store(true, SeqCst);
            fence(SeqCst);
            let is_busy = rounds.upgrade().is_some_and(|rounds| rounds.is_in_flight());
            if !is_busy && !self.sleep() {
                return;
            }
            self.is_asleep.store(false, SeqCst);
            let mut gathers = false;
            while let Some(rounds) = rounds.upgrade()
                && rounds.round(&mut gathers)
            {}
        }
    }

    /// Sleeps until called. False if the thread is to end.
    fn sleep(&self) -> bool {
        while !self.wakeup.take() && !self.is_ended.load(SeqCst) {
            self.wakeup.sleep();
        }
        !self.is_ended.load(SeqCst)
    }
}
