//! Calls that are refused change nothing.

use kreon_base::{ErrorKind, PageNo, RegionId};

use super::*;
use kreon_volume::Purpose;

/// Takes every page and segment that is left.
fn take_all_room(bench: &Bench) -> Vec<PageNo> {
    let mut allocator = bench.engine.subsystems.storage.allocator.lock();
    let mut taken = Vec::new();
    while let Ok((first, count)) = allocator.allocate_pages(512, Purpose::Maintenance) {
        taken.extend((first.0..first.0 + count).map(PageNo));
    }
    taken
}

#[test]
fn a_full_volume_refuses_to_drop_a_region_until_there_is_room() {
    let small = Options {
        volume_bytes_max: 64 << 20,
        ..options()
    };
    let bench = Bench::open(Bench::filled().closed(), small).unwrap();
    let region = bench.engine.existing_region("r").unwrap();
    let taken = take_all_room(&bench);
    // A record of the log, which has room in the segment that it is in.
    bench.engine.region("new").unwrap();
    let dropped = bench.engine.drop_region("r").unwrap_err();
    assert_eq!(dropped.kind(), ErrorKind::OutOfSpace);

    // It did not happen, and the store is not poisoned.
    assert_eq!(bench.engine.region_names(), ["new", "r"]);
    assert_eq!(bench.get(&region, &name(7)).unwrap().unwrap(), value(7));
    let gone = Operation {
        region: &region,
        key: &name(7),
        value: None,
        is_range: false,
        terms: Terms::default(),
    };
    bench.engine.write(&[gone], Durability::Buffered).unwrap();
    assert_eq!(bench.get(&region, &name(7)).unwrap(), None);

    let allocator = &bench.engine.subsystems.storage.allocator;
    allocator.lock().release_pages(&taken).unwrap();
    assert!(bench.problems().is_empty(), "{:?}", bench.problems());
    bench.engine.drop_region("r").unwrap();
    let closed = bench.put(&region, b"key", b"value").unwrap_err();
    assert_eq!(closed.kind(), ErrorKind::Closed);
    let bench = Bench::open(bench.closed(), options()).unwrap();
    assert_eq!(bench.engine.region_names(), ["new"]);
    assert!(bench.problems().is_empty());
}

#[test]
fn records_of_a_dropped_region_are_not_replayed() {
    let bench = Bench::open(Image::default(), options()).unwrap();
    let (old, kept) = (bench.engine.region("old"), bench.engine.region("kept"));
    bench.put(&old.unwrap(), b"key", b"of the old one").unwrap();
    bench.put(&kept.unwrap(), b"key", b"kept").unwrap();
    bench.engine.drop_region("old").unwrap();
    let bench = Bench::open(bench.closed(), options()).unwrap();
    assert_eq!(bench.engine.region_names(), ["kept"]);
    assert_eq!(bench.engine.stats().l0_entries, 1);
    let again = bench.engine.region("old").unwrap();
    assert_eq!(bench.get(&again, b"key").unwrap(), None);
    let kept = bench.engine.existing_region("kept").unwrap();
    assert_eq!(bench.get(&kept, b"key").unwrap().unwrap(), b"kept");
    assert!(bench.problems().is_empty());
}

#[test]
fn when_all_region_numbers_were_used_no_region_is_made() {
    let bench = Bench::filled();
    *bench.engine.subsystems.storage.made.turn() = RegionId(u32::MAX);
    let error = bench.engine.region("new").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfSpace);
    assert_eq!(&*bench.engine.region("r").unwrap().name, "r");
    assert_eq!(bench.engine.region_names(), ["r"]);
}

#[test]
fn a_value_that_is_too_long_is_refused_with_its_whole_batch() {
    let bench = Bench::open(Image::default(), options()).unwrap();
    let region = bench.engine.region("r").unwrap();
    // Never touched: the memory of it is not taken.
    let long = vec![0; kreon_base::VALUE_BYTES_MAX + 1];
    let put = |key, value| Operation {
        region: &region,
        key,
        value: Some(value),
        is_range: false,
        terms: Terms::default(),
    };
    let batch = [put(b"a", b"short"), put(b"b", &long)];
    let error = bench.engine.write(&batch, Durability::Sync).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(bench.get(&region, b"a").unwrap(), None);
    bench.put(&region, b"a", b"short").unwrap();
}

#[test]
fn the_table_of_numbers_names_every_tree() {
    let bench = Bench::filled();
    let stats = bench.engine.stats();
    assert_eq!((stats.levels.len(), stats.levels[0].entries), (1, 3000));
    let text = stats.to_string();
    let lines: Vec<_> = text.lines().rev().take(3).collect();
    assert_eq!(lines[2], "region \"r\"", "{text}");
    let words: Vec<_> = lines[0].split_whitespace().collect();
    assert_eq!(words[..2], ["L1", "3000"], "{text}");
    assert!(lines[1].trim_start().starts_with("level"), "{text}");
}

#[test]
fn what_can_never_have_room_is_refused_and_smaller_writes_go_on() {
    let options = Options {
        volume_bytes_max: 64 << 20,
        ..options()
    };
    let bench = Bench::open(Image::default(), options).unwrap();
    let region = bench.engine.region("r").unwrap();
    bench.put(&region, b"before", b"small").unwrap();
    let long = vec![7; 80 << 20];
    let error = bench.put(&region, b"long", &long).unwrap_err();
    assert_eq!(error.kind(), kreon_base::ErrorKind::OutOfSpace);
    bench.put(&region, b"after", b"small").unwrap();
    // As long as there can be room, dead records make it.
    for round in 0..6_u8 {
        bench.put(&region, b"long", &long[..10 << 20]).unwrap();
        bench.put(&region, b"after", &[round]).unwrap();
    }
    assert_eq!(bench.get(&region, b"after").unwrap(), Some(vec![5]));
    assert_eq!(bench.problems(), Vec::<String>::new());
}
