//! Finding frames: free ones, or those of pages that are evicted for it (`Kreon 3.3.1`: first in,
//! first out within a priority, the highest priority number first), with a second chance for pages
//! that were read since the last look.

use std::sync::atomic::Ordering::Relaxed;

use kreon_base::Priority;

use crate::mapping::Mapping;
use crate::shard::{Locked, PRIORITIES, Removal, stripe_of};
use crate::well::{FreeFrame, PageState, RetiredFrame};

/// Most frames that are evicted for one that is wanted.
pub(crate) const EVICT_BATCH_MAX: usize = 64;

/// Frames that are taken from a shard's queue before the next shard has its turn.
const TAKES_PER_TURN: usize = 8;

/// Second chances that are given for each frame wanted. Then even pages that were read go: a hunt
/// through a pool whose every page was read must not visit them all.
const CHANCES_PER_FRAME: usize = 16;

/// Rounds of evicting and writing back that a thread makes for the frames that it wants.
const ROUNDS_MAX: usize = 4;

/// Pages that a thread in need of frames writes back at once: 1 MiB.
const WRITE_BACK_PAGES: usize = 256;

/// Frames on their way out of use.
pub(crate) struct Hunt {
    wanted: usize,
    /// Pinned addresses, sorted.
    pins: Vec<usize>,
    chances: usize,
    caught: Vec<RetiredFrame>,
    /// Frames of records that are free now.
    given: usize,
    /// Stripes of dirty pages that were passed over.
    dirty: Vec<u64>,
}

impl Hunt {
    fn is_over(&self) -> bool {
        self.caught.len() + self.given >= self.wanted || self.dirty.len() >= self.wanted
    }
}

impl Mapping {
    /// A frame; `None` if readers hold all that could be evicted, or the device takes no dirty page.
    pub(crate) fn take_frame(&self) -> Option<FreeFrame> {
        self.take_frames(1).pop()
    }

    /// Up to `wanted` frames. Fewer only if readers hold all that could be evicted, or the device
    /// takes no dirty page.
    pub(crate) fn take_frames(&self, wanted: usize) -> Vec<FreeFrame> {
        let mut frames = Vec::with_capacity(wanted);
        self.pool.take(wanted, &mut frames);
        for _ in 0..ROUNDS_MAX {
            let missing = wanted - frames.len();
            if missing == 0 {
                break;
            }
            let (freed, dirty) = self.evict(missing);
            self.pool.take(missing, &mut frames);
            if freed > 0 || frames.len() == wanted {
                continue;
            }
            // Failed writes are counted, and come back at the next sync.
            if dirty.is_empty() || self.write_stripes(&dirty, WRITE_BACK_PAGES).is_err() {
                break;
            }
        }
        frames
    }

    /// Evicts a batch of pages, `wanted` at least if they can be had. Returns how many frames became
    /// free, and the stripes, sorted, of dirty pages that must be written first.
    fn evict(&self, wanted: usize) -> (usize, Vec<u64>) {
        let mut turn = self.evictor.lock();
        let free = self.pool.len();
        if free >= wanted {
            // Another thread evicted while this one waited for its turn.
            return (free, Vec::new());
        }
        let settled = self.settle(Vec::new());
        if settled >= wanted {
            return (settled, Vec::new());
        }
        let wanted = wanted.max(self.evict_batch);
        let mut hunt = Hunt {
            wanted,
            pins: self.pages.space.pins(),
            chances: wanted * CHANCES_PER_FRAME,
            caught: Vec::new(),
            given: 0,
            dirty: Vec::new(),
        };
        self.hunt_all(&mut hunt, &mut turn, true);
        if hunt.caught.is_empty() && hunt.dirty.is_empty() && hunt.given == 0 {
            self.hunt_all(&mut hunt, &mut turn, false);
        }
        let freed = self.settle(hunt.caught);
        hunt.dirty.sort_unstable();
        hunt.dirty.dedup();
        (settled + freed + hunt.given, hunt.dirty)
    }

    /// Hunts through the priorities. `spare`: the younger half of each priority is left alone, or a
    /// page of the priority that goes first would be evicted before its reader comes to use it.
    fn hunt_all(&self, hunt: &mut Hunt, turn: &mut usize, spare: bool) {
        for number in (0..PRIORITIES).rev() {
            let count = self.pages.classes[number].load(Relaxed);
            if hunt.is_over() {
                return;
            }
            if count > 0 {
                let takes = if spare { count / 2 } else { count };
                self.hunt_priority(hunt, turn, Priority(number as u8), takes, 2 * count);
            }
            if number == PRIORITIES - 1 && !hunt.is_over() {
                hunt.given += self.take_from_records(hunt.wanted - hunt.caught.len(), spare);
            }
        }
    }

    /// Hunts through one priority, a few frames in each shard by turns: at most `takes` frames
    /// caught and `visits` looked at.
    fn hunt_priority(
        &self,
        hunt: &mut Hunt,
        turn: &mut usize,
        priority: Priority,
        mut takes: usize,
        mut visits: usize,
    ) {
        let mut idle_turns = 0;
        while idle_turns < self.pages.shards.len() && visits > 0 {
            *turn = turn.wrapping_add(1);
            idle_turns += 1;
            let mut locked = self.pages.lock_shard(*turn);
            for _ in 0..TAKES_PER_TURN {
                if takes == 0 || visits == 0 || hunt.is_over() {
                    return;
                }
                let Some(frame) = locked.oldest(priority) else {
                    break;
                };
                idle_turns = 0;
                visits -= 1;
                takes -= usize::from(self.visit(hunt, &mut locked, priority, frame));
            }
        }
    }

    /// Evicts the page in `frame`, or lets it wait once more. True if it was caught.
    fn visit(
        &self,
        hunt: &mut Hunt,
        locked: &mut Locked<'_>,
        priority: Priority,
        frame: u32,
    ) -> bool {
        let pages = &self.pages;
        let page = pages.records.page(frame);
        let PageState::Resident {
            referenced,
            dirty,
            writing,
            ..
        } = pages.space.state(page)
        else {
            // Not reached: a queue holds resident pages only.
            locked.requeue(priority, frame);
            return false;
        };
        let chance = referenced && hunt.chances > 0;
        if chance {
            hunt.chances -= 1;
            pages.space.clear_referenced(page);
        } else if dirty && !writing {
            hunt.dirty.push(stripe_of(page));
        }
        if chance || dirty || pages.space.is_pinned(&hunt.pins, frame) {
            locked.requeue(priority, frame);
            return false;
        }
        match locked.remove(page) {
            Removal::Retired(retired) => {
                self.counters.pages_evicted.add(priority, 1);
                hunt.caught.push(retired);
                true
            }
            Removal::Absent | Removal::Writing => false,
        }
    }

    /// Gives retired frames, and those in limbo, back to the pool, but for those that readers still
    /// use: they go into limbo. Returns how many became free.
    pub(crate) fn settle(&self, mut retired: Vec<RetiredFrame>) -> usize {
        retired.append(&mut self.limbo.lock());
        if retired.is_empty() {
            return 0;
        }
        let (free, used) = self.pages.space.settle(retired);
        if !used.is_empty() {
            self.limbo.lock().extend(used);
        }
        let count = free.len();
        let mut locked: Option<Locked<'_>> = None;
        for (_, page) in &free {
            if !locked.as_ref().is_some_and(|shard| shard.holds(*page)) {
                // The old lock goes first: a thread holds one shard at a time.
                drop(locked.take());
                locked = Some(self.pages.lock(*page));
            }
            if let Some(shard) = &mut locked {
                shard.detach(*page);
            }
        }
        drop(locked);
        for (frame, _) in free {
            self.pool.put(frame);
        }
        count
    }
}
