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
