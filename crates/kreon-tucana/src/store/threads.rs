//! The threads of a store: one commits and collects garbage, the other writes full segments of the log out, and
//! makes the next one ready.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use kreon_base::{Error, Result};

use super::options::Maintenance;
use super::shared::Shared;

/// How often the thread looks whether changed nodes have taken their frames.
const FRAMES_LOOK: Duration = Duration::from_millis(20);

/// After a commit that found no space.
const PAUSE: Duration = Duration::from_millis(100);

/// The threads of an open store. Dropped, they end; nothing is committed.
pub(super) struct Threads {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts them, if the store is to have any.
    ///
    /// # Errors
    /// `Io` if the system has no thread.
    pub(super) fn start(shared: &Arc<Shared>) -> Result<Self> {
        let mut threads = Self {
            shared: Arc::clone(shared),
            handles: Vec::new(),
        };
        if shared.options.maintenance == Maintenance::Thread {
            threads.spawn("tucana-commit", commit_while_open)?;
            threads.spawn("tucana-log", write_log_while_open)?;
            shared.log.set_threaded();
        }
        Ok(threads)
    }

    fn spawn(&mut self, name: &str, run: fn(&Shared)) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = Builder::new().name(name.into());
        let started = thread.spawn(move || run(&shared));
        let handle = started.map_err(|error| Error::io("start a thread", error))?;
        self.handles.push(handle);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Release);
        self.shared.work.call();
        self.shared.log.work.call();
        for handle in self.handles.drain(..) {
            if handle.join().is_err() {
                tracing::error!("a thread of the store has panicked");
            }
        }
    }
}

fn commit_while_open(shared: &Shared) {
    // Writers that wait for the thread are refused then.
    let _alive = shared.home.poison.on_panic();
    let interval = shared.options.commit_interval;
    let mut last = Instant::now();
    while !shared.is_closing.load(Acquire) {
        let left = interval.saturating_sub(last.elapsed());
        shared
            .work
            .wait_for(left.clamp(Duration::from_millis(1), FRAMES_LOOK));
        let is_time = last.elapsed() >= interval;
        if !is_time && !shared.is_maintenance_due() {
            continue;
        }
        last = Instant::now();
        let outcome = shared.maintain();
        shared.note_maintenance(&outcome);
        if let Err(error) = outcome {
            // Writers that are refused are told why.
            tracing::error!(%error, "the store was not committed");
            std::thread::sleep(PAUSE);
        }
    }
}

fn write_log_while_open(shared: &Shared) {
    while !shared.is_closing.load(Acquire) {
        shared.log.work.wait();
        let done = shared.log.write_full();
        if let Err(error) = done.and_then(|()| shared.log.prepare_ahead()) {
            tracing::error!(%error, "the log was not written");
            std::thread::sleep(PAUSE);
        }
    }
}
