//! Random changes and lookups.

use std::ops::Bound;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index as Pick, select};

use super::super::{Direction, IndexBuilder, Spot};
use super::model::{KEY_BYTES, Known, Model, location};

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, u64),
    /// Of an entry that stands.
    Replace(Pick, u64),
    Remove(Pick),
    /// Of any key, mostly in vain.
    RemoveAny(Vec<u8>, u64),
    ReplaceAny(Vec<u8>, u64, u64),
    Find(Vec<u8>),
    Run(Edge, Edge, bool, usize),
}

/// A bound: of a key, or of an entry that stands.
#[derive(Clone, Debug)]
enum Edge {
    None,
    Group(Vec<u8>, bool),
    Entry(Pick, bool),
}

/// Few different bytes, the extremes among them, so that keys share prefixes and look alike.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let bytes = vec(select(vec![0_u8, 0, 1, b'a', 255]), 0..KEY_BYTES + 3);
    // Long runs of one byte: tie groups and keys of the same head.
    let runs =
        (select(vec![0_u8, b'a']), 0..KEY_BYTES + 3).prop_map(|(byte, length)| vec![byte; length]);
    prop_oneof![3 => bytes, 1 => runs]
}

fn edge() -> impl Strategy<Value = Edge> {
    prop_oneof![
        1 => Just(Edge::None),
        3 => (key(), any::<bool>()).prop_map(|(key, included)| Edge::Group(key, included)),
        3 => (any::<Pick>(), any::<bool>()).prop_map(|(pick, included)| Edge::Entry(pick, included)),
    ]
}

/// Steps of which so many of 100 more insert than remove.
fn steps(inserts: u32, removes: u32) -> impl Strategy<Value = Vec<Step>> {
    let at = 0_u64..50;
    let step = prop_oneof![
        inserts => (key(), at.clone()).prop_map(|(key, at)| Step::Insert(key, at)),
        removes => any::<Pick>().prop_map(Step::Remove),
        8 => (any::<Pick>(), at.clone()).prop_map(|(pick, at)| Step::Replace(pick, at)),
        2 => (key(), at.clone()).prop_map(|(key, at)| Step::RemoveAny(key, at)),
        2 => (key(), at.clone(), at).prop_map(|(key, old, new)| Step::ReplaceAny(key, old, new)),
        5 => key().prop_map(Step::Find),
        5 => (edge(), edge(), any::<bool>(), 0_usize..20).prop_map(|(low, high, forward, count)| Step::Run(low, high, forward, count)),
    ];
    vec(step, 0..250)
}

/// A key that stands in the index as the entry does.
fn key_of(known: &Known) -> Vec<u8> {
    let mut key = known.0.clone();
    if known.1 {
        key.push(7);
    }
    key
}

fn pick(model: &Model, pick: Pick) -> Option<Known> {
    let number = (!model.entries.is_empty()).then(|| pick.index(model.entries.len()))?;
    model.entries.iter().nth(number).cloned()
}

fn bound<'a>(model: &Model, edge: &'a Edge, entry: &'a mut Known) -> Bound<Spot<'a>> {
    let (spot, included) = match edge {
        Edge::None => return Bound::Unbounded,
        Edge::Group(key, included) => (model.index.spot(key), *included),
        Edge::Entry(at, included) => {
            let Some(known) = pick(model, *at) else {
                return Bound::Unbounded;
            };
            *entry = known;
            let spot = Spot {
                bytes: &entry.0,
                whole: !entry.1,
                at: Some(entry.2),
            };
            (spot, *included)
        }
    };
    if included {
        Bound::Included(spot)
    } else {
        Bound::Excluded(spot)
    }
}

fn take(model: &mut Model, step: &Step) {
    match step {
        Step::Insert(key, at) => model.insert(key, location(*at)),
        Step::RemoveAny(key, at) => model.remove(key, location(*at)),
        Step::ReplaceAny(key, old, new) => model.replace(key, location(*old), location(*new)),
        Step::Find(key) => model.find(key),
        Step::Remove(at) => {
            if let Some(known) = pick(model, *at) {
                model.remove(&key_of(&known), known.2);
            }
        }
        Step::Replace(at, new) => {
            if let Some(known) = pick(model, *at) {
                model.replace(&key_of(&known), known.2, location(*new));
                model.find(&key_of(&known));
            }
        }
        Step::Run(low, high, forward, count) => {
            let (mut first, mut second) = (
                (Vec::new(), false, location(0)),
                (Vec::new(), false, location(0)),
            );
            let (low, high) = (
                bound(model, low, &mut first),
                bound(model, high, &mut second),
            );
            let direction = if *forward {
                Direction::Forward
            } else {
                Direction::Backward
            };
            model.run(low, high, direction, *count);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn index_holds_what_a_sorted_set_holds(phases in (steps(60, 10), steps(20, 60), steps(40, 20))) {
        let mut model = Model::small();
        for steps in [phases.0, phases.1, phases.2] {
            for step in &steps {
                take(&mut model, step);
                model.index.check();
            }
            model.check();
        }
        while let Some(known) = model.entries.first().cloned() {
            model.find(&key_of(&known));
            model.remove(&key_of(&known), known.2);
            model.index.check();
        }
        prop_assert_eq!(model.index.memory_bytes(), Model::small().index.memory_bytes());
    }

    #[test]
    fn an_index_that_was_built_holds_what_a_sorted_set_holds(
        keys in vec((key(), 0_u64..50), 0..200),
        steps in steps(40, 40),
    ) {
        let mut model = Model::small();
        for (key, at) in &keys {
            // A whole key has one entry.
            if key.len() > KEY_BYTES || model.index.find(key).next().is_none() {
                model.insert(key, location(*at));
            }
        }
        let mut builder = IndexBuilder::of(Model::small().index);
        for (bytes, truncated, at) in &model.entries {
            prop_assert!(builder.push(bytes, !truncated, *at));
        }
        model.index = builder.finish();
        model.check();
        for step in &steps {
            take(&mut model, step);
            model.index.check();
        }
        model.check();
    }
}
