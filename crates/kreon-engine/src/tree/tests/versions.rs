//! Versions of keys through merges.

use kreon_base::Lsn;

use super::model::{Content, Entries, Model, Versions};
use crate::tree::MergeRules;

fn rules<'a>(snapshots: &'a [Lsn], last_level: bool) -> MergeRules<'a> {
    MergeRules {
        expired_by: None,
        snapshots,
        last_level,
        fill: 0.95,
        rewrites_all: false,
        filter_bits_per_key: 0,
    }
}

fn put(model: &Model, key: &[u8], lsn: u64) -> (Lsn, Content) {
    (Lsn(lsn), Content::Logged(model.memory.log_record(key), 5))
}

fn deletion(model: &Model, key: &[u8], lsn: u64) -> (Lsn, Content) {
    (Lsn(lsn), Content::Deleted(model.memory.log_record(key)))
}

fn one(key: &[u8], versions: Versions) -> Entries {
    Entries::from([(key.to_vec(), versions)])
}

fn lsns(model: &Model, key: &[u8]) -> Vec<u64> {
    let versions = model.entries.get(key).into_iter().flatten();
    versions.map(|(lsn, _)| lsn.0).collect()
}

#[test]
fn a_new_version_replaces_the_old_one_and_its_reference() {
    let mut model = Model::default();
    let input = one(b"k", vec![put(&model, b"k", 3)]);
    model.merge(&input, &rules(&[], true));
    let input = one(b"k", vec![put(&model, b"k", 9)]);
    let reported = model.merge(&input, &rules(&[], true));
    assert_eq!(lsns(&model, b"k"), [0]);
    let mut changes: Vec<_> = reported.references.values().copied().collect();
    changes.sort_unstable();
    assert_eq!(changes, [-1, 1]);
}

#[test]
fn a_replayed_entry_changes_no_reference() {
    let mut model = Model::default();
    let input = one(b"k", vec![put(&model, b"k", 3)]);
    model.merge(&input, &rules(&[], true));
    let reported = model.merge(&input, &rules(&[], true));
    assert!(reported.references.values().all(|change| *change == 0));
}

#[test]
fn input_that_does_not_stay_is_never_referenced() {
    let mut model = Model::default();
    let versions = vec![deletion(&model, b"k", 9), put(&model, b"k", 4)];
    let reported = model.merge(&one(b"k", versions), &rules(&[], true));
    assert!(reported.references.is_empty());
    assert_eq!(model.tree.height, 0);
}

#[test]
fn a_version_that_a_snapshot_sees_stays_until_it_is_gone() {
    let mut model = Model::default();
    let input = one(b"k", vec![put(&model, b"k", 3)]);
    model.merge(&input, &rules(&[], true));
    let input = one(b"k", vec![put(&model, b"k", 9)]);
    model.merge(&input, &rules(&[Lsn(5)], true));
    assert_eq!(lsns(&model, b"k"), [9, 0]);
    let input = one(b"k", vec![put(&model, b"k", 20)]);
    model.merge(&input, &rules(&[Lsn(5), Lsn(12)], true));
    assert_eq!(lsns(&model, b"k"), [20, 9, 0]);
    let input = one(b"k", vec![put(&model, b"k", 30)]);
    model.merge(&input, &rules(&[Lsn(12)], true));
    assert_eq!(lsns(&model, b"k"), [30, 0]);
}

#[test]
fn old_versions_in_a_rewritten_leaf_go_with_their_snapshots() {
    let mut model = Model::default();
    let input = one(b"k", vec![put(&model, b"k", 9), put(&model, b"k", 3)]);
    model.merge(&input, &rules(&[Lsn(5)], true));
    assert_eq!(lsns(&model, b"k"), [9, 0]);
    let other = one(b"z", vec![put(&model, b"z", 20)]);
    let reported = model.merge(&other, &rules(&[], true));
    assert_eq!(lsns(&model, b"k"), [0]);
    assert_eq!(
        reported
            .references
            .values()
            .filter(|change| **change == -1)
            .count(),
        1
    );
}

#[test]
fn a_deletion_stays_above_the_last_level() {
    let mut model = Model::default();
    let input = one(b"k", vec![deletion(&model, b"k", 3)]);
    model.merge(&input, &rules(&[], false));
    assert_eq!(lsns(&model, b"k"), [0]);
    let again = one(b"k", vec![deletion(&model, b"k", 8)]);
    model.merge(&again, &rules(&[], true));
    assert_eq!(model.tree.entries, 0);
}

#[test]
fn deletions_over_nothing_go_one_after_the_other() {
    let mut model = Model::default();
    let key = b"k";
    let versions = vec![
        put(&model, key, 20),
        deletion(&model, key, 15),
        deletion(&model, key, 10),
    ];
    model.merge(&one(key, versions), &rules(&[Lsn(12), Lsn(17)], true));
    assert_eq!(lsns(&model, key), [20]);
}

#[test]
fn a_deletion_over_a_version_that_a_snapshot_sees_stays() {
    let mut model = Model::default();
    let key = b"k";
    let versions = vec![deletion(&model, key, 10), put(&model, key, 4)];
    model.merge(&one(key, versions), &rules(&[Lsn(6)], true));
    assert_eq!(lsns(&model, key), [10, 0]);
}

/// A key whose versions fill several leaves, between two others.
fn spread(snapshots: &[Lsn]) -> Model {
    let mut model = Model::default();
    let versions = (1..=600).rev().map(|i| put(&model, b"k", i * 2)).collect();
    let mut input = one(b"k", versions);
    for key in [b"a", b"z"] {
        input.insert(key.to_vec(), vec![put(&model, key, 1)]);
    }
    model.merge(&input, &rules(snapshots, true));
    assert!(model.tree.leaf_pages >= 4);
    model
}

#[test]
fn versions_that_fill_several_leaves_are_replaced_in_all_of_them() {
    let snapshots: Vec<_> = (1..=600).map(|i| Lsn(i * 2 + 1)).collect();
    let mut model = spread(&snapshots);
    let input = one(b"k", vec![put(&model, b"k", 5000)]);
    model.merge(&input, &rules(&snapshots[500..502], true));
    assert_eq!(lsns(&model, b"k"), [5000, 1004, 0]);
    assert_eq!((model.tree.leaf_pages, model.tree.height), (1, 1));
}

#[test]
fn a_deletion_hides_versions_in_several_leaves() {
    let snapshots: Vec<_> = (1..=600).map(|i| Lsn(i * 2 + 1)).collect();
    let mut model = spread(&snapshots);
    let input = one(b"k", vec![deletion(&model, b"k", 5000)]);
    // The oldest version of all stays, far from the deletion over it.
    model.merge(&input, &rules(&snapshots[..1], true));
    assert_eq!(lsns(&model, b"k"), [5000, 0]);
    let input = one(b"k", vec![deletion(&model, b"k", 5001)]);
    model.merge(&input, &rules(&[], true));
    assert_eq!(lsns(&model, b"k"), []);
}

#[test]
fn input_behind_spread_versions_leaves_them_alone() {
    let snapshots: Vec<_> = (1..=600).map(|i| Lsn(i * 2 + 1)).collect();
    let mut model = spread(&snapshots);
    let before = lsns(&model, b"k");
    let input = one(b"kk", vec![put(&model, b"kk", 7000)]);
    model.merge(&input, &rules(&snapshots, true));
    assert_eq!(lsns(&model, b"k"), before);
}
