//! Waking a thread that waits for work.

use std::time::Duration;

use crate::sync::{Condvar, Mutex};

/// Remembers one ring until it is heard.
#[derive(Default)]
pub(super) struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    /// Wakes the thread, now or when it waits next.
    pub fn ring(&self) {
        *self.rung.lock() = true;
        self.changed.notify_one();
    }

    /// Waits for a ring.
    pub fn wait(&self) {
        let mut rung = self.rung.lock();
        while !*rung {
            self.changed.wait(&mut rung);
        }
        *rung = false;
    }

    /// Waits for a ring, or for `patience` to end.
    pub fn wait_for(&self, patience: Duration) {
        let mut rung = self.rung.lock();
        if !*rung {
            self.changed.wait_for(&mut rung, patience);
        }
        *rung = false;
    }
}
