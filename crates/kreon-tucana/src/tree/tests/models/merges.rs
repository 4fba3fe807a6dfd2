//! Leaves that become one, and trees that become lower.

use kreon_sync::explore;

use super::{Bench, Direction, Shape, join};

#[test]
fn model_a_merge_hides_no_key_and_shows_none_twice() {
    explore("tucana: a merge, a writer, a get, two scans", 2000, || {
        let bench = Bench::with(Shape::Short, 40, (0..17).map(|i| i * 2));
        // Of three leaves, two, three and one keys are left.
        (2..8).for_each(|i| bench.delete(i * 2));
        (11..16).for_each(|i| bench.delete(i * 2));
        let threads = [
            bench.beside(|bench| {
                // The last leaf is empty. What it became knows that the key was deleted, or an older put of it would come back.
                bench.delete(32);
                // The first one is small now, and has room in the second one, unless the writer was there.
                bench.delete(2);
                bench.delete(18);
            }),
            bench.beside(|bench| {
                bench.put(32, 103);
                bench.put(9, 101);
                bench.put(17, 102);
            }),
            bench.beside(|bench| {
                bench.get(16);
                bench.get(0);
                bench.scan(Direction::Forward);
            }),
            bench.beside(|bench| bench.scan(Direction::Reverse)),
        ];
        join(threads);
        assert!(bench.world().tree.stats().merges > 0);
        bench.judge();
        bench.pages_are_those_of_the_tree();
    });
}

#[test]
fn model_a_tree_becomes_lower_and_higher_beside_readers() {
    explore("tucana: two who delete, one who inserts", 2000, || {
        let bench = Bench::with(Shape::Short, 16, 0..9);
        bench.world().publish();
        let threads = [
            bench.beside(|bench| (0..4).for_each(|number| bench.delete(number))),
            bench.beside(|bench| (5..8).for_each(|number| bench.delete(number))),
            bench.beside(|bench| (10..16).for_each(|number| bench.put(number, 100))),
            bench.beside(|bench| {
                bench.get(4);
                bench.scan(Direction::Forward);
                bench.get(8);
            }),
        ];
        join(threads);
        bench.judge();
        bench.pages_are_those_of_the_tree();
    });
}
