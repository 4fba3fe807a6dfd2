//! Optimistic latches: readers write nothing, they look whether anything changed meanwhile.

use kreon_base::sync::{AtomicU32, Ordering, fence, spin_loop, yield_now};

/// Set while a writer holds the latch.
const HELD: u32 = 1;

/// A version number that a writer makes odd while it changes what the latch protects, and even again
/// when it is done.
///
/// It cannot wrap under a reader: every two steps stand for a record or a node put into the arena,
/// of which 32-bit references allow fewer than 2^31.
pub(crate) struct Latch(AtomicU32);

/// A version at which nobody held the latch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stamp(u32);

/// The latch, held. Dropping it ends the change and lets every reader that saw a part of it know.
pub(crate) struct Held<'a> {
    latch: &'a Latch,
    stamp: Stamp,
}

impl Latch {
    /// A free latch.
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Begins a read: waits until nobody holds the latch.
    #[inline]
    pub(crate) fn read(&self) -> Stamp {
        let mut pause = Pause::default();
        loop {
            // Acquire: what the last holder changed is seen.
            let version = self.0.load(Ordering::Acquire);
            if version & HELD == 0 {
                return Stamp(version);
            }
            pause.wait();
        }
    }

    /// Whether nothing changed since `stamp`. Until this says yes, what was read may be torn.
    #[inline]
    pub(crate) fn validate(&self, stamp: Stamp) -> bool {
        // Pairs with the release fence in `hold`: if a load before this fence saw a store of some
        // holder, the load below sees that holder's version.
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == stamp.0
    }

    /// Takes the latch if nothing changed since `stamp`. Never waits, so latches cannot deadlock.
    pub(crate) fn hold(&self, stamp: Stamp) -> Option<Held<'_>> {
        let held = stamp.0 | HELD;
        self.0
            .compare_exchange(stamp.0, held, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        // No change may be seen before the odd version.
        fence(Ordering::Release);
        Some(Held { latch: self, stamp })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let version = self.stamp.0.wrapping_add(2);
        self.latch.0.store(version, Ordering::Release);
    }
}

/// Waiting for another thread that is about to be done: a few hundred cycles on the processor, then
/// leaving it, in case the other thread waits for it.
#[derive(Default)]
pub(crate) struct Pause {
    rounds: u32,
}

impl Pause {
    /// Waits a little.
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
