//! Values of all sizes: around the borders of classes, and in parts.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use kreon_base::ErrorKind;
use kreon_sim::{Call, Effect, Fault};
use kvell::Durability::{Buffered, Sync};
use kvell::format::{Classes, PART_PREFIX_BYTES, item_bytes};
use kvell::{Options, Region};

use crate::world::{after_power_cut, new_store, open, options, simulated, value};

/// Bytes of the key of an item whose key is this one.
fn key_bytes(key: &str) -> usize {
    4 + key.len()
}

/// Lengths of values of a key up to `parts` parts: as many as fit into slots of each class and into parts, one less, one
/// more.
fn lengths(key: &str, parts: usize) -> Vec<usize> {
    let classes = Classes::new(512).expect("a valid atomic unit");
    let slots = classes.iter().map(|(_, class)| class.slot_bytes as usize);
    let of_items = slots.filter_map(|slot| slot.checked_sub(item_bytes(key_bytes(key), 0)));
    let piece = classes.slot_bytes_max() - item_bytes(0, PART_PREFIX_BYTES);
    // The last part has a slot of any class.
    let tails = [0, 460, 461, 972, 100_000];
    let of_parts = (1..=parts).flat_map(|part| tails.map(|tail| part * piece + tail));
    let around = |len_bytes: usize| [len_bytes.saturating_sub(1), len_bytes, len_bytes + 1];
    let mut all: Vec<usize> = of_items.chain(of_parts).flat_map(around).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A value of exactly that length, which tells what wrote it as far as there is room.
fn exact(number: usize, len_bytes: usize) -> Vec<u8> {
    let mut bytes = value(number as u64, len_bytes);
    // So that no part passes for another.
    for (at, byte) in bytes.iter_mut().enumerate().skip(8).step_by(1000) {
        *byte = (at / 1000) as u8;
    }
    bytes.truncate(len_bytes);
    bytes
}

fn check(region: &Region, key: &str, expected: &[u8]) {
    let found = region.get(key).expect("a get").expect("a value");
    assert_eq!(found.len(), expected.len(), "length of {key}");
    assert!(found == expected, "{key} of {} bytes", expected.len());
}

fn sized() -> Options {
    Options {
        atomic_bytes: Some(512),
        ..options()
    }
}

#[test]
fn a_key_keeps_values_of_every_size_as_it_grows_and_shrinks() {
    let device = simulated(1 << 40);
    let store = open(&device, &sized());
    let region = store.region("r").expect("a region");
    let up = lengths("key", 3);
    let down: Vec<usize> = up.iter().rev().copied().step_by(3).collect();
    let mut last = Vec::new();
    for (number, &len_bytes) in up.iter().chain(&down).enumerate() {
        last = exact(number, len_bytes);
        let durability = if number % 2 == 0 { Sync } else { Buffered };
        region.put("key", &last, durability).expect("a put");
        check(&region, "key", &last);
        if number % 40 == 0 {
            region.delete("key", durability).expect("a deletion");
            assert_eq!(region.get("key").expect("a get"), None);
            region.put("key", &last, durability).expect("a put");
        }
    }
    store.close().expect("a close");
    let store = open(&device, &sized());
    check(&store.region("r").expect("the region"), "key", &last);
    assert_eq!(store.stats().parts, 0);
}

#[test]
fn values_of_every_size_are_kept_over_an_opening_and_their_space_is_given_back() {
    let device = simulated(1 << 40);
    let store = open(&device, &sized());
    let region = store.region("r").expect("a region");
    let all: Vec<(String, Vec<u8>)> = lengths("0000", 3)
        .into_iter()
        .enumerate()
        .map(|(number, len_bytes)| (format!("{number:04}"), exact(number, len_bytes)))
        .collect();
    let changes: Vec<_> = all.iter().map(|(key, value)| (key, Some(value))).collect();
    region.write_many(&changes, Buffered).expect("puts");
    store.close().expect("a close");
    let store = open(&device, &sized());
    let region = store.region("r").expect("the region");
    for (key, value) in &all {
        check(&region, key, value);
    }
    let before = store.stats();
    let classes = Classes::new(512).expect("a valid atomic unit");
    let piece = classes.slot_bytes_max() - item_bytes(0, PART_PREFIX_BYTES);
    let longest = classes.slot_bytes_max() - item_bytes(key_bytes("0000"), 0);
    let large: Vec<usize> = all.iter().map(|it| it.1.len()).collect();
    let large = large.iter().filter(|&&len_bytes| len_bytes > longest);
    assert_eq!(before.large_values as usize, large.clone().count());
    let parts: usize = large.map(|len_bytes| len_bytes.div_ceil(piece)).sum();
    assert_eq!(before.parts as usize, parts);
    let deletions: Vec<_> = all.iter().map(|(key, _)| (key, None::<Vec<u8>>)).collect();
    region.write_many(&deletions, Sync).expect("deletions");
    let after = store.stats();
    let left = (after.large_values, after.parts, after.outdated_parts);
    assert_eq!(left, (0, 0, 0));
    // Four parts of the largest size were in an extent.
    let full = before.extents - after.extents;
    assert!(full * 4 > before.parts / 2, "{after:?} of {before:?}");
    store.close().expect("a close");
    let store = open(&device, &sized());
    let region = store.region("r").expect("the region");
    for (key, _) in &all {
        assert_eq!(region.get(key).expect("a get"), None);
    }
}

#[test]
fn a_long_key_with_a_large_value_is_told_from_keys_that_begin_alike() {
    let (device, store, region) = new_store();
    let keys = ["a", "b", "c"].map(|end| "k".repeat(60_000) + end);
    for (number, key) in keys.iter().enumerate() {
        let value = exact(number, 200_000 + 150_000 * number);
        region.put(key, value, Sync).expect("a put");
    }
    region.delete(&keys[1], Sync).expect("a deletion");
    store.close().expect("a close");
    let store = open(&device, &options());
    let region = store.region("r").expect("the region");
    check(&region, &keys[0], &exact(0, 200_000));
    assert_eq!(region.get(&keys[1]).expect("a get"), None);
    check(&region, &keys[2], &exact(2, 500_000));
}

#[test]
fn a_full_volume_refuses_large_values_and_loses_nothing_and_goes_on_after_deletions() {
    for durability in [Sync, Buffered] {
        let device = simulated(24 << 20);
        let options = Options {
            partitions: 1,
            ..options()
        };
        let store = open(&device, &options);
        let region = store.region("r").expect("a region");
        let mut count = 0;
        let refused = loop {
            let put = region.put(format!("{count}"), exact(count, 1_500_000), durability);
            match put {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), ErrorKind::OutOfSpace);
        assert!(count >= 8, "{count} values of 1.5 MB in 23 MiB");
        // Nor does a larger one for a present key, of which some parts are written.
        let refused = region.put("0", exact(0, 9_000_000), durability);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::OutOfSpace);
        let stats = store.stats();
        assert_eq!(stats.large_values as usize, count);
        assert_eq!(stats.parts as usize, count * 6);
        for number in 0..count {
            check(&region, &format!("{number}"), &exact(number, 1_500_000));
        }
        for number in 1..count {
            let deletion = region.delete(format!("{number}"), durability);
            deletion.expect("a deletion");
        }
        region
            .put("0", exact(9, 4_000_000), durability)
            .expect("a put");
        region
            .put("1", exact(1, 3_000_000), durability)
            .expect("a put");
        store.close().expect("a close");
        let store = open(&device, &options);
        let region = store.region("r").expect("the region");
        check(&region, "0", &exact(9, 4_000_000));
        check(&region, "1", &exact(1, 3_000_000));
        assert_eq!(store.stats().large_values, 2);
    }
}

#[test]
fn after_a_failed_write_of_a_part_the_old_value_is_there() {
    for nth in [1, 2, 5, 8, 9] {
        let (device, store, region) = new_store();
        // Its extents are there already.
        region.put("key", exact(1, 2_000_000), Sync).expect("a put");
        region.put("key", exact(2, 2_000_000), Sync).expect("a put");
        device.inject(Fault::nth(nth, Call::Write, Effect::Io));
        let error = region.put("key", exact(3, 2_000_000), Sync).unwrap_err();
        let kind = error.kind();
        assert!(
            matches!(kind, ErrorKind::Io | ErrorKind::Poisoned),
            "{error}"
        );
        check(&region, "key", &exact(2, 2_000_000));
        drop((store, region));
        device.clear_faults();
        let (store, region) = after_power_cut(&device);
        check(&region, "key", &exact(2, 2_000_000));
        assert_eq!(store.stats().parts, 8);
    }
}

#[test]
fn a_failed_read_of_a_part_fails_its_request_alone() {
    let (device, _store, region) = new_store();
    region.put("key", exact(1, 6_000_000), Sync).expect("a put");
    for nth in [1, 2, 20] {
        device.inject(Fault::nth(nth, Call::Read, Effect::Io));
        assert_eq!(region.get("key").unwrap_err().kind(), ErrorKind::Io);
        check(&region, "key", &exact(1, 6_000_000));
    }
}

#[test]
fn gets_of_a_key_that_changes_see_whole_values_in_their_order() {
    const CHANGES: usize = 60;
    let (_device, store, region) = new_store();
    let is_over = AtomicBool::new(false);
    let length = |number: usize| [2_000_000, 300_000, 700, 5_000_000][number % 4];
    region.put("key", exact(0, length(0)), Sync).expect("a put");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut seen = 0;
                while !is_over.load(Relaxed) {
                    let found = region.get("key").expect("a get").expect("a value");
                    let stamp = found.first_chunk().copied().map_or(0, u64::from_le_bytes);
                    let number = stamp as usize;
                    assert!(number >= seen, "{number} after {seen}");
                    assert!(found == exact(number, length(number)), "{number}");
                    seen = number;
                }
            });
        }
        for number in 1..CHANGES {
            let durability = if number % 3 == 0 { Buffered } else { Sync };
            region
                .put("key", exact(number, length(number)), durability)
                .expect("a put");
        }
        is_over.store(true, Relaxed);
    });
    store.sync().expect("a sync");
    let stats = store.stats();
    assert_eq!((stats.large_values, stats.outdated_parts), (1, 0));
}

#[test]
fn a_large_value_does_not_push_others_out_of_the_cache() {
    let (device, _store, region) = new_store();
    for number in 0..200_u32 {
        let key = format!("small {number}");
        region.put(key, vec![1; 1000], Sync).expect("a put");
    }
    region
        .put("large", vec![2; 20_000_000], Sync)
        .expect("a put");
    assert!(region.get("large").expect("a get").is_some());
    let before = device.calls(Call::Read);
    for number in 0..200_u32 {
        let found = region.get(format!("small {number}"));
        assert!(found.expect("a get").is_some());
    }
    assert_eq!(device.calls(Call::Read), before);
}
