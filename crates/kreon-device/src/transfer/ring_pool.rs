//! The rings of a device.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use super::ring::Ring;

/// Most rings of one device; threads beyond so many in a call at once do without.
const RINGS_MAX: usize = 64;

/// Rings that are not in use, made on demand: as many as there were callers at once. The lock is held
/// for a push or a pop only.
pub(crate) struct RingPool {
    idle: Mutex<Vec<Ring>>,
    /// Rings that exist.
    made: AtomicUsize,
    /// Whether no (more) rings can be made.
    refused: AtomicBool,
    depth: u32,
}

impl RingPool {
    /// A pool whose rings keep `depth` transfers in flight. Makes the first ring now, to see whether
    /// the kernel lets us; says so if not.
    pub(crate) fn new(depth: u32) -> Self {
        let pool = Self::empty(depth, false);
        if let Some(ring) = pool.take() {
            pool.put(ring);
        }
        pool
    }

    /// A pool without rings.
    pub(crate) fn none() -> Self {
        Self::empty(0, true)
    }

    fn empty(depth: u32, refused: bool) -> Self {
        Self {
            idle: Mutex::new(Vec::new()),
            made: AtomicUsize::new(0),
            refused: AtomicBool::new(refused),
            depth,
        }
    }

    /// Whether calls are served by rings.
    pub(crate) fn is_available(&self) -> bool {
        self.made.load(Relaxed) > 0
    }

    /// A ring for the caller alone, if one is idle or can be made.
    pub(super) fn take(&self) -> Option<Ring> {
        if let Some(ring) = self.idle.lock().pop() {
            return Some(ring);
        }
        if self.refused.load(Relaxed) {
            return None;
        }
        let more = |made| (made < RINGS_MAX).then_some(made + 1);
        self.made.fetch_update(Relaxed, Relaxed, more).ok()?;
        match Ring::new(self.depth) {
            Ok(ring) => Some(ring),
            Err(error) => {
                self.made.fetch_sub(1, Relaxed);
                if !self.refused.swap(true, Relaxed) {
                    tracing::info!(%error, "no (further) io_uring; using preadv and pwritev");
                }
                None
            }
        }
    }

    /// Gives a ring back. A broken one is dropped, and no other made: what broke it is likely to
    /// break the next.
    pub(super) fn put(&self, ring: Ring) {
        if ring.is_broken() {
            self.refused.store(true, Relaxed);
            self.made.fetch_sub(1, Relaxed);
        } else {
            self.idle.lock().push(ring);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::device::Write;
    use crate::stats::Counters;
    use crate::transfer::{Batch, run};

    #[test]
    fn what_the_kernel_refuses_a_ring_for_is_done_without() {
        // No ring is so deep.
        let pool = RingPool::new(1 << 30);
        assert!(!pool.is_available());
        let path = std::env::temp_dir().join(format!("no-ring-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        let page = [7; 4096];
        let writes: Vec<_> = (0..9).map(|n| Write::new(n * 4096, &page)).collect();
        let mut batch = Batch::of_writes(&writes, 512);
        run(&mut batch, file.as_fd(), &pool, &Counters::default());
        assert!(batch.into_failures().is_empty());
        assert_eq!(std::fs::read(&path).unwrap(), [7; 9 * 4096]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_ring_is_used_again() {
        let pool = RingPool::new(4);
        if !pool.is_available() {
            eprintln!("skipped: no io_uring here");
            return;
        }
        for _ in 0..5 {
            let both = (pool.take().unwrap(), pool.take().unwrap());
            pool.put(both.0);
            pool.put(both.1);
        }
        assert_eq!(pool.made.load(Relaxed), 2);
    }
}
