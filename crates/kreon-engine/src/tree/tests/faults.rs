//! Faults of the device and of the log during merges and reads.

use kreon_base::{ErrorKind, Lsn};

use super::keys::Family;
use super::model::{Content, Entries, Model, Reported, merge_in_parts};
use super::random::Random;
use crate::tree::{Cursor, MergeRules, get};

const RULES: MergeRules<'_> = MergeRules {
    expired_by: None,
    snapshots: &[],
    last_level: true,
    fill: 0.15,
    rewrites_all: false,
    filter_bits_per_key: 10,
};

fn input(model: &Model, pool: &[Vec<u8>], step: usize) -> Entries {
    let content = |key: &[u8]| Content::Logged(model.memory.log_record(key), 1);
    let put = |key: &Vec<u8>| (key.clone(), vec![(Lsn(1), content(key))]);
    pool.iter().step_by(step).map(put).collect()
}

#[test]
fn a_fault_at_any_step_of_a_merge_leaves_the_old_tree_whole() {
    faults_in_a_merge(1);
    faults_in_a_merge(4);
}

fn faults_in_a_merge(parts: usize) {
    let mut random = Random::new(9);
    let pool = Family::Mixed.pool(&mut random, 120);
    let mut model = Model::default();
    let first = input(&model, &pool, 2);
    model.merge(&first, &RULES);
    let second = input(&model, &pool, 3);
    let before = model.reach().entries;
    let mut steps = 0;
    loop {
        let mut sink = model.memory.sink();
        let mut changes = Reported::default();
        model.memory.fail_in.set(Some(steps));
        let merged = merge_in_parts(
            &model.memory,
            (&mut sink, &mut changes),
            &model.tree,
            &second,
            &RULES,
            parts,
        );
        model.memory.fail_in.set(None);
        let pages = model.reach().pages;
        for page in sink.allocated.drain(..) {
            assert!(!pages.contains_key(&page));
            model.memory.remove_if_there(page);
        }
        match merged {
            Ok(_) => break,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Io),
        }
        steps += 1;
    }
    assert!(steps > 50, "{steps} steps");
    assert!(model.reach().entries == before);
    model.merge(&second, &RULES);
}

#[test]
fn a_cursor_that_failed_stands_nowhere_and_can_seek_again() {
    let mut random = Random::new(2);
    let pool = Family::User.pool(&mut random, 400);
    let mut model = Model::default();
    let all = input(&model, &pool, 1);
    model.merge(&all, &RULES);
    let mut cursor = Cursor::new(&model.memory, &model.tree);
    cursor.first().unwrap();
    model.memory.fail_in.set(Some(2));
    let mut seen = 1;
    let error = loop {
        match cursor.next() {
            Ok(more) => assert!(more),
            Err(error) => break error,
        }
        seen += 1;
    };
    assert!(seen < pool.len());
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(cursor.payload().is_err());
    model.memory.fail_in.set(None);
    assert!(cursor.seek(&pool[seen]).unwrap());
    assert_eq!(cursor.key(), pool[seen]);
}

#[test]
fn a_damaged_page_is_an_error_and_not_an_answer() {
    let mut random = Random::new(4);
    let pool = Family::User.pool(&mut random, 400);
    let mut model = Model::default();
    let all = input(&model, &pool, 1);
    model.merge(&all, &RULES);
    let pages = model.reach().pages;
    for page in pages.keys() {
        let whole = model.memory.page(*page);
        let mut damaged = whole.clone();
        damaged[random.below(4096)] ^= 1 << random.below(8);
        model.memory.overwrite(*page, &damaged);
        let mut errors = 0;
        for key in &pool {
            match get(&model.memory, &model.tree, key, Lsn::MAX, |_| ()) {
                Ok(found) => assert!(found.is_some()),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption);
                    errors += 1;
                }
            }
        }
        assert!(errors > 0);
        model.memory.overwrite(*page, &whole);
    }
}
