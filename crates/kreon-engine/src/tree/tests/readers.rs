//! Point lookups.

use kreon_base::{Lsn, Payload};

use super::keys::Family;
use super::model::{Content, Entries, Model, visible};
use super::random::Random;
use crate::tree::{MergeRules, get, prefetch_paths};

/// Looks up keys that are there and keys that are not, at several positions.
pub fn check_gets(model: &Model, pool: &[Vec<u8>], snapshots: &[Lsn], random: &mut Random) {
    let mut ats = vec![Lsn(0), Lsn(1), Lsn::MAX];
    ats.extend_from_slice(snapshots);
    for _ in 0..200.min(pool.len() * 2) {
        let mut key = random.pick(pool).clone();
        match random.below(4) {
            0 => drop(key.pop()),
            1 => key.push(0),
            _ => {}
        }
        for at in &ats {
            let versions = model.entries.get(&key);
            let expected = versions
                .and_then(|versions| visible(versions, *at))
                .cloned();
            let show = |version: crate::tree::Version<'_>| Content::of(version.payload);
            let found = get(&model.memory, &model.tree, &key, *at, show).unwrap();
            assert_eq!(found, expected, "{} bytes of key at {at}", key.len());
        }
    }
}

const PLAIN: MergeRules<'_> = MergeRules {
    expired_by: None,
    snapshots: &[],
    last_level: true,
    fill: 0.95,
    rewrites_all: false,
    filter_bits_per_key: 0,
};

fn user(number: u32) -> Vec<u8> {
    format!("user{number:08}").into_bytes()
}

fn logged(model: &Model, key: &[u8]) -> Content {
    Content::Logged(model.memory.log_record(key), 100)
}

#[test]
fn an_empty_tree_holds_nothing() {
    let model = Model::default();
    let found = get(&model.memory, &model.tree, b"", Lsn::MAX, |_| ()).unwrap();
    assert_eq!(found, None);
    prefetch_paths(&model.memory, &model.tree, &[b"a", b"b"]).unwrap();
}

#[test]
fn an_inline_value_is_handed_out_from_the_page() {
    let mut model = Model::default();
    let inline = Content::Inline(b"value".to_vec());
    let input = Entries::from([(b"key".to_vec(), vec![(Lsn(4), inline)])]);
    model.merge(&input, &PLAIN);
    let found = get(&model.memory, &model.tree, b"key", Lsn(1), |version| {
        assert_eq!(version.lsn, Lsn(0));
        match version.payload {
            Payload::Inline { value, .. } => value.to_vec(),
            _ => Vec::new(),
        }
    });
    assert_eq!(found.unwrap().unwrap(), b"value");
}

#[test]
fn a_get_of_a_short_key_reads_one_node_of_each_level_and_no_log() {
    let mut model = Model::default();
    let mut input = Entries::new();
    for number in 0..30_000 {
        let content = logged(&model, &user(number));
        input.insert(user(number), vec![(Lsn(1), content)]);
    }
    model.merge(&input, &PLAIN);
    assert_eq!(model.tree.height, 3);
    model.memory.forget_reads();
    get(&model.memory, &model.tree, &user(17_311), Lsn::MAX, |_| ())
        .unwrap()
        .unwrap();
    for level in 0..3 {
        assert_eq!(model.memory.reads_of_level(level), 1);
    }
    assert_eq!(model.memory.key_reads.get(), 0);
}

#[test]
fn versions_of_one_key_that_fill_many_leaves_are_all_found() {
    let mut model = Model::default();
    let mut random = Random::new(1);
    let mut versions = Vec::new();
    for lsn in (1..=1500).rev() {
        versions.push((Lsn(lsn * 2), logged(&model, b"key")));
    }
    let snapshots: Vec<_> = (1..=1500).map(|s| Lsn(s * 2 + 1)).collect();
    let mut input = Entries::from([(b"key".to_vec(), versions)]);
    for key in [&b"a"[..], b"ke", b"key\0", b"z"] {
        input.insert(key.to_vec(), vec![(Lsn(1), logged(&model, key))]);
    }
    let rules = MergeRules {
        expired_by: None,
        snapshots: &snapshots,
        ..PLAIN
    };
    model.merge(&input, &rules);
    assert!(model.tree.leaf_pages > 5);
    assert_eq!(model.entries[&b"key"[..]].len(), 1500);
    let pool: Vec<_> = model.entries.keys().cloned().collect();
    let ats: Vec<_> = (0..3005).map(Lsn).collect();
    check_gets(&model, &pool, &ats, &mut random);
}

#[test]
fn prefetch_loads_the_nodes_of_sorted_keys_level_by_level() {
    let mut model = Model::default();
    let mut input = Entries::new();
    for number in 0..30_000 {
        let content = logged(&model, &user(number));
        input.insert(user(number), vec![(Lsn(1), content)]);
    }
    model.merge(&input, &PLAIN);
    let keys: Vec<_> = (0..30_000).step_by(150).map(user).collect();
    let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
    model.memory.forget_reads();
    prefetch_paths(&model.memory, &model.tree, &keys).unwrap();
    assert_eq!(model.memory.reads_of_level(0), 0);
    for key in keys {
        let found = get(&model.memory, &model.tree, key, Lsn::MAX, |_| ());
        assert!(found.unwrap().is_some());
    }
    let prefetches = model.memory.prefetches.borrow();
    let of_leaves = prefetches.iter().filter(|(level, _)| *level == 0);
    let counts: Vec<_> = of_leaves.map(|(_, count)| *count).collect();
    let leaves = model.memory.reads_of_level(0);
    assert!(leaves > 128);
    assert_eq!(counts, [128, leaves - 128]);
}

#[test]
fn keys_that_differ_behind_their_stored_part_are_told_apart() {
    let mut model = Model::default();
    let mut random = Random::new(5);
    let pool = Family::SharedPrefix.pool(&mut random, 2000);
    let mut input = Entries::new();
    for key in pool.iter().step_by(2) {
        let content = logged(&model, key);
        input.insert(key.clone(), vec![(Lsn(1), content)]);
    }
    model.merge(&input, &PLAIN);
    assert!(model.tree.leaf_pages > 3);
    check_gets(&model, &pool, &[], &mut random);
}
