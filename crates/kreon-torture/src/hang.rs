//! What tells a process that hangs from one that only takes long.
//!
//! The clock tells neither: on a busy machine a run of a second may take a minute. So two things are counted since
//! the last progress: the processor time that the process got, of which no run needs much, and the time in which it
//! did not even want any, as when all of its threads wait for each other. A process that waits for a processor
//! does neither.

use std::fmt;
use std::fs;
use std::time::Duration;

/// What the threads of a process did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Time on a processor.
    pub ran: Duration,
    /// Time on a processor, or waiting for one.
    pub wanted: Duration,
}

impl Activity {
    /// Of the process with this number. `None`: it is gone, or the kernel does not tell.
    pub fn of(process: u32) -> Option<Self> {
        let mut sum = Self::default();
        for thread in fs::read_dir(format!("/proc/{process}/task")).ok()? {
            // A thread may end meanwhile.
            let told =
                thread.and_then(|thread| fs::read_to_string(thread.path().join("schedstat")));
            let mut numbers = told.iter().flat_map(|told| told.split(' '));
            let mut next = || numbers.next().and_then(|number| number.trim().parse().ok());
            if let (Some(ran), Some(waited)) = (next(), next()) {
                sum.ran += Duration::from_nanos(ran);
                sum.wanted += Duration::from_nanos(ran) + Duration::from_nanos(waited);
            }
        }
        Some(sum)
    }
}

/// Why a process is taken to hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hang {
    /// It wants nothing and waits.
    Idle(Duration),
    /// It works and gets nowhere.
    Busy(Duration),
}

impl fmt::Display for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle(time) => write!(f, "HANGS: nothing wanted a processor for {time:.0?}"),
            Self::Busy(time) => write!(f, "HANGS: {time:.0?} on processors and no progress"),
        }
    }
}

/// In a second of which a process wants less than this part it is idle: timers of the store take some.
const IDLE_PART: u32 = 20;

/// A moment counts as this at the most: the machine itself may have slept.
pub const MOMENT_MAX: Duration = Duration::from_secs(2);

/// What was seen since the last progress.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    idle_max: Duration,
    busy_max: Duration,
    last: Option<Activity>,
    idle: Duration,
    busy: Duration,
}

impl Patience {
    /// Ends after so much idleness, or so much work, without progress.
    pub fn new(idle_max: Duration, busy_max: Duration) -> Self {
        Self {
            idle_max,
            busy_max,
            last: None,
            idle: Duration::ZERO,
            busy: Duration::ZERO,
        }
    }

    /// There is progress.
    pub fn renew(&mut self) {
        (self.idle, self.busy) = (Duration::ZERO, Duration::ZERO);
    }

    /// What it worked so far does not count.
    pub fn excuse_work(&mut self) {
        self.busy = Duration::ZERO;
    }

    /// Looks at a process that did `now` in all, `moment` after the last look. Where the kernel does not tell, all time
    /// is taken for work.
    pub fn look(&mut self, now: Option<Activity>, moment: Duration) -> Option<Hang> {
        let moment = moment.min(MOMENT_MAX);
        match (now, self.last) {
            (Some(now), Some(last)) => {
                // The sums are without threads that have ended.
                let ran = now.ran.saturating_sub(last.ran);
                let wanted = now.wanted.saturating_sub(last.wanted);
                self.busy += ran;
                if now.wanted >= last.wanted && wanted < moment / IDLE_PART {
                    self.idle += moment;
                }
            }
            (Some(_), None) => {}
            (None, _) => self.busy += moment,
        }
        self.last = now;
        if self.idle >= self.idle_max {
            return Some(Hang::Idle(self.idle));
        }
        (self.busy >= self.busy_max).then_some(Hang::Busy(self.busy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn patience() -> Patience {
        Patience::new(10 * SECOND, 30 * SECOND)
    }

    /// Looks once a second for so long; each second the process runs and waits for so many milliseconds.
    fn looks(patience: &mut Patience, seconds: u32, ran: u64, waited: u64) -> Option<Hang> {
        let begun = patience.last.unwrap_or_default();
        (1..=seconds).find_map(|second| {
            let now = Activity {
                ran: begun.ran + second * Duration::from_millis(ran),
                wanted: begun.wanted + second * Duration::from_millis(ran + waited),
            };
            patience.look(Some(now), SECOND)
        })
    }

    #[test]
    fn threads_that_wait_for_each_other_hang() {
        let mut patience = patience();
        let found = looks(&mut patience, 100, 3, 1);
        assert_eq!(found, Some(Hang::Idle(10 * SECOND)));
    }

    #[test]
    fn a_run_that_gets_hardly_any_processor_does_not_hang() {
        assert_eq!(looks(&mut patience(), 1000, 5, 990), None);
    }

    #[test]
    fn work_without_end_hangs_and_progress_ends_the_count() {
        let mut patience = patience();
        for _ in 0..5 {
            assert_eq!(looks(&mut patience, 20, 1000, 0), None);
            patience.renew();
        }
        assert!(matches!(
            looks(&mut patience, 40, 1000, 0),
            Some(Hang::Busy(_))
        ));
    }

    #[test]
    fn a_machine_that_slept_counts_for_a_moment() {
        let mut patience = patience();
        patience.look(Some(Activity::default()), SECOND);
        for _ in 0..4 {
            let found = patience.look(Some(Activity::default()), 3600 * SECOND);
            assert_eq!(found, None);
        }
    }

    #[test]
    fn the_kernel_tells_of_this_process() {
        let before = Activity::of(std::process::id()).unwrap();
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(30) {
            std::hint::spin_loop();
        }
        let after = Activity::of(std::process::id()).unwrap();
        assert!(after.wanted > before.wanted, "{before:?} {after:?}");
        assert!(after.wanted >= after.ran);
    }
}
