//! Ends the process when a run hangs, and says which one.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::hang::{Activity, Patience};

/// No run waits nearly as long while nothing of the process works: calls of devices take milliseconds.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// No run takes nearly as much of the processors, together with those of other threads meanwhile.
const BUSY_MAX: Duration = Duration::from_secs(150);

/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

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
            let mut patience = Patience::new(IDLE_MAX, BUSY_MAX);
            let mut looked = Instant::now();
            loop {
                match heard.recv_timeout((looked + LOOK).saturating_duration_since(Instant::now()))
                {
                    Ok(()) => patience.renew(),
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        let now = Activity::of(std::process::id());
                        let hang = patience.look(now, looked.elapsed());
                        looked = Instant::now();
                        if let Some(hang) = hang {
                            let label = watched
                                .lock()
                                .map(|label| label.clone())
                                .unwrap_or_default();
                            eprintln!("{hang}: {label}");
                            std::process::abort();
                        }
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
