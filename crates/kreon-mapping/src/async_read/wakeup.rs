//! A call that wakes one thread. A call that comes before the thread sleeps is not lost.

use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire};
use std::sync::{Arc, OnceLock};
use std::task::Wake;
use std::thread::{self, Thread};

/// Wakes the thread that [attached](Self::attach) itself.
#[derive(Default)]
pub(super) struct Wakeup {
    is_called: AtomicBool,
    sleeper: OnceLock<Thread>,
}

impl Wakeup {
    /// The calling thread is the one to wake. Calls from before are kept.
    pub(super) fn attach(&self) {
        let set = self.sleeper.set(thread::current());
        debug_assert!(set.is_ok(), "two threads sleep on one wakeup");
    }

    /// Wakes the thread, or has its next sleep return at once.
    pub(super) fn call(&self) {
        // Read-modify-write on both sides: either this call sees the sleeper, or the sleeper, which takes the flag after
        // it attached, sees this call.
        if self.is_called.swap(true, AcqRel) {
            return;
        }
        if let Some(sleeper) = self.sleeper.get()
            && sleeper.id() != thread::current().id()
        {
            sleeper.unpark();
        }
    }

    /// Whether there was a call since the last take.
    pub(super) fn take(&self) -> bool {
        self.is_called.swap(false, AcqRel)
    }

    /// Whether a call is waiting to be taken.
    pub(super) fn is_called(&self) -> bool {
        self.is_called.load(Acquire)
    }

    /// Sleeps until a call, unless there is one already, which stays. May return without one.
    pub(super) fn sleep(&self) {
        debug_assert_eq!(
            self.sleeper.get().map(Thread::id),
            Some(thread::current().id())
        );
        if !self.is_called() {
            thread::park();
        }
    }
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.call();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.call();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_call_before_the_sleep_is_not_lost() {
        let wakeup = Arc::new(Wakeup::default());
        wakeup.call();
        let sleeper = Arc::clone(&wakeup);
        thread::spawn(move || {
            sleeper.attach();
            while !sleeper.take() {
                sleeper.sleep();
            }
        })
        .join()
        .expect("no panic");
        assert!(!wakeup.is_called());
    }

    #[test]
    fn a_call_wakes_the_thread_that_sleeps() {
        let wakeup = Arc::new(Wakeup::default());
        let sleeper = Arc::clone(&wakeup);
        let thread = thread::spawn(move || {
            sleeper.attach();
            for _ in 0..1000 {
                while !sleeper.take() {
                    sleeper.sleep();
                }
            }
        });
        while !thread.is_finished() {
            wakeup.call();
        }
        thread.join().expect("no panic");
    }
}
