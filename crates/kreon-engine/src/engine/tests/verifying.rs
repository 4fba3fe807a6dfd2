//! Verification tells everything that does not add up.

use kreon_base::{Lsn, SegmentId};
use kreon_format::SUPERBLOCK_PAGES;

use super::*;
use crate::checkpoint::catalogue::MAIN_LOG;
use crate::volume::Purpose;

/// The one line that tells what is wrong.
fn problem(bench: &Bench) -> String {
    let mut problems = bench.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.remove(0)
}

/// A segment of the log that the tree points at.
fn log_segment(bench: &Bench) -> SegmentId {
    let allocator = bench.engine.core().parts.allocator.lock();
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
        let mut allocator = bench.engine.core().parts.allocator.lock();
        let (page, _) = allocator.allocate_pages(1, Purpose::Upkeep).unwrap();
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
    let allocator = &bench.engine.core().parts.allocator;
    allocator.lock().drop_pages(&[page]).unwrap();
    let expected = format!("{page} is in use, but marked as free");
    assert_eq!(problem(&bench), expected);
}

#[test]
fn a_page_that_is_reached_twice_is_told() {
    let bench = Bench::filled();
    let page = bench.tree_page();
    let ledger = &bench.engine.core().parts.ledger;
    ledger.lock().catalogue_pages.push(page);
    let problem = bench.problems().remove(0);
    assert!(problem.starts_with(&page.to_string()), "{problem}");
    assert!(problem.ends_with("is reached twice"), "{problem}");
}

#[test]
fn live_bytes_that_do_not_add_up_are_told() {
    let bench = Bench::filled();
    let segment = log_segment(&bench);
    let allocator = &bench.engine.core().parts.allocator;
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
    bench.engine.core().parts.ledger.lock().marker = Lsn(1 << 50);
    let problem = problem(&bench);
    assert!(problem.contains("lies behind the log"), "{problem}");
}

#[test]
fn superblock_slots_that_the_device_put_back_are_told() {
    let bench = Bench::filled();
    let old = bench.device.image();
    bench.engine.region("another").unwrap();
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
