//! Progress of a spill.

use kreon_sync::{AtomicU64, Ordering};

/// Counts the keys of L0 that a spill has merged. Updated by its workers, read by any thread.
#[derive(Default)]
pub struct Progress {
    total: AtomicU64,
    taken: AtomicU64,
}

impl Progress {
    /// Starts a spill of `keys` keys.
    pub fn start(&self, keys: u64) {
        self.taken.store(0, Ordering::Relaxed);
        self.total.store(keys.max(1), Ordering::Relaxed);
    }

    /// Counts `keys` more merged keys.
    pub fn add(&self, keys: u64) {
        self.taken.fetch_add(keys, Ordering::Relaxed);
    }

    /// Share of the keys that were merged, 0 to 1.
    pub fn share(&self) -> f64 {
        let total = self.total.load(Ordering::Relaxed);
        match total {
            0 => 0.0,
            _ => (self.taken.load(Ordering::Relaxed) as f64 / total as f64).min(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_goes_from_nothing_to_all() {
        let progress = Progress::default();
        assert_eq!(progress.share(), 0.0);
        progress.start(8);
        progress.add(2);
        assert_eq!(progress.share(), 0.25);
        progress.add(100);
        assert_eq!(progress.share(), 1.0);
        progress.start(4);
        assert_eq!(progress.share(), 0.0);
    }
}
