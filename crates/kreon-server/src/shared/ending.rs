//! The end of the server, which a signal or `SHUTDOWN` asks for.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Asked for once, seen by all.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    is_asked: AtomicBool,
    notify: Notify,
}

impl Ending {
    /// From now on nobody is accepted, and connections end when they have answered what they received.
    pub(crate) fn ask(&self) {
        self.is_asked.store(true, Ordering::SeqCst);
        self.notify.notify_waiters();
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::SeqCst)
    }

    /// Completes when the end was asked for.
    pub(crate) async fn asked(&self) {
        loop {
            let notified = self.notify.notified();
            if self.is_asked() {
                return;
            }
            notified.await;
        }
    }
}
