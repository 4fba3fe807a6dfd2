//! A wake-up call for one background thread.

use std::time::Duration;

use crate::sync::{Condvar, Mutex};

/// Remembers one call until it is heard.
#[derive(Default)]
pub struct Signal {
    called: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    /// Wakes the thread, now or when it waits next.
    pub fn call(&self) {
        *self.called.lock() = true;
        self.changed.notify_one();
    }

    /// Waits for a call, or for `patience` to end.
    pub fn wait(&self, patience: Duration) {
        let mut called = self.called.lock();
        if !*called {
            self.changed.wait_for(&mut called, patience);
        }
        *called = false;
    }
}
