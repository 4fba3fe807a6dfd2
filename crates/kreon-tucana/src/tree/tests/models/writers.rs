//! Writers of the same leaves, and of the same key.

use kreon_sync::explore;

use super::{Bench, Direction, Shape, join};

#[test]
fn model_writers_of_a_leaf_that_splits_lose_nothing() {
    explore("tucana: two writers and a reader, splits", 2000, || {
        let bench = Bench::with(Shape::Short, 32, (0..7).map(|i| i * 4));
        let threads = [
            bench.beside(|bench| {
                bench.put(1, 101);
                bench.put(2, 102);
                bench.put(9, 103);
            }),
            bench.beside(|bench| {
                bench.put(21, 201);
                bench.put(2, 202);
                bench.put(25, 203);
            }),
            bench.beside(|bench| {
                for number in [2, 12, 21, 24] {
                    bench.get(number);
                }
                bench.scan(Direction::Forward);
            }),
        ];
        join(threads);
        assert!(bench.world().tree.stats().splits > 0);
        bench.judge();
    });
}

/// All nodes are pages, and each is to be copied once.
#[test]
fn model_the_first_changes_of_an_epoch_copy_each_node_once() {
    explore(
        "tucana: two writers and a reader, first changes",
        2000,
        || {
            let bench = Bench::with(Shape::Short, 32, (0..11).map(|i| i * 2));
            bench.world().publish();
            let before = bench.world().tree.stats().copies;
            let threads = [
                bench.beside(|bench| {
                    bench.put(0, 101);
                    bench.put(1, 102);
                }),
                bench.beside(|bench| {
                    bench.put(0, 201);
                    bench.put(20, 202);
                }),
                bench.beside(|bench| {
                    for number in [0, 20, 1] {
                        bench.get(number);
                    }
                    bench.scan(Direction::Reverse);
                }),
            ];
            join(threads);
            // The root and two leaves.
            assert_eq!(bench.world().tree.stats().copies - before, 3);
            bench.judge();
            bench.pages_are_those_of_the_tree();
        },
    );
}

/// Long keys: four children fill an index node. The tree becomes three levels high.
#[test]
fn model_index_nodes_split_below_writers_and_a_reader() {
    explore(
        "tucana: two writers and a reader, index nodes",
        1000,
        || {
            let bench = Bench::with(Shape::LongPrefix, 64, (0..19).map(|i| i * 2));
            let threads = [
                bench.beside(|bench| (0..3).for_each(|i| bench.put(38 + 2 * i, 100))),
                bench.beside(|bench| (0..4).for_each(|i| bench.put(1 + 2 * i, 200))),
                bench.beside(|bench| {
                    for number in [0, 16, 36] {
                        bench.get(number);
                    }
                    bench.scan(Direction::Forward);
                }),
            ];
            join(threads);
            bench.judge();
        },
    );
}

#[test]
fn model_of_two_writers_of_a_key_the_last_one_in_the_log_wins() {
    explore("tucana: two writers and a reader of a key", 4000, || {
        let bench = Bench::with(Shape::Short, 4, [0, 1]);
        let threads = [
            bench.beside(|bench| {
                bench.delete(1);
                bench.put(1, 101);
            }),
            bench.beside(|bench| {
                // Older than the deletion of the key, it must not bring it back.
                bench.put(0, 202);
                // Nothing follows that would hide which of the two stayed.
                bench.put(1, 201);
            }),
            bench.beside(|bench| {
                bench.delete(0);
                bench.get(1);
                bench.get(1);
                bench.get(0);
            }),
        ];
        join(threads);
        bench.judge();
    });
}
