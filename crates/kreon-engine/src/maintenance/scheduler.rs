//! The scheduler: runs background jobs in threads of the store, in the writer that needs them (`Background::Inline`), or
//! in the caller of [`Maintenance::background`] (`Background::Driven`).

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Result};

use super::Maintenance;
use super::l0_images::LOG_BYTES_MIN;
use crate::options::{Background, Work};

/// The longest sleep of a thread without a wake-up.
const PATIENCE: Duration = Duration::from_millis(200);

/// The same for collection, which also becomes due with time.
const PATIENCE_COLLECTION: Duration = Duration::from_millis(50);

/// Pause after a failure of collection: damage stays, and each retry would read it again.
const PAUSE_COLLECTION: Duration = Duration::from_secs(1);

/// Bounds of the interval of images, whatever the option says.
const INTERVALS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1 << 30)];

/// Most rounds of collection after a spill in a store without threads.
const ROUNDS_INLINE: u32 = 3;

/// What a thread does until the store is closed.
type Body = fn(&Maintenance);

/// The threads of a store: names and bodies, which return when the store is closed.
const THREADS: [(&str, Body); 10] = [
    ("kreon-spill", Maintenance::spills),
    // Two, so that the upper levels are merged beside a long merge of lower ones.
    ("kreon-merge", Maintenance::merges),
    ("kreon-merge-2", Maintenance::merges),
    ("kreon-gc", Maintenance::collects),
    ("kreon-reorg", Maintenance::reorganises),
    // Two, so that one has a write at the device while the other completes its own.
    ("kreon-log", Maintenance::writes_log),
    ("kreon-log-2", Maintenance::writes_log),
    ("kreon-flush", Maintenance::flushes),
    ("kreon-image", Maintenance::takes_images),
    ("kreon-ahead", Maintenance::writes_ahead),
];

impl Maintenance {
    /// Starts the threads of a store with `Background::Threads`.
    pub fn start(self: &Arc<Self>) -> Result<Vec<JoinHandle<()>>> {
        let start = |(name, body): &(&str, Body)| {
            let (maintenance, body) = (Arc::clone(self), *body);
            std::thread::Builder::new()
                .name((*name).to_owned())
                .spawn(move || {
                    kreon_device::take_short_turns();
                    body(&maintenance);
                })
                .map_err(|error| Error::io(format!("start thread {name}"), error))
        };
        match self.on.storage.options.background {
            Background::Threads => THREADS.iter().map(start).collect(),
            Background::Inline | Background::Driven => Ok(Vec::new()),
        }
    }

    /// Wakes all threads: the store is being closed.
    pub fn wake_all(&self) {
        self.spiller.wanted.call();
        self.merge_wanted.call();
        self.l0_images.wanted.call();
        self.collection_wanted.call();
        self.scattered.wanted.call();
        self.on.storage.log.wake_writer();
        self.on.storage.log.wake_flusher();
        self.on.storage.log.wake_preparer();
    }

    /// Freezes L0' if it is full or hides too many dead bytes, and asks for its spill.
    pub fn freeze_if_full(&self) {
        if self.spiller.freeze_if_full() {
            self.want_spill();
        }
    }

    /// Asks the thread of spills to spill the frozen L0. A store with inline work spills here, then merges, collects and
    /// reorganises what became due.
    pub fn want_spill(&self) {
        match self.on.storage.options.background {
            Background::Threads => self.spiller.ask(),
            // The throttle keeps the error of a spill: the next write that needs room returns it.
            Background::Inline => {
                drop(
                    self.spiller
                        .spill_frozen()
                        .and_then(|()| self.merger.merge_due()),
                );
                for _ in 0..ROUNDS_INLINE {
                    if !matches!(self.gc.collect_lazily(), Ok(true)) {
                        break;
                    }
                }
                drop(self.reorganiser.reorganise_all());
                // Collection and copies spill by themselves, and their spills make merges due.
                drop(self.merger.merge_due());
            }
            Background::Driven => {}
        }
    }

    /// Does a piece of background work in the calling thread.
    pub fn background(&self, work: Work) -> Result<()> {
        self.on.storage.check_open()?;
        if self.on.storage.options.read_only {
            return self.on.storage.check_writable();
        }
        match work {
            Work::Spill => self
                .spiller
                .spill_frozen()
                .and_then(|()| self.on.versions.reclaim()),
            Work::Merge => self.merger.merge_due(),
            Work::Collect => self
                .gc
                .collect_driven()
                .and_then(|()| self.on.versions.reclaim()),
            Work::Reorganise => self.reorganiser.reorganise_all(),
            Work::LayTogether => self.idle.round_now(),
            Work::WriteOut => {
                let log = &self.on.storage.log;
                log.write_out(log.tail())
                    .inspect_err(|error| self.on.storage.poison.set(error))
            }
            Work::Image => self
                .l0_images
                .take_image(1)
                .and_then(|_| self.on.versions.reclaim()),
            Work::Prepare => self.log_stock.prepare_some(),
        }
    }

    fn is_open(&self) -> bool {
        !self.on.storage.lifecycle.is_closed()
    }

    fn is_healthy(&self) -> bool {
        self.on.storage.poison.check().is_ok()
    }

    fn spills(&self) {
        while self.is_open() {
            self.spiller.wanted.wait_for(PATIENCE);
            if self.spiller.is_due() && self.is_healthy() {
                // The throttle tells waiting writers; out of space is tried again.
                let _ = self.spiller.spill_frozen();
            }
            let _ = self.on.versions.reclaim();
        }
    }

    /// Not in the thread of spills: a merge may take minutes, and spills go on beside it.
    fn merges(&self) {
        let mut pause = MergePause::default();
        while self.is_open() {
            if pause.is_over() && self.is_healthy() {
                pause.after(&self.merger.merge_due());
            }
            self.merge_wanted.wait_for(PATIENCE);
        }
        // Wakes the other thread of this kind, so that it ends, too.
        self.merge_wanted.call();
    }

    fn collects(&self) {
        while self.is_open() {
            self.collection_wanted.wait_for(PATIENCE_COLLECTION);
            while self.is_open() && self.is_healthy() {
                match self.gc.collect_lazily() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => {
                        self.collection_wanted.wait_for(PAUSE_COLLECTION);
                        break;
                    }
                }
            }
        }
    }

    fn reorganises(&self) {
        let mut patience = PATIENCE;
        while self.is_open() {
            self.scattered.wanted.wait_for(patience);
            patience = PATIENCE;
            if !self.is_healthy() {
                continue;
            }
            // Errors were logged. What was to be moved stays; scans find it again, or the damage in it.
            if let Ok(Some(wait)) = self.idle.step() {
                patience = wait.min(PATIENCE);
                continue;
            }
            drop(self.reorganiser.reorganise_all());
            self.reorganiser.spill_copies(false);
        }
    }

    fn writes_log(&self) {
        self.on.storage.log.begin_writing();
        let _writing = AtEnd(|| self.on.storage.log.end_writing());
        while self.is_open() {
            self.on.storage.log.wait_for_work();
            if let Err(error) = self.on.storage.log.write_out_step() {
                self.on.storage.poison.set(&error);
            }
        }
        // Wakes the other thread of this kind, so that it ends, too.
        self.on.storage.log.wake_writer();
    }

    /// Flushes for tasks.
    fn flushes(&self) {
        self.on.storage.log.begin_serving();
        let _serving = AtEnd(|| self.on.storage.log.end_serving());
        while self.is_open() {
            if let Err(error) = self.on.storage.log.serve() {
                self.on.storage.poison.set(&error);
            }
        }
    }

    fn takes_images(&self) {
        let Some(interval) = self.on.storage.options.l0_checkpoint_interval else {
            return;
        };
        let interval = interval.clamp(INTERVALS[0], INTERVALS[1]);
        let mut due = Instant::now() + interval;
        while self.is_open() {
            let begun = Instant::now();
            if begun < due {
                self.l0_images.wanted.wait_for(due - begun);
                continue;
            }
            if self.is_healthy() {
                // A failure that counts has poisoned the store.
                let _ = self.l0_images.take_image(LOG_BYTES_MIN);
                let _ = self.on.versions.reclaim();
            }
            // Images take half of the time at most.
            due = begun + interval.max(begun.elapsed() * 2);
        }
    }

    fn writes_ahead(&self) {
        self.log_stock.work();
    }
}

/// The pause of a merge thread after failures, for lack of space in most cases.
#[derive(Default)]
struct MergePause {
    until: Option<Instant>,
    pause: Duration,
}

impl MergePause {
    /// Whether it is time to try again.
    fn is_over(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() >= until)
    }

    /// Twice as long after every failure, up to a minute.
    fn after(&mut self, outcome: &Result<()>) {
        let error = match outcome {
            // The region was dropped meanwhile, or the store closed: no failure.
            Err(error) if error.kind() != ErrorKind::Closed => error,
            _ => {
                *self = Self::default();
                return;
            }
        };
        tracing::warn!(%error, "trees of a region could not be merged");
        let pause = self.pause.max(Duration::from_millis(500)) * 2;
        self.pause = pause.min(Duration::from_secs(60));
        self.until = Some(Instant::now() + self.pause);
    }
}

/// Runs also if a device panics, so that no writer and no task waits for a thread that is gone.
struct AtEnd<F: Fn()>(F);

impl<F: Fn()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
