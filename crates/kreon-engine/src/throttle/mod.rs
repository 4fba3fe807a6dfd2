//! The throttle: writers sleep while L0 spills or space is scarce, and wait while L0' is full.
//!
//! [`pace`] computes the sleep from the progress of the spill, so that L0' fills when the spill ends. A full L0' makes
//! writers wait for that end, which bounds the memory; it happens when a spill fails or slows down suddenly. [`debt`] turns
//! what a writer is to sleep for scarce space into sleeps. [`stalls`] tells of waits and sleeps.

use std::time::{Duration, Instant};

use crate::events::{Events, Stall};
use crate::spill::Progress;
use crate::tuning::{
    LOOKS_OF_MEAN, PACE_LOOK_BYTES, SPACE_SLEEP_LONG, SPACE_SLEEP_PER_KIB, WRITES_PER_LONG_SLEEP,
};
use kreon_base::{Error, Result};
use kreon_sync::{AtomicBool, AtomicU64, Condvar, Mutex, Ordering};

mod debt;
mod pace;
mod stalls;

use debt::Sleeps;
use pace::{Last, Moment, Pace};
use stalls::{Sleeping, Stalled, Waiting};

/// Delays and waits of writers. One for the store; shared by the spill, the space plan and the write path.
pub struct Throttle {
    /// Of the spill that is under way.
    pub progress: Progress,
    is_spilling: AtomicBool,
    /// Size of L0' at which a writer looks at the pace again.
    look_at_bytes: AtomicU64,
    spill: Mutex<Spill>,
    state: Mutex<State>,
    changed: Condvar,
    /// How long a writer sleeps for each KiB of the log because space is scarce, in nanoseconds.
    sleep_ns_per_kib: AtomicU64,
    /// Its mean over the last looks at the space, times [`LOOKS_OF_MEAN`].
    sum_ns_per_kib: AtomicU64,
    full_l0: Waiting,
    full_volume: Waiting,
    sleeping: Sleeping,
}

/// The times of a spill.
#[derive(Default)]
struct Spill {
    started: Option<Instant>,
    committing: Option<Instant>,
    last: Last,
    pace: Pace,
}

#[derive(Default)]
struct State {
    /// Counts the ends of spills, successful or not.
    spills_ended: u64,
    /// Why the last spill failed, until one succeeds.
    failure: Option<Error>,
}

impl Throttle {
    /// Nobody is slowed down yet. What happens to writers is told to `events`.
    pub fn new(events: &Events) -> Self {
        Self {
            progress: Progress::default(),
            is_spilling: AtomicBool::new(false),
            look_at_bytes: AtomicU64::new(0),
            spill: Mutex::default(),
            state: Mutex::default(),
            changed: Condvar::default(),
            sleep_ns_per_kib: AtomicU64::new(0),
            sum_ns_per_kib: AtomicU64::new(0),
            full_l0: Waiting::new(Stall::FullL0, events),
            full_volume: Waiting::new(Stall::FullVolume, events),
            sleeping: Sleeping::new(events),
        }
    }

    /// A spill of so many keys starts.
    pub fn spill_starts(&self, keys: u64) {
        self.progress.start(keys);
        let mut spill = self.spill.lock();
        spill.started = Some(Instant::now());
        spill.committing = None;
        spill.pace = Pace::new(spill.last);
        self.look_at_bytes.store(0, Ordering::Relaxed);
        self.is_spilling.store(true, Ordering::Relaxed);
    }

    /// The merge has ended, its result is being made durable.
    pub fn commit_starts(&self) {
        self.spill.lock().committing = Some(Instant::now());
    }

    /// Whether a writer must compute its [`delay`](Self::delay). Every write calls this.
    pub fn is_look_due(&self, used_bytes: usize) -> bool {
        self.is_spilling.load(Ordering::Relaxed)
            && used_bytes as u64 >= self.look_at_bytes.load(Ordering::Relaxed)
    }

    /// How long a writer should sleep while L0', which is full at `full_bytes`, has `used_bytes`.
    pub fn delay(&self, used_bytes: usize, full_bytes: usize) -> Duration {
        if !self.is_look_due(used_bytes) {
            return Duration::ZERO;
        }
        let next = used_bytes as u64 + PACE_LOOK_BYTES.min(full_bytes as u64 / 64);
        self.look_at_bytes.store(next, Ordering::Relaxed);
        let progress = self.progress.share();
        if Pace::is_behind(used_bytes, full_bytes, progress) {
            return Duration::ZERO;
        }
        // Another writer computes the delay now; this one goes on until its next look.
        let Some(mut spill) = self.spill.try_lock() else {
            return Duration::ZERO;
        };
        let Some(started) = spill.started else {
            return Duration::ZERO;
        };
        let moment = Moment {
            elapsed: started.elapsed(),
            progress,
            committing: spill.committing.map(|since| since.elapsed()),
            used_bytes,
            full_bytes,
        };
        spill.pace.delay(&moment)
    }

    /// Waits for spills to end while `is_full` holds.
    ///
    /// # Errors
    /// Why spills fail, if they do: there will be no room. That of `is_full`.
    pub fn wait_for_room(&self, is_full: impl Fn() -> Result<bool>) -> Result<()> {
        if !is_full()? {
            return Ok(());
        }
        let _stalled = self.full_l0.begin();
        let mut state = self.state.lock();
        while is_full()? {
            if let Some(failure) = &state.failure {
                return Err(failure.within("no room for new data, because a spill failed"));
            }
            // The time-out notices that the store was closed or poisoned, which wakes nobody here.
            self.changed
                .wait_for(&mut state, Duration::from_millis(200));
        }
        Ok(())
    }

    /// A writer found the volume full, and makes room until what is returned is dropped.
    pub fn begin_full_volume(&self) -> Stalled<'_> {
        self.full_volume.begin()
    }

    /// Ends a spill and wakes all writers that wait for room.
    pub fn spill_ended(&self, outcome: &Result<()>) {
        self.is_spilling.store(false, Ordering::Relaxed);
        self.spill.lock().end(outcome.is_ok());
        let mut state = self.state.lock();
        state.spills_ended += 1;
        state.failure = outcome.as_ref().err().cloned();
        self.changed.notify_all();
    }

    /// Slows writers down by `share`, because space is scarce: 1 is as slow as it gets.
    pub fn slow_down(&self, share: f64) {
        let sleep = SPACE_SLEEP_PER_KIB.as_nanos() as f64 * share;
        self.sleep_ns_per_kib.store(sleep as u64, Ordering::Relaxed);
        let sum = self.sum_ns_per_kib.load(Ordering::Relaxed);
        let sum = sum - sum / LOOKS_OF_MEAN + sleep as u64;
        self.sum_ns_per_kib.store(sum, Ordering::Relaxed);
        self.sleeping.note(sleep as u64 > 0);
    }

    /// How long a writer of so many bytes of the log is to sleep because space is scarce.
    pub fn owed_for(&self, bytes: u64) -> Duration {
        match self.sleep_ns_per_kib.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            per_kib => Duration::from_nanos(per_kib.saturating_mul(bytes) / 1024),
        }
    }

    /// Has the calling thread, which wrote so many bytes of the log, sleep for `owed`, now or later: see [`debt`].
    pub fn pay(&self, owed: Duration, bytes: u64) {
        let mean = self.mean_ns_per_kib().saturating_mul(bytes) / 1024;
        debt::pay(owed, sleeps_of(Duration::from_nanos(mean)));
    }

    /// What writers slept for each KiB, over the last looks at the space.
    fn mean_ns_per_kib(&self) -> u64 {
        self.sum_ns_per_kib.load(Ordering::Relaxed) / LOOKS_OF_MEAN
    }

    /// Spills that ended since the store was opened.
    pub fn spills_ended(&self) -> u64 {
        self.state.lock().spills_ended
    }

    /// Why the last spill failed.
    #[cfg(test)]
    pub fn failure(&self) -> Option<Error> {
        self.state.lock().failure.clone()
    }
}

/// The sleeps of writers that owe so much for each write on average.
fn sleeps_of(mean_owed: Duration) -> Sleeps {
    match mean_owed.saturating_mul(WRITES_PER_LONG_SLEEP) < SPACE_SLEEP_LONG {
        true => Sleeps::Long,
        false => Sleeps::Short,
    }
}

impl Spill {
    fn end(&mut self, is_whole: bool) {
        if is_whole && let (Some(started), Some(committing)) = (self.started, self.committing) {
            self.last = Last {
                merge: committing.duration_since(started),
                commit: committing.elapsed(),
            };
        }
        self.started = None;
        self.committing = None;
    }
}

#[cfg(test)]
mod tests {
    use kreon_base::ErrorKind;

    use super::*;

    #[test]
    fn writers_are_slowed_down_while_a_spill_is_under_way_only() {
        let throttle = Throttle::new(&Events::default());
        let fill = |throttle: &Throttle| {
            let looks = (1..=32).map(|i| throttle.delay(i * 30_000, 1_000_000));
            looks.max().unwrap_or_default()
        };
        assert_eq!(fill(&throttle), Duration::ZERO);
        throttle.spill_starts(100);
        throttle.progress.add(10);
        std::thread::sleep(Duration::from_millis(2));
        assert!(fill(&throttle) > Duration::ZERO);
        throttle.spill_ended(&Ok(()));
        assert_eq!(fill(&throttle), Duration::ZERO);
    }

    #[test]
    fn sleeps_are_long_until_writes_owe_much_for_a_while() {
        let throttle = Throttle::new(&Events::default());
        let sleeps = || sleeps_of(Duration::from_nanos(throttle.mean_ns_per_kib()));
        throttle.slow_down(0.02);
        assert_eq!(sleeps(), Sleeps::Long, "once is not much on average");
        (0..4000).for_each(|_| throttle.slow_down(0.01));
        assert_eq!(sleeps(), Sleeps::Long);
        (0..4000).for_each(|_| throttle.slow_down(0.1));
        assert_eq!(sleeps(), Sleeps::Short);
        (0..4000).for_each(|_| throttle.slow_down(0.0));
        assert_eq!(sleeps(), Sleeps::Long);
    }

    #[test]
    fn a_failed_spill_fails_those_who_wait_for_room() {
        let throttle = Throttle::new(&Events::default());
        throttle.spill_ended(&Err(Error::new(ErrorKind::OutOfSpace, "full")));
        let error = throttle.wait_for_room(|| Ok(true)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfSpace);
        assert!(throttle.wait_for_room(|| Ok(false)).is_ok());
        throttle.spill_ended(&Ok(()));
        assert!(throttle.failure().is_none());
    }
}
