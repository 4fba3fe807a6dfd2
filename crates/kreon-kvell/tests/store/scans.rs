//! Scans against a model.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use kreon_sim::{Call, Dice, SimDevice};
use kvell::Durability::Buffered;
use kvell::{Options, Region, Store};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::world::{new_store, open, options, simulated, value};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;
type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Keys that often begin alike, some of them longer than a head part has room for.
fn any_key() -> impl Strategy<Value = Vec<u8>> {
    let letter = prop_oneof![Just(0), Just(b'a'), Just(b'b'), Just(0xff)];
    let short = prop::collection::vec(letter, 0..8);
    (short, 0..10_u8).prop_map(|(mut key, tail)| {
        match tail {
            0 => key.extend([b'x'; 40]),
            1 => key.splice(0..0, [b'y'; 420]).for_each(drop),
            _ => {}
        }
        key
    })
}

fn any_bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        Just(Bound::Unbounded),
        any_key().prop_map(Bound::Included),
        any_key().prop_map(Bound::Excluded),
    ]
}

fn len_bytes() -> impl Strategy<Value = usize> {
    prop_oneof![8..100_usize, 300..3000_usize, Just(30_000)]
}

fn small(index_key_bytes: usize, partitions: u16, memory_bytes: usize) -> Options {
    Options {
        index_key_bytes,
        partitions,
        memory_bytes,
        depth: 6,
        ..options()
    }
}

fn model_range(model: &Model, range: &Range) -> VecDeque<(Vec<u8>, Vec<u8>)> {
    let is_in = |key: &Vec<u8>| std::ops::RangeBounds::contains(range, key);
    let pairs = model.iter().filter(|pair| is_in(pair.0));
    pairs
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Takes pairs from both ends as `ends` says, and the rest from the front.
fn check_mixed(region: &Region, model: &Model, range: &Range, ends: &[bool]) {
    let mut expected = model_range(model, range);
    let (mut scan, mut keys) = (
        region.range(range.clone()),
        region.range(range.clone()).keys(),
    );
    for is_front in ends.iter().copied().chain(std::iter::repeat(true)) {
        let (pair, key, wanted) = match is_front {
            true => (scan.next(), keys.next(), expected.pop_front()),
            false => (scan.next_back(), keys.next_back(), expected.pop_back()),
        };
        let (pair, key) = (pair.map(|it| it.unwrap()), key.map(|it| it.unwrap()));
        assert_eq!(key.as_ref(), wanted.as_ref().map(|it| &it.0), "{range:?}");
        assert_eq!(pair, wanted, "{range:?}");
        if wanted.is_none() {
            break;
        }
    }
    assert!(scan.next().is_none() && scan.next_back().is_none());
}

fn fill(store: &Store, items: &[(Vec<u8>, usize)]) -> (Region, Model) {
    let neighbours = ["before", "r", "behind"];
    let regions = neighbours.map(|name| store.region(name).expect("a region"));
    let mut model = Model::new();
    let mut changes = Vec::new();
    for (number, (key, len_bytes)) in (0..).zip(items) {
        let value = value(number, *len_bytes);
        model.insert(key.clone(), value.clone());
        changes.push((key.clone(), Some(value)));
        // Some are gone again.
        if number % 7 == 0 {
            model.remove(key);
            changes.push((key.clone(), None));
        }
    }
    regions[1].write_many(&changes, Buffered).expect("changes");
    let strangers: Vec<_> = items.iter().map(|it| (&it.0, Some("stranger"))).collect();
    for region in [&regions[0], &regions[2]] {
        region.write_many(&strangers, Buffered).expect("changes");
    }
    let [_, region, _] = regions;
    (region, model)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x7363_616e),
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_scan_is_what_a_sorted_map_has(
        items in prop::collection::vec((any_key(), len_bytes()), 0..120),
        ranges in prop::collection::vec((any_bound(), any_bound(), prop::collection::vec(any::<bool>(), 0..40)), 6),
        index_key_bytes in prop_oneof![Just(1_usize), Just(4), Just(6), Just(8), Just(32)],
        partitions in 1..6_u16,
        memory_bytes in prop_oneof![Just(600 << 10), Just(8_usize << 20)],
    ) {
        let device = simulated(1 << 40);
        let options = small(index_key_bytes, partitions, memory_bytes);
        let store = open(&device, &options);
        let (region, model) = fill(&store, &items);
        let check = |region: &Region| {
            for (low, high, ends) in &ranges {
                check_mixed(region, &model, &(low.clone(), high.clone()), ends);
                let prefix = match low {
                    Bound::Included(key) | Bound::Excluded(key) => key.as_slice(),
                    Bound::Unbounded => &[],
                };
                let found: Result<Vec<_>, _> = region.prefix(prefix).rev().collect();
                let expected = model.iter().rev().filter(|it| it.0.starts_with(prefix));
                let expected: Vec<_> = expected.map(|it| (it.0.clone(), it.1.clone())).collect();
                assert_eq!(found.unwrap(), expected);
            }
        };
        check(&region);
        drop(region);
        store.close().expect("a close");
        let store = open(&device, &options);
        check(&store.region("r").expect("the region"));
    }
}

#[test]
fn a_group_of_thousands_of_tied_keys_is_ordered() {
    let device = simulated(1 << 40);
    // Each put into a group looks for its key there: it is made whole, and tied by the next opening.
    let store = open(&device, &small(32, 3, 8 << 20));
    let (region, mut dice) = (store.region("r").expect("a region"), Dice::new(1));
    let mut model = Model::new();
    for number in 0..4000_u64 {
        let key = [&b"tied"[..], &dice.below(1 << 40).to_be_bytes()].concat();
        model.insert(key, value(number, 100 + dice.below(600) as usize));
    }
    model.insert(b"tied".to_vec(), b"whole".to_vec());
    model.insert(b"tiee".to_vec(), b"whole".to_vec());
    let changes: Vec<_> = model.iter().map(|it| (it.0, Some(it.1))).collect();
    region.write_many(&changes, Buffered).expect("changes");
    store.close().expect("a close");
    let store = open(&device, &small(8, 3, 1 << 20));
    let region = store.region("r").expect("the region");
    let all: Vec<_> = model.into_iter().collect();
    let found: Result<Vec<_>, _> = region.iter().collect();
    assert_eq!(found.unwrap(), all);
    let found: Result<Vec<_>, _> = region.iter().rev().collect();
    assert!(found.unwrap().iter().eq(all.iter().rev()));
    let middle = all[1700].0.clone()..all[1710].0.clone();
    let found: Result<Vec<_>, _> = region.range(middle).collect();
    assert_eq!(found.unwrap(), all[1700..1710]);
}

/// Items of 1 KiB, of which nothing is cached.
fn cold(keys: u64) -> (Arc<SimDevice>, Store, Region) {
    let device = simulated(1 << 40);
    let store = open(&device, &options());
    let region = store.region("r").expect("a region");
    let key = |number: u64| number.to_be_bytes();
    let changes: Vec<_> = (0..keys)
        .map(|it| (key(it), Some(value(it, 900))))
        .collect();
    region.write_many(&changes, Buffered).expect("changes");
    store.close().expect("a close");
    let store = open(&device, &options());
    let region = store.region("r").expect("the region");
    (device, store, region)
}

#[test]
fn a_scan_reads_what_it_is_limited_to_and_nothing_twice() {
    let (device, _store, region) = cold(500);
    let before = device.calls(Call::Read);
    assert_eq!(region.iter().keys().count(), 500);
    assert_eq!(device.calls(Call::Read), before, "keys are in memory");
    let from = 100_u64.to_be_bytes();
    let first: Vec<_> = region.range(from..).limit(50).collect();
    assert_eq!(first.len(), 50);
    assert_eq!(device.calls(Call::Read), before + 50);
    let again: Vec<_> = region.range(from..).limit(50).collect();
    assert_eq!(device.calls(Call::Read), before + 50, "it is cached");
    let pairs = |scan: Vec<kvell::Result<_>>| scan.into_iter().map(|it| it.unwrap());
    assert!(pairs(first).eq(pairs(again)));
    let keys = region.iter().rev().limit_keys(3);
    assert_eq!(keys, [499, 498, 497]);
}

/// The first keys of a scan as numbers.
trait LimitKeys: Iterator<Item = kvell::Result<(Vec<u8>, Vec<u8>)>> + Sized {
    fn limit_keys(self, count: usize) -> Vec<u64> {
        let keys = self.take(count).map(|pair| pair.expect("a pair").0);
        keys.map(|key| u64::from_be_bytes(key.try_into().expect("a number")))
            .collect()
    }
}

impl<I: Iterator<Item = kvell::Result<(Vec<u8>, Vec<u8>)>>> LimitKeys for I {}

#[test]
fn the_first_and_the_last_pair_are_those_of_the_region() {
    let (_device, _store, region) = new_store();
    assert!(region.first().expect("a scan").is_none());
    for key in ["b", "a", "c"] {
        region.put(key, key, Buffered).expect("a put");
    }
    let pair = |key: &str| Some((key.as_bytes().to_vec(), key.as_bytes().to_vec()));
    assert_eq!(region.first().expect("a scan"), pair("a"));
    assert_eq!(region.last().expect("a scan"), pair("c"));
    assert_eq!(region.iter().limit(0).count(), 0);
}

#[test]
fn many_large_items_are_not_in_memory_together() {
    let device = simulated(1 << 40);
    let store = open(&device, &options());
    let region = store.region("r").expect("a region");
    for number in 0..60_u64 {
        let value = value(number, 250_000);
        region
            .put(number.to_be_bytes(), value, Buffered)
            .expect("a put");
    }
    store.close().expect("a close");
    let store = open(&device, &options());
    let region = store.region("r").expect("the region");
    let before = device.calls(Call::Read);
    let mut scan = region.iter();
    assert!(scan.next().is_some());
    let ahead = device.calls(Call::Read) - before;
    assert!((4..=9).contains(&ahead), "{ahead} of 256 KiB");
    assert_eq!(scan.limit_keys(100), (1..60).collect::<Vec<_>>());
}

#[test]
fn a_scan_that_begins_behind_all_keys_of_a_tie_group_finds_those_of_the_next() {
    let store = open(&simulated(1 << 40), &small(5, 3, 8 << 20));
    let region = store.region("r").expect("a region");
    let group = |name: &str| -> Vec<String> {
        (0..100)
            .map(|number| format!("{name}-{number:03}"))
            .collect()
    };
    let groups = ["first", "inner", "third"].map(group);
    let changes: Vec<_> = groups
        .iter()
        .flatten()
        .map(|key| (key, Some(key)))
        .collect();
    region.write_many(&changes, Buffered).expect("puts");
    let key_of = |pair: kvell::Result<(Vec<u8>, Vec<u8>)>| pair.expect("a pair").0;
    // From one end and from the other.
    let behind = (Bound::Excluded("inner-099"), Bound::Unbounded);
    let before = (Bound::Unbounded, Bound::Excluded("inner-000"));
    let third: Vec<_> = region.range(behind).map(key_of).collect();
    assert!(third.iter().eq(groups[2].iter().map(|key| key.as_bytes())));
    let first: Vec<_> = region.range(before).rev().map(key_of).collect();
    let descending = groups[0].iter().rev();
    assert!(first.iter().eq(descending.map(|key| key.as_bytes())));
    let keys = region.range(behind).keys();
    assert_eq!(keys.inspect(|key| assert!(key.is_ok())).count(), 100);
    // One pair at a time, as of pages.
    let mut last = Bound::Unbounded;
    for expected in groups.iter().flatten() {
        let mut scan = region.range((last, Bound::Unbounded)).limit(1);
        let key = key_of(scan.next().expect("one more"));
        assert_eq!(key, expected.as_bytes());
        last = Bound::Excluded(key);
    }
}
