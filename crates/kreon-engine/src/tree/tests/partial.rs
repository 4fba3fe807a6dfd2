//! The pages that a merge reads and writes, their places and their fill.

use std::collections::BTreeMap;

use kreon_base::{Attributes, ErrorKind, Lsn, PageNo, Payload};
use kreon_format::{IndexNode, Leaf, TreeRecord};

use super::model::{Content, Entries, Listed, Model, Reported};
use super::random::Random;
use crate::tree::{Cursor, Entry, MergeRules, merge};

const PLAIN: MergeRules<'_> = MergeRules {
    expired_by: None,
    snapshots: &[],
    last_level: true,
    fill: 0.95,
    rewrites_all: false,
    filter_bits_per_key: 0,
};

fn user(number: usize) -> Vec<u8> {
    format!("user{number:08}").into_bytes()
}

fn puts(model: &Model, numbers: impl IntoIterator<Item = usize>) -> Entries {
    let put = |number| {
        let offset = model.memory.log_record(&user(number));
        (user(number), vec![(Lsn(1), Content::Logged(offset, 1000))])
    };
    numbers.into_iter().map(put).collect()
}

fn deletes(model: &Model, numbers: impl IntoIterator<Item = usize>) -> Entries {
    let delete = |number| {
        let offset = model.memory.log_record(&user(number));
        (user(number), vec![(Lsn(1), Content::Deleted(offset))])
    };
    numbers.into_iter().map(delete).collect()
}

/// A tree of the even numbers below `2 * count`.
fn even_numbers(count: usize, rules: &MergeRules<'_>) -> Model {
    let mut model = Model::default();
    let input = puts(&model, (0..count).map(|i| i * 2));
    model.merge(&input, rules);
    model
}

/// Used bytes of each node by page, of leaves or of index nodes.
fn used_bytes(model: &Model, of_leaves: bool) -> BTreeMap<PageNo, usize> {
    let nodes = model.reach().pages.into_iter();
    let wanted = nodes.filter(|(_, level)| (*level == 0) == of_leaves);
    let used = wanted.map(|(page, level)| {
        let bytes = model.memory.page(page);
        let used = match level {
            0 => Leaf::open(&bytes).unwrap().used_bytes(),
            _ => IndexNode::open(&bytes).unwrap().used_bytes(),
        };
        (page, used)
    });
    used.collect()
}

/// The pages of all leaves in the order of their keys.
fn leaves_in_order(model: &Model) -> Vec<u64> {
    let mut cursor = Cursor::new(&model.memory, &model.tree);
    let mut leaves = Vec::new();
    model.memory.forget_reads();
    let mut more = cursor.first().unwrap();
    while more {
        let reads = model.memory.reads.take();
        leaves.extend(
            reads
                .iter()
                .filter(|(level, _)| *level == 0)
                .map(|(_, page)| page.0),
        );
        more = cursor.next().unwrap();
    }
    leaves
}

/// Merges and drops the result: nothing else reads.
fn merge_only(model: &Model, input: &Entries) -> (TreeRecord, Reported) {
    let mut sink = model.memory.sink();
    let (mut stream, mut changes) = (Listed::new(input), Reported::default());
    let memory = &model.memory;
    let tree = merge(
        memory,
        &mut sink,
        &model.tree,
        &mut stream,
        &PLAIN,
        &mut changes,
    );
    (tree.unwrap(), changes)
}

#[test]
fn clustered_keys_read_and_rewrite_one_path_only() {
    let model = even_numbers(60_000, &PLAIN);
    assert_eq!(model.tree.height, 3);
    let input = puts(&model, (50_001..50_041).step_by(2));
    model.memory.forget_reads();
    let (after, changes) = merge_only(&model, &input);
    for level in 0..3 {
        assert!(model.memory.reads_of_level(level) <= 2, "level {level}");
    }
    assert!(changes.freed.len() <= 5, "{:?}", changes.freed);
    assert_eq!(after.entries, model.tree.entries + 20);
}

#[test]
fn leaves_without_input_keep_their_pages_and_are_not_read() {
    let mut model = even_numbers(60_000, &PLAIN);
    let leaves: Vec<_> = leaves_in_order(&model);
    // One key in every tenth leaf: 11 entries fit in what 0.95 leaves free.
    let entries_per_leaf = 60_000 / leaves.len();
    let touched = (0..60_000)
        .step_by(entries_per_leaf * 10)
        .map(|i| i * 2 + 1);
    let input = puts(&model, touched.clone());
    let count = touched.count();
    model.memory.forget_reads();
    let reported = model.merge(&input, &PLAIN);
    let kept: Vec<_> = leaves_in_order(&model);
    let gone = leaves.iter().filter(|page| !kept.contains(page)).count();
    assert_eq!(gone, count);
    let freed_leaves = leaves
        .iter()
        .filter(|page| reported.freed.contains(&PageNo(**page)));
    assert_eq!(freed_leaves.count(), count);
    assert_eq!(kept.len(), leaves.len());
}

#[test]
fn an_index_node_without_input_is_not_read() {
    let model = even_numbers(60_000, &PLAIN);
    assert!(model.tree.index_pages >= 4);
    let input = puts(&model, [1, 3]);
    model.memory.forget_reads();
    merge_only(&model, &input);
    assert_eq!(model.memory.reads_of_level(1), 1);
    assert_eq!(model.memory.reads_of_level(0), 1);
}

#[test]
fn leaves_to_read_are_loaded_together_ahead_of_the_merge() {
    let model = even_numbers(100_000, &PLAIN);
    // More than one window of input.
    let input = puts(&model, (0..100_000).map(|i| i * 2 + 1).step_by(19));
    model.memory.forget_reads();
    merge_only(&model, &input);
    let leaves = model.tree.leaf_pages as usize;
    assert_eq!(model.memory.reads_of_level(0), leaves);
    let prefetches = model.memory.prefetches.borrow();
    let of_leaves = prefetches.iter().filter(|(level, _)| *level == 0);
    let counts: Vec<_> = of_leaves.map(|(_, count)| *count).collect();
    // A leaf whose input two windows share is loaded for both.
    assert!((leaves..leaves + 2).contains(&counts.iter().sum()));
    let short = counts.iter().filter(|count| **count < 64).count();
    assert!(counts.len() > 3 && short <= 2, "{counts:?}");
}

#[test]
fn neighbouring_leaves_get_consecutive_pages_and_are_packed() {
    let model = even_numbers(60_000, &PLAIN);
    let leaves = leaves_in_order(&model);
    let steps: Vec<_> = leaves.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let index_pages = model.tree.index_pages as usize;
    assert!(steps.iter().filter(|step| **step != 1).count() <= index_pages);
    assert!(steps.iter().all(|step| (1..=2).contains(step)));
    let used: usize = used_bytes(&model, true).values().sum();
    let fill = used as f64 / (leaves.len() * 4096) as f64;
    assert!((0.93..0.96).contains(&fill), "{fill}");
}

#[test]
fn a_merge_that_touches_every_leaf_packs_them_anew() {
    let mut model = even_numbers(40_000, &PLAIN);
    let input = puts(&model, (0..40_000).map(|i| i * 2 + 1).step_by(10));
    model.merge(&input, &PLAIN);
    let used: Vec<_> = used_bytes(&model, true).into_values().collect();
    let fill = used.iter().sum::<usize>() as f64 / (used.len() * 4096) as f64;
    assert!(fill > 0.93, "{fill}");
}

#[test]
fn a_lone_leaf_that_overflows_becomes_two_even_ones() {
    let mut model = even_numbers(40_000, &PLAIN);
    let before = used_bytes(&model, true);
    let input = puts(&model, (10_001..10_030).step_by(2));
    model.merge(&input, &PLAIN);
    let after = used_bytes(&model, true);
    let fresh: Vec<_> = after
        .iter()
        .filter(|(page, _)| !before.contains_key(page))
        .collect();
    assert_eq!(fresh.len(), 2);
    assert!(
        fresh.iter().all(|(_, used)| (1900..2500).contains(*used)),
        "{fresh:?}"
    );
}

#[test]
fn a_few_entries_more_fit_in_the_same_leaf() {
    let mut model = even_numbers(40_000, &PLAIN);
    let leaves = model.tree.leaf_pages;
    let input = puts(&model, [10_001, 10_003]);
    model.merge(&input, &PLAIN);
    assert_eq!(model.tree.leaf_pages, leaves);
}

#[test]
fn no_small_node_stays_after_deletions() {
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let fill = *random.pick(&[0.1, 0.25, 0.95]);
        let rules = MergeRules { fill, ..PLAIN };
        let mut model = even_numbers(6000, &rules);
        for _ in 0..20 {
            let length_max = *random.pick(&[20, 60, 900]);
            let length = 1 + random.below(length_max);
            let start = random.below(6000);
            let keep = 2 + random.below(30);
            let gone = (start..start + length)
                .filter(|i| i % keep != 0)
                .map(|i| i * 2);
            let input = deletes(&model, gone);
            model.merge(&input, &rules);
            let small_bytes = (4096.0 * fill) as usize / 4;
            for of_leaves in [true, false] {
                let used = used_bytes(&model, of_leaves);
                let small = used.values().filter(|used| **used < small_bytes).count();
                // The root may be small; so may an index node just beneath it.
                let spared = if of_leaves { 0 } else { 1 };
                assert!(used.len() < 2 || small <= spared, "seed {seed}: {used:?}");
            }
        }
    }
}

#[test]
fn the_last_two_index_nodes_are_about_equal() {
    let rules = MergeRules {
        fill: 0.25,
        ..PLAIN
    };
    for count in (4000..9000).step_by(611) {
        let model = even_numbers(count, &rules);
        let used = used_bytes(&model, false);
        let root = model.tree.root.unwrap().page;
        let beneath_root = used.iter().filter(|(page, _)| **page != root);
        let smallest = beneath_root.map(|(_, used)| *used).min().unwrap();
        assert!(smallest > 1024 * 2 / 5, "{count}: {used:?}");
    }
}

#[test]
fn a_small_last_leaf_of_a_node_is_balanced_with_the_leaf_left_of_it() {
    let mut model = even_numbers(60_000, &PLAIN);
    assert_eq!(model.tree.height, 3);
    let pages = model.reach().pages;
    let root = model.memory.page(model.tree.root.unwrap().page);
    let second = IndexNode::open(&root).unwrap();
    let bound = second.pivot(1).unwrap().bytes;
    let second = second.child(1).unwrap().page;
    // All but a few keys of the leaf before the second index node.
    let (last, _) = model.entries.range(..bound).next_back().unwrap();
    let last: usize = std::str::from_utf8(&last[4..]).unwrap().parse().unwrap();
    let leaf_keys = 60_000 / model.tree.leaf_pages as usize;
    let gone = (0..leaf_keys - 8).map(|i| last - i * 2);
    let input = deletes(&model, gone);
    model.merge(&input, &PLAIN);
    let used = used_bytes(&model, true);
    assert!(
        used.values().all(|used| *used >= 4096 / 5),
        "a small leaf stayed"
    );
    let now = model.reach().pages;
    assert!(pages.contains_key(&second) && now.contains_key(&second));
}

#[test]
fn deleting_every_key_leaves_an_empty_tree_and_no_page() {
    let mut model = even_numbers(20_000, &PLAIN);
    let input = deletes(&model, (0..20_000).map(|i| i * 2));
    model.merge(&input, &PLAIN);
    assert_eq!(model.tree, Default::default());
    assert_eq!(model.memory.page_count(), 0);
}

#[test]
fn a_tree_that_shrinks_to_one_leaf_loses_its_index() {
    for kept in [0, 7_777, 19_999] {
        let mut model = even_numbers(20_000, &PLAIN);
        let gone = (0..20_000).filter(|i| *i != kept).map(|i| i * 2);
        let input = deletes(&model, gone);
        model.merge(&input, &PLAIN);
        assert_eq!((model.tree.height, model.tree.index_pages), (1, 0));
    }
}

#[test]
fn a_tree_that_loses_all_but_one_subtree_loses_height() {
    let mut model = even_numbers(60_000, &PLAIN);
    assert_eq!(model.tree.height, 3);
    // All that is right of the first index node above the leaves.
    let input = deletes(&model, (15_000..60_000).map(|i| i * 2));
    model.merge(&input, &PLAIN);
    assert_eq!(model.tree.height, 2);
}

#[test]
fn appending_merges_keep_the_tree_packed() {
    let mut model = Model::default();
    for round in 0..30 {
        let input = puts(&model, round * 1000..(round + 1) * 1000);
        model.merge(&input, &PLAIN);
    }
    let used: Vec<_> = used_bytes(&model, true).into_values().collect();
    let fill = used.iter().sum::<usize>() as f64 / (used.len() * 4096) as f64;
    assert!(fill > 0.85, "{fill}");
}

#[test]
fn an_empty_input_changes_nothing_and_reads_nothing() {
    let model = even_numbers(20_000, &PLAIN);
    model.memory.forget_reads();
    let (after, changes) = merge_only(&model, &Entries::new());
    assert_eq!(after, model.tree);
    assert!(model.memory.reads.take().is_empty() && changes.freed.is_empty());
}

#[test]
fn input_out_of_order_is_refused() {
    let model = even_numbers(10, &PLAIN);
    let content = Content::Inline(vec![1]);
    let entry = |key: &'static [u8], lsn: u64| Entry {
        key,
        lsn: Lsn(lsn),
        payload: content.payload(),
    };
    let lists = [
        vec![entry(b"b", 1), entry(b"a", 2)],
        vec![entry(b"a", 1), entry(b"a", 2)],
        vec![entry(b"a", 1), entry(b"a", 1)],
    ];
    for list in lists {
        let mut sink = model.memory.sink();
        let (mut stream, mut changes) = (Listed(list.into_iter()), Reported::default());
        let tree = merge(
            &model.memory,
            &mut sink,
            &model.tree,
            &mut stream,
            &PLAIN,
            &mut changes,
        );
        assert_eq!(tree.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn input_out_of_order_is_refused_far_into_it() {
    let model = even_numbers(10, &PLAIN);
    let keys: Vec<_> = (0..5000).map(user).collect();
    for wrong in [4095, 4096, 4097] {
        let entry = |key| Entry {
            key,
            lsn: Lsn(1),
            payload: Payload::Inline {
                value: b"v",
                attributes: Attributes::NONE,
            },
        };
        let mut list: Vec<_> = keys.iter().map(|key| entry(key)).collect();
        list.swap(wrong - 1, wrong);
        let mut sink = model.memory.sink();
        let (mut stream, mut changes) = (Listed(list.into_iter()), Reported::default());
        let memory = &model.memory;
        let tree = merge(
            memory,
            &mut sink,
            &model.tree,
            &mut stream,
            &PLAIN,
            &mut changes,
        );
        assert_eq!(tree.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}
