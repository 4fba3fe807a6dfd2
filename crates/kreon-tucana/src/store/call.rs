//! A call for one of the threads of a store. Those who call while it is called already take no lock.

use std::time::Duration;

use kreon_sync::{AtomicBool, Ordering::SeqCst, Wakeup};

/// Keeps one call, however often it was made.
#[derive(Default)]
pub(super) struct Call {
    is_called: AtomicBool,
    wakeup: Wakeup,
}

impl Call {
    /// Wakes the thread, now or when it waits next. It sees what the caller did before.
    #[inline]
    pub(super) fn call(&self) {
        if !self.is_called.swap(true, SeqCst) {
            self.wakeup.call();
        }
    }

    /// Waits for a call.
    pub(super) fn wait(&self) {
        self.wakeup.wait();
        self.is_called.swap(false, SeqCst);
    }

    /// Waits for a call, or for `patience` to end. May end before either.
    pub(super) fn wait_for(&self, patience: Duration) {
        self.wakeup.wait_for(patience);
        self.is_called.swap(false, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::thread;

    use super::*;

    #[test]
    fn a_call_is_kept_while_the_thread_works() {
        let call = Call::default();
        for _ in 0..3 {
            call.call();
            call.call();
            call.wait();
        }
        call.wait_for(Duration::ZERO);
        call.call();
        call.wait();
    }

    #[test]
    fn no_call_is_lost_between_two_threads() {
        const WORK: u64 = 20_000;
        let (call, given) = (Call::default(), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                while given.load(SeqCst) < WORK {
                    call.wait();
                }
            });
            for _ in 0..WORK {
                given.fetch_add(1, SeqCst);
                call.call();
            }
        });
    }
}
