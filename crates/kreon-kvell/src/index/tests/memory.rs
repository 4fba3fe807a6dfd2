//! How full nodes are, what is given back, the bound of growth.

use super::super::{Index, Location};
use super::model::{Random, location};

/// Keys of a benchmark: a word and 26 digits.
fn bench_key(number: u64) -> Vec<u8> {
    let mixed = u128::from((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) * 1_000_003;
    format!("user{mixed:026}").into_bytes()
}

fn filled(keys: impl Iterator<Item = Vec<u8>>) -> Index {
    let mut index = Index::new(32);
    for (number, key) in keys.enumerate() {
        assert!(index.insert(&key, location(number as u64)));
    }
    index.check();
    index
}

/// Keys in an order that chance has made.
pub(super) fn shuffled(count: u64) -> Vec<Vec<u8>> {
    let (mut keys, mut random): (Vec<Vec<u8>>, _) =
        ((0..count).map(bench_key).collect(), Random(77));
    for number in (1..keys.len()).rev() {
        keys.swap(number, random.below(number as u64 + 1) as usize);
    }
    keys
}

#[test]
fn random_inserts_leave_leaves_three_quarters_full() {
    let index = filled(shuffled(20_000).into_iter());
    assert!(index.leaf_fill() > 0.75, "{}", index.leaf_fill());
    let key_bytes = index.memory_bytes() as f64 / index.len() as f64;
    assert!(key_bytes < 44.0, "{key_bytes}");
}

#[test]
fn short_keys_take_at_most_20_bytes() {
    let mut index = Index::new(8);
    for number in 0..40_000_u64 {
        index.insert(
            &(number + 1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .to_be_bytes(),
            location(number),
        );
    }
    assert!(
        index.memory_bytes() < 20 * 40_000,
        "{}",
        index.memory_bytes()
    );
}

#[test]
fn ascending_inserts_leave_full_leaves() {
    let index = filled((0..20_000).map(|number| format!("key{number:012}").into_bytes()));
    assert!(index.leaf_fill() > 0.95, "{}", index.leaf_fill());
}

#[test]
fn ascending_inserts_before_other_keys_leave_full_leaves() {
    let others = (0..10).map(|number| format!("z{number}").into_bytes());
    let ascending = (0..20_000).map(|number| format!("key{number:012}").into_bytes());
    let index = filled(others.chain(ascending));
    assert!(index.leaf_fill() > 0.95, "{}", index.leaf_fill());
}

#[test]
fn descending_inserts_leave_leaves_half_full_at_least() {
    let index = filled(
        (0..20_000)
            .rev()
            .map(|number| format!("key{number:012}").into_bytes()),
    );
    assert!(index.leaf_fill() > 0.5, "{}", index.leaf_fill());
}

#[test]
fn removing_everything_gives_all_memory_back() {
    let keys = shuffled(5_000);
    let mut index = filled(keys.iter().cloned());
    for (number, key) in keys.iter().enumerate() {
        assert!(index.remove(key, location(number as u64)));
    }
    index.check();
    assert_eq!(index.memory_bytes(), Index::new(32).memory_bytes());
}

#[test]
fn memory_follows_the_entries_down_and_up_again() {
    let keys = shuffled(20_000);
    let mut index = filled(keys.iter().cloned());
    let peak = index.memory_bytes();
    for round in 0..3 {
        for (number, key) in keys
            .iter()
            .enumerate()
            .filter(|(number, _)| number % 10 != 0)
        {
            assert!(index.remove(key, location(number as u64)));
        }
        index.check();
        assert!(
            index.memory_bytes() < peak / 3,
            "round {round}: {} of {peak}",
            index.memory_bytes()
        );
        for (number, key) in keys
            .iter()
            .enumerate()
            .filter(|(number, _)| number % 10 != 0)
        {
            assert!(index.insert(key, location(number as u64)));
        }
        index.check();
        assert!(
            index.memory_bytes() < peak + peak / 10,
            "round {round}: {} of {peak}",
            index.memory_bytes()
        );
    }
}

#[test]
fn memory_of_one_key_is_one_chunk_and_known_before() {
    let mut index = Index::new(32);
    let before = index.memory_bytes();
    let most = before + index.growth_bytes_max();
    index.insert(b"key", location(1));
    assert!(
        (before + 32 * 2048..=most).contains(&index.memory_bytes()),
        "{} of {most}",
        index.memory_bytes()
    );
    assert_eq!(index.growth_bytes_max(), 0, "the chunk has room for more");
}

#[test]
fn replace_changes_no_memory() {
    let keys = shuffled(3_000);
    let mut index = filled(keys.iter().cloned());
    let (memory, leaves) = (index.memory_bytes(), index.leaf_fill());
    for (number, key) in keys.iter().enumerate() {
        let number = number as u64;
        assert!(index.replace(key, location(number), location(9_000_000 - number)));
        assert_eq!(
            index.find(key).collect::<Vec<Location>>(),
            [location(9_000_000 - number)]
        );
    }
    index.check();
    assert_eq!((index.memory_bytes(), index.leaf_fill()), (memory, leaves));
}
