//! The pool of rings of a device.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use super::ring::Ring;

/// Most rings of one device; further concurrent calls use the fallback.
const RINGS_MAX: usize = 64;

/// Idle rings, created on demand: as many as there were concurrent callers. The lock is held only for a push or pop.
pub(crate) struct RingPool {
    idle: Mutex<Vec<Ring>>,
    /// Rings that exist, idle or in use.
    made: AtomicUsize,
    /// Whether no (more) rings are to be created.
    refused: AtomicBool,
    depth: u32,
}

impl RingPool {
    /// A pool whose rings keep `depth` transfers in flight. Creates the first ring at once, to find out and report
    /// whether the kernel allows it.
    pub(crate) fn new(depth: u32) -> Self {
        let pool = Self::empty(depth, false);
        if let Some(ring) = pool.take() {
            pool.put(ring);
        }
        pool
    }

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

    pub(crate) fn is_available(&self) -> bool {
        self.made.load(Relaxed) > 0
    }

    /// A ring for the exclusive use of the caller, if one is idle or can be created.
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

    /// Returns a ring to the pool. A broken ring is dropped, and no other is created: the cause would probably break
    /// it, too.
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
    use crate::stats::DeviceCounters;
    use crate::transfer::{TransferBatch, run};

    #[test]
    fn what_the_kernel_refuses_a_ring_for_is_done_without() {
        // No ring can be this deep.
        let pool = RingPool::new(1 << 30);
        assert!(!pool.is_available());
        let path = std::env::temp_dir().join(format!("no-ring-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        let page = [7; 4096];
        let writes: Vec<_> = (0..9).map(|n| Write::new(n * 4096, &page)).collect();
        let mut batch = TransferBatch::of_writes(&writes, 512);
        run(&mut batch, file.as_fd(), &pool, &DeviceCounters::default());
        assert!(batch.into_failures().is_empty());
        assert_eq!(std::fs::read(&path).unwrap(), [7; 9 * 4096]);
        std::fs::remove_file(&path).unwrap();
    }

    #[cfg(all(target_os = "linux", not(feature = "portable")))]
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
