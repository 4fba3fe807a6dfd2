//! The memory of the read-ahead of scans: a class of the budget that all open scans share.
//!
//! Each takes half of what is left at the most, and no more than an equal part of three quarters of all. So a few scans
//! read far ahead, and of very many each a little: there is always some left for the next one. Memory goes back when the
//! pairs were shown, or with the scan.

use std::sync::Arc;

use kreon_sync::{AtomicUsize, Ordering};

/// The memory that all open scans of a store share.
pub struct ScanMemory {
    bytes: usize,
    /// By scans, and by values on their way to the thread that lays them together.
    taken: AtomicUsize,
    takers: AtomicUsize,
}

impl ScanMemory {
    /// So many bytes.
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            taken: AtomicUsize::new(0),
            takers: AtomicUsize::new(0),
        })
    }

    /// As many bytes as are wanted, or as this one may have.
    pub fn take_up_to(self: &Arc<Self>, wanted_bytes: usize) -> ScanShare {
        let mut share = self.nothing();
        let takers = self.takers.load(Ordering::Relaxed).max(1);
        let fair_bytes = self.bytes / 4 * 3 / takers;
        let take = |taken| {
            share.bytes = wanted_bytes.min(self.left(taken) / 2).min(fair_bytes);
            Some(taken + share.bytes)
        };
        _ = self
            .taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        share
    }

    /// So many bytes, if half of all are left then.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Option<ScanShare> {
        let mut share = self.nothing();
        let take = |taken| (self.left(taken) >= self.bytes / 2 + bytes).then_some(taken + bytes);
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .ok()?;
        share.bytes = bytes;
        Some(share)
    }

    /// A share that is nothing yet.
    fn nothing(self: &Arc<Self>) -> ScanShare {
        self.takers.fetch_add(1, Ordering::Relaxed);
        ScanShare {
            of: Arc::clone(self),
            bytes: 0,
        }
    }

    fn left(&self, taken: usize) -> usize {
        self.bytes.saturating_sub(taken)
    }

    /// How much is taken just now.
    #[cfg(test)]
    pub fn taken_bytes(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

/// What one has taken; it goes back when this is dropped.
pub struct ScanShare {
    of: Arc<ScanMemory>,
    bytes: usize,
}

impl ScanShare {
    /// How much it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// It was less that was needed, or a little more.
    pub fn set(&mut self, bytes: usize) {
        let taken = &self.of.taken;
        match bytes.checked_sub(self.bytes) {
            Some(more) => taken.fetch_add(more, Ordering::Relaxed),
            None => taken.fetch_sub(self.bytes - bytes, Ordering::Relaxed),
        };
        self.bytes = bytes;
    }
}

impl Drop for ScanShare {
    fn drop(&mut self) {
        self.set(0);
        self.of.takers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_get_what_they_want_and_many_share_what_there_is() {
        let memory = ScanMemory::new(1 << 20);
        let few: Vec<_> = (0..4).map(|_| memory.take_up_to(50_000)).collect();
        assert!(few.iter().all(|share| share.bytes() == 50_000));
        let mut many: Vec<_> = (0..1000).map(|_| memory.take_up_to(50_000)).collect();
        assert!(memory.taken_bytes() <= 1 << 20);
        // A scan that asks again gets as much as the others in the end.
        for _ in 0..2 {
            for share in &mut many {
                share.set(0);
                *share = memory.take_up_to(50_000);
            }
        }
        let least = many.iter().map(ScanShare::bytes).min().unwrap_or(0);
        assert!(least > 300 && memory.taken_bytes() <= 1 << 20, "{least}");
        drop((few, many));
        assert_eq!(memory.taken_bytes(), 0);
    }

    #[test]
    fn values_on_their_way_leave_half_to_scans() {
        let memory = ScanMemory::new(1 << 20);
        let taken: Vec<_> = std::iter::from_fn(|| memory.take(100_000)).collect();
        assert_eq!(taken.len(), 5);
    }

    #[test]
    fn a_share_changes_with_what_it_is_for() {
        let memory = ScanMemory::new(1 << 20);
        let mut share = memory.take_up_to(1000);
        share.set(300);
        assert_eq!(memory.taken_bytes(), 300);
        share.set(4000);
        assert_eq!((share.bytes(), memory.taken_bytes()), (4000, 4000));
    }
}
