//! Ties of prefixes and of hashes, splits, merges, and the shape that trees get.

use super::keys::{SHAPES, Shape, hash_twins};
use super::{Direction, ScanRange, World, check};

/// Key numbers up to `count` in an order that looks random.
fn shuffled(count: u32) -> impl Iterator<Item = u32> {
    assert!(!count.is_multiple_of(7919));
    (0..count).map(move |i| (u64::from(i) * 7919 % u64::from(count)) as u32)
}

fn filled(shape: Shape, count: u32) -> World {
    let world = World::new(16 << 10);
    for number in shuffled(count) {
        let key = shape.key(number);
        assert!(!world.tree.put(&key, &number.to_le_bytes()).unwrap());
    }
    world
}

#[test]
fn every_shape_of_keys_splits_and_merges_and_is_found() {
    for shape in SHAPES {
        let world = filled(shape, 6000);
        assert!(world.tree.stats().splits > 30, "{shape:?}");
        assert_eq!(world.pairs().len(), 6000, "{shape:?}");
        for number in 0..6000_u32 {
            let found = world.tree.get(&shape.key(number)).unwrap();
            assert_eq!(
                found.as_deref(),
                Some(&number.to_le_bytes()[..]),
                "{shape:?}"
            );
        }
        for number in shuffled(6000).filter(|number| number % 16 > 0) {
            assert!(world.tree.delete(&shape.key(number)).unwrap());
        }
        assert!(world.tree.stats().merges > 15, "{shape:?}");
        assert_eq!(world.pairs().len(), 375, "{shape:?}");
        for number in 0..6000_u32 {
            let found = world.tree.contains(&shape.key(number)).unwrap();
            assert_eq!(found, number % 16 == 0, "{shape:?}");
        }
    }
}

#[test]
fn keys_with_one_hash_and_one_head_are_told_apart_by_their_records() {
    let twins = hash_twins();
    assert!(twins.len() >= 2, "{} pairs", twins.len());
    let world = World::new(1 << 10);
    for [a, b] in &twins {
        assert!(!world.tree.put(a, b"of a").unwrap());
        assert_eq!(world.tree.get(b).unwrap(), None);
        assert!(!world.tree.delete(b).unwrap());
        assert!(!world.tree.put(b, b"of b").unwrap());
    }
    for [a, b] in &twins {
        assert_eq!(world.tree.get(a).unwrap().as_deref(), Some(&b"of a"[..]));
        assert_eq!(world.tree.get(b).unwrap().as_deref(), Some(&b"of b"[..]));
        assert!(world.tree.delete(a).unwrap());
        assert_eq!(world.tree.get(a).unwrap(), None);
        assert_eq!(world.tree.get(b).unwrap().as_deref(), Some(&b"of b"[..]));
    }
    assert!(world.tree.stats().hash_misses > 0);
    assert_eq!(world.pairs().len(), twins.len());
}

#[test]
fn keys_in_order_fill_their_leaves() {
    let world = World::new(16 << 10);
    for number in 0..20_000 {
        world
            .tree
            .put(&Shape::SharedPrefix.key(number), b"")
            .unwrap();
    }
    let leaves = world.tree.stats().splits;
    assert!(leaves < 20_000 / 203 + 4, "{leaves} splits");
    check::check(&world.tree);
}

#[test]
fn heads_grow_behind_the_common_prefix_so_that_few_searches_read_keys() {
    let world = filled(Shape::SharedPrefix, 20_000);
    let before = world.tree.stats();
    for number in shuffled(20_000) {
        let key = [&Shape::SharedPrefix.key(number)[..], b"+"].concat();
        world.tree.put(&key, b"").unwrap();
    }
    let after = world.tree.stats();
    let (searches, ties) = (after.searches - before.searches, after.ties - before.ties);
    // Those in a full leaf are made again.
    assert!((20_000..21_000).contains(&searches), "{searches}");
    // The first and the last leaf have no common prefix, as their ranges have no end.
    assert!(ties < 800, "{ties} of {searches} searches read keys");
}

#[test]
fn an_emptied_tree_is_one_leaf_again() {
    let world = filled(Shape::LongPrefix, 4000);
    let level = |world: &World| {
        let (_, generation) = world.tree.inside();
        generation.open_root().expect("a changed root").read().level
    };
    assert!(level(&world) >= 3, "{}", level(&world));
    for number in shuffled(4000) {
        assert!(world.tree.delete(&Shape::LongPrefix.key(number)).unwrap());
    }
    assert_eq!((level(&world), world.pairs().len()), (0, 0));
    let nodes = world.mapping.stats().frames_open;
    assert_eq!(nodes, 1, "frames of nodes that are gone are free");
}

#[test]
fn a_scan_shows_no_key_twice_when_leaves_are_merged_behind_it() {
    for direction in [Direction::Forward, Direction::Reverse] {
        let world = filled(Shape::Ties, 1000);
        let mut scan = world.tree.scan(ScanRange::default(), direction);
        let mut keys: Vec<Vec<u8>> = Vec::new();
        // Half of the keys: the next leaf is somewhere in the middle.
        keys.extend(scan.by_ref().take(500).map(|pair| pair.unwrap().0));
        let before = world.tree.stats().merges;
        for number in shuffled(1000).filter(|number| number % 20 > 0) {
            world.tree.delete(&Shape::Ties.key(number)).unwrap();
        }
        assert!(world.tree.stats().merges > before);
        keys.extend(scan.map(|pair| pair.unwrap().0));
        if direction == Direction::Reverse {
            keys.reverse();
        }
        assert!(keys.is_sorted_by(|a, b| a < b), "{direction:?}");
    }
}
