//! What was tried and what failed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Most failures that are kept as text.
const FAILURES_MAX: usize = 40;

/// Counts by class, and the failures.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// States or runs, by class.
    pub tried: BTreeMap<String, u64>,
    /// What is not a state or run itself: scripts, or states that needed no run.
    pub beside: BTreeMap<String, u64>,
    /// How many failed.
    pub failed: u64,
    /// What failed, each with what replays it; the first few.
    pub failures: Vec<String>,
    /// How long it took.
    pub elapsed: Duration,
}

impl Counts {
    /// Counts one of `class`.
    pub fn count(&mut self, class: &str) {
        *self.tried.entry(class.to_owned()).or_default() += 1;
    }

    /// Counts one of what is not tried itself.
    pub fn note(&mut self, what: &str) {
        *self.beside.entry(what.to_owned()).or_default() += 1;
    }

    /// Counts a failure.
    pub fn fail(&mut self, failure: String) {
        self.failed += 1;
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(failure);
        }
    }

    /// All that were tried.
    pub fn total(&self) -> u64 {
        self.tried.values().sum()
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: Self) {
        for (class, count) in other.tried {
            *self.tried.entry(class).or_default() += count;
        }
        for (what, count) in other.beside {
            *self.beside.entry(what).or_default() += count;
        }
        self.failed += other.failed;
        self.failures.extend(other.failures);
        self.failures.truncate(FAILURES_MAX);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.failures {
            writeln!(f, "FAILED {failure}")?;
        }
        for (class, count) in &self.tried {
            writeln!(f, "{class:<40} {count:>10}")?;
        }
        let (total, seconds) = (self.total(), self.elapsed.as_secs_f64());
        let rate = total as f64 / seconds.max(1e-9);
        writeln!(f, "{:<40} {total:>10}", "total")?;
        for (what, count) in &self.beside {
            writeln!(f, "  beside: {what:<30} {count:>10}")?;
        }
        write!(
            f,
            "{} failed; {seconds:.1} s, {rate:.0} a second",
            self.failed
        )
    }
}
