//! One pass of eviction (`Kreon 3.3.1`): the highest priority number first, first in, first out within a priority, with a
//! second chance for pages that were read since the last pass.
//!
//! A hunt evicts clean pages that nobody has pinned. It collects the stripes of dirty pages for its caller to write.

use kreon_base::Priority;

use super::turns::{Reach, Turn};
use crate::counters::ClassCounters;
use crate::record_cache::RecordCache;
use crate::table::{Locked, PRIORITIES, PageTable, Removal, stripe_of};
use crate::well::{PageState, RetiredFrame};

/// Frames of a shard's queue that are looked at before the next shard follows.
const VISITS_OF_SHARD: usize = 8;

/// Second chances for each frame wanted. After them even pages that were read are evicted: a hunt through a pool whose
/// every page was read must not visit them all.
const CHANCES_PER_FRAME: usize = 16;

/// Frames that records keep in the first round of a hunt: one in this many.
const RECORDS_SHARE: usize = 32;

/// One pass of eviction.
pub(super) struct Hunt<'a> {
    table: &'a PageTable,
    records: Option<&'a RecordCache>,
    evicted: &'a ClassCounters,
    wanted: usize,
    /// Pinned addresses, sorted.
    pins: Vec<usize>,
    /// Second chances left.
    chances: usize,
    caught: Vec<RetiredFrame>,
    /// Frames of records that are free now.
    freed_of_records: usize,
    /// Stripes of dirty pages that were passed over.
    dirty: Vec<u64>,
}

impl<'a> Hunt<'a> {
    /// A hunt for `wanted` frames.
    pub(super) fn new(
        table: &'a PageTable,
        records: Option<&'a RecordCache>,
        evicted: &'a ClassCounters,
        wanted: usize,
    ) -> Self {
        assert!(wanted > 0, "a hunt for nothing");
        Self {
            table,
            records,
            evicted,
            wanted,
            pins: table.space().pins(),
            chances: wanted * CHANCES_PER_FRAME,
            caught: Vec::new(),
            freed_of_records: 0,
            dirty: Vec::new(),
        }
    }

    /// Evicts up to the wanted number.
    pub(super) fn run(&mut self, turn: &mut Turn<'_>) {
        self.hunt_all(turn, true);
        if self.caught.is_empty() && self.dirty.is_empty() && self.freed_of_records == 0 {
            self.hunt_all(turn, false);
        }
    }

    /// Returns how many frames became free, and the stripes, sorted, of dirty pages that were passed over.
    pub(super) fn end(mut self) -> (usize, Vec<u64>) {
        let freed = self.table.settle(self.caught) + self.freed_of_records;
        self.dirty.sort_unstable();
        self.dirty.dedup();
        (freed, self.dirty)
    }

    fn is_over(&self) -> bool {
        self.caught.len() + self.freed_of_records >= self.wanted || self.dirty.len() >= self.wanted
    }

    /// Hunts through the priorities. `spare` leaves the younger half of each priority alone: otherwise a page of the
    /// priority that goes first would be evicted before its reader uses it.
    fn hunt_all(&mut self, turn: &mut Turn<'_>, spare: bool) {
        for number in (0..PRIORITIES).rev() {
            let priority = Priority(number as u8);
            let count = self.table.counts().resident_of(priority);
            if self.is_over() {
                return;
            }
            if count > 0 {
                let takes = if spare { count / 2 } else { count };
                self.hunt_priority(turn, priority, takes, 2 * count);
            }
            if number == PRIORITIES - 1 && !self.is_over() {
                self.take_from_records(spare);
            }
        }
    }

    /// Hunts through one priority, the shards of the turn's group first: at most `takes` frames caught and `visits`
    /// looked at.
    fn hunt_priority(
        &mut self,
        turn: &mut Turn<'_>,
        priority: Priority,
        mut takes: usize,
        mut visits: usize,
    ) {
        let before = self.caught.len();
        for reach in [Reach::Group, Reach::All] {
            let mut idle = 0;
            while idle < turn.shards(reach) && takes > 0 && visits > 0 && !self.is_over() {
                let shard = turn.next(reach);
                let (caught, seen) = self.hunt_shard(shard, priority, takes, visits);
                takes -= caught;
                visits -= seen;
                idle = if seen > 0 { 0 } else { idle + 1 };
            }
        }
        let caught = self.caught.len() - before;
        self.evicted.add(priority, caught as u64);
    }

    /// Hunts through a few frames of a priority in a shard. Returns how many it caught, and how many it looked at.
    fn hunt_shard(
        &mut self,
        shard: usize,
        priority: Priority,
        takes: usize,
        visits: usize,
    ) -> (usize, usize) {
        let mut locked = self.table.lock_shard(shard);
        let (mut caught, mut seen) = (0, 0);
        while seen < visits.min(VISITS_OF_SHARD) && caught < takes && !self.is_over() {
            let Some(frame) = locked.book().oldest(priority) else {
                break;
            };
            seen += 1;
            caught += usize::from(self.visit(&mut locked, frame));
        }
        (caught, seen)
    }

    /// Evicts the page in `frame`, or moves it to the end of its queue. True if it was evicted.
    fn visit(&mut self, locked: &mut Locked<'_>, frame: u32) -> bool {
        let page = self.table.page_in(frame);
        let PageState::Resident {
            referenced,
            dirty,
            writing,
            ..
        } = self.table.space().state(page)
        else {
            debug_assert!(false, "{page} is in a queue and not resident");
            locked.requeue(frame);
            return false;
        };
        let has_chance = referenced && self.chances > 0;
        if has_chance {
            self.chances -= 1;
            locked.clear_referenced(page);
        } else if dirty && !writing {
            self.dirty.push(stripe_of(page));
        }
        if has_chance || dirty || self.table.space().is_pinned(&self.pins, frame) {
            locked.requeue(frame);
            return false;
        }
        match locked.remove(page) {
            Removal::Retired(retired) => {
                self.caught.push(retired);
                true
            }
            Removal::Absent | Removal::Writing => false,
        }
    }

    /// Has records give up frames; with `spare` half of them at most, and none of their share.
    fn take_from_records(&mut self, spare: bool) {
        let Some(records) = self.records else {
            return;
        };
        let takes = match spare {
            true => records
                .frames()
                .saturating_sub(self.table.frames() / RECORDS_SHARE),
            false => records.frames(),
        };
        let wanted = (self.wanted - self.caught.len()).min(takes);
        let (table, freed) = (self.table, &mut self.freed_of_records);
        records.give_up(table.space(), wanted, |frame| {
            table.pool().put(frame);
            *freed += 1;
        });
    }
}
