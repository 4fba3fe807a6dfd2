//! Recoveries whose notes may take little memory: the extents are read several times.

use kreon_device::Device;
use kvell::Durability;
use kvell::format::{Classes, EXTENT_BYTES, ExtentHeader, ItemKind, Timestamp, encode};
use kvell::opening::{Opening, open};
use kvell::partition::{Allowance, Recovery, Reply, Task};

use crate::recovery::{Random, SEAL, compare, finished, header, limited, written};
use crate::{STORE, device, opened, settle, submit};

/// Passes of a recovery that takes in all extents as often as it asks for, in another order each time.
fn passes(
    recovery: &mut Recovery,
    extents: &mut [(ExtentHeader, Vec<u8>)],
    random: &mut Random,
    mut taken: impl FnMut(&Recovery),
) -> usize {
    for pass in 1..100 {
        random.shuffle(extents);
        for (header, bytes) in extents.iter() {
            recovery.take_in(header, bytes).expect("sound extents");
            taken(recovery);
        }
        if recovery.end().expect("keys in order") {
            return pass;
        }
    }
    panic!("the passes have no end");
}

#[test]
fn the_newest_of_each_key_counts_in_however_many_passes() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..30 {
        let mut random = Random(seed);
        let (mut extents, all) = written(&mut random);
        for least_bytes in [0, 1000, 4000, 10_000, 1 << 20] {
            let mut recovery = limited(Allowance::with_least(0, 1, least_bytes));
            let passes = passes(&mut recovery, &mut extents, &mut random, |_| ());
            seen.insert(passes);
            assert_eq!(recovery.torn().len(), 0);
            compare(&finished(recovery), &all);
        }
    }
    assert!(seen.contains(&1) && seen.len() > 4, "{seen:?}");
    assert!(seen.last().is_some_and(|&most| most > 12), "{seen:?}");
}

/// An extent full of the smallest items, with keys from a number on.
fn full_extent(number: u32, first_key: usize) -> (ExtentHeader, Vec<u8>, usize) {
    let classes = Classes::new(512).expect("a valid unit");
    let class = classes.class_of(64).expect("a class");
    let header = header(number, class);
    let mut bytes = vec![0; EXTENT_BYTES];
    let count = classes.get(class).expect("a class").slots_per_extent;
    for slot in 0..count {
        let place = classes.slot(header.extent, class, slot).expect("a slot");
        let to = &mut bytes[(place.offset % EXTENT_BYTES as u64) as usize..];
        let key = format!("key {}", first_key + slot as usize);
        let age = Timestamp(first_key as u64 + u64::from(slot) + 1);
        encode(to, SEAL, place, age, ItemKind::Put, key.as_bytes(), b"v");
    }
    (header, bytes, count as usize)
}

#[test]
fn notes_take_no_more_than_their_allowance_and_one_extent() {
    let (mut extents, mut keys) = (Vec::new(), 0);
    for number in 1..5 {
        let (header, bytes, count) = full_extent(number, keys);
        extents.push((header, bytes));
        keys += count;
    }
    // The notes of one extent.
    let mut alone = limited(Allowance::new(1 << 30, 1));
    alone.take_in(&extents[0].0, &extents[0].1).expect("sound");
    let extent_bytes = alone.notes_bytes();
    let limit_bytes = 3 * extent_bytes / 2;
    let mut random = Random(1);
    for (limit_bytes, expected) in [(1 << 30, 1..2), (limit_bytes, 3..12)] {
        let mut recovery = limited(Allowance::with_least(0, 1, limit_bytes));
        let mut most = 0;
        let passes = passes(&mut recovery, &mut extents, &mut random, |recovery| {
            most = most.max(recovery.notes_bytes());
        });
        assert!(expected.contains(&passes), "{passes} passes");
        assert!(most <= limit_bytes + extent_bytes * 5 / 4, "{most} bytes");
        let parts = finished(recovery);
        assert_eq!(parts.index.len(), keys as u64);
        let is_there = |key: usize| parts.index.find(format!("key {key}").as_bytes()).count() == 1;
        assert!((0..keys).all(is_there));
        assert!(parts.adds_up());
    }
}

/// Small items and large values, and updates of some of both.
const SMALL: u64 = 1500;
const LARGE_BYTES: usize = 600_000;

#[test]
fn a_store_is_found_in_passes_by_any_number_of_threads() {
    let device = device();
    let mut first = opened(&device);
    let put = |value: Vec<u8>| Task::Put {
        value,
        durability: Durability::Sync,
    };
    for key in 0..SMALL {
        submit(&mut first.partitions[0], key, key, put(vec![1; 600]));
    }
    for key in (0..SMALL).step_by(3) {
        submit(&mut first.partitions[0], key, key, put(vec![2; 700]));
    }
    for key in (0..SMALL).step_by(7) {
        let durability = Durability::Sync;
        let delete = Task::Delete { durability };
        submit(&mut first.partitions[0], key, key, delete);
    }
    for key in SMALL..SMALL + 4 {
        submit(
            &mut first.partitions[0],
            key,
            key,
            put(vec![3; LARGE_BYTES]),
        );
    }
    settle(&device, &mut first);
    drop(first);
    let expected = |key: u64| match key {
        SMALL.. => Some(vec![3; LARGE_BYTES]),
        _ if key.is_multiple_of(7) => None,
        _ if key.is_multiple_of(3) => Some(vec![2; 700]),
        _ => Some(vec![1; 600]),
    };
    for (memory_bytes, threads) in [(0, 1), (0, 3), (4 << 20, 2)] {
        let opening = Opening {
            partitions: 1,
            atomic_bytes: 512,
            index_key_bytes: 32,
            memory_bytes,
            is_lossless: false,
            store: Some(STORE),
            creates: true,
            formats: false,
            threads,
        };
        let reads = device.stats().reads.bytes;
        let mut opened = open(device.clone() as _, &opening).expect("a sound store");
        let (in_use, _) = opened.extents.counts();
        let times = (device.stats().reads.bytes - reads) / (u64::from(in_use) << 20);
        let wanted = if memory_bytes == 0 { 13..16 } else { 1..2 };
        assert!(wanted.contains(&times), "read {times} times");
        assert!(
            opened.partitions[0].parts().adds_up(),
            "each slot counts once"
        );
        for key in 0..SMALL + 4 {
            submit(&mut opened.partitions[0], key, key, Task::Get);
            let replies = settle(&device, &mut opened);
            let [(_, Reply::Value(value))] = &replies[..] else {
                panic!("{key}: {replies:?}");
            };
            assert!(*value == expected(key), "{key}");
        }
    }
}
