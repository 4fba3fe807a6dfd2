//! How much gets read from the device, counted by the store itself: one leaf and one value at most, however
//! many trees there are.

use std::task::Poll;

use super::*;
use crate::level::GetStats;
use kreon_log::Show;

/// Keys of one load.
const LOADED: u32 = 40_000;
const LOADS: u32 = 4;

/// Belongs to the first leaf of [`Bench::filled`].
const AMONG_DAMAGE: &[u8] = b"key0000005";

/// Every `LOADS`th key from `next` on, each twice the number of a key that is nowhere.
struct Share {
    next: u32,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Pairs for Share {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let number = self.next;
        self.next += LOADS;
        let key = match number < LOADS {
            true => AMONG_DAMAGE.to_vec(),
            false => spread(2 * number),
        };
        (self.key, self.value) = (key, vec![number as u8; 100]);
        Ok((number < LOADS * LOADED).then_some((&self.key, &self.value)))
    }
}

fn spread(number: u32) -> Vec<u8> {
    // Long, so that there are many leaves.
    format!("spread/{number:08}/{:<80}", "key").into_bytes()
}

fn cramped(filter_bits_per_key: usize) -> Options {
    Options {
        memory_bytes: crate::options::MEMORY_BYTES_MIN,
        filter_bits_per_key,
        ..options()
    }
}

/// A store of 50 MiB in 3.5 MiB of frames, whose region "r" has five trees: one of the loads cannot be
/// folded, as a page of the lowest tree is damaged.
fn store_of_many_trees(filter_bits_per_key: usize) -> (Bench, Arc<RegionState>) {
    let options = cramped(filter_bits_per_key);
    let bench = Bench::filled();
    let damaged = bench.tree_page();
    let bench = Bench::open(bench.closed(), options.clone()).unwrap();
    bench.device.flip_bit(damaged.offset_bytes() + 2000, 3);
    let region = bench.engine.region("r").unwrap();
    for load in 0..LOADS {
        let mut share = Share {
            next: load,
            key: Vec::new(),
            value: Vec::new(),
        };
        let loaded = bench.engine.ingest(&region, &mut share).unwrap();
        assert_eq!(loaded, u64::from(LOADED));
    }
    let trees = bench.engine.subsystems.storage.views.load();
    let trees_with_nodes = |tree: &&kreon_format::TreeRecord| tree.root.is_some();
    let trees_of = trees.levels.of(region.id).iter().filter(trees_with_nodes);
    assert_eq!(trees_of.count(), 1 + LOADS as usize);
    drop(trees);
    (bench, region)
}

/// What was counted between two moments.
struct Cost {
    gets: GetStats,
    device_reads: u64,
}

impl Bench {
    fn cost(&self, work: impl FnOnce()) -> Cost {
        let before = self.engine.stats();
        work();
        let after = self.engine.stats();
        let (old, new) = (before.gets, after.gets);
        Cost {
            gets: GetStats {
                leaf_reads: new.leaf_reads - old.leaf_reads,
                index_reads: new.index_reads - old.index_reads,
                filter_checks: new.filter_checks - old.filter_checks,
                filter_exclusions: new.filter_exclusions - old.filter_exclusions,
                filter_failures: new.filter_failures - old.filter_failures,
            },
            device_reads: after.device_reads - before.device_reads,
        }
    }
}

/// Numbers of keys all over the region; even ones are there.
fn numbers(count: u32, odd: bool) -> impl Iterator<Item = u32> {
    let all = (1..=count).map(|n| n.wrapping_mul(2_654_435_761) % (LOADS * LOADED));
    all.filter(|n| *n >= LOADS)
        .map(move |n| 2 * n + u32::from(odd))
}

#[test]
fn a_get_reads_one_leaf_and_one_value_at_most_and_of_absent_keys_next_to_nothing() {
    let (bench, region) = store_of_many_trees(10);
    // Index nodes become resident.
    for number in numbers(4000, false) {
        assert!(bench.get(&region, &spread(number)).unwrap().is_some());
    }
    let mut failures = 0;
    for number in numbers(3000, false) {
        let cost = bench.cost(|| {
            let value = bench.get(&region, &spread(number)).unwrap().unwrap();
            assert_eq!(value, [(number / 2) as u8; 100]);
        });
        let gets = cost.gets;
        assert_eq!(gets.index_reads, 0);
        assert!(gets.leaf_reads <= 1 + gets.filter_failures, "{gets:?}");
        assert!(cost.device_reads <= gets.leaf_reads + 1, "{gets:?}");
        failures += gets.filter_failures;
    }
    assert!(failures < 90, "{failures} leaves read in vain by 3000 gets");
    let cost = bench.cost(|| {
        for number in numbers(3000, true) {
            assert!(bench.get(&region, &spread(number)).unwrap().is_none());
        }
    });
    let gets = cost.gets;
    assert_eq!((gets.index_reads, cost.device_reads), (0, gets.leaf_reads));
    assert_eq!(gets.leaf_reads, gets.filter_failures);
    assert!(gets.filter_checks > 5000, "{gets:?}");
    assert!(gets.false_positives() < 0.01, "{gets:?}");
    let all = bench.engine.stats().gets;
    assert!(all.false_positives() < 0.01, "{all:?}");
}

#[test]
fn every_kind_of_get_asks_filters() {
    let (bench, region) = store_of_many_trees(10);
    // Index nodes become resident.
    for number in numbers(4000, false) {
        assert!(bench.get(&region, &spread(number)).unwrap().is_some());
    }
    let keys: Vec<_> = numbers(6000, true).map(spread).collect();
    let (together, others) = keys.split_at(2000);
    let (asked, awaited) = others.split_at(2000);
    let many = bench.cost(|| {
        for keys in together.chunks(100) {
            let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
            let show = |_, _: Vec<u8>| panic!("an absent key");
            bench.engine.multi_get(&region, &keys, show).unwrap();
        }
    });
    let contained = bench.cost(|| {
        for key in asked {
            assert!(!bench.engine.contains(&region, key, None).unwrap());
        }
    });
    let waker = std::task::Waker::noop();
    let polled = bench.cost(|| {
        for key in awaited {
            let mut task = bench.engine.get_task(&region, None);
            let value = loop {
                match task.poll(key, waker, Show(|_: &[u8]| ())) {
                    Poll::Ready(value) => break value.unwrap(),
                    Poll::Pending => std::thread::yield_now(),
                }
            };
            assert!(value.is_none());
        }
    });
    for Cost { gets, device_reads } in [many, contained, polled] {
        assert!(gets.filter_exclusions > 2000, "{gets:?}");
        assert!(gets.filter_failures > 0, "{gets:?}");
        assert!(gets.leaf_reads <= gets.filter_failures, "{gets:?}");
        assert!(
            device_reads <= gets.leaf_reads && gets.index_reads == 0,
            "{gets:?}"
        );
    }
    let all = bench.engine.stats().gets;
    assert!(all.false_positives() < 0.01, "{all:?}");
}

#[test]
fn without_filters_absent_keys_read_a_leaf_of_each_tree() {
    let (bench, region) = store_of_many_trees(0);
    let cost = bench.cost(|| {
        for number in numbers(500, true) {
            assert!(bench.get(&region, &spread(number)).unwrap().is_none());
        }
    });
    // The lowest tree is from before, and has some.
    assert!(cost.gets.filter_checks <= 500);
    assert!(cost.gets.leaf_reads > 500, "{:?}", cost.gets);
}
