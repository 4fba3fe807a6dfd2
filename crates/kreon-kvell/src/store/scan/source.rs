//! The index of a partition, in order, a few keys at a time.
//!
//! A run goes on behind the last key of the one before, whatever has changed in the index in between: a key that is there
//! all the time is met once.

use std::collections::VecDeque;
use std::ops::Bound;

use kreon_base::Result;

use super::bounds::Bounds;
use crate::index::{Direction, End, Index, Run, Spot};
use crate::partition::Partition;
use crate::store::shared::Shared;

/// Keys that are taken from an index at a time at most: the partition is locked meanwhile.
const RUN_MAX: usize = 128;

/// What an index has of a key, or of all keys that look like it.
pub struct IndexKey {
    /// The key, or what it begins with.
    pub bytes: Vec<u8>,
    /// Whether `bytes` are all of it. Otherwise there may be more keys that begin so: a tie group.
    pub is_whole: bool,
    /// Number of the keys that begin so; there may be more.
    pub keys: usize,
    /// Bytes that a get of a whole key reads.
    pub read_bytes: usize,
}

/// The index keys of a partition that come next.
pub struct Source {
    pub partition: usize,
    direction: Direction,
    taken: VecDeque<IndexKey>,
    /// The last key taken.
    last: Option<(Vec<u8>, bool)>,
    is_at_end: bool,
    run_keys: usize,
}

impl Source {
    /// The keys of `partition`, of which the first run takes `run_keys`. Later ones take more.
    pub fn new(partition: usize, direction: Direction, run_keys: usize) -> Self {
        Self {
            partition,
            direction,
            taken: VecDeque::new(),
            last: None,
            is_at_end: false,
            run_keys: run_keys.clamp(1, RUN_MAX),
        }
    }

    /// The next index key. `run` is memory for the time of the call.
    pub fn next(
        &mut self,
        shared: &Shared,
        bounds: &Bounds,
        run: &mut Run,
    ) -> Result<Option<IndexKey>> {
        if self.taken.is_empty()
            && !self.is_at_end
            && let Some(partition) = shared.partitions.get(self.partition)
        {
            run.clear();
            partition.look_open(|partition| self.take(partition, bounds, run))?;
            self.run_keys = (2 * self.run_keys).min(RUN_MAX);
        }
        Ok(self.taken.pop_front())
    }

    fn take(&mut self, partition: &Partition, bounds: &Bounds, run: &mut Run) {
        let parts = partition.parts();
        let (low, high) = self.left(&parts.index, bounds);
        let end = parts
            .index
            .run(low, high, self.direction, self.run_keys, run);
        for entry in run.iter() {
            if !entry.whole
                && let Some(last) = self.taken.back_mut()
                && !last.is_whole
                && last.bytes == entry.bytes
            {
                last.keys += 1;
                continue;
            }
            let place = entry.whole.then(|| parts.room.place(entry.at)).flatten();
            self.taken.push_back(IndexKey {
                bytes: entry.bytes.to_vec(),
                is_whole: entry.whole,
                keys: 1,
                read_bytes: place.map_or(0, |place| parts.read_bytes(&place)),
            });
        }
        self.is_at_end = end == End::Bounds;
        // All of a tie group counts as taken, however many of its keys the run had room for.
        if let Some(last) = run.last() {
            self.last = Some((last.bytes.to_vec(), last.whole));
        }
    }

    /// What is left of the index.
    fn left<'a>(&'a self, index: &Index, bounds: &'a Bounds) -> (Bound<Spot<'a>>, Bound<Spot<'a>>) {
        let (low, high) = bounds.in_index(index);
        let Some((bytes, whole)) = &self.last else {
            return (low, high);
        };
        let last = Bound::Excluded(Spot {
            bytes,
            whole: *whole,
            at: None,
        });
        match self.direction {
            Direction::Forward => (last, high),
            Direction::Backward => (low, last),
        }
    }
}
