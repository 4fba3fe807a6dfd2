//! Cursors in both directions.

use kreon_base::Lsn;

use super::model::{Content, Entries, Model};
use super::random::Random;
use crate::tree::{Cursor, MergeRules};

type Shown = (Vec<u8>, Lsn, Content);

fn shown(cursor: &Cursor<'_, super::memory::Memory>) -> Shown {
    let content = Content::of(cursor.payload().unwrap());
    (cursor.key().to_vec(), cursor.lsn(), content)
}

fn listed(entries: &Entries) -> Vec<Shown> {
    let all = entries.iter().flat_map(|(key, versions)| {
        let show = |(lsn, content): &(Lsn, Content)| (key.clone(), *lsn, content.clone());
        versions.iter().map(show)
    });
    all.collect()
}

/// Walks forward, backward and from random places; all must agree with the model.
pub fn check_cursors(model: &Model, pool: &[Vec<u8>], random: &mut Random) {
    let expected = listed(&model.entries);
    let mut cursor = Cursor::new(&model.memory, &model.tree);
    let mut forward = Vec::new();
    let mut more = cursor.first().unwrap();
    while more {
        forward.push(shown(&cursor));
        more = cursor.next().unwrap();
    }
    assert!(forward == expected, "forward");
    let mut backward = Vec::new();
    let mut more = cursor.last().unwrap();
    while more {
        backward.push(shown(&cursor));
        more = cursor.prev().unwrap();
    }
    backward.reverse();
    assert!(backward == expected, "backward");
    for _ in 0..50 {
        let mut key = random.pick(pool).clone();
        match random.below(4) {
            0 => drop(key.pop()),
            1 => key.push(0),
            _ => {}
        }
        check_seeks(model, &expected, &key, random);
    }
}

fn check_seeks(model: &Model, expected: &[Shown], key: &[u8], random: &mut Random) {
    let at = expected.partition_point(|(here, ..)| here.as_slice() < key);
    let mut cursor = Cursor::new(&model.memory, &model.tree);
    assert_eq!(cursor.seek(key).unwrap(), at < expected.len());
    check_walk(&mut cursor, expected, at, random);
    assert_eq!(cursor.seek_before(key).unwrap(), at > 0);
    check_walk(&mut cursor, expected, at.wrapping_sub(1), random);
}

/// Moves back and forth from entry `at`.
fn check_walk(
    cursor: &mut Cursor<'_, super::memory::Memory>,
    expected: &[Shown],
    mut at: usize,
    random: &mut Random,
) {
    for _ in 0..6 {
        assert_eq!(cursor.payload().is_ok(), at < expected.len());
        if at >= expected.len() {
            assert!(!cursor.next().unwrap() && !cursor.prev().unwrap());
            return;
        }
        assert!(shown(cursor) == expected[at]);
        if random.one_in(2) {
            cursor.next().unwrap();
            at += 1;
        } else {
            cursor.prev().unwrap();
            at = at.wrapping_sub(1);
        }
    }
}

fn numbered(count: u32) -> Model {
    let mut model = Model::default();
    let mut input = Entries::new();
    for number in 0..count {
        let key = format!("{number:06}").into_bytes();
        let content = Content::Logged(model.memory.log_record(&key), 9);
        input.insert(key, vec![(Lsn(1), content)]);
    }
    let rules = MergeRules {
        expired_by: None,
        snapshots: &[],
        last_level: true,
        fill: 0.1,
        rewrites_all: false,
        filter_bits_per_key: 0,
    };
    model.merge(&input, &rules);
    model
}

#[test]
fn a_cursor_on_an_empty_tree_stands_nowhere() {
    let model = Model::default();
    let mut cursor = Cursor::new(&model.memory, &model.tree);
    assert!(!cursor.first().unwrap() && !cursor.last().unwrap());
    assert!(!cursor.seek(b"").unwrap() && !cursor.seek_before(b"z").unwrap());
    assert!(!cursor.next().unwrap() && !cursor.prev().unwrap());
    assert!(cursor.payload().is_err());
}

#[test]
fn a_long_walk_loads_leaves_together_and_none_twice() {
    let model = numbered(4000);
    assert!(model.tree.leaf_pages > 100);
    for forward in [true, false] {
        let mut cursor = Cursor::new(&model.memory, &model.tree);
        model.memory.forget_reads();
        let mut more = if forward {
            cursor.first()
        } else {
            cursor.last()
        };
        while more.unwrap() {
            more = if forward {
                cursor.next()
            } else {
                cursor.prev()
            };
        }
        let prefetches = model.memory.prefetches.borrow();
        let counts: Vec<_> = prefetches.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts[..6], [2, 4, 8, 16, 32, 32]);
        // The first two leaves are read as the walk comes to them.
        assert_eq!(
            counts.iter().sum::<usize>() as u64,
            model.tree.leaf_pages - 2
        );
    }
}

#[test]
fn a_short_walk_loads_nothing_ahead() {
    let model = numbered(4000);
    let mut cursor = Cursor::new(&model.memory, &model.tree);
    cursor.seek(b"001000").unwrap();
    model.memory.forget_reads();
    while model.memory.reads_of_level(0) < 1 {
        assert!(cursor.next().unwrap());
    }
    while model.memory.reads_of_level(0) < 2 {
        assert!(cursor.prev().unwrap());
    }
    assert!(model.memory.prefetches.borrow().is_empty());
}

#[test]
fn walking_on_in_a_leaf_reads_no_node() {
    let model = numbered(2000);
    let mut cursor = Cursor::new(&model.memory, &model.tree);
    cursor.first().unwrap();
    model.memory.forget_reads();
    cursor.next().unwrap();
    cursor.prev().unwrap();
    assert!(model.memory.reads.borrow().is_empty());
}
