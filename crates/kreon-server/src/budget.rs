//! The bytes that all connections together may hold: in their buffers, and in replies that are being gathered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is taken of a limit.
#[derive(Debug)]
pub(crate) struct Budget {
    taken_bytes: AtomicUsize,
    bytes_max: usize,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            taken_bytes: AtomicUsize::new(0),
            bytes_max,
        })
    }

    /// What all shares hold.
    pub(crate) fn taken_bytes(&self) -> usize {
        self.taken_bytes.load(Ordering::Relaxed)
    }
}

/// What one connection holds of it, given back by its drop.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

/// Less than this is not worth the shared counter: most connections never touch it.
const COUNTED_BYTES_MIN: usize = 64 << 10;

impl Share {
    pub(crate) fn of(budget: &Arc<Budget>) -> Self {
        Self {
            budget: Arc::clone(budget),
            bytes: 0,
        }
    }

    /// What it holds of the budget.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes what is held to `bytes`. False: the budget has not as much, and nothing is changed. Bytes below 64 KiB
    /// count as none.
    pub(crate) fn hold(&mut self, bytes: usize) -> bool {
        let bytes = if bytes < COUNTED_BYTES_MIN { 0 } else { bytes };
        if bytes > self.bytes {
            let more = bytes - self.bytes;
            let taken = self.budget.taken_bytes.fetch_add(more, Ordering::Relaxed);
            if taken.saturating_add(more) > self.budget.bytes_max {
                self.budget.taken_bytes.fetch_sub(more, Ordering::Relaxed);
                return false;
            }
        } else if bytes < self.bytes {
            let less = self.bytes - bytes;
            self.budget.taken_bytes.fetch_sub(less, Ordering::Relaxed);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.hold(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_together_never_hold_more_than_the_budget() {
        let budget = Budget::new(1 << 20);
        let (mut one, mut other) = (Share::of(&budget), Share::of(&budget));
        assert!(one.hold(768 << 10));
        assert!(!other.hold(512 << 10));
        assert!(other.hold(256 << 10));
        assert!(one.hold(100 << 10));
        assert!(other.hold(512 << 10));
        assert_eq!(budget.taken_bytes(), 612 << 10);
        drop(one);
        assert!(other.hold(1000));
        assert_eq!(budget.taken_bytes(), 0);
    }
}
