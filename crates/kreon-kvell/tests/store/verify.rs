//! Verification of an open store: what it counts, and that each kind of damage is found and named.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use kreon_base::ErrorKind;
use kreon_device::{AlignedBuf, Device};
use kreon_sim::{Call, Effect, Fault, Keep, SimDevice};
use kvell::Durability::{Buffered, Sync};
use kvell::{Damage, Region, Store};

use crate::world::{from_image, new_store, open, options, value};

const SECTOR_BYTES: u64 = 512;
const EXTENT_BYTES: u64 = 1 << 20;

/// Some items of all kinds of sizes, outdated items, tombstones.
fn fill(region: &Region) {
    for number in 0..300_u64 {
        let len_bytes = [20, 100, 400, 900, 5000][number as usize % 5];
        region
            .put(number.to_be_bytes(), value(number, len_bytes), Buffered)
            .expect("a put");
    }
    for number in (0..300_u64).step_by(3) {
        region
            .put(number.to_be_bytes(), value(number, 700), Buffered)
            .expect("a put");
    }
    for number in (0..300_u64).step_by(4) {
        region
            .delete(number.to_be_bytes(), Buffered)
            .expect("a deletion");
    }
    let long = vec![b'l'; 3000];
    region.put(&long, value(1, 300), Buffered).expect("a put");
    region.put("marked", marked(3000), Sync).expect("a put");
}

/// A value that is found on the device.
fn marked(len_bytes: usize) -> Vec<u8> {
    let mut bytes = b"a mark that nothing else has ".repeat(3);
    bytes.resize(len_bytes, 7);
    bytes
}

fn place_of(device: &SimDevice, wanted: &[u8]) -> u64 {
    let image = device.image();
    let all = image.bytes(0, image.len_bytes() as usize);
    let found = all.windows(wanted.len()).position(|it| it == wanted);
    found.expect("it is on the device") as u64
}

/// A store with some content; where the value of the key "marked" is.
fn filled() -> (Arc<SimDevice>, Store, Region, u64) {
    let (device, store, region) = new_store();
    fill(&region);
    store.sync().expect("a sync");
    let at = place_of(&device, &marked(3000));
    (device, store, region, at)
}

fn write(device: &SimDevice, offset: u64, bytes: &[u8]) {
    let mut buffer = AlignedBuf::new(bytes.len());
    buffer.copy_from_slice(bytes);
    device.write_at(offset, &buffer).expect("a write");
}

/// The only damage that a verification finds.
fn only(store: &Store) -> Damage {
    let report = store.verify().expect("a verification");
    assert_eq!(report.damaged, 1, "{:?}", report.damage);
    report.damage.into_iter().next().expect("it is told")
}

fn is_of_marked(damage: &Damage) -> bool {
    let key = damage.key.as_deref();
    key.is_some_and(|key| key.ends_with(b"marked"))
}

#[test]
fn a_whole_store_is_clean_and_all_of_it_is_counted() {
    let (_, store, _region, _) = filled();
    let (report, stats) = (store.verify().expect("a verification"), store.stats());
    assert!(report.is_clean(), "{:?}", report.damage);
    assert_eq!(
        (report.items, report.extents, report.outdated_items),
        (stats.keys, stats.extents, stats.outdated_items)
    );
    assert_eq!(
        (report.tombstones, report.busy_slots),
        (stats.tombstones, 0)
    );
    assert!(report.outdated_items > 0 && report.tombstones > 0);
    assert!(report.bytes > stats.extents * EXTENT_BYTES);
    let outcome = store.clone().close().and_then(|()| store.verify());
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn verifications_beside_writers_take_nothing_for_damage() {
    let (_, store, region) = new_store();
    fill(&region);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (region, is_over) = (&region, &is_over);
            scope.spawn(move || {
                let mut number = 0;
                while !is_over.load(Relaxed) {
                    number += 1;
                    let key = [thread, number % 60].map(u64::to_be_bytes).concat();
                    let len_bytes = [30, 90, 600, 2000][number as usize % 4];
                    match number % 7 {
                        0 => region.delete(&key, Buffered),
                        1 => region.put(&key, value(number, len_bytes), Sync),
                        _ => region.put(&key, value(number, len_bytes), Buffered),
                    }
                    .expect("a change");
                }
            });
        }
        for _ in 0..6 {
            let report = store.verify().expect("a verification");
            assert!(report.is_clean(), "{:?}", report.damage);
        }
        is_over.store(true, Relaxed);
    });
}

#[test]
fn a_wrong_bit_in_the_body_of_an_item_is_told_with_its_key() {
    let (device, store, region, at) = filled();
    device.flip_bit(at + 700, 3);
    let damage = only(&store);
    assert!(
        is_of_marked(&damage) && damage.what.contains("body"),
        "{damage}"
    );
    assert!(
        damage.offset <= at && damage.offset + SECTOR_BYTES > at,
        "{damage}"
    );
    region.put("marked", "whole again", Sync).expect("a put");
    // The damaged one is outdated, and still on the device: nothing depends on it.
    let report = store.verify().expect("a verification");
    assert!(report.damage.is_empty(), "{:?}", report.damage);
}

#[test]
fn a_wrong_bit_in_a_head_is_told_with_the_key_of_the_index() {
    let (device, store, _region, at) = filled();
    device.flip_bit(at - 1, 0);
    let damage = only(&store);
    assert!(
        is_of_marked(&damage) && damage.what.contains("no item"),
        "{damage}"
    );
}

#[test]
fn an_item_that_was_never_written_is_told_with_its_key() {
    let (device, store, _region, at) = filled();
    let sector = at / SECTOR_BYTES * SECTOR_BYTES;
    write(&device, sector, &[0; SECTOR_BYTES as usize]);
    let damage = only(&store);
    assert!(
        is_of_marked(&damage) && damage.what.contains("nothing"),
        "{damage}"
    );
}

#[test]
fn an_item_in_the_place_of_another_is_told_with_the_key_of_the_index() {
    let (device, store, region, at) = filled();
    let sector = at / SECTOR_BYTES * SECTOR_BYTES;
    region.put("other", vec![9; 3000], Sync).expect("a put");
    let other = place_of(&device, &vec![9; 2900]) / SECTOR_BYTES * SECTOR_BYTES;
    let bytes = device.image().bytes(other, SECTOR_BYTES as usize);
    write(&device, sector, &bytes);
    assert!(is_of_marked(&only(&store)));
}

#[test]
fn a_sector_that_cannot_be_read_is_told_with_the_key_in_it() {
    let (device, store, _region, at) = filled();
    let fault = Fault::nth(1, Call::Read, Effect::Io).for_ever();
    device.inject(fault.within(at..at + 1));
    let report = store.verify().expect("a verification");
    assert!(
        report.damage.iter().any(is_of_marked),
        "{:?}",
        report.damage
    );
    let extent = report.damage.first().expect("it is told");
    assert_eq!(extent.offset, at / EXTENT_BYTES * EXTENT_BYTES);
    assert!(extent.what.contains("cannot be read whole"), "{extent}");
    assert_eq!(report.damaged, 2);
}

#[test]
fn a_wrong_header_of_an_extent_is_told() {
    let (device, store, _region, at) = filled();
    let extent = at / EXTENT_BYTES * EXTENT_BYTES;
    device.flip_bit(extent + 20, 0);
    let damage = only(&store);
    assert_eq!(damage.offset, extent);
    assert!(damage.what.contains("header"), "{damage}");
    write(&device, extent, &[0; SECTOR_BYTES as usize]);
    assert!(only(&store).what.contains("no header"));
}

#[test]
fn a_header_that_came_back_is_told() {
    let (device, store, region) = new_store();
    for number in 0..80_u8 {
        region
            .put([number], vec![number; 200_000], Sync)
            .expect("a put");
    }
    let before = device.image();
    for number in 0..80_u8 {
        region.delete([number], Sync).expect("a deletion");
    }
    for _ in 0..50 {
        region.put("key", value(1, 30), Sync).expect("a put");
    }
    assert!(store.stats().free_extents > 0, "{:?}", store.stats());
    assert!(store.verify().expect("a verification").is_clean());
    let blank = |at: &u64| device.image().bytes(*at, 512).iter().all(|&byte| byte == 0);
    let mut extents = (1..before.len_bytes() / EXTENT_BYTES).map(|it| it * EXTENT_BYTES);
    let given = extents.find(blank).expect("an extent that was given back");
    write(&device, given, &before.bytes(given, 512));
    let damage = only(&store);
    assert_eq!(damage.offset, given);
    assert!(damage.what.contains("belongs to nobody"), "{damage}");
}

#[test]
fn an_item_that_came_back_to_a_free_slot_is_told() {
    let (device, store, region) = new_store();
    // Alone in its sector.
    region.put("gone", marked(400), Sync).expect("a put");
    let sector = place_of(&device, &marked(400)) / SECTOR_BYTES * SECTOR_BYTES;
    let bytes = device.image().bytes(sector, SECTOR_BYTES as usize);
    region.delete("gone", Sync).expect("a deletion");
    assert!(store.verify().expect("a verification").is_clean());
    write(&device, sector, &bytes);
    let damage = only(&store);
    assert!(damage.what.contains("may come back"), "{damage}");
    assert_eq!(damage.offset, sector);
}

#[test]
fn a_damaged_superblock_is_told() {
    let (device, store, _region, _) = filled();
    device.flip_bit(4096 + 200, 1);
    let damage = only(&store);
    assert_eq!(damage.offset, 4096);
    assert!(damage.what.contains("superblock slot 1"), "{damage}");
}

#[test]
fn a_store_that_has_failed_is_not_verified() {
    let (device, store, region, _) = filled();
    device.inject(Fault::nth(1, Call::Write, Effect::Io));
    region
        .put("key", "value", Sync)
        .expect_err("the device fails");
    let outcome = store.verify().map_err(|error| error.kind());
    assert_eq!(outcome.unwrap_err(), ErrorKind::Poisoned);
}

/// Writes that were not flushed lie half over items that were replaced before, and those are counted as old copies.
#[test]
fn slot_that_was_being_used_again_at_a_power_cut_is_no_damage() {
    let (device, store, region) = new_store();
    for round in 0..4 {
        for number in 0..40_u64 {
            let value = value(100 * round + number, 3000);
            let key = number.to_be_bytes();
            region.put(key, value, Buffered).expect("a put");
        }
        store.sync().expect("a sync");
    }
    // All are known to be durable from here on: what does not verify of them was not torn.
    store.close().expect("a close");
    let store = open(&device, &options());
    let region = store.region("r").expect("the region");
    for number in 0..40_u64 {
        let key = (1000 + number).to_be_bytes();
        region
            .put(key, value(number, 3000), Buffered)
            .expect("a put");
    }
    let history = device.history();
    for seed in 0..20 {
        let image = history.crash().image(&mut Keep::SomeSectors { seed });
        let device = from_image(image, 1 << 40);
        let store = open(&device, &options());
        let report = store.verify().expect("a verification");
        assert!(report.damage.is_empty(), "{seed}: {:?}", report.damage);
    }
}
