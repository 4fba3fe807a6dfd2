//! What a transaction is to write.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use kreon_base::RegionId;

use crate::operation::{Expiry, Operation, Terms};
use crate::read::KeyBounds;
use crate::regions::RegionState;
use crate::write::DeletedRange;

/// Memory of a write beside its key and value, in bytes.
const WRITE_BYTES: usize = 96;

/// A new value.
#[derive(Clone)]
pub struct Put {
    pub value: Vec<u8>,
    /// When it ends.
    pub expiry: Expiry,
}

/// A new value; `None` deletes the key.
pub type Write = Option<Put>;

/// What a transaction says about a key of its snapshot.
pub enum Own<'a> {
    /// The transaction has set it, until then.
    Value(&'a [u8], Expiry),
    /// The transaction has deleted it.
    Deleted,
    /// Nothing.
    Unknown,
}

/// The writes of a transaction, the last of each key. In each region deleted ranges come before them.
#[derive(Default)]
pub struct Writes {
    regions: Vec<RegionWrites>,
    bytes: usize,
    /// What the last changes replaced, while there are savepoints.
    undo: Vec<Undo>,
    /// Lengths of `undo` at the savepoints.
    savepoints: Vec<(u64, usize)>,
    last_savepoint: u64,
}

struct RegionWrites {
    region: Arc<RegionState>,
    keys: BTreeMap<Vec<u8>, Write>,
    ranges: Vec<DeletedRange>,
}

enum Undo {
    Key {
        region: usize,
        key: Vec<u8>,
        before: Option<Write>,
    },
    Range {
        region: usize,
        before: Vec<(Vec<u8>, Write)>,
    },
}

fn bytes_of(key: &[u8], write: &Write) -> usize {
    WRITE_BYTES + key.len() + write.as_ref().map_or(0, |put| put.value.len())
}

impl RegionWrites {
    fn own(&self, key: &[u8]) -> Own<'_> {
        match self.keys.get(key) {
            Some(Some(put)) => Own::Value(&put.value, put.expiry),
            Some(None) => Own::Deleted,
            None if self.ranges.iter().any(|range| range.has(key)) => Own::Deleted,
            None => Own::Unknown,
        }
    }
}

impl Writes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        let mut regions = self.regions.iter();
        regions.all(|writes| writes.keys.is_empty() && writes.ranges.is_empty())
    }

    /// The memory that they take, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The memory that a write takes, in bytes.
    pub fn bytes_of(key: &[u8], value: Option<&[u8]>) -> usize {
        WRITE_BYTES + key.len() + value.map_or(0, <[u8]>::len)
    }

    /// What the transaction says about `key`.
    pub fn own(&self, region: RegionId, key: &[u8]) -> Own<'_> {
        self.of(region)
            .map_or(Own::Unknown, |writes| writes.own(key))
    }

    fn of(&self, region: RegionId) -> Option<&RegionWrites> {
        self.regions
            .iter()
            .find(|writes| writes.region.id == region)
    }

    fn place(&mut self, region: &Arc<RegionState>) -> usize {
        let place = self
            .regions
            .iter()
            .position(|writes| writes.region.id == region.id);
        place.unwrap_or_else(|| {
            self.regions.push(RegionWrites {
                region: Arc::clone(region),
                keys: BTreeMap::new(),
                ranges: Vec::new(),
            });
            self.regions.len() - 1
        })
    }

    /// Sets `key`, or deletes it.
    pub fn set(&mut self, region: &Arc<RegionState>, key: &[u8], write: Write) {
        let place = self.place(region);
        let before = self.change(place, key, Some(write));
        if !self.savepoints.is_empty() {
            self.bytes += before
                .as_ref()
                .map_or(WRITE_BYTES, |before| bytes_of(key, before));
            let key = key.to_vec();
            self.undo.push(Undo::Key {
                region: place,
                key,
                before,
            });
        }
    }

    /// Puts `write` for `key`, or takes it out; returns what was there.
    fn change(&mut self, place: usize, key: &[u8], write: Option<Write>) -> Option<Write> {
        let keys = &mut self.regions.get_mut(place)?.keys;
        self.bytes += write.as_ref().map_or(0, |write| bytes_of(key, write));
        let before = match (write, keys.get_mut(key)) {
            (Some(write), Some(there)) => Some(std::mem::replace(there, write)),
            (Some(write), None) => keys.insert(key.to_vec(), write),
            (None, _) => keys.remove(key),
        };
        let gone = before.as_ref().map_or(0, |before| bytes_of(key, before));
        self.bytes = self.bytes.saturating_sub(gone);
        before
    }

    /// Deletes a range; own writes in it are gone.
    pub fn delete_range(&mut self, region: &Arc<RegionState>, range: DeletedRange) {
        let place = self.place(region);
        let Some(writes) = self.regions.get_mut(place) else {
            return;
        };
        let before: Vec<_> = writes
            .keys
            .extract_if(.., |key, _| range.has(key))
            .collect();
        self.bytes += WRITE_BYTES + range.start().len() + range.end().len();
        writes.ranges.push(range);
        if self.savepoints.is_empty() {
            let gone = before.iter().map(|(key, write)| bytes_of(key, write)).sum();
            self.bytes = self.bytes.saturating_sub(gone);
        } else {
            self.undo.push(Undo::Range {
                region: place,
                before,
            });
        }
    }

    /// A savepoint of now.
    pub fn set_savepoint(&mut self) -> u64 {
        self.last_savepoint += 1;
        self.savepoints.push((self.last_savepoint, self.undo.len()));
        self.last_savepoint
    }

    /// Undoes all changes since a savepoint, which stays; `false`: there is no such savepoint any more.
    pub fn roll_back_to(&mut self, savepoint: u64) -> bool {
        let Some(place) = self
            .savepoints
            .iter()
            .position(|(number, _)| *number == savepoint)
        else {
            return false;
        };
        let length = self.savepoints.get(place).map_or(0, |(_, length)| *length);
        self.savepoints.truncate(place + 1);
        while self.undo.len() > length
            && let Some(undo) = self.undo.pop()
        {
            self.undo_one(undo);
        }
        true
    }

    fn undo_one(&mut self, undo: Undo) {
        match undo {
            Undo::Key {
                region,
                key,
                before,
            } => {
                let kept = before
                    .as_ref()
                    .map_or(WRITE_BYTES, |before| bytes_of(&key, before));
                self.bytes = self.bytes.saturating_sub(kept);
                self.change(region, &key, before);
            }
            Undo::Range { region, before } => {
                let Some(writes) = self.regions.get_mut(region) else {
                    return;
                };
                // Their bytes were counted all the time.
                writes.keys.extend(before);
                if let Some(range) = writes.ranges.pop() {
                    let gone = WRITE_BYTES + range.start().len() + range.end().len();
                    self.bytes = self.bytes.saturating_sub(gone);
                }
            }
        }
    }

    /// The first write of a key within `bounds`, or the last.
    pub fn next_within(
        &self,
        region: RegionId,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        is_from_front: bool,
    ) -> Option<(&[u8], &Write)> {
        let mut within = self.of(region)?.keys.range::<[u8], _>(bounds);
        let next = match is_from_front {
            true => within.next(),
            false => within.next_back(),
        };
        next.map(|(key, write)| (key.as_slice(), write))
    }

    /// Whether there are writes in `region`.
    pub fn has(&self, region: RegionId) -> bool {
        let writes = self.of(region);
        writes.is_some_and(|writes| !writes.keys.is_empty() || !writes.ranges.is_empty())
    }

    /// Whether `key` itself is written, not just in a deleted range.
    pub fn sets(&self, region: RegionId, key: &[u8]) -> bool {
        self.of(region)
            .is_some_and(|writes| writes.keys.contains_key(key))
    }

    /// The regions that are written to.
    pub fn regions(&self) -> impl Iterator<Item = RegionId> {
        self.regions.iter().map(|writes| writes.region.id)
    }

    /// Everything as operations of one unit.
    pub fn operations(&self) -> Vec<Operation<'_>> {
        let count = self
            .regions
            .iter()
            .map(|writes| writes.keys.len() + writes.ranges.len());
        let mut operations = Vec::with_capacity(count.sum());
        for writes in &self.regions {
            let region = &*writes.region;
            operations.extend(writes.ranges.iter().map(|range| range.operation(region)));
            operations.extend(writes.keys.iter().map(|(key, write)| Operation {
                region,
                key,
                value: write.as_ref().map(|put| put.value.as_slice()),
                is_range: false,
                terms: Terms {
                    expiry: write.as_ref().map_or(Expiry::OfRegion, |put| put.expiry),
                    ..Terms::default()
                },
            }));
        }
        operations
    }

    /// The keys that are written.
    pub fn keys(&self) -> impl Iterator<Item = (&RegionState, &[u8])> {
        self.regions.iter().flat_map(|writes| {
            let keys = writes.keys.keys();
            keys.map(|key| (&*writes.region, key.as_slice()))
        })
    }

    /// The ranges that are deleted.
    pub fn ranges(&self) -> impl Iterator<Item = (&RegionState, KeyBounds)> {
        self.regions.iter().flat_map(|writes| {
            let ranges = writes.ranges.iter();
            ranges.map(|range| (&*writes.region, range.bounds()))
        })
    }
}
