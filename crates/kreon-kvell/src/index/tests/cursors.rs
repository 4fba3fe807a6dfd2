//! Runs with changes in between.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::super::{Direction, End, Location, Run, Spot};
use super::model::{KEY_BYTES, Known, Model, Random, known, location};

/// A key of few different bytes: whole, or of a tie group.
fn key(random: &mut Random) -> Vec<u8> {
    let length = random.below(KEY_BYTES as u64 + 3);
    (0..length)
        .map(|_| b"ab\0"[random.below(3) as usize])
        .collect()
}

/// Everything that a cursor hands out, with changes of other entries than the `stable` ones after each run.
fn walk(
    model: &mut Model,
    direction: Direction,
    stable: &BTreeSet<Known>,
    random: &mut Random,
) -> Vec<Known> {
    let mut out: Vec<Known> = Vec::new();
    let mut run = Run::new();
    loop {
        let last = out.last().cloned();
        let from = last
            .as_ref()
            .map_or(Bound::Unbounded, |(bytes, truncated, at)| {
                Bound::Excluded(Spot {
                    bytes,
                    whole: !truncated,
                    at: Some(*at),
                })
            });
        let (low, high) = match direction {
            Direction::Forward => (from, Bound::Unbounded),
            Direction::Backward => (Bound::Unbounded, from),
        };
        run.clear();
        let end = model
            .index
            .run(low, high, direction, 1 + random.below(7) as usize, &mut run);
        out.extend(run.iter().map(known));
        if end == End::Bounds {
            return out;
        }
        for _ in 0..random.below(20) {
            change(model, stable, random);
        }
    }
}

/// Inserts, or removes what is not stable.
fn change(model: &mut Model, stable: &BTreeSet<Known>, random: &mut Random) {
    let (key, at) = (key(random), location(random.below(1000)));
    let bytes = key[..key.len().min(KEY_BYTES)].to_vec();
    if stable.contains(&(bytes, key.len() > KEY_BYTES, at)) {
        return;
    }
    let found: Vec<Location> = model.index.find(&key).collect();
    match found.get(random.below(4) as usize) {
        Some(at)
            if !stable.contains(&(
                key[..key.len().min(KEY_BYTES)].to_vec(),
                key.len() > KEY_BYTES,
                *at,
            )) =>
        {
            model.remove(&key, *at);
        }
        _ => model.insert(&key, at),
    }
}

fn cursor_meets_stable_entries(direction: Direction) {
    for seed in 1..30 {
        let mut random = Random(seed * 0x9e37_79b9);
        let mut model = Model::small();
        for number in 0..150 {
            model.insert(&key(&mut random), location(number));
        }
        let stable = model.entries.clone();
        let out = walk(&mut model, direction, &stable, &mut random);
        model.check();
        let ordered = match direction {
            Direction::Forward => out.is_sorted_by(|a, b| a < b),
            Direction::Backward => out.is_sorted_by(|a, b| a > b),
        };
        assert!(ordered, "each entry comes once and in order; seed {seed}");
        let out: BTreeSet<Known> = out.into_iter().collect();
        assert!(stable.is_subset(&out), "seed {seed}");
    }
}

#[test]
fn cursor_meets_every_entry_that_stays_while_others_come_and_go() {
    cursor_meets_stable_entries(Direction::Forward);
}

#[test]
fn backward_cursor_meets_every_entry_that_stays_while_others_come_and_go() {
    cursor_meets_stable_entries(Direction::Backward);
}

#[test]
fn run_that_ends_within_a_tie_group_says_so() {
    let mut model = Model::small();
    for number in 0..40 {
        model.insert(b"abcdef and more", location(number));
    }
    model.insert(b"abcdef", location(3));
    model.insert(b"b", location(4));
    let spot = model.index.spot(b"abcdef");
    let mut run = Run::new();
    let mut ends = Vec::new();
    for count in [1, 2, 41, 42] {
        run.clear();
        ends.push(model.index.run(
            Bound::Included(spot),
            Bound::Unbounded,
            Direction::Forward,
            count,
            &mut run,
        ));
        assert_eq!(run.len(), count);
    }
    let expected = [End::Count, End::Count, End::Count, End::Bounds];
    assert_eq!(ends, expected);
    assert_eq!(
        run.last().map(known),
        Some((b"b".to_vec(), false, location(4)))
    );
}

#[test]
fn group_as_a_bound_is_in_or_out_as_a_whole() {
    let mut model = Model::small();
    for number in 0..40 {
        for key in [&b"abcdef"[..5], b"abcdef", b"abcdef and more", b"abcdeg"] {
            if key.len() > KEY_BYTES || number == 0 {
                model.insert(key, location(number));
            }
        }
    }
    let group = model.index.spot(b"abcdef and something else");
    for (low, expected) in [(Bound::Included(group), 41), (Bound::Excluded(group), 1)] {
        let mut run = Run::new();
        model.index.run(
            low,
            Bound::Unbounded,
            Direction::Backward,
            usize::MAX,
            &mut run,
        );
        assert_eq!(run.len(), expected);
    }
    for (high, expected) in [(Bound::Included(group), 42), (Bound::Excluded(group), 2)] {
        let mut run = Run::new();
        model.index.run(
            Bound::Unbounded,
            high,
            Direction::Forward,
            usize::MAX,
            &mut run,
        );
        assert_eq!(run.len(), expected);
    }
}

#[test]
fn run_between_crossed_bounds_is_empty() {
    let mut model = Model::small();
    for number in 0..100 {
        model.insert(&[number as u8], location(number));
    }
    let (low, high) = (model.index.spot(&[60]), model.index.spot(&[20]));
    for direction in [Direction::Forward, Direction::Backward] {
        let mut run = Run::new();
        let end = model.index.run(
            Bound::Included(low),
            Bound::Included(high),
            direction,
            10,
            &mut run,
        );
        assert_eq!((end, run.len()), (End::Bounds, 0));
    }
}
