//! Random operations against a map of the newest contents.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

use super::super::cell::CellNo;
use super::super::cells::Cache;
use super::recount::recount;
use super::{bytes_of_slabs, cache_of_slabs, cached, content};

/// Slabs of the cache: the largest cell takes more than one of them.
const SLABS: usize = 9;

#[derive(Clone, Debug)]
enum Operation {
    Put {
        cell: u64,
        bytes: usize,
        is_scan: bool,
    },
    /// A part of a cell, in 256ths of it.
    Write {
        cell: u64,
        from: usize,
        to: usize,
    },
    Get(u64),
    Remove(u64),
    /// A limit of so many slabs.
    Limit(usize),
}

fn operations() -> impl Strategy<Value = Operation> {
    let cell = || 0..120_u64;
    let sizes = [
        512, 512, 1024, 1024, 1536, 4096, 4096, 8192, 20_480, 65_536, 102_400, 163_840,
    ];
    prop_oneof![
        12 => (cell(), select(sizes.to_vec()), any::<bool>())
            .prop_map(|(cell, bytes, is_scan)| Operation::Put { cell, bytes, is_scan }),
        3 => (cell(), 0..=256_usize, 0..=256_usize)
            .prop_map(|(cell, a, b)| Operation::Write { cell, from: a.min(b), to: a.max(b) }),
        6 => cell().prop_map(Operation::Get),
        1 => cell().prop_map(Operation::Remove),
        1 => (0..=SLABS).prop_map(Operation::Limit),
    ]
}

/// What the cache must know.
#[derive(Default)]
struct Model {
    /// The newest content of each cell ever put.
    contents: HashMap<u64, Vec<u8>>,
    versions: u64,
}

impl Model {
    fn apply(&mut self, cache: &mut Cache, operation: &Operation) {
        self.versions += 1;
        match *operation {
            Operation::Put {
                cell,
                bytes,
                is_scan,
            } => self.put(cache, cell, bytes, is_scan),
            Operation::Write { cell, from, to } => self.write(cache, cell, from, to),
            Operation::Get(cell) => drop(self.compare(cache, cell)),
            Operation::Remove(cell) => {
                cache.remove(CellNo(cell));
                assert!(cache.get(CellNo(cell)).is_none());
            }
            Operation::Limit(slabs) => {
                let used = cache.set_limit(bytes_of_slabs(slabs));
                assert_eq!(used, cache.memory_bytes());
                assert_eq!(cache.limit_bytes(), bytes_of_slabs(slabs));
            }
        }
    }

    fn put(&mut self, cache: &mut Cache, cell: u64, bytes: usize, is_scan: bool) {
        let new = content(cell, self.versions, bytes);
        let is_in = if is_scan {
            cache.put_scanned(CellNo(cell), &new)
        } else {
            cache.put(CellNo(cell), &new)
        };
        let old = self.contents.insert(cell, new);
        if is_in {
            assert!(
                self.compare(cache, cell),
                "cell {cell} was put and is not there"
            );
        } else {
            assert!(
                cache.get(CellNo(cell)).is_none(),
                "cell {cell} keeps {:?}",
                old.map(|old| old.len())
            );
        }
    }

    fn write(&mut self, cache: &mut Cache, cell: u64, from: usize, to: usize) {
        let Some(newest) = self.contents.get_mut(&cell) else {
            return;
        };
        let part = newest.len() * from / 256..newest.len() * to / 256;
        let new = &content(cell, self.versions, newest.len())[part.clone()];
        if cache.write(CellNo(cell), part.start, new) {
            newest[part].copy_from_slice(new);
            assert!(self.compare(cache, cell));
        } else {
            assert!(
                cache.get(CellNo(cell)).is_none(),
                "a write refused to a cached cell"
            );
        }
    }

    /// Is the cell cached? If so with its newest content, in whole and in part.
    fn compare(&self, cache: &mut Cache, cell: u64) -> bool {
        let Some(found) = cached(cache, cell) else {
            return false;
        };
        let newest = &self.contents[&cell];
        assert!(found == *newest, "cell {cell} has an old content");
        let part = newest.len() / 3..newest.len() / 3 * 2;
        let found = cache.get(CellNo(cell)).expect("it was there");
        assert!(
            found.chunks(part.clone()).flatten().eq(&newest[part]),
            "part of cell {cell}"
        );
        assert!(found.whole().is_none_or(|whole| whole == newest));
        true
    }
}

/// The limit holds, or no slab is left to be given back.
fn check_limit(cache: &Cache) {
    let is_left = cache.blocks.allocated() > 0;
    assert!(cache.memory_bytes() <= cache.limit_bytes() || !is_left);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x006b_7665_6c6c),
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_cached_is_newest_within_limits(operations in vec(operations(), 1..400)) {
        let mut cache = cache_of_slabs(SLABS);
        let mut model = Model::default();
        for operation in &operations {
            model.apply(&mut cache, operation);
            check_limit(&cache);
            recount(&cache);
        }
        for cell in 0..120 {
            model.compare(&mut cache, cell);
        }
    }
}
