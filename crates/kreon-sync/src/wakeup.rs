//! A wake-up of one thread that waits for work. A call while the thread works is kept until it waits next.

use std::time::Duration;

use crate::{Condvar, Mutex};

/// Keeps one call, however often it was made.
#[derive(Default)]
pub struct Wakeup {
    is_called: Mutex<bool>,
    changed: Condvar,
}

impl Wakeup {
    /// Wakes the thread, now or when it waits next.
    pub fn call(&self) {
        *self.is_called.lock() = true;
        self.changed.notify_one();
    }

    /// Waits for a call.
    pub fn wait(&self) {
        let mut is_called = self.is_called.lock();
        while !*is_called {
            self.changed.wait(&mut is_called);
        }
        *is_called = false;
    }

    /// Waits for a call, or for `patience` to end. May end before either.
    pub fn wait_for(&self, patience: Duration) {
        let mut is_called = self.is_called.lock();
        if !*is_called {
            self.changed.wait_for(&mut is_called, patience);
        }
        *is_called = false;
    }
}
