//! Optimistic latches: readers write nothing, and validate that nothing changed while they read.

use kreon_base::sync::{AtomicU32, Ordering, fence, spin_loop, yield_now};

/// Flag: a writer holds the latch.
const HELD: u32 = 1;

/// A version number. A writer makes it odd before it changes the protected data, and even again afterwards.
///
/// It cannot wrap during a read: each change puts a record or a node into the arena, and 32-bit references allow fewer
/// than 2^31 of these.
pub(crate) struct Latch(AtomicU32);

/// A version of the latch at which no writer held it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp(u32);

/// The latch while it is held. Dropping it ends the change, and invalidates the stamp of every reader that may have
/// seen part of the change.
pub(crate) struct HeldLatch<'a> {
    latch: &'a Latch,
    stamp: Stamp,
}

impl Latch {
    /// A latch that nobody holds.
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Starts a read; waits until no writer holds the latch.
    #[inline]
    pub(crate) fn read(&self) -> Stamp {
        let mut pause = Backoff::default();
        loop {
            // Acquire: makes the last holder's changes visible.
            let version = self.0.load(Ordering::Acquire);
            if version & HELD == 0 {
                return Stamp(version);
            }
            pause.wait();
        }
    }

    /// Whether nothing changed since `stamp`. Before this returns `true`, data that was read may be torn.
    #[inline]
    pub(crate) fn validate(&self, stamp: Stamp) -> bool {
        // Pairs with the release fence in `hold`: if a load before this fence saw a store of a holder, the load below
        // sees that holder's version.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == stamp.0
    }

    /// Takes the latch if nothing changed since `stamp`. Never waits, so latches cannot deadlock.
    pub(crate) fn hold(&self, stamp: Stamp) -> Option<HeldLatch<'_>> {
        let held = stamp.0 | HELD;
        self.0
            .compare_exchange(stamp.0, held, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        // Orders the odd version before all changes.
        fence(Ordering::Release);
        Some(HeldLatch { latch: self, stamp })
    }
}

impl Drop for HeldLatch<'_> {
    fn drop(&mut self) {
        let version = self.stamp.0.wrapping_add(2);
        self.latch.0.store(version, Ordering::Release);
    }
}

/// Waits for a thread that will finish soon: a few hundred cycles of spinning, then yields the processor, in case that
/// thread needs it.
#[derive(Default)]
pub(crate) struct Backoff {
    rounds: u32,
}

impl Backoff {
    /// Waits briefly.
    #[cold]
    pub(crate) fn wait(&mut self) {
        const SPINS_MAX: u32 = 32;
        if self.rounds < SPINS_MAX {
            self.rounds += 1;
            spin_loop();
        } else {
            yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_voids_the_stamps_before_it() {
        let latch = Latch::new();
        let stamp = latch.read();
        assert!(latch.validate(stamp));
        let held = latch.hold(stamp).unwrap();
        assert!(!latch.validate(stamp));
        assert!(latch.hold(stamp).is_none());
        assert_eq!(latch.0.load(Ordering::Relaxed) & HELD, HELD);
        drop(held);
        assert!(!latch.validate(stamp));
        assert!(latch.hold(stamp).is_none());
        assert!(latch.validate(latch.read()));
    }
}
