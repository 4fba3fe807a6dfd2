//! Whether writes are likely to need nodes or keys that are not in memory.
//!
//! A freeze waits for the writers inside the gate, and others wait for the freeze. So that it does not come to wait for the device,
//! too, writes look for their key before they enter, for a while after anything was not in memory: then most of what they need
//! is. The look is a second way down the tree; where all nodes are in memory no write makes it.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// So many writes look after the last read of the device.
const WRITES: u32 = 256;

/// Reads of the device not long ago.
#[derive(Default)]
pub(crate) struct Misses {
    /// Writes that are to look still.
    left: AtomicU32,
}

impl Misses {
    /// Something was not in memory.
    pub(crate) fn note(&self) {
        self.left.store(WRITES, Relaxed);
    }

    /// Whether a write that begins is to look first. Threads that ask at once may count as one.
    #[inline]
    pub(crate) fn are_likely(&self) -> bool {
        let left = self.left.load(Relaxed);
        if left > 0 {
            self.left.store(left - 1, Relaxed);
        }
        left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_look_for_a_while_after_the_last_miss() {
        let misses = Misses::default();
        assert!(!misses.are_likely());
        misses.note();
        let looks = (0..2 * WRITES).filter(|_| misses.are_likely()).count();
        assert_eq!(looks, WRITES as usize);
    }
}
