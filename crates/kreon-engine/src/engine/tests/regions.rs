//! Regions: made in the log, many of them, and what a crash leaves.

use std::collections::BTreeSet;

use kreon_base::{ErrorKind, Lsn, PAGE_BYTES, RegionId, SEGMENT_BYTES};
use kreon_format::SUPERBLOCK_PAGES;

use super::*;

const MANY: u32 = 3000;

fn buffered(bench: &Bench, name: &str) -> Arc<RegionState> {
    let made = bench.engine.region_with(name, Durability::Buffered);
    made.unwrap()
}

/// What another process finds after this one has ended at once.
fn killed(bench: &Bench) -> Bench {
    Bench::open(bench.device.image(), options()).unwrap()
}

/// Bytes of the log that the next opening would replay: after a checkpoint of everything, what filled the block up.
fn to_replay(bench: &Bench) -> u64 {
    let marker = bench.engine.subsystems.storage.ledger.lock().marker;
    bench.engine.subsystems.storage.log.tail().0 - marker.0
}

fn empty() -> Bench {
    Bench::open(Image::default(), options()).unwrap()
}

#[test]
fn a_buffered_region_is_lost_with_all_that_came_after_it_or_not_at_all() {
    let bench = empty();
    let first = buffered(&bench, "first");
    bench.put(&first, b"key", b"value").unwrap();
    assert!(killed(&bench).engine.region_names().is_empty());
    bench.engine.sync().unwrap();
    let second = buffered(&bench, "second");
    bench.put(&second, b"key", b"value").unwrap();
    let after = killed(&bench);
    assert_eq!(after.engine.region_names(), ["first"]);
    let first = after.engine.existing_region("first").unwrap();
    assert_eq!(after.get(&first, b"key").unwrap().unwrap(), b"value");
    assert!(after.problems().is_empty());
}

#[test]
fn a_durable_write_takes_the_making_of_all_earlier_regions_along() {
    let bench = empty();
    let (_other, region) = (buffered(&bench, "other"), buffered(&bench, "region"));
    let put = Operation {
        region: &region,
        key: b"key",
        value: Some(b"value"),
        is_range: false,
        terms: Terms::default(),
    };
    bench.engine.write(&[put], Durability::Sync).unwrap();
    let after = killed(&bench);
    assert_eq!(after.engine.region_names(), ["other", "region"]);
    let region = after.engine.existing_region("region").unwrap();
    assert_eq!(after.get(&region, b"key").unwrap().unwrap(), b"value");
}

#[test]
fn a_region_that_is_asked_for_durably_is_durable_whoever_has_made_it() {
    let bench = empty();
    bench.engine.region("durable").unwrap();
    assert_eq!(killed(&bench).engine.region_names(), ["durable"]);
    buffered(&bench, "found");
    bench.engine.region("found").unwrap();
    assert_eq!(killed(&bench).engine.region_names(), ["durable", "found"]);
}

#[test]
fn a_checkpoint_takes_regions_in_that_the_log_alone_has() {
    let bench = empty();
    buffered(&bench, "region");
    bench.engine.checkpoint().unwrap();
    let ledger = bench.engine.subsystems.storage.ledger.lock().clone();
    assert_eq!((ledger.regions.len(), ledger.next_region), (1, RegionId(2)));
    assert!(to_replay(&bench) < PAGE_BYTES as u64);
    assert_eq!(killed(&bench).engine.region_names(), ["region"]);
}

#[test]
fn a_dropped_region_does_not_come_back_from_the_log() {
    let bench = empty();
    let (gone, kept) = (buffered(&bench, "gone"), buffered(&bench, "kept"));
    bench.put(&gone, b"key", b"old").unwrap();
    bench.put(&kept, b"key", b"kept").unwrap();
    bench.engine.drop_region("gone").unwrap();
    let after = killed(&bench);
    assert_eq!(after.engine.region_names(), ["kept"]);
    let again = buffered(&bench, "gone");
    assert!(again.id > kept.id);
    bench.engine.sync().unwrap();
    let after = killed(&bench);
    let again = after.engine.existing_region("gone").unwrap();
    assert_eq!(after.get(&again, b"key").unwrap(), None);
    assert!(after.problems().is_empty());
}

#[test]
fn a_number_whose_making_was_lost_is_given_again_without_what_was_written_to_it() {
    let bench = empty();
    let lost = buffered(&bench, "lost");
    bench.put(&lost, b"key", b"lost").unwrap();
    let after = killed(&bench);
    let new = buffered(&after, "new");
    assert_eq!(new.id, lost.id);
    after.put(&new, b"other", b"new").unwrap();
    after.engine.sync().unwrap();
    let last = killed(&after);
    assert_eq!(last.engine.region_names(), ["new"]);
    let new = last.engine.existing_region("new").unwrap();
    assert_eq!(last.get(&new, b"key").unwrap(), None);
    assert_eq!(last.get(&new, b"other").unwrap().unwrap(), b"new");
}

#[test]
fn regions_that_come_and_go_leave_the_log_nothing_to_replay() {
    let bench = empty();
    for number in 0..20 {
        let name = format!("region {number}");
        buffered(&bench, &name);
        bench.engine.drop_region(&name).unwrap();
    }
    assert!(to_replay(&bench) < PAGE_BYTES as u64);
}

#[test]
fn a_superblock_from_before_a_drop_is_refused_once_a_region_was_made_after_it() {
    let bench = Bench::filled();
    let old = bench.device.image();
    bench.engine.drop_region("r").unwrap();
    buffered(&bench, "later");
    bench.engine.sync().unwrap();
    let mut image = bench.device.image();
    for page in SUPERBLOCK_PAGES {
        let slot = old.bytes(page.offset_bytes(), PAGE_BYTES);
        image.write(page.offset_bytes(), &slot);
    }
    let error = refused(image, options());
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.to_string().contains("older than the log"), "{error}");
}

#[test]
fn regions_in_pages_of_their_own_survive_all_that_changes_them() {
    let options = Options {
        regions_in_stream_max: 0,
        ..options()
    };
    let mut bench = Bench::open(Image::default(), options.clone()).unwrap();
    let mut dice = Dice(3);
    let mut model = std::collections::BTreeMap::<String, u32>::new();
    for round in 0..60 {
        for _ in 0..10 {
            let name = format!("{}{}", "n".repeat(150), dice.below(300));
            match dice.below(4) {
                0 if model.contains_key(&name) => {
                    bench.engine.drop_region(&name).unwrap();
                    model.remove(&name);
                }
                _ => {
                    let region = buffered(&bench, &name);
                    bench
                        .put(&region, b"key", &u32::to_le_bytes(round))
                        .unwrap();
                    model.insert(name, round);
                }
            }
        }
        match dice.below(3) {
            0 => bench.engine.checkpoint().unwrap(),
            1 => bench = Bench::open(bench.closed(), options.clone()).unwrap(),
            _ => bench.engine.background(Work::Image).unwrap(),
        }
        assert_eq!(bench.problems(), Vec::<String>::new());
    }
    let names: Vec<_> = model.keys().cloned().collect();
    assert_eq!(bench.engine.region_names(), names);
    for (name, round) in model {
        let region = bench.engine.existing_region(&name).unwrap();
        let value = bench.get(&region, b"key").unwrap().unwrap();
        assert_eq!(value, round.to_le_bytes());
    }
}

/// The pages of regions of the durable catalogue.
fn region_pages(bench: &Bench) -> BTreeSet<PageNo> {
    let ledger = bench.engine.subsystems.storage.ledger.lock();
    let written = ledger.written.values();
    written.flat_map(|chunk| chunk.page_numbers()).collect()
}

#[test]
fn making_a_region_costs_a_short_record_and_a_checkpoint_what_has_changed() {
    let bench = empty();
    let before = bench.engine.stats();
    for number in 0..MANY {
        buffered(&bench, &format!("region {number:06}"));
    }
    let made_bytes = to_replay(&bench);
    assert!(made_bytes <= 64 * u64::from(MANY), "{made_bytes}");
    let after = bench.engine.stats();
    assert_eq!(after.epoch, before.epoch, "no checkpoint");
    assert_eq!(after.device_flushes, before.device_flushes);

    for number in 0..MANY {
        let region = buffered(&bench, &format!("region {number:06}"));
        bench.put(&region, b"key", b"value").unwrap();
    }
    bench.engine.checkpoint().unwrap();
    let file_bytes = bench.device.image().len_bytes();
    assert!(file_bytes <= (64 << 10) * u64::from(MANY), "{file_bytes}");
    // One region of many changes, and one page with it.
    let pages = region_pages(&bench);
    assert!(pages.len() <= MANY as usize / 32, "{}", pages.len());
    let region = buffered(&bench, "region 000123");
    bench.put(&region, b"key", b"other value").unwrap();
    bench.engine.checkpoint().unwrap();
    let changed = region_pages(&bench);
    assert_eq!(changed.difference(&pages).count(), 1);
    let after = Bench::open(bench.closed(), options()).unwrap();
    assert_eq!(after.engine.region_names().len(), MANY as usize);
    assert_eq!(region_pages(&after), changed, "an opening writes none");
    assert_eq!(after.problems(), Vec::<String>::new());
}

#[test]
fn a_look_at_the_space_does_not_wait_for_who_has_the_allocator() {
    let bench = Bench::filled();
    let subsystems = &bench.engine.subsystems;
    let known = subsystems.space.space_use();
    let held = subsystems.storage.allocator.lock();
    subsystems.space.look_at_space();
    let seen = subsystems.space.space_at_a_look();
    assert_eq!(seen.used_bytes, known.used_bytes);
    assert!(seen.used_bytes >= 4 * SEGMENT_BYTES);
    drop(held);
    assert_eq!(
        subsystems.space.space_at_a_look().live_bytes,
        known.live_bytes
    );
}

#[test]
fn regions_that_are_there_at_the_opening_wait_for_no_flush() {
    let bench = Bench::open(Bench::filled().closed(), options()).unwrap();
    assert_eq!(bench.engine.existing_region("r").unwrap().made_end, Lsn(0));
    let before = bench.engine.stats().device_flushes;
    bench.engine.region("r").unwrap();
    assert_eq!(bench.engine.stats().device_flushes, before);
}
