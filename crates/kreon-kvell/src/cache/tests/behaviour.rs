//! The promises of the cache, one sentence each.

use super::super::cell::{CELL_BYTES_MAX, CellNo};
use super::super::cells::Cache;
use super::super::run::Run;
use super::super::slab::{SLAB_BLOCKS, Slab};
use super::super::stats::CacheStats;
use super::recount::recount;
use super::{PLACE_BYTES, bytes_of_slabs, cache_of_slabs, cached, content};

/// Cells of one block that are in the cache, of `0..cells`; asked without a mark.
fn present(cache: &Cache, cells: u64) -> Vec<u64> {
    (0..cells)
        .filter(|&cell| cache.find(CellNo(cell)).is_some())
        .collect()
}

/// A cache of one slab with 128 cells of one block, none of them marked as used.
fn full_of_small_cells() -> Cache {
    let mut cache = cache_of_slabs(1);
    for cell in 0..SLAB_BLOCKS as u64 {
        assert!(cache.put_scanned(CellNo(cell), &content(cell, 0, 512)));
    }
    assert_eq!(cache.stats().cells, 128);
    cache
}

#[test]
fn a_block_costs_what_the_documentation_says() {
    assert_eq!(size_of::<Run>(), 16);
    assert_eq!(size_of::<Slab>(), 80);
    let fixed = cache_of_slabs(100).memory_bytes() - cache_of_slabs(0).memory_bytes();
    // The slot of a table without slabs.
    assert_eq!(fixed + 4, 100 * PLACE_BYTES);
    let overhead = PLACE_BYTES as f64 / SLAB_BLOCKS as f64;
    assert!((22.0..23.0).contains(&overhead), "{overhead}");
}

#[test]
fn cells_leave_in_the_order_of_the_hand() {
    let mut cache = full_of_small_cells();
    for cell in 128..138 {
        assert!(cache.put_scanned(CellNo(cell), &content(cell, 0, 512)));
    }
    assert_eq!(present(&cache, 138), (10..138).collect::<Vec<_>>());
    assert_eq!(cache.stats().evictions, 10);
}

#[test]
fn a_used_cell_stays_for_one_more_turn() {
    let mut cache = full_of_small_cells();
    for cell in [0, 1, 5] {
        assert!(cache.get(CellNo(cell)).is_some());
    }
    for cell in 128..128 + 125 {
        assert!(cache.put_scanned(CellNo(cell), &content(cell, 0, 512)));
    }
    // The hand passed all others of the first turn.
    assert_eq!(present(&cache, 128), [0, 1, 5]);
    assert!(cache.put_scanned(CellNo(300), &content(300, 0, 512)));
    assert_eq!(
        present(&cache, 128),
        [1, 5],
        "their marks were cleared, the hand comes from the start"
    );
}

#[test]
fn a_put_marks_a_cell_and_a_put_by_a_scan_does_not() {
    let mut cache = full_of_small_cells();
    assert!(cache.put(CellNo(0), &content(0, 1, 512)));
    assert!(cache.put_scanned(CellNo(1), &content(1, 1, 512)));
    assert!(cache.write(CellNo(2), 0, &[7]));
    assert!(cache.put_scanned(CellNo(200), &content(200, 0, 512)));
    assert_eq!(present(&cache, 4), [0, 2, 3]);
}

#[test]
fn a_scan_does_not_drive_out_what_is_used() {
    let mut cache = cache_of_slabs(8);
    for cell in 0..200 {
        assert!(cache.put(CellNo(cell), &content(cell, 0, 1024)));
    }
    for scanned in 1000..3000 {
        assert!(cache.put_scanned(CellNo(scanned), &content(scanned, 0, 1024)));
        assert!(
            cache.get(CellNo(scanned % 200)).is_some(),
            "cell {} at {scanned}",
            scanned % 200
        );
    }
    recount(&cache);
}

#[test]
fn when_all_are_used_the_first_behind_the_hand_leaves() {
    let mut cache = full_of_small_cells();
    for cell in 0..128 {
        assert!(cache.get(CellNo(cell)).is_some());
    }
    assert!(cache.put(CellNo(200), &content(200, 0, 512)));
    assert_eq!(present(&cache, 128), (1..128).collect::<Vec<_>>());
}

#[test]
fn a_cell_over_a_quarter_is_refused_and_its_old_content_gone() {
    let mut cache = cache_of_slabs(1);
    assert!(cache.put(CellNo(1), &content(1, 0, 512)));
    assert!(cache.put(CellNo(2), &content(2, 0, 16 << 10)), "a quarter");
    assert!(!cache.put(CellNo(1), &content(1, 1, (16 << 10) + 512)));
    assert!(cache.get(CellNo(1)).is_none());
    assert_eq!(
        cached(&mut cache, 2),
        Some(content(2, 0, 16 << 10)),
        "nobody was evicted for it"
    );
}

#[test]
fn sizes_that_no_cell_has_are_refused() {
    let mut cache = cache_of_slabs(64);
    for bytes in [0, 1, 511, 513, CELL_BYTES_MAX + 512] {
        assert!(cache.put(CellNo(1), &content(1, 0, 512)));
        assert!(!cache.put(CellNo(1), &vec![0; bytes]), "{bytes}");
        assert!(cache.get(CellNo(1)).is_none(), "{bytes}");
    }
    assert!(cache.put(CellNo(1), &content(1, 0, CELL_BYTES_MAX)));
    assert_eq!(cached(&mut cache, 1), Some(content(1, 0, CELL_BYTES_MAX)));
}

#[test]
fn a_write_past_the_end_drops_the_cell() {
    let mut cache = cache_of_slabs(1);
    for (at, bytes) in [(512, 1), (511, 2), (usize::MAX, 1), (0, 513)] {
        assert!(cache.put(CellNo(1), &content(1, 0, 512)));
        assert!(!cache.write(CellNo(1), at, &vec![0; bytes]), "{at} {bytes}");
        assert!(cache.get(CellNo(1)).is_none(), "{at} {bytes}");
    }
    recount(&cache);
}

#[test]
fn fragmentation_keeps_nobody_out() {
    let mut cache = full_of_small_cells();
    for cell in (0..128).step_by(2) {
        cache.remove(CellNo(cell));
    }
    assert!(
        cache.put(CellNo(500), &content(500, 0, 16 << 10)),
        "32 blocks, none beside another"
    );
    assert_eq!(cache.stats().evictions, 0);
    let found = cache.get(CellNo(500)).expect("it was put");
    assert_eq!(found.chunks(0..usize::MAX).count(), 32);
    assert!(found.whole().is_none());
    assert!(
        cache.write(CellNo(500), 500, &[9; 1500]),
        "over four blocks"
    );
    let mut wanted = content(500, 0, 16 << 10);
    wanted[500..2000].fill(9);
    assert_eq!(cached(&mut cache, 500), Some(wanted));
    recount(&cache);
}

#[test]
fn a_cell_lies_in_one_piece_where_there_is_room() {
    let mut cache = full_of_small_cells();
    for cell in (0..40).step_by(2).chain(64..80) {
        cache.remove(CellNo(cell));
    }
    assert!(cache.put(CellNo(500), &content(500, 0, 8192)));
    assert_eq!(
        cache.get(CellNo(500)).and_then(|found| found.whole()),
        Some(&content(500, 0, 8192)[..])
    );
}

#[test]
fn parts_are_cut_to_the_cell() {
    let mut cache = cache_of_slabs(1);
    let bytes = content(1, 0, 1024);
    assert!(cache.put(CellNo(1), &bytes));
    let found = cache.get(CellNo(1)).expect("it was put");
    let mut copy = vec![1, 2];
    found.copy_to(&mut copy, 1000..2000);
    assert_eq!(copy[2..], bytes[1000..]);
    #[expect(clippy::reversed_empty_ranges)]
    let none = [1024..2000, usize::MAX - 1..usize::MAX, 3..3, 5..2];
    for part in none {
        assert_eq!(found.chunks(part.clone()).count(), 0, "{part:?}");
    }
}

#[test]
fn a_lower_limit_gives_slabs_back_and_a_higher_one_takes_them_again() {
    let mut cache = cache_of_slabs(16);
    let fill = |cache: &mut Cache, version| {
        (0..1024).for_each(|cell| assert!(cache.put(CellNo(cell), &content(cell, version, 1024))));
    };
    fill(&mut cache, 0);
    assert_eq!(cache.memory_bytes(), bytes_of_slabs(16));
    let half = bytes_of_slabs(16) / 2;
    let used = cache.set_limit(half);
    assert!(used <= half && used > half - (70 << 10), "{used} of {half}");
    assert_eq!(
        cache.stats().cells,
        7 * 64,
        "cells in the slabs that stay, stay"
    );
    recount(&cache);
    fill(&mut cache, 1);
    assert!(cache.memory_bytes() <= half);
    cache.set_limit(usize::MAX);
    assert_eq!(
        cache.limit_bytes(),
        bytes_of_slabs(16),
        "the table is made for no more"
    );
    fill(&mut cache, 2);
    assert_eq!(cache.memory_bytes(), bytes_of_slabs(16));
    assert_eq!(cache.stats().cells, 1024);
    assert_eq!(cache.set_limit(0), bytes_of_slabs(16) - 16 * (64 << 10));
    assert_eq!(cache.stats().cells, 0);
    recount(&cache);
}

#[test]
fn unused_slabs_are_given_back_before_cells_are_evicted() {
    let mut cache = cache_of_slabs(8);
    for cell in 0..1024 {
        assert!(cache.put(CellNo(cell), &content(cell, 0, 512)));
    }
    // The slabs of the second half are empty; the hand stands at the first.
    (512..1024).for_each(|cell| cache.remove(CellNo(cell)));
    cache.set_limit(bytes_of_slabs(8) - 4 * (64 << 10));
    assert_eq!(
        cache.stats(),
        CacheStats {
            cells: 512,
            bytes: 512 * 512,
            ..CacheStats::default()
        }
    );
    recount(&cache);
}

#[test]
fn a_cache_without_room_for_a_slab_holds_nothing() {
    for bytes in [0, 100, 60 << 10] {
        let mut cache = Cache::new(bytes);
        assert!(!cache.put(CellNo(1), &content(1, 0, 512)));
        assert!(cache.get(CellNo(1)).is_none() && !cache.write(CellNo(1), 0, &[]));
        cache.remove(CellNo(1));
        cache.set_limit(1 << 20);
        assert!(!cache.put(CellNo(1), &content(1, 0, 512)));
        assert!(cache.memory_bytes() < 300);
    }
}

#[test]
fn stats_count_hits_misses_evictions_and_contents() {
    let mut cache = full_of_small_cells();
    assert!(
        cache.get(CellNo(93)).is_some()
            && cache.get(CellNo(999)).is_none()
            && cache.get(CellNo(94)).is_some()
    );
    assert!(cache.put(CellNo(200), &content(200, 0, 2048)));
    let stats = CacheStats {
        hits: 2,
        misses: 1,
        evictions: 4,
        cells: 125,
        bytes: 128 * 512,
    };
    assert_eq!(cache.stats(), stats);
}
