//! Keys in order, with those that look alike in the index: their items are asked.

use std::collections::VecDeque;

use kreon_base::Result;

use super::bounds::Bounds;
use super::merge::{Merge, Merged};
use crate::index::{Direction, Location};
use crate::partition::{Origin, Reply, Request, Task, TiedKey};
use crate::store::handle::{Asked, Handle};

/// A key that had an item when it was met.
pub struct Known {
    pub key: Vec<u8>,
    pub partition: usize,
    /// Where the item of a key of a tie group was.
    pub near: Option<Location>,
    pub read_bytes: usize,
}

/// The keys that come next.
pub struct KnownKeys {
    direction: Direction,
    merge: Merge,
    /// In order. A failure stands in front of the tie group that it is of.
    next: VecDeque<Result<Known>>,
}

impl KnownKeys {
    pub fn new(merge: Merge, direction: Direction) -> Self {
        Self {
            direction,
            merge,
            next: VecDeque::new(),
        }
    }

    /// Has `count` keys known, or all that are left. Tie groups are listed whole, those of the call together.
    pub fn fill(&mut self, handle: &Handle, bounds: &Bounds, count: usize) -> Result<()> {
        // Of a tie group at the end of the range there may be nothing in it: what comes behind is not known then.
        while self.next.len() < count && self.take(handle, bounds, count)? {}
        Ok(())
    }

    /// Takes `count` keys from the indexes, with those that are known. `false`: none is left there.
    fn take(&mut self, handle: &Handle, bounds: &Bounds, count: usize) -> Result<bool> {
        let shared = handle.shared()?;
        let mut merged = Vec::new();
        let mut keys = self.next.len();
        while keys < count
            && let Some(next) = self.merge.next(shared, bounds)?
        {
            keys += next.key.keys;
            merged.push(next);
        }
        let is_more = !merged.is_empty();
        let mut tied = list(handle, &merged)?.into_iter();
        for Merged { key, partitions } in merged {
            if key.is_whole {
                self.next.push_back(Ok(Known {
                    key: key.bytes,
                    partition: partitions.first().copied().unwrap_or_default(),
                    near: None,
                    read_bytes: key.read_bytes,
                }));
                continue;
            }
            let replies = tied.by_ref().take(partitions.len());
            self.add_group(bounds, partitions.iter().copied().zip(replies));
        }
        Ok(is_more)
    }

    /// The next key, of those that are known.
    pub fn pop(&mut self) -> Option<Result<Known>> {
        self.next.pop_front()
    }

    /// As [`pop`](Self::pop), if a get of it reads at most `read_bytes`.
    pub fn pop_within(&mut self, read_bytes: usize) -> Option<Result<Known>> {
        let fits = |known: &mut Result<Known>| match known {
            Ok(known) => known.read_bytes <= read_bytes,
            Err(_) => true,
        };
        self.next.pop_front_if(fits)
    }

    /// Adds the keys of a tie group, as the partitions have listed them.
    fn add_group(&mut self, bounds: &Bounds, lists: impl Iterator<Item = (usize, Option<Reply>)>) {
        let mut group: Vec<Known> = Vec::new();
        for (partition, reply) in lists {
            let tied = match reply {
                Some(Reply::Tied(tied)) => tied,
                Some(Reply::Failed(error)) => {
                    self.next.push_back(Err(error));
                    continue;
                }
                // Unreachable: a request for tied keys has no other reply.
                _ => continue,
            };
            self.next.extend(tied.failures.into_iter().map(Err));
            let keys = tied.keys.into_iter();
            let in_bounds = keys.filter(|tied| bounds.contains(&tied.key));
            let known = |TiedKey {
                             key,
                             at,
                             read_bytes,
                         }| Known {
                key,
                partition,
                near: Some(at),
                read_bytes,
            };
            group.extend(in_bounds.map(known));
        }
        match self.direction {
            Direction::Forward => group.sort_unstable_by(|a, b| a.key.cmp(&b.key)),
            Direction::Backward => group.sort_unstable_by(|a, b| b.key.cmp(&a.key)),
        }
        self.next.extend(group.into_iter().map(Ok));
    }
}

/// Asks for the keys of the tie groups among `merged`. The replies by group, and in a group by partition.
fn list(handle: &Handle, merged: &[Merged]) -> Result<Vec<Option<Reply>>> {
    let mut asked = Vec::new();
    for Merged { key, partitions } in merged.iter().filter(|merged| !merged.key.is_whole) {
        // One byte more makes it a key that does not stand whole in the index.
        let longer = [&key.bytes[..], &[0]].concat();
        asked.extend(partitions.iter().map(|&partition| Asked {
            partition,
            request: Request {
                ticket: None,
                key: longer.clone(),
                key_hash: 0,
                task: Task::Tied,
            },
            origin: Origin::Scan { near: None },
        }));
    }
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    Ok(handle.begin_many(asked)?.wait())
}
