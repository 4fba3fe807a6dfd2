//! How fast a backup or restore goes on, and whether it does.

use std::time::{Duration, Instant};

use kreon_base::Result;

use super::Tell;
use crate::progress::Progress;

/// Longest sleep between two questions whether to go on.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// Bytes between two reports.
const BYTES_BETWEEN: u64 = 1 << 20;

/// Tells progress, keeps the rate, and ends the work when somebody wants that.
pub struct Pace<'a> {
    tell: Tell<'a>,
    /// Whether the source can still be read.
    is_open: &'a dyn Fn() -> Result<()>,
    now: Progress,
    told: u64,
    started: Instant,
    moved: u64,
    bytes_per_second: Option<u64>,
}

impl<'a> Pace<'a> {
    /// Nothing is done of `total` bytes.
    ///
    /// # Errors
    /// That of `tell`.
    pub fn new(
        tell: Tell<'a>,
        is_open: &'a dyn Fn() -> Result<()>,
        total: u64,
        bytes_per_second: Option<u64>,
    ) -> Result<Self> {
        let now = Progress {
            step: "pages",
            done: 0,
            total: total.saturating_add(1),
        };
        tell(now)?;
        Ok(Self {
            tell,
            is_open,
            now,
            told: 0,
            started: Instant::now(),
            moved: 0,
            bytes_per_second: bytes_per_second.filter(|rate| *rate > 0),
        })
    }

    /// Another step begins.
    pub fn step(&mut self, step: &'static str) -> Result<()> {
        self.now.step = step;
        self.show()
    }

    /// So many bytes are done, and were there already.
    ///
    /// # Errors
    /// Why the work is to end.
    pub fn passed(&mut self, bytes: u64) -> Result<()> {
        let most = self.now.total - 1;
        self.now.done = self.now.done.saturating_add(bytes).min(most);
        if self.now.done - self.told >= BYTES_BETWEEN {
            self.show()?;
        }
        Ok(())
    }

    /// So many bytes were moved. Sleeps if that was too fast.
    ///
    /// # Errors
    /// Why the work is to end.
    pub fn moved(&mut self, bytes: u64) -> Result<()> {
        (self.is_open)()?;
        self.moved += bytes;
        self.passed(bytes)?;
        while let Some(early) = self.early() {
            std::thread::sleep(early.min(SLEEP_MAX));
            (self.is_open)()?;
            self.show()?;
        }
        Ok(())
    }

    /// How much later this much should have been moved.
    fn early(&self) -> Option<Duration> {
        let rate = self.bytes_per_second?;
        let due = Duration::from_secs_f64(self.moved as f64 / rate as f64);
        due.checked_sub(self.started.elapsed())
            .filter(|early| !early.is_zero())
    }

    /// All is done.
    ///
    /// # Errors
    /// That of the callback.
    pub fn finish(mut self) -> Result<()> {
        self.now.done = self.now.total;
        self.show()
    }

    fn show(&mut self) -> Result<()> {
        self.told = self.now.done;
        (self.tell)(self.now)
    }
}
