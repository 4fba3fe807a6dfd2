//! What a recovery makes of items that were not written to their end, of keys that are longer than a head part, and of
//! timestamps that come twice.

use std::sync::Arc;

use kvell::format::{
    Classes, EXTENT_BYTES, ExtentHeader, ItemKind, Slot, Timestamp, encode, encode_tombstone,
};
use kvell::index::Location;
use kvell::partition::{Allowance, Parts, Recovery};

use crate::recovery::{INDEX_KEY_BYTES, SEAL, finished, header};

const SECTOR_BYTES: usize = 512;

/// An extent of slots of one size.
struct Extent {
    header: ExtentHeader,
    bytes: Vec<u8>,
}

impl Extent {
    fn new(number: u32, slot_bytes: usize) -> Self {
        let classes = Classes::new(512).expect("a valid unit");
        let header = header(number, classes.class_of(slot_bytes).expect("a class"));
        let bytes = vec![0; EXTENT_BYTES];
        Self { header, bytes }
    }

    fn slot(&self, number: u32) -> Slot {
        let classes = Classes::new(512).expect("a valid unit");
        let ExtentHeader { extent, class, .. } = self.header;
        classes.slot(extent, class, number).expect("a slot")
    }

    fn content(&mut self, number: u32) -> &mut [u8] {
        let slot = self.slot(number);
        let at = (slot.offset % EXTENT_BYTES as u64) as usize;
        &mut self.bytes[at..at + slot.bytes as usize]
    }

    fn put(&mut self, number: u32, age: u64, key: &[u8], value: &[u8]) -> Location {
        let slot = self.slot(number);
        let to = self.content(number);
        encode(to, SEAL, slot, Timestamp(age), ItemKind::Put, key, value);
        Location::new(slot.offset).expect("an item's place")
    }

    fn delete(&mut self, number: u32, age: u64, key: &[u8]) -> Location {
        let slot = self.slot(number);
        encode_tombstone(self.content(number), SEAL, slot, Timestamp(age), key);
        Location::new(slot.offset).expect("an item's place")
    }
}

fn recovery(index_key_bytes: usize, mark: u64, memory_bytes: usize) -> Recovery {
    let classes = Arc::new(Classes::new(512).expect("a valid unit"));
    let allowance = Arc::new(Allowance::with_least(memory_bytes, 1, 0));
    Recovery::new(SEAL, classes, index_key_bytes, Timestamp(mark), allowance)
}

/// Takes in extents, in one pass or in many. The partition, and the places of what is torn.
fn taken_in(mut recovery: Recovery, extents: &[&Extent]) -> (Parts, Vec<Location>, Timestamp) {
    loop {
        for extent in extents {
            let outcome = recovery.take_in(&extent.header, &extent.bytes);
            outcome.expect("a sound extent");
        }
        if recovery.end().expect("keys in order") {
            break;
        }
    }
    let torn = recovery.torn().iter().map(|it| it.location).collect();
    let newest = recovery.newest();
    (finished(recovery), torn, newest)
}

/// With memory for one pass, and without.
const MEMORY_BYTES: [usize; 2] = [1 << 20, 0];

fn items(parts: &Parts, key: &[u8]) -> Vec<Location> {
    parts.index.find(key).collect()
}

#[test]
fn of_a_half_written_item_the_older_one_counts_and_its_slot_is_to_be_wiped() {
    let keys = [b"key".to_vec(), vec![b'l'; 450]];
    let cases = keys
        .iter()
        .flat_map(|key| (0..8).map(move |kept| (key, kept)));
    for ((key, kept), memory_bytes) in cases.flat_map(|it| MEMORY_BYTES.map(|bytes| (it, bytes))) {
        let mut extent = Extent::new(1, 2048);
        let old = extent.put(0, 10, key, &[1; 1500]);
        // In front of another item, that the torn one goes over.
        extent.put(1, 5, b"left behind", &[2; 1900]);
        let before = extent.content(1).to_vec();
        let new = extent.put(1, 20, key, &[3; 1550]);
        // The first sector was written, of the others some.
        for sector in 1..4 {
            let range = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
            if kept >> (sector - 1) & 1 == 0 {
                extent.content(1)[range.clone()].copy_from_slice(&before[range]);
            }
        }
        let is_whole = kept == 7;
        let recovery = recovery(INDEX_KEY_BYTES, 0, memory_bytes);
        let (parts, torn, newest) = taken_in(recovery, &[&extent]);
        assert_eq!(newest, Timestamp(20), "later ones come after it");
        assert_eq!(items(&parts, key), [if is_whole { new } else { old }]);
        assert_eq!(parts.index.len(), 1, "what the torn one went over is gone");
        assert_eq!(torn, if is_whole { vec![] } else { vec![new] });
        assert_eq!(parts.room.slots().is_in_use(new), is_whole);
        assert!(parts.room.slots().is_in_use(old));
        assert_eq!(parts.room.stale().copies(), usize::from(is_whole));
        assert!(parts.adds_up());
    }
}

#[test]
fn a_half_written_item_of_a_key_without_another_is_none() {
    for memory_bytes in MEMORY_BYTES {
        let mut extent = Extent::new(1, 2048);
        let place = extent.put(3, 7, b"key", &[1; 1500]);
        extent.content(3)[SECTOR_BYTES..].fill(0);
        let recovery = recovery(INDEX_KEY_BYTES, 6, memory_bytes);
        let (parts, torn, newest) = taken_in(recovery, &[&extent]);
        assert_eq!((parts.index.len(), newest), (0, Timestamp(7)));
        assert_eq!(torn, [place]);
        assert!(!parts.room.slots().is_in_use(place));
    }
}

#[test]
fn a_durable_item_with_another_body_is_damaged_and_no_older_one_comes_back() {
    // Up to the mark; and in a slot of one sector, whatever the mark is.
    for (slot_bytes, mark) in [(2048, 20), (512, 0)] {
        for memory_bytes in MEMORY_BYTES {
            let mut extent = Extent::new(1, slot_bytes);
            let value = vec![1; slot_bytes - 100];
            let old = extent.put(0, 10, b"key", &value);
            let new = extent.put(1, 20, b"key", &value);
            extent.content(1)[slot_bytes - 80] ^= 1;
            let recovery = recovery(INDEX_KEY_BYTES, mark, memory_bytes);
            let (parts, torn, _) = taken_in(recovery, &[&extent]);
            assert_eq!(items(&parts, b"key"), [new]);
            assert!(torn.is_empty() && parts.room.slots().is_in_use(old));
            assert_eq!(parts.room.stale().copies(), 1);
        }
    }
}

#[test]
fn of_equal_timestamps_the_lower_place_counts_in_whatever_order_extents_come() {
    for memory_bytes in MEMORY_BYTES {
        equal_timestamps(memory_bytes, false);
        equal_timestamps(memory_bytes, true);
    }
}

fn equal_timestamps(memory_bytes: usize, is_deleted: bool) {
    // Whole in the index; alike there; longer than a head part.
    for key in [b"key".to_vec(), vec![b'a'; 100], vec![b'l'; 450]] {
        let (mut low, mut high) = (Extent::new(1, 1024), Extent::new(2, 2048));
        low.put(0, 4, &key, b"older");
        let first = match is_deleted {
            true => low.delete(1, 5, &key),
            false => low.put(1, 5, &key, b"first"),
        };
        let second = high.put(0, 5, &key, b"second");
        for extents in [[&low, &high], [&high, &low]] {
            let recovery = recovery(INDEX_KEY_BYTES, 0, memory_bytes);
            let (parts, torn, _) = taken_in(recovery, &extents);
            let expected = if is_deleted { vec![] } else { vec![first] };
            assert_eq!(items(&parts, &key), expected);
            assert_eq!(parts.room.stale().copies(), 2);
            assert!(parts.room.slots().is_in_use(second) && torn.is_empty());
            assert!(parts.adds_up());
        }
    }
}

#[test]
fn the_index_has_no_more_of_a_key_than_a_head_part_whatever_it_is_told() {
    for (index_key_bytes, memory_bytes) in [32, 399, 400, 401, 449, 450, 1024, usize::MAX]
        .into_iter()
        .flat_map(|it| MEMORY_BYTES.map(|bytes| (it, bytes)))
    {
        let key = |last: u8| [vec![b'k'; 449], vec![last]].concat();
        let mut extent = Extent::new(1, 2048);
        // A whole item, of which the newer one is damaged: only its head part tells the key.
        extent.put(0, 1, &key(0), &[1; 1500]);
        let damaged = extent.put(1, 2, &key(0), &[1; 1500]);
        extent.content(1)[1900] ^= 1;
        // A whole item, and a tombstone, which is a head part.
        extent.put(2, 3, &key(1), &[1; 1500]);
        extent.delete(3, 4, &key(1));
        // One that looks like them.
        let other = extent.put(4, 5, &key(2), &[1; 1500]);
        let recovery = recovery(index_key_bytes, 10, memory_bytes);
        let (parts, torn, _) = taken_in(recovery, &[&extent]);
        assert_eq!(parts.index.len(), 2, "{index_key_bytes}");
        assert_eq!(items(&parts, &key(0)), [damaged, other]);
        assert_eq!(parts.room.stale().copies(), 2);
        assert_eq!(parts.room.stale().tombstones(), 1);
        assert!(torn.is_empty() && parts.adds_up());
    }
}

#[test]
fn the_longest_key_is_sorted_by_what_stands_of_it_in_the_index() {
    for memory_bytes in MEMORY_BYTES {
        let mut extent = Extent::new(1, 80_000);
        let keys: Vec<Vec<u8>> = [0, 1]
            .map(|last| [vec![b'k'; u16::MAX as usize - 1], vec![last]].concat())
            .into();
        extent.put(0, 1, &keys[0], b"old");
        let places = [
            extent.put(1, 3, &keys[0], b"new"),
            extent.put(2, 2, &keys[1], b"other"),
        ];
        let recovery = recovery(INDEX_KEY_BYTES, 0, memory_bytes);
        let (parts, torn, _) = taken_in(recovery, &[&extent]);
        assert_eq!(items(&parts, &keys[0]), places);
        assert_eq!(parts.room.stale().copies(), 1);
        assert!(torn.is_empty() && parts.adds_up());
    }
}
