//! The ways to go about the work that experiments compare, and what is counted of them.

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use common::{
    Content, MemoryDevice, VOLUME_BYTES, any, fresh, mapping_with, mapping_with_frames, verify,
    version, while_every_frame_is_held,
};
use kreon_base::{ErrorKind, PageNo, Priority};
use kreon_mapping::{Eviction, Mapping, PageRequest, PriorityStats, Writeback};

fn device() -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new(VOLUME_BYTES, Content::Numbered))
}

fn of_priority(page: u64, priority: u8) -> PageRequest<'static> {
    PageRequest {
        priority: Priority(priority),
        ..any(page)
    }
}

fn stats(mapping: &Mapping, priority: u8) -> PriorityStats {
    let mut all = mapping.stats_by_priority();
    let found = all.find(|(counted, _)| *counted == Priority(priority));
    found.expect("counted by itself").1
}

#[test]
fn first_in_first_out_knows_no_priorities() {
    for (eviction, stays) in [(Eviction::Priority, true), (Eviction::Fifo, false)] {
        let device = device();
        let mapping = mapping_with(&device, 64, |options| options.modes.eviction = eviction);
        mapping.read(of_priority(0, 1), |_| ()).unwrap();
        for page in 1..200 {
            mapping.read(of_priority(page, 255), |_| ()).unwrap();
        }
        assert_eq!(mapping.is_resident(PageNo(0)), stays, "{eviction:?}");
    }
}

#[test]
fn dirty_pages_are_written_merged_sorted_or_in_no_order() {
    // Runs of three.
    let pages: Vec<u64> = (0..45).filter(|page| page % 4 != 3).collect();
    for writeback in [Writeback::Merged, Writeback::Sorted, Writeback::Unsorted] {
        let device = device();
        let mapping = mapping_with(&device, 256, |options| options.modes.writeback = writeback);
        for page in pages.iter().rev() {
            fresh(&mapping, *page, 7).unwrap();
        }
        mapping.sync().unwrap();
        let writes = device.writes();
        let firsts: Vec<u64> = writes.iter().map(|(first, _)| *first).collect();
        let longest = writes.iter().map(|(_, pages)| *pages).max();
        match writeback {
            Writeback::Merged => assert_eq!((writes.len(), longest), (12, Some(3))),
            _ => assert_eq!((writes.len(), longest), (pages.len(), Some(1))),
        }
        assert_eq!(firsts.is_sorted(), writeback != Writeback::Unsorted);
        for page in &pages {
            assert_eq!(verify(*page, &device.page(*page)), Ok(7));
        }
        assert_eq!(mapping.stats().writes, writes.len() as u64);
        device.assert_no_violation();
    }
}

#[test]
fn no_more_transfers_are_handed_over_at_once_than_the_depth() {
    for (depth, calls) in [(usize::MAX, 1), (8, 5), (1, 40)] {
        let device = device();
        let mapping = mapping_with(&device, 256, |options| options.modes.depth_max = depth);
        // Too far apart to be merged.
        let pages = || (0..40).map(|n| n * 10);
        let requests: Vec<_> = pages().map(any).collect();
        mapping.prefetch(&requests).unwrap();
        assert_eq!(device.read_calls.load(SeqCst), calls, "depth {depth}");
        pages().for_each(|page| assert_eq!(version(&mapping, page).unwrap(), 0));
        pages().for_each(|page| fresh(&mapping, page, 1).unwrap());
        mapping.sync().unwrap();
        assert_eq!(device.write_calls.load(SeqCst), calls, "depth {depth}");
    }
}

#[test]
fn an_eviction_frees_as_many_frames_as_its_batch_says() {
    for batch in [1, 64, 512] {
        let device = device();
        let mapping = mapping_with(&device, 4096, |options| {
            options.modes.evict_batch_max = batch;
        });
        for page in 0..4096 {
            mapping.read(any(page), |_| ()).unwrap();
        }
        assert_eq!(mapping.stats().pages_evicted, 0);
        mapping.read(any(5000), |_| ()).unwrap();
        assert_eq!(mapping.stats().pages_evicted, batch as u64);
    }
}

#[test]
fn one_shard_and_one_list_lead_to_every_frame() {
    for (shards, free_lists) in [(1, 0), (1, 4), (0, 1)] {
        let device = device();
        let mapping = mapping_with(&device, 256, |options| {
            options.modes.shards = shards;
            options.modes.free_lists = free_lists;
        });
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let mapping = &mapping;
                scope.spawn(move || {
                    for page in (0..64).map(|n| thread * 64 + n) {
                        fresh(mapping, page, 5).unwrap();
                        assert_eq!(version(mapping, page).unwrap(), 5);
                    }
                });
            }
        });
        assert_eq!(mapping.stats().pages_resident, 256);
        mapping.sync().unwrap();
        (1000..1600).for_each(|page| assert_eq!(version(&mapping, page).unwrap(), 0));
        (0..256).for_each(|page| assert_eq!(version(&mapping, page).unwrap(), 5));
        device.assert_no_violation();
    }
}

#[test]
fn a_fresh_page_is_read_first_only_where_the_mode_says_so() {
    for fresh_reads in [false, true] {
        let device = device();
        let mapping = mapping_with(&device, 64, |options| {
            options.modes.fresh_reads = fresh_reads;
        });
        assert_eq!(version(&mapping, 7).unwrap(), 0);
        let before = device.reads();
        (0..10).for_each(|page| fresh(&mapping, page, 3).unwrap());
        // Page 7 is resident.
        assert_eq!(device.reads() - before, if fresh_reads { 9 } else { 0 });
        (0..10).for_each(|page| assert_eq!(version(&mapping, page).unwrap(), 3));
        mapping.sync().unwrap();
        (0..10).for_each(|page| assert_eq!(verify(page, &device.page(page)), Ok(3)));
        device.assert_no_violation();
    }
}

#[test]
fn a_failed_read_before_a_fresh_page_leaves_its_frame_free() {
    let device = device();
    let mapping = mapping_with(&device, 64, |options| options.modes.fresh_reads = true);
    device.bad_reads.lock().insert(9);
    let failed = fresh(&mapping, 9, 1).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Io);
    assert_eq!(mapping.stats().frames_free, 64);
    device.bad_reads.lock().clear();
    fresh(&mapping, 9, 1).unwrap();
    assert_eq!(version(&mapping, 9).unwrap(), 1);
}

#[test]
fn pages_are_made_and_asked_for_while_readers_hold_every_frame() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    while_every_frame_is_held(&mapping, |_| {
        for page in 100..120 {
            fresh(&mapping, page, 3).unwrap();
            assert_eq!(version(&mapping, page).unwrap(), 3);
        }
        let requests: Vec<_> = (100..300).map(any).collect();
        mapping.prefetch(&requests).unwrap();
        mapping.sync().unwrap();
        mapping.discard(PageNo(100), 20);
    });
    assert_eq!(mapping.stats().pages_written_past, 20);
    (100..120).for_each(|page| assert_eq!(version(&mapping, page).unwrap(), 3));
    device.assert_no_violation();
}

#[test]
fn a_prefetch_whose_reads_end_early_fails_and_leaves_nothing_behind() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    device.short_reads.store(true, SeqCst);
    let requests: Vec<_> = (0..30).map(|page| any(page * 2)).collect();
    let failed = mapping.prefetch(&requests).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Io);
    assert_eq!(mapping.stats().frames_free, 64);
    device.short_reads.store(false, SeqCst);
    mapping.prefetch(&requests).unwrap();
    (0..60).for_each(|page| assert_eq!(version(&mapping, page).unwrap(), 0));
}

#[test]
fn hits_misses_evictions_and_writes_are_counted_by_priority() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    for _ in 0..3 {
        mapping.read(of_priority(5, 1), |_| ()).unwrap();
    }
    for page in 100..300 {
        mapping.read(of_priority(page, 255), |_| ()).unwrap();
    }
    fresh(&mapping, 7, 1).unwrap();
    mapping.sync().unwrap();
    let low = stats(&mapping, 1);
    assert_eq!((low.hits, low.misses, low.pages_evicted), (2, 1, 0));
    let last = stats(&mapping, 255);
    assert_eq!((last.hits, last.misses), (0, 200));
    assert_eq!(last.pages_evicted, mapping.stats().pages_evicted);
    assert!(last.pages_evicted > 100);
    // `fresh` of the tests makes pages of priority 2.
    assert_eq!(stats(&mapping, 2).pages_written, 1);
}
