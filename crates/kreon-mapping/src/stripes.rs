//! Room in the page table. The table is an array over the whole volume that takes memory by the
//! stripe, where pages are resident. How many stripes may have memory at once is part of the memory
//! budget: beyond it, the stripe with the fewest pages makes room for the next.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use kreon_base::PAGE_BYTES;
use parking_lot::Mutex;

use crate::mapping::Mapping;
use crate::shard::{Locked, Pages, Removal};
use crate::well::PageState;

/// Memory that a stripe takes: its page of the table, its entries in a shard's maps (at most half
/// empty tree nodes), and its place in the list that a sync makes.
pub(crate) const STRIPE_BYTES: usize = PAGE_BYTES + 80;

/// Occupied stripes that are looked at to find room.
const LOOKS: usize = 64;

/// Empty stripes that are released at once.
const RELEASES_MAX: usize = 16;

/// How many stripes have memory, and how many may.
pub(crate) struct StripeBudget {
    used: AtomicUsize,
    max: usize,
    /// Where the search for room goes on: it passes through the shards in turn. One searcher at a time.
    hand: Mutex<Hand>,
}

#[derive(Default)]
struct Hand {
    shard: usize,
    stripe: u64,
}

impl StripeBudget {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            used: AtomicUsize::new(0),
            max,
            hand: Mutex::default(),
        }
    }

    /// Takes room for one stripe, if there is some.
    pub(crate) fn claim(&self) -> bool {
        let claim = |used| (used < self.max).then_some(used + 1);
        self.used.fetch_update(Relaxed, Relaxed, claim).is_ok()
    }

    pub(crate) fn give_back(&self) {
        self.used.fetch_sub(1, Relaxed);
    }

    /// Stripes that have memory now.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }
}

impl Hand {
    /// The next occupied stripe and its frames, the shard that holds it locked. `None` after a whole
    /// turn without any.
    fn next<'a>(&mut self, pages: &'a Pages) -> Option<(u64, u32, Locked<'a>)> {
        for _ in 0..=pages.shards.len() {
            let mut locked = pages.lock_shard(self.shard);
            let next = locked.book().stripes.range(self.stripe..).next();
            if let Some((&stripe, &frames)) = next {
                self.stripe = stripe + 1;
                return Some((stripe, frames, locked));
            }
            self.shard = (self.shard + 1) % pages.shards.len();
            self.stripe = 0;
        }
        None
    }
}

impl Mapping {
    /// Makes room in the table for one more stripe: releases empty ones, or else evicts all pages of
    /// the one with the fewest frames among those it looks at. False if that did not work out, as
    /// readers hold pages of it.
    pub(crate) fn make_table_room(&self) -> bool {
        // Frames that wait for their readers hold on to their stripes.
        self.settle(Vec::new());
        let poorest = {
            let mut hand = self.pages.stripe_budget.hand.lock();
            match self.release_empty_stripes(&mut hand) {
                Search::Released => return true,
                Search::Poorest(stripe) => stripe,
                Search::Nothing => return false,
            }
        };
        self.counters.stripes_emptied.add(1);
        self.evict_stripe(poorest);
        self.pages.lock_stripe(poorest).release_stripe(poorest)
    }

    fn release_empty_stripes(&self, hand: &mut Hand) -> Search {
        let mut poorest: Option<(u32, u64)> = None;
        let mut released = 0;
        for _ in 0..LOOKS {
            let Some((stripe, frames, mut locked)) = hand.next(&self.pages) else {
                break;
            };
            if locked.release_stripe(stripe) {
                released += 1;
                if released == RELEASES_MAX {
                    break;
                }
            } else if poorest.is_none_or(|(fewest, _)| frames < fewest) {
                poorest = Some((frames, stripe));
            }
        }
        match poorest {
            _ if released > 0 => Search::Released,
            Some((_, stripe)) => Search::Poorest(stripe),
            None => Search::Nothing,
        }
    }

    /// Evicts what it can of a stripe: all but pages that are read or written just now.
    fn evict_stripe(&self, stripe: u64) {
        // What cannot be written stays; the error comes back at the next sync.
        let _ = self.write_stripes(&[stripe], usize::MAX);
        let pins = self.pages.space.pins();
        let mut retired = Vec::new();
        let mut locked = self.pages.lock_stripe(stripe);
        for (page, state) in self.pages.space.stripe(stripe) {
            match state {
                PageState::Resident {
                    frame,
                    dirty: false,
                    writing: false,
                    ..
                } if !self.pages.space.is_pinned(&pins, frame) => {
                    let priority = self.pages.records.priority(frame);
                    if let Removal::Retired(frame) = locked.remove(page) {
                        self.counters.pages_evicted.add(priority, 1);
                        retired.push(frame);
                    }
                }
                _ => {}
            }
        }
        drop(locked);
        self.settle(retired);
    }
}

enum Search {
    Released,
    Poorest(u64),
    Nothing,
}
