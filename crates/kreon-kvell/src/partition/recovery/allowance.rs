//! How much memory the notes of a recovery may take.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use super::found::FoundItems;

/// Notes that take no more are never divided.
const LEAST_BYTES: usize = 8 << 10;

/// The memory that the partitions of a store have while they are being found. What one keeps when it is complete is taken from
/// it; the rest is shared by the notes of those under way.
pub struct Allowance {
    left_bytes: AtomicUsize,
    at_once: usize,
    least_bytes: usize,
    /// Empty notes with their memory, for the next partition: first touches of memory are a part of what a recovery costs.
    spare: Mutex<Vec<FoundItems>>,
}

impl Allowance {
    /// `memory_bytes` for all partitions, of which up to `at_once` are under way.
    pub fn new(memory_bytes: usize, at_once: usize) -> Self {
        Self::with_least(memory_bytes, at_once, LEAST_BYTES)
    }

    /// As [`Self::new`], with notes that are never divided below `least_bytes`: few in tests.
    pub fn with_least(memory_bytes: usize, at_once: usize, least_bytes: usize) -> Self {
        Self {
            left_bytes: AtomicUsize::new(memory_bytes),
            at_once: at_once.max(1),
            least_bytes,
            spare: Mutex::default(),
        }
    }

    /// The most that the notes of a partition may take which keeps `own_bytes` already.
    pub(super) fn notes_bytes_max(&self, own_bytes: usize) -> usize {
        let share = self.left_bytes.load(Relaxed) / self.at_once;
        share.saturating_sub(own_bytes).max(self.least_bytes)
    }

    /// A partition is complete, and keeps so many bytes.
    pub(super) fn keep(&self, bytes: usize) {
        let less = |left: usize| Some(left.saturating_sub(bytes));
        // It never fails: there always is a new value.
        let _ = self.left_bytes.fetch_update(Relaxed, Relaxed, less);
    }

    /// Empty notes.
    pub(super) fn notes(&self) -> FoundItems {
        self.spare.lock().pop().unwrap_or_default()
    }

    /// Takes notes back that are not needed any more, and their memory if another partition may have as much.
    pub(super) fn take_back(&self, mut notes: FoundItems) {
        notes.clear();
        if notes.memory_bytes() <= self.notes_bytes_max(0) {
            self.spare.lock().push(notes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_lessens_the_notes_of_the_others() {
        let allowance = Allowance::with_least(1000, 2, 30);
        assert_eq!(allowance.notes_bytes_max(0), 500);
        assert_eq!(allowance.notes_bytes_max(100), 400);
        allowance.keep(600);
        assert_eq!(allowance.notes_bytes_max(0), 200);
        allowance.keep(600);
        assert_eq!(allowance.notes_bytes_max(0), 30);
    }
}
