//! What the callers of a store and its threads share: commits, collection, the pace of writers, space.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Lsn, Result};
use kreon_format::place_of;
use kreon_sync::{
    AtomicBool, AtomicU64, Condvar, Mutex,
    Ordering::{Acquire, Relaxed, Release},
};

use super::call::Call;
use super::collect::{Collector, Garbage, Round};
use super::commits::{Commits, Kept, Parts};
use super::group_flush::GroupFlush;
use super::home::Home;
use super::opening::Opened;
use super::options::{Maintenance, Options, Recovery};
use super::redo::redo;
use super::volume_log::VolumeLog;
use super::volume_pages::VolumePages;
use crate::tree::Tree;

/// The least log between two commits that are made because of it: a store with less data has this much of dead records.
const COMMIT_LOG_BYTES_MIN: u64 = 8 << 20;

/// Of a store with little data, a commit is due when the log has grown by this part of its live bytes.
const COMMIT_LIVE_SHARE: u64 = 8;

/// So many full segments may wait for the thread that writes them out; then the writers write them.
const FULL_SEGMENTS_MAX: usize = 4;

/// Rounds of collection that a write without space is worth.
const ROUNDS_MAX: usize = 8;

/// No position of the log.
const NEVER: u64 = u64::MAX;

/// How long a writer waits before it looks again, in case nobody calls it.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Everything of an open store.
pub(super) struct Shared {
    pub home: Home,
    pub log: Arc<VolumeLog>,
    pub pages: Arc<VolumePages>,
    pub tree: Tree<VolumeLog>,
    pub options: Options,
    pub commits: Commits,
    flushes: GroupFlush,
    collector: Collector,
    /// Bytes of the log between two commits.
    window_bytes: AtomicU64,
    /// There is so much garbage that writers wait.
    is_behind: AtomicBool,
    /// Where the log ended when no space could be freed.
    exhausted_at: AtomicU64,
    /// Work for the thread that commits.
    pub work: Call,
    pub is_closing: AtomicBool,
    /// The thread that commits has failed the last time: nobody waits for it.
    has_failed: AtomicBool,
    progress: Mutex<()>,
    progressed: Condvar,
}

impl Shared {
    /// Applies what is in the log behind the last commit, and commits.
    ///
    /// # Errors
    /// `Corruption`; `OutOfSpace`; those of the device.
    pub(super) fn begin(opened: Opened, options: &Options) -> Result<Self> {
        let Opened {
            home,
            log,
            pages,
            tree,
            durable,
            to_replay,
        } = opened;
        let shared = Self {
            home,
            log,
            pages,
            tree,
            options: options.clone(),
            commits: Commits::new(durable),
            flushes: GroupFlush::default(),
            collector: Collector::default(),
            window_bytes: AtomicU64::new(options.commit_log_bytes),
            is_behind: AtomicBool::new(false),
            exhausted_at: AtomicU64::new(NEVER),
            work: Call::default(),
            is_closing: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            progress: Mutex::new(()),
            progressed: Condvar::new(),
        };
        shared.commits.stock(shared.parts())?;
        if let Some((mark, mut log)) = to_replay {
            redo(&shared.commits, shared.parts(), (mark, &mut log))?;
        }
        // From here on a replay begins in the log of this opening.
        shared.commit()?;
        shared.pages.keep();
        if !shared.home.standby.is_whole() {
            // Of what is free now, the segments come first that the next opening needs.
            shared.commit()?;
        }
        Ok(shared)
    }

    fn parts(&self) -> Parts<'_> {
        Parts {
            home: &self.home,
            log: &self.log,
            tree: &self.tree,
            flushes: &self.flushes,
        }
    }

    pub(super) fn is_short_of_frames(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::OutOfSpace && self.tree.wants_freeze()
    }

    /// Waits until the record at `lsn` survives a crash.
    ///
    /// # Errors
    /// Those of the device: what is durable is unknown then.
    pub(super) fn make_durable(&self, lsn: Lsn) -> Result<()> {
        match self.options.recovery {
            Recovery::ReplayLog => self.flushes.wait(&self.home, &self.log, lsn),
            Recovery::LastCommit => self.commit(),
        }
    }

    /// Makes everything durable that was written before the call.
    ///
    /// # Errors
    /// As [`make_durable`](Self::make_durable).
    pub(super) fn sync(&self) -> Result<()> {
        self.home.poison.check()?;
        // The position before the end is that of a record or of filler.
        self.make_durable(Lsn(self.log.tail().0 - 1))
    }

    pub(super) fn write_full_segments(&self) -> Result<()> {
        let full = self.log.full_count();
        if full == 0 {
            return Ok(());
        }
        let is_threaded = self.options.maintenance == Maintenance::Thread;
        if is_threaded && full < FULL_SEGMENTS_MAX {
            self.log.work.call();
            return Ok(());
        }
        self.log.write_full()
    }

    /// Bytes of the log since the last commit.
    fn log_bytes(&self) -> u64 {
        self.log.tail().0.saturating_sub(self.commits.marker().0)
    }

    /// Whether a commit is due because of the log.
    fn is_commit_due(&self) -> bool {
        self.log_bytes() >= self.window_bytes.load(Relaxed)
    }

    /// Whether there is something to do, whatever the time.
    pub(super) fn is_maintenance_due(&self) -> bool {
        self.is_commit_due() || self.is_behind.load(Relaxed) || self.tree.wants_freeze()
    }

    /// Before a write: maintenance that is due, or a wait for it.
    #[inline]
    pub(super) fn keep_pace(&self) -> Result<()> {
        self.home.poison.check()?;
        let is_behind = self.is_behind.load(Relaxed);
        if !self.is_commit_due() && !is_behind {
            return Ok(());
        }
        match self.options.maintenance {
            Maintenance::Callers => self.maintain(),
            Maintenance::Thread => {
                self.work.call();
                self.wait_for_progress()
            }
        }
    }

    /// Waits while the thread is behind: with twice the log that a commit is made for, or with too much garbage.
    fn wait_for_progress(&self) -> Result<()> {
        let is_over = || {
            let most = 2 * self.window_bytes.load(Relaxed);
            let keeps_up = self.log_bytes() < most && !self.is_behind.load(Relaxed);
            keeps_up || self.has_failed.load(Relaxed)
        };
        if is_over() {
            return Ok(());
        }
        let mut progress = self.progress.lock();
        while !is_over() {
            self.home.poison.check()?;
            self.work.call();
            self.progressed.wait_for(&mut progress, LOOK_AGAIN);
        }
        Ok(())
    }

    /// Commits.
    ///
    /// # Errors
    /// As [`commit`](crate::Store::commit).
    pub(super) fn commit(&self) -> Result<()> {
        self.commits.commit(self.parts())?;
        self.look_at_garbage();
        Ok(())
    }

    /// Commits, and keeps the state from being changed by other commits.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(super) fn commit_and_keep(&self) -> Result<Kept<'_>> {
        self.commits.commit_and_keep(self.parts())
    }

    /// Commits what was written, and collects garbage.
    ///
    /// # Errors
    /// As [`commit`](Self::commit); those of reading what is collected.
    pub(super) fn maintain(&self) -> Result<()> {
        match self.tree.has_changes() {
            true => self.commit()?,
            false => self.commits.give_back(self.parts())?,
        }
        for _ in 0..ROUNDS_MAX {
            if !self.garbage().is_due() || self.collect()? == 0 {
                // Nothing can be done: nobody waits for it.
                self.is_behind.store(false, Release);
                break;
            }
        }
        self.tell_progress();
        Ok(())
    }

    /// Collects one round and commits. Returns the segments that hold nothing any more.
    fn collect(&self) -> Result<usize> {
        let (mark, live) = {
            let durable = self.commits.durable();
            (durable.mark, durable.live_bytes)
        };
        let Some(mark) = mark else {
            return Ok(0);
        };
        let round = Round {
            home: &self.home,
            log: &self.log,
            tree: &self.tree,
            mark,
            live,
            commit: &|| self.commit(),
            hold: &|segment, sequence| self.commits.hold(self.parts(), (segment, sequence)),
        };
        let collected = self.collector.round(round)?;
        if collected > 0 {
            self.commit()?;
        }
        Ok(collected)
    }

    /// Garbage in what is in the last commit.
    fn garbage(&self) -> Garbage {
        let (live, mark, withheld) = {
            let durable = self.commits.durable();
            let withheld = durable.withheld.iter();
            let withheld: usize = withheld.map(|(_, segments)| segments.len()).sum();
            (durable.live_bytes, durable.mark, withheld as u64)
        };
        // Of the segments behind the mark, none is judged yet.
        let behind = mark.map_or(0, |mark| {
            let last = place_of(self.log.tail()).0;
            last.saturating_sub(mark.open.sequence) + 2
        });
        let segments = self.log.table.count();
        Garbage::of(segments.saturating_sub(behind + withheld), live)
    }

    fn look_at_garbage(&self) {
        let garbage = self.garbage();
        let live = self.commits.durable().live_bytes;
        let most = self.options.commit_log_bytes;
        let wanted = (live / COMMIT_LIVE_SHARE).max(COMMIT_LOG_BYTES_MIN);
        self.window_bytes.store(wanted.min(most), Relaxed);
        self.is_behind.store(garbage.is_too_much(), Release);
        self.tell_progress();
    }

    /// What came of the maintenance by the thread.
    pub(super) fn note_maintenance(&self, outcome: &Result<()>) {
        self.has_failed.store(outcome.is_err(), Release);
        self.tell_progress();
    }

    fn tell_progress(&self) {
        drop(self.progress.lock());
        self.progressed.notify_all();
    }

    /// Frees space for a write that found none. False if there is no more than before.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(super) fn free_space(&self) -> Result<bool> {
        // New data may get none of it still: the reserve comes first.
        let standby = &self.home.standby;
        let before = (self.commits.given_back(), standby.is_whole());
        let is_more = || self.commits.given_back() > before.0 || (standby.is_whole() && !before.1);
        // A snapshot that has gone leaves no trace in the log.
        self.commits.give_back(self.parts())?;
        if is_more() {
            self.exhausted_at.store(NEVER, Release);
            return Ok(true);
        }
        if self.exhausted_at.load(Acquire) == self.log.tail().0 {
            return Ok(false);
        }
        self.commit()?;
        for _ in 0..ROUNDS_MAX {
            if is_more() {
                return Ok(true);
            }
            if self.collect()? == 0 {
                break;
            }
        }
        self.exhausted_at.store(self.log.tail().0, Release);
        Ok(is_more())
    }
}
