//! Everything the cache counts, counted again from its slabs.

use std::collections::BTreeMap;

use super::super::cells::Cache;
use super::super::slab::{BlockNo, SLAB_BLOCKS, SLAB_BYTES, Slab};

/// Panics if the cache contradicts itself.
pub(super) fn recount(cache: &Cache) {
    let mut cells = BTreeMap::new();
    let mut taken = 0;
    for (number, slab) in cache.blocks.slabs().iter().enumerate() {
        taken += taken_blocks(cache, number);
        for bit in (0..SLAB_BLOCKS).filter(|bit| slab.heads & (1 << bit) != 0) {
            let head = BlockNo::at(number, bit);
            let (run, blocks) = (cache.blocks.run(head), cache.blocks.count(head));
            assert!(
                cells.insert(run.cell, blocks).is_none(),
                "{} twice",
                run.cell
            );
            let found = cache.find(run.cell).map(|(_, found)| found);
            assert_eq!(found, Some(head), "{}", run.cell);
        }
    }
    assert_eq!(
        cells.values().sum::<usize>(),
        taken,
        "blocks of nobody, or of two cells"
    );
    assert_eq!(cache.blocks.taken(), taken);
    assert_eq!(cache.stats().cells, cells.len() as u64);
    let entries = cache.table.slots.iter().filter(|&&slot| slot != 0).count();
    assert_eq!(entries, cells.len());
    assert_eq!(cache.stats().bytes, taken as u64 * 512);
    assert_eq!(cache.memory_bytes(), memory_bytes(cache), "memory");
    open_slabs(cache);
}

/// Blocks of a slab with an owner, whose runs cover just these.
fn taken_blocks(cache: &Cache, number: usize) -> usize {
    let slab = &cache.blocks.slabs()[number];
    assert_eq!(
        slab.heads & slab.free,
        0,
        "slab {number}: a free block is the first of a cell"
    );
    assert_eq!(
        slab.used & !slab.heads,
        0,
        "slab {number}: a mark on no cell"
    );
    if !slab.is_allocated() {
        assert_eq!(
            slab.free | slab.heads,
            0,
            "slab {number}: blocks without memory"
        );
        return 0;
    }
    let in_runs = cache
        .blocks
        .runs_of(number)
        .map(|run| usize::from(run.blocks));
    let taken = slab.free.count_zeros() as usize;
    assert_eq!(in_runs.sum::<usize>(), taken);
    taken
}

/// All allocations of the cache.
fn memory_bytes(cache: &Cache) -> usize {
    let slabs = cache.blocks.slabs();
    let allocated = slabs.iter().filter(|slab| slab.is_allocated()).count();
    let lists = 4 * cache.blocks.open.capacity() + 4 * cache.blocks.absent.capacity();
    let places = size_of_val(slabs) + size_of_val(&*cache.blocks.runs) + lists;
    size_of::<Cache>() + places + 4 * cache.table.slots.len() + allocated * SLAB_BYTES
}

/// The lists of slabs name each slab where it belongs.
fn open_slabs(cache: &Cache) {
    let slabs = cache.blocks.slabs();
    let numbers = |is_listed: fn(&Slab) -> bool| -> Vec<u32> {
        (0..slabs.len() as u32)
            .filter(|&number| is_listed(&slabs[number as usize]))
            .collect()
    };
    let sorted = |list: &[u32]| {
        let mut list = list.to_vec();
        list.sort_unstable();
        list
    };
    assert_eq!(sorted(&cache.blocks.open), numbers(|slab| slab.free != 0));
    assert_eq!(
        sorted(&cache.blocks.absent),
        numbers(|slab| !slab.is_allocated())
    );
    for (at, &number) in cache.blocks.open.iter().enumerate() {
        assert_eq!(slabs[number as usize].open_at as usize, at);
    }
}
