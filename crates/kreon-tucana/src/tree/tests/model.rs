//! Random changes against a `BTreeMap`.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::keys::{SHAPES, Shape};
use super::{Direction, ScanRange, World, pairs};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Put(u32),
    Delete(u32),
    /// So many keys from one on, each so far from the last.
    PutMany(u32, u32, u32),
    DeleteMany(u32, u32, u32),
    Get(u32),
    Scan(u32, u32, bool),
    /// Ends the epoch.
    Freeze,
    /// Ends the epoch, if it is open, and publishes all before it.
    Publish,
}

/// Numbers of keys.
const KEYS: u32 = 3000;

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..KEYS;
    let many = || (key(), 1..700_u32, 1..9_u32);
    prop_oneof![
        4 => key().prop_map(Step::Put),
        2 => key().prop_map(Step::Delete),
        6 => many().prop_map(|(from, count, by)| Step::PutMany(from, count, by)),
        4 => many().prop_map(|(from, count, by)| Step::DeleteMany(from, count, by)),
        2 => key().prop_map(Step::Get),
        2 => (key(), key(), any::<bool>()).prop_map(|(a, b, way)| Step::Scan(a, b, way)),
        1 => Just(Step::Freeze),
        1 => Just(Step::Publish),
    ]
}

struct Run {
    world: World,
    model: Model,
    shape: Shape,
    /// Part of every value.
    writes: u32,
}

impl Run {
    /// Publishes when frames are scarce, as a commit thread does.
    fn make_frames(&self) {
        if self.world.tree.wants_freeze() {
            self.world.publish();
        }
    }

    fn put(&mut self, number: u32) {
        self.make_frames();
        let key = self.shape.key(number % KEYS);
        self.writes += 1;
        let value = self.writes.to_le_bytes().repeat(1 + number as usize % 40);
        let known = self.world.tree.put(&key, &value).unwrap();
        assert_eq!(known, self.model.insert(key, value).is_some());
    }

    fn delete(&mut self, number: u32) {
        self.make_frames();
        let key = self.shape.key(number % KEYS);
        let known = self.world.tree.delete(&key).unwrap();
        assert_eq!(known, self.model.remove(&key).is_some());
    }

    fn scan(&self, a: u32, b: u32, forward: bool) {
        let (low, high) = (self.shape.key(a), self.shape.key(b));
        let range = ScanRange {
            low: low.clone(),
            high: Some(high.clone()),
        };
        let direction = match forward {
            true => Direction::Forward,
            false => Direction::Reverse,
        };
        let found: Vec<_> = self.world.tree.scan(range, direction).collect();
        let found: Vec<_> = found.into_iter().map(|pair| pair.unwrap()).collect();
        let mut expected: Vec<_> = Vec::new();
        if low < high {
            let there = self.model.range(low..high);
            expected.extend(there.map(|(key, value)| (key.clone(), value.clone())));
        }
        if !forward {
            expected.reverse();
        }
        assert!(found == expected, "{} for {}", found.len(), expected.len());
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Put(number) => self.put(number),
            Step::Delete(number) => self.delete(number),
            Step::PutMany(from, count, by) => {
                (0..count).for_each(|i| self.put(from + i * by));
            }
            Step::DeleteMany(from, count, by) => {
                (0..count).for_each(|i| self.delete(from + i * by));
            }
            Step::Get(number) => {
                let key = self.shape.key(number);
                assert_eq!(
                    self.world.tree.get(&key).unwrap(),
                    self.model.get(&key).cloned()
                );
            }
            Step::Scan(a, b, forward) => self.scan(a, b, forward),
            Step::Freeze => drop(self.world.tree.freeze()),
            Step::Publish => drop(self.world.publish()),
        }
    }

    fn check(&self) {
        let mut found = self.world.pairs();
        assert!(
            found
                .iter()
                .map(|(key, value)| (key, value))
                .eq(&self.model)
        );
        found.reverse();
        assert!(found == pairs(&self.world.tree, Direction::Reverse));
    }
}

fn run(shape: Shape, steps: &[Step]) {
    let mut run = Run {
        // So few frames that pages are evicted.
        world: World::new(1536),
        model: Model::new(),
        shape,
        writes: 0,
    };
    for step in steps {
        run.take(step);
    }
    run.check();
    // All of it deleted, in an order that is not that of the keys.
    for i in 0..KEYS {
        run.delete(i * 7);
    }
    run.check();
    assert!(run.model.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_tree_holds_what_a_map_holds(
        shape in prop::sample::select(SHAPES.to_vec()),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        run(shape, &steps);
    }
}
