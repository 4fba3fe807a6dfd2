//! Recovery of extents that were written slot by slot, beside a model; and of records of an image.

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};
use kvell::format::{
    ClassNo, Classes, EXTENT_BYTES, ExtentHeader, ExtentNo, IMAGE_HEADER_BYTES, ImageHeader,
    ImageRecord, ItemKind, ItemSeal, Timestamp, encode, encode_tombstone, item_bytes,
};
use kvell::index::Location;
use kvell::partition::{Allowance, Parts, Recovery, Surroundings};
use kvell::space::{ExtentSource, FlushClock};

use crate::STORE;

pub const SEAL: ItemSeal = ItemSeal { store: STORE };
pub const INDEX_KEY_BYTES: usize = 32;

/// There are no further extents.
struct Nothing;

impl ExtentSource for Nothing {
    fn take(&self, _: u16, _: ClassNo) -> Result<ExtentNo> {
        Err(Error::new(ErrorKind::OutOfSpace, "no extents"))
    }

    fn give(&self, _: &[ExtentNo]) -> Result<()> {
        Ok(())
    }
}

/// `SplitMix64`.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((value ^ value >> 31) % limit as u64) as usize
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(at + 1));
        }
    }
}

/// The header of an extent of the partition.
pub fn header(number: u32, class: ClassNo) -> ExtentHeader {
    ExtentHeader {
        store: STORE,
        extent: ExtentNo(number),
        partition: 0,
        class,
        sequence: number.into(),
    }
}

/// Short keys, keys that look alike in the index, and keys that a head part has no room for.
fn key(number: usize) -> Vec<u8> {
    match number % 3 {
        0 => format!("k{number}").into_bytes(),
        1 => format!("{}{number}", "alike".repeat(8)).into_bytes(),
        _ => format!("{}{number}", "long".repeat(110)).into_bytes(),
    }
}

/// What stands in a slot.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub key: usize,
    pub timestamp: Timestamp,
    pub is_tombstone: bool,
    pub at: Location,
}

/// Extents of several classes with items and tombstones of few keys, in slots and with ages that chance has made.
pub fn written(random: &mut Random) -> (Vec<(ExtentHeader, Vec<u8>)>, Vec<Written>) {
    let classes = Classes::new(512).expect("a valid unit");
    let mut ages: Vec<u64> = (1..2000).collect();
    random.shuffle(&mut ages);
    let (mut extents, mut all) = (Vec::new(), Vec::new());
    for (number, slot_bytes) in (1..).zip([64, 128, 512, 512, 1024, 2048]) {
        let class = classes.class_of(slot_bytes).expect("a class");
        let header = header(number, class);
        let mut bytes = vec![0; EXTENT_BYTES];
        for slot in 0..80 {
            let (key_no, age) = (random.below(60), ages.pop().expect("enough"));
            let (key, timestamp) = (key(key_no), Timestamp(age));
            let is_tombstone = random.below(4) == 0;
            if item_bytes(key.len(), 9) > slot_bytes || random.below(5) == 0 {
                continue;
            }
            let place = classes.slot(header.extent, class, slot).expect("a slot");
            let to = &mut bytes[(place.offset % EXTENT_BYTES as u64) as usize..];
            match is_tombstone {
                true => encode_tombstone(to, SEAL, place, timestamp, &key),
                false => encode(
                    to,
                    SEAL,
                    place,
                    timestamp,
                    ItemKind::Put,
                    &key,
                    b"the value",
                ),
            };
            all.push(Written {
                key: key_no,
                timestamp,
                is_tombstone,
                at: Location::new(place.offset).expect("an item's place"),
            });
        }
        extents.push((header, bytes));
    }
    (extents, all)
}

pub fn recovery() -> Recovery {
    limited(Allowance::new(64 << 20, 1))
}

pub fn limited(allowance: Allowance) -> Recovery {
    let classes = Arc::new(Classes::new(512).expect("a valid unit"));
    let (mark, allowance) = (Timestamp::default(), Arc::new(allowance));
    Recovery::new(SEAL, classes, INDEX_KEY_BYTES, mark, allowance)
}

pub fn finished(recovery: Recovery) -> Parts {
    let around = Surroundings {
        partition: 0,
        source: Arc::new(Nothing),
        clock: Arc::new(FlushClock::default()),
        memory_bytes: 1 << 20,
        is_lossless: false,
    };
    recovery.finish(Timestamp(5000), around)
}

pub fn compare(parts: &Parts, all: &[Written]) {
    let mut by_key: BTreeMap<usize, Vec<Written>> = BTreeMap::new();
    all.iter()
        .for_each(|it| by_key.entry(it.key).or_default().push(*it));
    let (mut keys, mut copies, mut tombstones, mut in_use) = (0, 0, 0, Vec::new());
    for (&number, of_key) in &by_key {
        let newest = of_key.iter().max_by_key(|it| it.timestamp).expect("one");
        let items = of_key.iter().filter(|it| !it.is_tombstone);
        in_use.extend(items.clone().map(|it| it.at));
        let found: Vec<Location> = parts.index.find(&key(number)).collect();
        if newest.is_tombstone {
            copies += items.count();
            if of_key.iter().any(|it| !it.is_tombstone) {
                tombstones += 1;
                in_use.push(newest.at);
            }
            assert!(!of_key.iter().any(|it| found.contains(&it.at)), "{number}");
        } else {
            keys += 1;
            copies += items.count() - 1;
            assert!(found.contains(&newest.at), "{number}");
        }
    }
    assert!(keys > 20 && copies > 50 && tombstones > 3, "a rich case");
    assert_eq!(parts.index.len(), keys);
    assert_eq!(parts.room.stale().copies(), copies);
    assert_eq!(parts.room.stale().tombstones(), tombstones);
    let slots = parts.room.slots();
    assert!(in_use.iter().all(|&at| slots.is_in_use(at)));
    let used: u32 = slots.extents().map(|it| it.2).sum();
    assert_eq!(used as usize, in_use.len());
    assert!(parts.adds_up());
}

#[test]
fn of_each_key_the_newest_counts_in_whatever_order_extents_come() {
    for seed in 0..30 {
        let mut random = Random(seed);
        let (mut extents, all) = written(&mut random);
        for _ in 0..3 {
            let mut recovery = recovery();
            for (header, bytes) in &extents {
                recovery.take_in(header, bytes).expect("sound extents");
            }
            assert!(recovery.end().expect("keys in order"), "one pass");
            assert_eq!(recovery.torn().len(), 0);
            compare(&finished(recovery), &all);
            random.shuffle(&mut extents);
        }
    }
}

/// The outcome of a recovery that restores keys from the records of an image.
fn restored(keys: &[(&[u8], bool, u64)]) -> Result<u64> {
    let header = ImageHeader {
        store: STORE,
        number: 0,
        partition: 0,
        index_key_bytes: INDEX_KEY_BYTES as u16,
        incarnation: 1,
        sequence: 1,
    };
    let mut records = Vec::new();
    for &(bytes, is_whole, offset) in keys {
        let record = ImageRecord::Key {
            offset,
            bytes,
            is_whole,
        };
        record.encode(&mut records);
    }
    let mut block = vec![0; IMAGE_HEADER_BYTES];
    block.extend(&records);
    header.seal(&mut block, 0, records.len());
    let (_, records, _) = ImageHeader::decode(&block, STORE, 0).expect("sealed");
    let mut recovery = recovery();
    recovery.restore(records)?;
    Ok(finished(recovery).index.len())
}

#[test]
fn keys_of_an_image_come_in_their_order_or_are_corruption() {
    let tie = [7; INDEX_KEY_BYTES];
    let good: [(&[u8], bool, u64); 4] = [
        (b"a", true, 80),
        (b"b", true, 8),
        (&tie, false, 8),
        (&tie, false, 16),
    ];
    assert_eq!(restored(&good[..2]).expect("in order"), 2);
    assert_eq!(restored(&[good[2], good[3]]).expect("in order"), 2);
    let bad: [&[(&[u8], bool, u64)]; 4] = [
        &[good[1], good[0]],
        &[good[0], (b"a", true, 88)],
        &[good[3], good[2]],
        &[(&[7; INDEX_KEY_BYTES + 1], true, 8)],
    ];
    for keys in bad {
        let outcome = restored(keys).map_err(|error| error.kind());
        assert_eq!(outcome, Err(ErrorKind::Corruption));
    }
}
