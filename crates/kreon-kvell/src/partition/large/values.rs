//! Where the parts of large values are, and when their slots are free.
//!
//! The places stand in memory, 8 bytes for each part of up to 255 KiB. Otherwise each change of a key would have to read
//! the item before it, to learn whether that has parts.

use std::collections::BTreeSet;

use crate::format::Timestamp;
use crate::index::Location;
use crate::number_hash::NumberMap;

/// Bytes of an entry in a table of parts, about.
const ENTRY_BYTES: usize = 48;

/// The parts of a partition's large values. A timestamp is that of the head.
#[derive(Default)]
pub struct LargeValues {
    /// By the place of the head: the value that a key has.
    present: NumberMap<Location, (Timestamp, Box<[Location]>)>,
    /// Values whose successor is not durable: they would come back.
    outdated: NumberMap<Timestamp, Box<[Location]>>,
    /// Values that are being read.
    read: NumberMap<Timestamp, Read>,
    /// Values whose head is not written yet.
    begun: BTreeSet<Timestamp>,
    /// Parts of values that are present, outdated or being read.
    parts: usize,
}

#[derive(Default)]
struct Read {
    readers: usize,
    /// Parts that nothing but the readers needs.
    left: Box<[Location]>,
}

impl LargeValues {
    /// The parts of a value are about to be written: it must not pass for durable.
    pub fn begin(&mut self, timestamp: Timestamp) {
        self.begun.insert(timestamp);
    }

    /// The head of a value is under way, or will never be.
    pub fn end(&mut self, timestamp: Timestamp) {
        self.begun.remove(&timestamp);
    }

    /// The oldest value that was begun.
    pub fn oldest(&self) -> Option<Timestamp> {
        self.begun.first().copied()
    }

    /// A key has the value whose head is at `head`.
    pub fn add(&mut self, head: Location, timestamp: Timestamp, parts: Box<[Location]>) {
        self.parts += parts.len();
        self.present.insert(head, (timestamp, parts));
    }

    /// The item at `head` gets a successor. If it is the head of a large value, the timestamp by which the parts
    /// [become free](Self::free) when the successor is durable.
    pub fn outdate(&mut self, head: Location) -> Option<Timestamp> {
        let (timestamp, parts) = self.present.remove(&head)?;
        self.outdated.insert(timestamp, parts);
        Some(timestamp)
    }

    /// The successor of a value is durable. Returns the slots that are free now: all, or none while somebody reads.
    ///
    /// They can be used at once, unlike those of items: a part says nothing without the head of its timestamp, which is never
    /// used twice.
    pub fn free(&mut self, timestamp: Timestamp) -> Box<[Location]> {
        let Some(parts) = self.outdated.remove(&timestamp) else {
            return Box::default();
        };
        if let Some(read) = self.read.get_mut(&timestamp) {
            read.left = parts;
            return Box::default();
        }
        self.parts -= parts.len();
        parts
    }

    /// A value is read: its parts stay until as many calls of [`end_read`](Self::end_read).
    pub fn begin_read(&mut self, timestamp: Timestamp) {
        self.read.entry(timestamp).or_default().readers += 1;
    }

    /// A reader has ended. Returns the slots that are free now.
    pub fn end_read(&mut self, timestamp: Timestamp) -> Box<[Location]> {
        let Some(read) = self.read.get_mut(&timestamp) else {
            return Box::default();
        };
        read.readers -= 1;
        if read.readers > 0 {
            return Box::default();
        }
        let left = std::mem::take(&mut read.left);
        self.read.remove(&timestamp);
        self.parts -= left.len();
        left
    }

    /// Parts of the value whose head is at `head`; 0 if that is the head of none.
    pub fn parts_of(&self, head: Location) -> usize {
        self.present.get(&head).map_or(0, |(_, parts)| parts.len())
    }

    /// Values that keys have.
    pub fn len(&self) -> usize {
        self.present.len()
    }

    /// Whether no key has a large value.
    pub fn is_empty(&self) -> bool {
        self.present.is_empty()
    }

    /// All values that keys have: place and timestamp of the head, places of the parts.
    pub fn iter(&self) -> impl Iterator<Item = (Location, Timestamp, &[Location])> {
        let all = self.present.iter();
        all.map(|(&head, (timestamp, parts))| (head, *timestamp, &**parts))
    }

    /// Slots in use by parts, with those of outdated values that are not free yet.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Slots in use by parts of outdated values.
    pub fn outdated_parts(&self) -> usize {
        let left = self.read.values().map(|read| read.left.len());
        let outdated = self.outdated.values().map(|parts| parts.len());
        left.sum::<usize>() + outdated.sum::<usize>()
    }

    /// Memory in bytes, about.
    pub fn memory_bytes(&self) -> usize {
        let entries = self.present.capacity() + self.outdated.capacity() + self.read.capacity();
        entries * ENTRY_BYTES + self.parts * size_of::<Location>()
    }

    /// Memory that a value of so many parts may take in addition, in bytes, about.
    pub fn growth_bytes_max(&self, parts: usize) -> usize {
        let is_full = self.present.len() == self.present.capacity();
        let entries = if is_full { self.present.len() + 4 } else { 0 };
        entries * ENTRY_BYTES + parts * size_of::<Location>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> Location {
        Location::new(number * 4096).expect("a small offset")
    }

    #[test]
    fn parts_are_free_when_the_successor_is_durable_and_the_last_reader_has_ended() {
        for durable_first in [false, true] {
            let mut values = LargeValues::default();
            let timestamp = Timestamp(5);
            values.add(at(1), timestamp, Box::new([at(2), at(3)]));
            values.begin_read(timestamp);
            values.begin_read(timestamp);
            assert_eq!(values.outdate(at(1)), Some(timestamp));
            assert_eq!((values.len(), values.outdated_parts()), (0, 2));
            assert_eq!(*values.end_read(timestamp), []);
            let mut freed = Vec::new();
            for is_durable in [durable_first, !durable_first] {
                assert!(freed.is_empty());
                freed = match is_durable {
                    true => values.free(timestamp),
                    false => values.end_read(timestamp),
                }
                .into_vec();
            }
            assert_eq!(freed, [at(2), at(3)]);
            assert_eq!((values.parts(), values.outdated_parts()), (0, 0));
        }
    }

    #[test]
    fn the_oldest_value_begun_is_known_until_it_ends() {
        let mut values = LargeValues::default();
        values.begin(Timestamp(7));
        values.begin(Timestamp(9));
        assert_eq!(values.oldest(), Some(Timestamp(7)));
        values.end(Timestamp(7));
        assert_eq!(values.oldest(), Some(Timestamp(9)));
        values.end(Timestamp(9));
        assert_eq!(values.oldest(), None);
    }
}
