//! How many stripes of the page array may have memory.
//!
//! The page array covers the whole volume and takes memory by the stripe, where pages have frames. The number of
//! stripes with memory is part of the memory budget and never exceeds it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use kreon_base::{PAGE_BYTES, PageNo};

use crate::well::STRIPE_PAGES;

/// Memory of a stripe: its page of the array, its entries in a shard's maps (tree nodes at least half full), and its
/// place in the list that a sync makes.
pub(crate) const STRIPE_BYTES: usize = PAGE_BYTES + 80;

/// Stripes with memory, and their maximum.
pub(super) struct StripeBudget {
    used: AtomicUsize,
    max: usize,
}

pub(crate) const fn stripe_of(page: PageNo) -> u64 {
    page.0 / STRIPE_PAGES
}

impl StripeBudget {
    pub(super) fn new(max: usize) -> Self {
        assert!(max > 0, "a page array without memory");
        Self {
            used: AtomicUsize::new(0),
            max,
        }
    }

    /// Takes room for one stripe, if there is some.
    pub(super) fn claim(&self) -> bool {
        let claim = |used| (used < self.max).then_some(used + 1);
        self.used.fetch_update(Relaxed, Relaxed, claim).is_ok()
    }

    /// Gives up the room of a stripe.
    pub(super) fn release(&self) {
        let before = self.used.fetch_sub(1, Relaxed);
        debug_assert!((1..=self.max).contains(&before), "{before} stripes in use");
    }

    /// Stripes that have memory now.
    pub(super) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }
}
