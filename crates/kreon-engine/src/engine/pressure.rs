//! Slowing writers down while L0 spills, and stopping them where there is no room.
//!
//! How much they are slowed down [`pace`](super::pace) tells. Only at the full size of L0' a writer
//! waits for the spill to end, which bounds the memory; that happens where a spill fails, or suddenly
//! takes much longer than its progress promised.

use std::time::{Duration, Instant};

use crate::spill::Progress;
use crate::sync::{AtomicBool, AtomicU64, Condvar, Mutex, Ordering};
use kreon_base::{Error, Result};

use super::pace::{Last, Moment, Pace};

/// L0' grows by this much from one look at the pace to the next: some 60 entries.
const LOOK_BYTES: u64 = 4 << 10;

/// See the module's text.
#[derive(Default)]
pub struct Pressure {
    /// Of the spill that is under way.
    pub progress: Progress,
    is_spilling: AtomicBool,
    /// Size of L0' at which a writer looks at the pace again.
    look_at_bytes: AtomicU64,
    spill: Mutex<Spill>,
    state: Mutex<State>,
    changed: Condvar,
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

impl Pressure {
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

    /// Whether a writer is to ask for its [`delay`](Self::delay). Asked by every write: mostly not.
    pub fn is_look_due(&self, used_bytes: usize) -> bool {
        self.is_spilling.load(Ordering::Relaxed)
            && used_bytes as u64 >= self.look_at_bytes.load(Ordering::Relaxed)
    }

    /// How long a writer should sleep while L0', which is full at `full_bytes`, has `used_bytes`.
    pub fn delay(&self, used_bytes: usize, full_bytes: usize) -> Duration {
        if !self.is_look_due(used_bytes) {
            return Duration::ZERO;
        }
        let next = used_bytes as u64 + LOOK_BYTES.min(full_bytes as u64 / 64);
        self.look_at_bytes.store(next, Ordering::Relaxed);
        let progress = self.progress.share();
        if Pace::is_behind(used_bytes, full_bytes, progress) {
            return Duration::ZERO;
        }
        // Who finds another one looking goes on until the next look.
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
        let mut state = self.state.lock();
        while is_full()? {
            if let Some(failure) = &state.failure {
                return Err(failure.within("no room for new data, because a spill failed"));
            }
            // The time-out is for what nobody tells: that the store was closed or poisoned meanwhile.
            self.changed
                .wait_for(&mut state, Duration::from_millis(200));
        }
        Ok(())
    }

    /// Tells the end of a spill to all who wait.
    pub fn spill_ended(&self, outcome: &Result<()>) {
        self.is_spilling.store(false, Ordering::Relaxed);
        self.spill.lock().end(outcome.is_ok());
        let mut state = self.state.lock();
        state.spills_ended += 1;
        state.failure = outcome.as_ref().err().cloned();
        self.changed.notify_all();
    }

    /// Spills that ended since the store was opened.
    pub fn spills_ended(&self) -> u64 {
        self.state.lock().spills_ended
    }

    /// Why the last spill failed.
    pub fn failure(&self) -> Option<Error> {
        self.state.lock().failure.clone()
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
        let pressure = Pressure::default();
        let fill = |pressure: &Pressure| {
            let looks = (1..=32).map(|i| pressure.delay(i * 30_000, 1_000_000));
            looks.max().unwrap_or_default()
        };
        assert_eq!(fill(&pressure), Duration::ZERO);
        pressure.spill_starts(100);
        pressure.progress.add(10);
        std::thread::sleep(Duration::from_millis(2));
        assert!(fill(&pressure) > Duration::ZERO);
        pressure.spill_ended(&Ok(()));
        assert_eq!(fill(&pressure), Duration::ZERO);
    }

    #[test]
    fn a_failed_spill_fails_those_who_wait_for_room() {
        let pressure = Pressure::default();
        pressure.spill_ended(&Err(Error::new(ErrorKind::OutOfSpace, "full")));
        let error = pressure.wait_for_room(|| Ok(true)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfSpace);
        assert!(pressure.wait_for_room(|| Ok(false)).is_ok());
        pressure.spill_ended(&Ok(()));
        assert!(pressure.failure().is_none());
    }
}
