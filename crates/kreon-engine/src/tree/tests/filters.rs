//! Gets of absent keys, and the filters of leaves in a merge.

use kreon_base::Lsn;

use super::model::{Content, Entries, Model};
use crate::tree::{Filtering, MergeRules, get, prefetch_paths};

const KEYS: u32 = 30_000;
const RULES: MergeRules<'_> = MergeRules {
    expired_by: None,
    snapshots: &[],
    last_level: true,
    fill: 0.95,
    rewrites_all: false,
    filter_bits_per_key: 10,
};

fn user(number: u32) -> Vec<u8> {
    format!("user{number:019}").into_bytes()
}

/// A tree of the even numbers.
fn even_numbers(filter_bits_per_key: usize) -> Model {
    let (mut model, mut input) = (Model::default(), Entries::new());
    for number in (0..KEYS).step_by(2) {
        let content = Content::Logged(model.memory.log_record(&user(number)), 100);
        input.insert(user(number), vec![(Lsn(1), content)]);
    }
    let rules = MergeRules {
        filter_bits_per_key,
        ..RULES
    };
    model.merge(&input, &rules);
    model.memory.forget_reads();
    model
}

fn has(model: &Model, number: u32) -> bool {
    let found = get(&model.memory, &model.tree, &user(number), Lsn::MAX, |_| ());
    found.unwrap().is_some()
}

fn count(model: &Model, answer: Filtering) -> usize {
    let all = model.memory.filtering.borrow();
    all.iter().filter(|one| **one == answer).count()
}

#[test]
fn absent_keys_read_no_leaf_but_for_one_in_a_hundred() {
    let model = even_numbers(10);
    for number in (1..KEYS).step_by(2) {
        assert!(!has(&model, number));
    }
    let (excluded, in_vain) = (
        count(&model, Filtering::Excluded),
        count(&model, Filtering::InVain),
    );
    assert_eq!((excluded + in_vain) as u32, KEYS / 2);
    assert_eq!(count(&model, Filtering::Passed), in_vain);
    assert!(in_vain > 0 && in_vain * 100 < excluded, "{in_vain}");
}

#[test]
fn leaves_that_stay_keep_their_filters_and_fresh_ones_get_what_the_merge_says() {
    for (old, new) in [(10, 0), (0, 10), (10, 10)] {
        let mut model = even_numbers(old);
        let leaves = model.tree.leaf_pages;
        // A few neighbours: most leaves stay.
        let mut input = Entries::new();
        for number in (1..400).step_by(2) {
            let content = Content::Logged(model.memory.log_record(&user(number)), 100);
            input.insert(user(number), vec![(Lsn(2), content)]);
        }
        let rules = MergeRules {
            filter_bits_per_key: new,
            ..RULES
        };
        let freed = model.merge(&input, &rules).freed.len() as u64;
        assert!(freed < leaves / 4);
        for (bits, absent) in [(old, 1001..KEYS), (new, 401..402)] {
            model.memory.forget_reads();
            for number in absent.step_by(2) {
                assert!(!has(&model, number));
            }
            assert_eq!(count(&model, Filtering::Excluded) > 0, bits > 0);
        }
        (0..400).for_each(|number| assert!(has(&model, number)));
    }
}

#[test]
fn a_prefetch_loads_no_leaf_whose_filter_excludes_its_keys() {
    let model = even_numbers(10);
    let keys: Vec<_> = (1..KEYS).step_by(300).map(user).collect();
    let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
    let passed = prefetch_paths(&model.memory, &model.tree, &keys).unwrap();
    let prefetches = model.memory.prefetches.borrow();
    let of_leaves = prefetches.iter().filter(|(level, _)| *level == 0);
    let loaded: usize = of_leaves.map(|(_, count)| *count).sum();
    assert_eq!(loaded, passed.len());
    assert!(loaded <= keys.len() / 20, "{loaded} of {}", keys.len());
    drop(prefetches);
    // All keys are there: every leaf of them is loaded.
    let keys: Vec<_> = (0..KEYS).step_by(300).map(user).collect();
    let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
    let passed = prefetch_paths(&model.memory, &model.tree, &keys).unwrap();
    assert!(passed.iter().copied().eq(0..keys.len()));
}
