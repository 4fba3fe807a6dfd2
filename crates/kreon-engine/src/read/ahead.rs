//! What one end of a scan has found ahead.

use std::ops::Bound;

use kreon_mapping::Fetched;

use super::batch::Batch;
use super::leaves::Leaves;
use super::scan_memory::ScanShare;
use super::scan_rest::Edge;
use crate::keys::Direction;
use crate::level::view::ViewSequence;

/// Pairs of one step, with the records that were read for them.
#[derive(Default)]
pub struct Ahead {
    /// The pairs.
    pub batch: Batch,
    /// Where the step began; none: there was none since the last seek.
    pub start: Option<Edge>,
    /// The view in which the records are where the batch says.
    pub view: ViewSequence,
    /// Records that are not in memory otherwise.
    pub fetched: Fetched,
    /// The leaves in which they were found.
    pub leaves: Leaves,
    /// The memory that all this takes.
    pub share: Option<ScanShare>,
}

impl Ahead {
    /// Forgets all; gives the memory back, but for a little.
    pub fn clear(&mut self) {
        self.batch.clear();
        self.release();
    }

    /// There is no more to take. Like [`clear`](Self::clear), but [`position`](Self::position) stays.
    pub fn end(&mut self) {
        self.batch.end();
        self.release();
    }

    fn release(&mut self) {
        self.fetched.clear();
        self.leaves.clear();
        self.share = None;
    }

    /// The memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        self.batch.memory_bytes() + self.fetched.memory_bytes()
    }

    /// Where this end goes on as its user sees it, who has not seen what was found ahead. None: where it stood before the
    /// first step.
    pub fn position(&self) -> Option<Edge> {
        match self.batch.taken_first() {
            Some(key) => Some(Edge::At(Bound::Excluded(key.to_vec()))),
            None => self.start.clone(),
        }
    }

    /// Moves to the first pair that is not before `key` in `direction`, if that was found ahead, or says that it was not. No
    /// pair is read.
    pub fn seek(&mut self, key: &[u8], direction: Direction) -> bool {
        let is_before = |found: &[u8]| match direction {
            Direction::Forward => found < key,
            Direction::Backward => found > key,
        };
        let is_at_most = |found: &[u8]| found == key || is_before(found);
        let begins_before = match self.batch.taken_first() {
            Some(taken) => is_before(taken),
            None => self.batch.first().is_some_and(is_at_most),
        };
        let ends_behind = self.batch.last().is_some_and(|last| !is_before(last));
        let is_within = begins_before && ends_behind;
        if is_within {
            self.batch.drop_while(is_before);
        }
        is_within
    }
}
