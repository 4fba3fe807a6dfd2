//! How often each class of violation was met.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::violation::Violation;

/// A counter for each class. Counting takes no lock.
#[derive(Debug, Default)]
pub struct ViolationCounts([AtomicU64; Violation::ALL.len()]);

impl ViolationCounts {
    /// All zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one.
    pub fn count(&self, violation: Violation) {
        self.0[violation.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// How many of this class.
    pub fn of(&self, violation: Violation) -> u64 {
        self.0[violation.index()].load(Ordering::Relaxed)
    }

    /// All classes with their counts, in the order of [`Violation::ALL`].
    pub fn all(&self) -> impl Iterator<Item = (Violation, u64)> + '_ {
        Violation::ALL
            .into_iter()
            .map(|violation| (violation, self.of(violation)))
    }

    /// How many of all classes.
    pub fn total(&self) -> u64 {
        self.all().map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_is_counted_by_itself() {
        let counts = ViolationCounts::new();
        for (index, violation) in Violation::ALL.into_iter().enumerate() {
            (0..=index).for_each(|_| counts.count(violation));
        }
        let expected: Vec<u64> = (1..=24).collect();
        let counted: Vec<u64> = counts.all().map(|(_, count)| count).collect();
        assert_eq!(counted, expected);
        assert_eq!(counts.total(), 300);
    }
}
