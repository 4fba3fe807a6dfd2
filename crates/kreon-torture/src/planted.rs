//! The test of the tests: every bug that can be planted must be caught by the hunt that is meant for it.
//!
//! Each bug runs in a process of its own: some of them make the store hang or overflow the stack, and that is a
//! catch, too.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kreon_base::Bug;

use crate::{Counts, faults, sim};

/// What looks for a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hunt {
    /// Power cuts of [`sim`].
    Sim,
    /// Failing calls of [`faults`].
    Faults,
}

/// A process that takes longer hangs: a catch.
const PATIENCE: Duration = Duration::from_secs(90);

/// A hunt ends, without a catch, after this time.
const HUNT_TIME: Duration = Duration::from_secs(45);

impl Hunt {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Sim, Self::Faults];

    /// The hunt that is meant for `bug`.
    pub fn of(bug: Bug) -> Self {
        match bug {
            Bug::FlushRetried
            | Bug::WriteErrorSwallowed
            | Bug::NotPoisoned
            | Bug::UnfinishedCheckpointForgotten => Self::Faults,
            _ => Self::Sim,
        }
    }

    /// Hunts until something fails, or for `time`; what failed first.
    pub fn run(self, time: Duration) -> Option<String> {
        let started = Instant::now();
        let mut seed = 1;
        while started.elapsed() < time {
            let counts = match self {
                Self::Sim => sim(120, seed),
                Self::Faults => faults(60, seed, 20),
            };
            if counts.failed > 0 {
                return Some(counts.failures.first().cloned().unwrap_or_default());
            }
            seed += 101;
        }
        None
    }

    /// Runs as a process of its own with `bug`; how it was caught.
    fn catches(self, bug: Bug) -> Option<String> {
        let mut child = Command::new(std::env::current_exe().ok()?)
            .args(["hunt", &format!("{bug:?}"), "--by", &format!("{self:?}")])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let started = Instant::now();
        while child.try_wait().ok()?.is_none() {
            if started.elapsed() > PATIENCE {
                child.kill().ok()?;
                child.wait().ok()?;
                return Some("it hangs".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = child.wait_with_output().ok()?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match output.status.code() {
            Some(0) => None,
            Some(1) => Some(said),
            _ => Some(format!("{} {said}", output.status)),
        }
    }
}

/// The bug called `name`.
pub fn bug(name: &str) -> Option<Bug> {
    Bug::ALL
        .iter()
        .copied()
        .find(|bug| format!("{bug:?}") == name)
}

/// Runs every bug, or only those in `only`, under the hunt meant for it, or under all if it is `by_all`; prints a line each.
pub fn planted(only: &[Bug], by_all: bool) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    for &bug in if only.is_empty() { Bug::ALL } else { only } {
        for hunt in Hunt::ALL {
            if hunt != Hunt::of(bug) && !by_all {
                continue;
            }
            let begun = Instant::now();
            let caught = hunt.catches(bug);
            counts.count(&format!("{bug:?}"));
            let seconds = begun.elapsed().as_secs_f64();
            let (bug, hunt) = (format!("{bug:?}"), format!("{hunt:?}"));
            match caught {
                Some(how) => println!("{bug:<30} {hunt:<8} {seconds:>5.1} s  {how:.140}"),
                None => {
                    println!("{bug:<30} {hunt:<8} {seconds:>5.1} s  NOT CAUGHT");
                    counts.fail(format!("{bug} was not caught by {hunt}"));
                }
            }
        }
    }
    counts.elapsed = started.elapsed();
    counts
}

/// The child's part: hunts `bug`; true if it was caught.
pub fn hunt(bug: Bug, by: Hunt) -> bool {
    bug.plant();
    let caught = by.run(HUNT_TIME);
    if let Some(how) = &caught {
        println!("{}", how.lines().next().unwrap_or_default());
    }
    caught.is_some()
}
