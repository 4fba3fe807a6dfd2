//! The indexes of all partitions, in order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use kreon_base::Result;

use super::bounds::Bounds;
use super::source::{IndexKey, Source};
use crate::index::{Direction, Run};
use crate::store::shared::Shared;

/// Runs of all partitions, merged.
pub struct Merge {
    direction: Direction,
    sources: Vec<Source>,
    /// The next index key of each partition that has one.
    heads: BinaryHeap<Head>,
    run: Run,
}

/// A whole key or a tie group, and the partitions that have it: one for a whole key.
pub struct Merged {
    pub key: IndexKey,
    pub partitions: Vec<usize>,
}

struct Head {
    key: IndexKey,
    /// Number of the source.
    source: usize,
    direction: Direction,
}

impl Merge {
    /// The index keys in `bounds`. The first run of each partition takes `run_keys`.
    pub fn new(
        shared: &Shared,
        bounds: &Bounds,
        direction: Direction,
        run_keys: usize,
    ) -> Result<Self> {
        let partitions = 0..shared.partitions.len();
        let sources = partitions.map(|number| Source::new(number, direction, run_keys));
        let mut merge = Self {
            direction,
            sources: sources.collect(),
            heads: BinaryHeap::with_capacity(shared.partitions.len()),
            run: Run::new(),
        };
        for number in 0..merge.sources.len() {
            if let Some(head) = merge.head(shared, bounds, number)? {
                merge.heads.push(head);
            }
        }
        Ok(merge)
    }

    /// The next whole key or tie group.
    pub fn next(&mut self, shared: &Shared, bounds: &Bounds) -> Result<Option<Merged>> {
        let Some((key, partition)) = self.pop(shared, bounds)? else {
            return Ok(None);
        };
        let mut merged = Merged {
            key,
            partitions: vec![partition],
        };
        if merged.key.is_whole {
            return Ok(Some(merged));
        }
        while self
            .heads
            .peek()
            .is_some_and(|head| head.key.order(&merged.key) == Ordering::Equal)
        {
            let Some((key, partition)) = self.pop(shared, bounds)? else {
                break;
            };
            merged.key.keys += key.keys;
            merged.partitions.push(partition);
        }
        Ok(Some(merged))
    }

    /// Takes the next index key out, and has that of the same partition behind it follow.
    fn pop(&mut self, shared: &Shared, bounds: &Bounds) -> Result<Option<(IndexKey, usize)>> {
        let Some(number) = self.heads.peek().map(|head| head.source) else {
            return Ok(None);
        };
        let next = self.head(shared, bounds, number)?;
        let Some(mut first) = self.heads.peek_mut() else {
            return Ok(None);
        };
        let taken = match next {
            Some(next) => std::mem::replace(&mut *first, next),
            None => PeekMut::pop(first),
        };
        Ok(Some((taken.key, taken.source)))
    }

    fn head(&mut self, shared: &Shared, bounds: &Bounds, number: usize) -> Result<Option<Head>> {
        let Some(source) = self.sources.get_mut(number) else {
            return Ok(None);
        };
        let key = source.next(shared, bounds, &mut self.run)?;
        Ok(key.map(|key| Head {
            key,
            source: number,
            direction: self.direction,
        }))
    }
}

impl IndexKey {
    /// A tie group stands behind the whole key that its keys begin with, and before all others that are greater.
    fn order(&self, other: &Self) -> Ordering {
        let bytes = self.bytes.cmp(&other.bytes);
        bytes.then(other.is_whole.cmp(&self.is_whole))
    }
}

/// The greatest is the one that comes first.
impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.key.order(&other.key);
        match self.direction {
            Direction::Forward => order.reverse(),
            Direction::Backward => order,
        }
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}
