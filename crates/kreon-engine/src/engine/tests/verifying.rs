//! Verification tells everything that does not add up.

use kreon_base::{Attributes, Lsn, SegmentId, Timestamp};
use kreon_format::{
    FRAGMENT_HEADER_BYTES, Fragment, FragmentSeal, SUPERBLOCK_PAGES, encode_attributes,
    fragment_bytes,
};

use super::*;
use crate::checkpoint::catalogue::MAIN_LOG;
use kreon_volume::Purpose;

/// The one line that tells what is wrong.
fn problem(bench: &Bench) -> String {
    let mut problems = bench.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.remove(0)
}

/// A segment of the log that the tree points at.
fn log_segment(bench: &Bench) -> SegmentId {
    let allocator = bench.engine.subsystems.storage.allocator.lock();
    let segments = allocator.log_segments(MAIN_LOG);
    let mut live = segments.iter().filter(|s| allocator.live_bytes(s.0) > 0);
    live.next().unwrap().0
}

#[test]
fn a_whole_store_has_no_problem() {
    let bench = Bench::filled();
    let report = bench.engine.verify().unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    assert_eq!((report.regions, report.entries), (1, u64::from(KEYS)));
    assert_eq!(report.records, u64::from(KEYS - KEYS.div_ceil(3)));
}

#[test]
fn a_page_in_use_that_nothing_reaches_is_told() {
    let bench = Bench::filled();
    let page = {
        let mut allocator = bench.engine.subsystems.storage.allocator.lock();
        let (page, _) = allocator.allocate_pages(1, Purpose::Maintenance).unwrap();
        allocator.keep_pages(&[page]).unwrap();
        page
    };
    let expected = format!("{page} is marked as in use, but nothing reaches it");
    assert_eq!(problem(&bench), expected);
}

#[test]
fn a_page_of_a_tree_that_is_marked_as_free_is_told() {
    let bench = Bench::filled();
    let page = bench.tree_page();
    let allocator = &bench.engine.subsystems.storage.allocator;
    allocator.lock().drop_pages(&[page]).unwrap();
    let expected = format!("{page} is in use, but marked as free");
    assert_eq!(problem(&bench), expected);
}

#[test]
fn a_page_that_is_reached_twice_is_told() {
    let bench = Bench::filled();
    let page = bench.tree_page();
    let ledger = &bench.engine.subsystems.storage.ledger;
    ledger.lock().catalogue_pages.push(page);
    let problem = bench.problems().remove(0);
    assert!(problem.starts_with(&page.to_string()), "{problem}");
    assert!(problem.ends_with("is reached twice"), "{problem}");
}

#[test]
fn live_bytes_that_do_not_add_up_are_told() {
    let bench = Bench::filled();
    let segment = log_segment(&bench);
    let allocator = &bench.engine.subsystems.storage.allocator;
    let counted = allocator.lock().live_bytes(segment);
    allocator.lock().charge(segment, -8).unwrap();
    let expected = format!(
        "{segment} is said to hold {} live bytes, the trees point at {counted}",
        counted - 8
    );
    assert_eq!(problem(&bench), expected);
}

#[test]
fn a_replay_marker_behind_the_log_is_told() {
    let bench = Bench::filled();
    bench.engine.subsystems.storage.ledger.lock().marker = Lsn(1 << 50);
    let problem = problem(&bench);
    assert!(problem.contains("lies behind the log"), "{problem}");
}

#[test]
fn superblock_slots_that_the_device_put_back_are_told() {
    let bench = Bench::filled();
    let old = bench.device.image();
    bench.engine.region("another").unwrap();
    bench.engine.checkpoint().unwrap();
    let put_back = |slot: usize| {
        let offset = SUPERBLOCK_PAGES[slot].offset_bytes();
        let mut page = kreon_device::AlignedBuf::new(4096);
        page.copy_from_slice(&old.bytes(offset, 4096));
        bench.device.write_at(offset, &page).unwrap();
    };
    put_back(2);
    assert!(problem(&bench).starts_with("superblock slot 2 is of the older"));
    (0..4).for_each(put_back);
    assert!(problem(&bench).starts_with("the superblock says"));
}

#[test]
fn a_damaged_superblock_slot_is_told() {
    let bench = Bench::filled();
    bench
        .device
        .flip_bit(SUPERBLOCK_PAGES[1].offset_bytes() + 100, 3);
    let problem = problem(&bench);
    assert!(problem.starts_with("superblock slot 1: "), "{problem}");
}

/// More records than references fit in the frames that a verification is lent, written in no order.
fn many() -> (Image, u32) {
    const RECORDS: u32 = 90_000;
    let small = Options {
        memory_bytes: 8 << 20,
        inline_value_bytes_max: 0,
        ..options()
    };
    let bench = Bench::open(Image::default(), small).unwrap();
    let region = bench.engine.region("r").unwrap();
    for at in 0..RECORDS {
        let key = at * 7919 % RECORDS;
        bench.put(&region, &name(key), &key.to_le_bytes()).unwrap();
    }
    bench.engine.checkpoint().unwrap();
    (bench.closed(), RECORDS)
}

#[test]
fn records_are_read_once_in_large_runs_and_progress_ends_whole() {
    let (image, records) = many();
    let small = Options {
        memory_bytes: 8 << 20,
        ..options()
    };
    let bench = Bench::open(image, small).unwrap();
    let before = bench.engine.stats();
    let mut told = Vec::new();
    let report = bench.engine.verify_with(&mut |now| told.push(now)).unwrap();
    assert!(report.is_clean(), "{:?}", report.problems);
    assert_eq!(report.records, u64::from(records));
    assert_eq!(report.value_bytes, 4 * u64::from(records));
    // A record takes 32 bytes here: in the order of keys each would be a read.
    let after = bench.engine.stats();
    let reads = after.device_reads - before.device_reads;
    assert!(
        reads < report.pages + 400,
        "{reads} of {} pages",
        report.pages
    );
    assert!(told.len() > 5 && told.is_sorted_by_key(|now| now.done));
    assert_eq!(told.last().map(|now| now.done), Some(told[0].total));
    // All that was lent is back.
    let frames = bench
        .engine
        .subsystems
        .storage
        .mapping
        .lend_frames(usize::MAX)
        .len();
    assert_eq!(frames as u64, after.mapping.frames / 4);
    assert_eq!(
        bench.engine.subsystems.reader.scan_memory().taken_bytes(),
        0
    );
}

#[test]
fn each_damaged_record_is_told_with_its_key() {
    let image = Bench::filled().closed();
    let bench = Bench::open(image, options()).unwrap();
    let region = bench.engine.existing_region("r").unwrap();
    let bytes = bench.device.image();
    let bytes = bytes.bytes(0, bytes.len_bytes() as usize);
    for key in [1, 2, 1000, KEYS - 1] {
        let value = value(key);
        let place = bytes.windows(value.len()).position(|part| part == value);
        bench.device.flip_bit(place.unwrap() as u64 + 7, 2);
    }
    // What a reader has brought into memory before says nothing of the device.
    let problems = bench.problems();
    assert_eq!(problems.len(), 4, "{problems:?}");
    for (line, key) in problems.iter().zip([1, 2, 1000, KEYS - 1]) {
        assert!(line.starts_with("region \"r\": "), "{line}");
        assert!(line.contains(&format!("\"key{key:06}\"")), "{line}");
        assert!(bench.get(&region, &name(key)).is_err());
    }
}

/// Gives the record of `key` another expiry, under a checksum that is right.
fn forge_expiry(bench: &Bench, region: &RegionState, key: &[u8], value_bytes: usize) {
    let payload_bytes = key.len() + Attributes::BYTES + value_bytes;
    let offset = bench.place_of(region, key);
    let image = bench.device.image();
    let bytes = image.bytes(offset.0, fragment_bytes(payload_bytes));
    let storage = &bench.engine.subsystems.storage;
    let sequence = storage.log.reader().sequence_of(offset.segment());
    let seal = FragmentSeal {
        store: storage.store,
        sequence: sequence.unwrap(),
    };
    let Ok(Fragment::Record { header, payload }) = Fragment::decode(&bytes, &seal, offset) else {
        panic!("no record of {key:?}");
    };
    let other = Attributes::expiring(Some(Timestamp::MAX));
    let mut payload = payload.to_vec();
    payload[key.len()..][..Attributes::BYTES].copy_from_slice(&encode_attributes(other));
    let mut forged = header.encode(&seal, offset, &[&payload]).to_vec();
    forged.extend_from_slice(&payload);
    forged.resize(bytes.len(), 0);
    assert!(forged[FRAGMENT_HEADER_BYTES..] != bytes[FRAGMENT_HEADER_BYTES..]);
    for (at, (new, old)) in forged.iter().zip(&bytes).enumerate() {
        let bits = (0..8).filter(|bit| (new ^ old) >> bit & 1 == 1);
        bits.for_each(|bit| bench.device.flip_bit(offset.0 + at as u64, bit));
    }
}

#[test]
fn a_record_with_another_expiry_than_its_entry_is_told() {
    // Of one that is read in a run with others, and of one that is read by itself.
    let pairs = [(&b"short"[..], 500), (b"long", 100_000)];
    let bench = Bench::open(Image::default(), options()).unwrap();
    let region = bench.engine.region("r").unwrap();
    for (key, value_bytes) in pairs {
        let operation = Operation {
            region: &region,
            key,
            value: Some(&vec![7; value_bytes]),
            is_range: false,
            terms: Terms::until(Some(Timestamp::of_ms(Timestamp::MAX.ms() - 1))),
        };
        let engine = &bench.engine;
        engine.write(&[operation], Durability::Buffered).unwrap();
    }
    bench.engine.checkpoint().unwrap();

    let bench = Bench::open(bench.closed(), options()).unwrap();
    let region = bench.engine.existing_region("r").unwrap();
    assert_eq!(bench.problems(), Vec::<String>::new());
    for (at, (key, value_bytes)) in pairs.into_iter().enumerate() {
        forge_expiry(&bench, &region, key, value_bytes);
        // What is in memory says nothing of the device.
        let mapping = &bench.engine.subsystems.storage.mapping;
        mapping.discard(kreon_base::PageNo(0), 1 << 12);
        let problems = bench.problems();
        assert_eq!(problems.len(), at + 1, "{problems:?}");
        let name = format!("{:?}", String::from_utf8_lossy(key));
        let its = problems.iter().find(|line| line.contains(&name)).unwrap();
        assert!(its.ends_with("the record has other attributes"), "{its}");
    }
}

#[test]
fn a_read_that_fails_while_verifying_is_told() {
    let image = Bench::filled().closed();
    let bench = Bench::open(image, options()).unwrap();
    // From the first read of records on, in the segments of the log.
    let start = log_segment(&bench).offset_bytes();
    let range = start + 4096 * 20..start + 4096 * 24;
    let fault = kreon_sim::Fault::nth(1, kreon_sim::Call::Read, kreon_sim::Effect::Io);
    bench.device.inject(fault.for_ever().within(range));
    let problems = bench.problems();
    assert!(!problems.is_empty() && problems.len() < 200, "{problems:?}");
    bench.device.clear_faults();
    assert_eq!(bench.problems(), Vec::<String>::new());
}
