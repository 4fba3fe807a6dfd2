//! Ends the process when a run hangs, and says which one.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use std::sync::Mutex;

/// No run takes nearly as long, even on a machine that is busy otherwise.
const PATIENCE: Duration = Duration::from_secs(120);

/// Watches until it is dropped.
pub struct Watchdog {
    label: Arc<Mutex<String>>,
    beats: Sender<()>,
}

impl Watchdog {
    /// Starts the thread that watches.
    pub fn start() -> Self {
        let label = Arc::new(Mutex::new(String::new()));
        let (beats, heard) = channel::<()>();
        let watched = Arc::clone(&label);
        std::thread::spawn(move || {
            loop {
                match heard.recv_timeout(PATIENCE) {
                    Ok(()) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        let label = watched
                            .lock()
                            .map(|label| label.clone())
                            .unwrap_or_default();
                        eprintln!("HANGS for {PATIENCE:?}: {label}");
                        std::process::abort();
                    }
                }
            }
        });
        Self { label, beats }
    }

    /// The next run begins.
    pub fn begin(&self, label: impl Into<String>) {
        if let Ok(mut current) = self.label.lock() {
            *current = label.into();
        }
        // The thread ends with `self` only.
        let _ = self.beats.send(());
    }
}

/// Runs `body`; a panic becomes an error.
pub fn without_panic<R>(body: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
        Ok(outcome) => outcome,
        Err(cause) => {
            let text = cause.downcast_ref::<String>().map(String::as_str);
            let text = text.or(cause.downcast_ref::<&str>().copied());
            Err(format!("PANIC: {}", text.unwrap_or("of another type")))
        }
    }
}
