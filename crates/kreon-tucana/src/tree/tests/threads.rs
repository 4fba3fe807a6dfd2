//! Many threads at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;

use super::keys::Shape;
use super::{Direction, ScanRange, World, check, pairs};

/// A small pseudo-random generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)) % bound
    }
}

/// Runs until dropped, even by a panic.
struct Running<'a>(&'a AtomicBool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

/// Writers with keys of their own, readers, scans and commits. Each writer knows what its keys must have.
fn writers_beside_readers_and_commits(shape: Shape, memory_kib: usize) {
    const WRITERS: u64 = 3;
    const KEYS: u64 = 600;
    let world = World::new(memory_kib);
    let goes_on = AtomicBool::new(true);
    // The version of each key that was written last, and the one that may be under way; odd ones are deletions.
    let versions: Vec<AtomicU64> = (0..WRITERS * KEYS).map(|_| AtomicU64::new(0)).collect();
    let begun: Vec<AtomicU64> = (0..WRITERS * KEYS).map(|_| AtomicU64::new(0)).collect();
    let key_of = |i: u64| shape.key(i as u32);
    let models: Vec<BTreeMap<Vec<u8>, Vec<u8>>> = thread::scope(|scope| {
        let (world, goes_on, versions, begun) = (&world, &goes_on, &versions, &begun);
        let running = Running(goes_on);
        scope.spawn(move || {
            while goes_on.load(SeqCst) {
                world.publish();
                thread::yield_now();
            }
        });
        scope.spawn(move || {
            let mut random = Random(99);
            while goes_on.load(SeqCst) {
                let i = random.below(WRITERS * KEYS);
                let before = versions[i as usize].load(SeqCst);
                let found = world.tree.get(&key_of(i)).expect("a read");
                let seen = found.map(|value| u64::from_le_bytes(value.try_into().unwrap()));
                match seen {
                    Some(seen) => assert!(seen >= before, "key {i}: {seen} after {before}"),
                    None => assert!(
                        before % 2 == 1 || before == 0 || begun[i as usize].load(SeqCst) != before,
                        "key {i} is gone at {before}"
                    ),
                }
            }
        });
        scope.spawn(move || {
            let mut random = Random(7);
            while goes_on.load(SeqCst) {
                let direction = match random.below(2) {
                    0 => Direction::Forward,
                    _ => Direction::Reverse,
                };
                let range = ScanRange {
                    low: key_of(random.below(WRITERS * KEYS)),
                    high: None,
                };
                let mut last: Option<Vec<u8>> = None;
                for pair in world.tree.scan(range.clone(), direction).take(600) {
                    let (key, _) = pair.expect("a pair");
                    assert!(key >= range.low);
                    let is_next = |last: &Vec<u8>| match direction {
                        Direction::Forward => *last < key,
                        Direction::Reverse => *last > key,
                    };
                    assert!(last.as_ref().is_none_or(is_next));
                    last = Some(key);
                }
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut random = Random(writer + 1000);
                    let mut model = BTreeMap::new();
                    for round in 1..8000_u64 {
                        // Keys of the writers are neighbours: they meet in every leaf.
                        let i = random.below(KEYS) * WRITERS + writer;
                        let key = key_of(i);
                        // Waves of insertions and of deletions, so that leaves are split and merged.
                        let deletes = random.below(20) < [2, 19][(round / 2000 % 2) as usize];
                        let version = 2 * round + u64::from(deletes);
                        begun[i as usize].store(version, SeqCst);
                        if deletes {
                            let known = world.tree.delete(&key).expect("a deletion");
                            assert_eq!(known, model.remove(&key).is_some(), "key {i}");
                        } else {
                            let value = version.to_le_bytes().to_vec();
                            let known = world.tree.put(&key, &value).expect("a put");
                            assert_eq!(known, model.insert(key, value).is_some(), "key {i}");
                        }
                        versions[i as usize].store(version, SeqCst);
                    }
                    model
                })
            })
            .collect();
        let models = writers.into_iter().map(|writer| writer.join().unwrap());
        let models = models.collect();
        drop(running);
        models
    });
    let expected: BTreeMap<_, _> = models.into_iter().flatten().collect();
    let found = world.pairs();
    assert!(found.iter().map(|(key, value)| (key, value)).eq(&expected));
    let stats = world.tree.stats();
    assert!(
        stats.merges > 0 && stats.splits > 0 && stats.copies > 0,
        "{stats:?}"
    );
}

#[test]
fn writers_readers_scans_and_commits_go_on_together() {
    writers_beside_readers_and_commits(Shape::Short, 4 << 10);
}

#[test]
fn the_same_with_ties_of_prefixes() {
    writers_beside_readers_and_commits(Shape::Ties, 4 << 10);
}

#[test]
fn the_same_in_high_trees_of_long_pivots() {
    writers_beside_readers_and_commits(Shape::LongPrefix, 8 << 10);
}

/// Threads that write the same few keys: the record with the larger LSN is the one that stays.
#[test]
fn of_two_writes_of_a_key_the_later_record_stays() {
    const KEYS: u32 = 8;
    let world = World::new(2 << 10);
    thread::scope(|scope| {
        for writer in 0..4_u64 {
            let world = &world;
            scope.spawn(move || {
                let mut random = Random(writer);
                for _ in 0..5_000 {
                    let key = Shape::Short.key(random.below(KEYS.into()) as u32);
                    if random.below(4) == 0 {
                        // So that reservations of the log and changes of the leaf come in different orders.
                        thread::yield_now();
                    }
                    match random.below(4) {
                        0 => world.tree.delete(&key).map(drop),
                        _ => world.tree.put(&key, &writer.to_le_bytes()).map(drop),
                    }
                    .expect("a write");
                }
            });
        }
    });
    check::check(&world.tree);
    // The newest record of each key in the whole log decides, deletions included.
    let newest = world.log.newest();
    let expected: Vec<_> = newest
        .into_iter()
        .filter_map(|(key, value)| value.map(|value| (key, value)))
        .collect();
    assert_eq!(pairs(&world.tree, Direction::Forward), expected);
}

/// A snapshot is one moment: of two keys that are always written one after the other, the second never has more.
#[test]
fn a_snapshot_beside_writers_is_one_moment() {
    let world = World::new(8 << 10);
    let (first, second) = (Shape::Short.key(1), Shape::Short.key(4000));
    for number in 0..4001 {
        world
            .tree
            .put(&Shape::Short.key(number), &0_u64.to_le_bytes())
            .unwrap();
    }
    let goes_on = AtomicBool::new(true);
    thread::scope(|scope| {
        let (world, goes_on, first, second) = (&world, &goes_on, &first, &second);
        let running = Running(goes_on);
        scope.spawn(move || {
            let mut round = 0_u64;
            while goes_on.load(SeqCst) {
                round += 1;
                world.tree.put(first, &round.to_le_bytes()).expect("a put");
                world.tree.put(second, &round.to_le_bytes()).expect("a put");
            }
        });
        for _ in 0..300 {
            let snapshot = world.tree.freeze();
            let number = |key: &[u8]| {
                let value = snapshot.get(key).unwrap().unwrap();
                u64::from_le_bytes(value.try_into().unwrap())
            };
            let (a, b) = (number(first), number(second));
            assert!(a == b || a == b + 1, "{a} and {b}");
            world.publish();
            assert_eq!((number(first), number(second)), (a, b));
        }
        drop(running);
    });
    check::check(&world.tree);
}
