//! What a recovery would find, as records of an image, and back.

use std::ops::Bound;

use kreon_base::{Error, Result};

use super::{Parts, Recovery};
use crate::format::{ImageRecord, ImageRecords};
use crate::index::{Direction, End, Location, Run};
use crate::space::StaleSlot;

/// Entries of the index taken at a time.
const ENTRIES: usize = 1024;

impl Parts {
    /// Whether each slot in use is known to be of a key, a part of its value, an outdated item or a tombstone. It is not if
    /// some are out of use up to the next opening, which has to look at them.
    pub fn adds_up(&self) -> bool {
        let used: u64 = self.room.slots().extents().map(|it| u64::from(it.2)).sum();
        let stale = self.room.stale();
        let others = stale.copies() + stale.tombstones() + self.large.parts();
        stale.copies() == stale.ready_count()
            && self.large.outdated_parts() == 0
            && used == self.index.len() + others as u64
    }

    /// Hands out all records. Nothing may be under way. `false` from `out` ends it.
    pub fn records(&self, mut out: impl FnMut(&ImageRecord<'_>) -> Result<bool>) -> Result<()> {
        for (extent, class, words) in self.room.slots().bitmaps() {
            let used: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let record = ImageRecord::Extent {
                extent,
                class,
                used: &used,
            };
            if !out(&record)? {
                return Ok(());
            }
        }
        for (class, StaleSlot { slot, key_hash }) in self.room.stale().ready_slots() {
            let record = ImageRecord::Outdated {
                offset: slot.offset(),
                class,
                key_hash,
            };
            if !out(&record)? {
                return Ok(());
            }
        }
        for (key_hash, slot, timestamp) in self.room.stale().all_tombstones() {
            let record = ImageRecord::Tombstone {
                offset: slot.offset(),
                timestamp,
                key_hash,
            };
            if !out(&record)? {
                return Ok(());
            }
        }
        let mut offsets = Vec::new();
        for (head, timestamp, parts) in self.large.iter() {
            offsets.clear();
            offsets.extend(parts.iter().flat_map(|part| part.offset().to_le_bytes()));
            let record = ImageRecord::Large {
                head: head.offset(),
                timestamp,
                parts: &offsets,
            };
            if !out(&record)? {
                return Ok(());
            }
        }
        self.keys(out)
    }

    fn keys(&self, mut out: impl FnMut(&ImageRecord<'_>) -> Result<bool>) -> Result<()> {
        let (mut run, mut next) = (Run::new(), Run::new());
        loop {
            let low = run
                .last()
                .map_or(Bound::Unbounded, |it| Bound::Excluded(it.spot()));
            next.clear();
            let all = Bound::Unbounded;
            let end = self
                .index
                .run(low, all, Direction::Forward, ENTRIES, &mut next);
            std::mem::swap(&mut run, &mut next);
            for entry in run.iter() {
                let record = ImageRecord::Key {
                    offset: entry.at.offset(),
                    bytes: entry.bytes,
                    is_whole: entry.whole,
                };
                if !out(&record)? {
                    return Ok(());
                }
            }
            if end == End::Bounds {
                return Ok(());
            }
        }
    }
}

impl Recovery {
    /// Takes in records of an image, in place of extents. `Corruption` if there is something else.
    pub fn restore(&mut self, records: ImageRecords<'_>) -> Result<()> {
        for record in records {
            let known = record.and_then(|record| self.record(&record));
            known.ok_or_else(|| Error::corruption("an image has a record that makes no sense"))?;
        }
        Ok(())
    }

    fn record(&mut self, record: &ImageRecord<'_>) -> Option<()> {
        match *record {
            ImageRecord::Extent {
                extent,
                class,
                used,
            } => {
                let (words, _) = used.as_chunks::<8>();
                let words = words.iter().map(|word| u64::from_le_bytes(*word));
                self.slots.add_used(extent, class, words.collect())
            }
            ImageRecord::Outdated {
                offset,
                class,
                key_hash,
            } => {
                let slot = self.slots.place(Location::new(offset)?)?.location;
                self.stale.outdated(key_hash);
                self.stale.ready(class, StaleSlot { slot, key_hash });
                Some(())
            }
            ImageRecord::Tombstone {
                offset,
                timestamp,
                key_hash,
            } => {
                let slot = self.slots.place(Location::new(offset)?)?.location;
                self.stale.buried(key_hash, slot, timestamp, true);
                Some(())
            }
            ImageRecord::Key {
                offset,
                bytes,
                is_whole,
            } => {
                let at = Location::new(offset)?;
                self.index.push(bytes, is_whole, at).then_some(())
            }
            ImageRecord::Large {
                head,
                timestamp,
                parts,
            } => {
                let (offsets, _) = parts.as_chunks::<8>();
                let offsets = offsets.iter().map(|offset| u64::from_le_bytes(*offset));
                let places = offsets.map(|offset| self.slots.place(Location::new(offset)?));
                let parts = places.map(|place| place.map(|place| place.location));
                let head = self.slots.place(Location::new(head)?)?.location;
                self.large
                    .restored(head, timestamp, parts.collect::<Option<_>>()?);
                Some(())
            }
        }
    }
}
