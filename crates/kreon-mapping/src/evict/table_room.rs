//! Room in the page array: empty stripes give up their memory, or else the pages of the poorest stripe are evicted.

use crate::counters::ClassCounters;
use crate::table::{Locked, PageTable, Removal};
use crate::well::PageState;

/// Stripes with memory that are looked at to find room.
const LOOKS: usize = 64;

/// Empty stripes that are released at once.
const RELEASES_MAX: usize = 16;

/// The place where the search goes on: it passes through the shards in turn.
#[derive(Default)]
pub(super) struct StripeHand {
    shard: usize,
    stripe: u64,
}

/// What a search found.
pub(super) enum Room {
    /// There is room now.
    Released,
    /// No stripe was empty; this one has the fewest frames.
    Poorest(u64),
    /// No stripe has memory.
    None,
}

impl StripeHand {
    /// Releases empty stripes.
    pub(super) fn release_empty(&mut self, table: &PageTable) -> Room {
        let mut poorest: Option<(u32, u64)> = None;
        let mut released = 0;
        for _ in 0..LOOKS {
            let Some((stripe, frames, mut locked)) = self.next(table) else {
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
            _ if released > 0 => Room::Released,
            Some((_, stripe)) => Room::Poorest(stripe),
            None => Room::None,
        }
    }

    /// The next stripe with memory and its frames, the shard that holds it locked. `None` after a whole turn without
    /// any.
    fn next<'a>(&mut self, table: &'a PageTable) -> Option<(u64, u32, Locked<'a>)> {
        for _ in 0..=table.shards() {
            let locked = table.lock_shard(self.shard);
            if let Some((stripe, frames)) = locked.book().next_stripe(self.stripe) {
                self.stripe = stripe + 1;
                return Some((stripe, frames, locked));
            }
            self.shard = (self.shard + 1) % table.shards();
            self.stripe = 0;
        }
        None
    }
}

/// Evicts the clean pages of a stripe, except those that are pinned.
pub(super) fn evict_stripe(table: &PageTable, stripe: u64, evicted: &ClassCounters) {
    let pins = table.space().pins();
    let mut retired = Vec::new();
    let mut locked = table.lock_stripe(stripe);
    for (page, state) in table.space().stripe(stripe) {
        match state {
            PageState::Resident {
                frame,
                dirty: false,
                writing: false,
                ..
            } if !table.space().is_pinned(&pins, frame) => {
                let priority = table.priority_in(frame);
                if let Removal::Retired(frame) = locked.remove(page) {
                    evicted.add(priority, 1);
                    retired.push(frame);
                }
            }
            _ => {}
        }
    }
    drop(locked);
    table.settle(retired);
}
