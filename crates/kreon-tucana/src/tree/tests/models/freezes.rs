//! Ends of epochs, publications, and what readers still reach.

use std::collections::BTreeSet;

use kreon_base::{Epoch, PageNo};
use kreon_sync::explore;

use super::super::{PAGES, home, mapping};
use super::{Bench, Direction, ScanRange, Shape, join, pairs};
use crate::log::MemoryLog;
use crate::tree::{Snapshot, Tree};

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn pairs_of(snapshot: &Snapshot<'_, MemoryLog>, direction: Direction) -> Pairs {
    let all = snapshot.scan(ScanRange::default(), direction);
    let mut all: Pairs = all.map(|pair| pair.expect("a pair")).collect();
    if direction == Direction::Reverse {
        all.reverse();
    }
    all
}

impl Bench {
    /// Ends the epoch, makes a publication of it, and looks at the snapshot all the while.
    fn freeze_and_publish(&self) {
        let tree = &self.world().tree;
        let (snapshot, end) = tree.freeze_with(|| self.world().log.tail());
        let expected = self.state_at(end);
        assert_eq!(pairs_of(&snapshot, Direction::Forward), expected);
        let publication = tree.publish_frozen().expect("a publication");
        assert_eq!(pairs_of(&snapshot, Direction::Reverse), expected);
        let Some(publication) = publication else {
            // Another thread has published it.
            return;
        };
        tree.committed(&publication);
        assert_eq!(pairs_of(&snapshot, Direction::Forward), expected);
        snapshot.verify().expect("a whole tree");
        if publication.epoch == snapshot.epoch() {
            self.pages_hold(&publication.root, &expected);
        }
    }

    /// Another mapping of the same device finds these pairs.
    fn pages_hold(&self, root: &crate::tree::TreeRoot, expected: &Pairs) {
        let world = self.world();
        let again = mapping(&world.device, super::MEMORY_KIB);
        let home = home(&again, &world.log, &world.pages);
        let tree = Tree::open(home, *root, Epoch(1000)).expect("a tree");
        assert_eq!(&pairs(&tree, Direction::Forward), expected);
    }

    /// When all other threads have ended: each page is one of the tree, or free.
    pub(super) fn pages_are_those_of_the_tree(&self) {
        let world = self.world();
        world.publish();
        // Now nothing of the epochs before is held any more.
        world.publish();
        let snapshot = world.tree.freeze();
        let pages = snapshot.verify().expect("a whole tree").pages;
        let own: BTreeSet<PageNo> = pages.iter().copied().collect();
        assert_eq!(own.len(), pages.len(), "a page is of two nodes");
        assert_eq!(PAGES - 1 - world.pages.free(), pages.len() as u64);
    }
}

#[test]
fn model_a_snapshot_is_what_the_log_tells_up_to_its_moment() {
    explore("tucana: two writers, two freezes", 2000, || {
        let bench = Bench::with(Shape::Short, 32, (0..7).map(|i| i * 4));
        let threads = [
            bench.beside(|bench| {
                for (i, number) in [0, 24, 1, 2].into_iter().enumerate() {
                    bench.put(number, 100 + i as u64);
                }
            }),
            bench.beside(|bench| {
                bench.delete(4);
                bench.put(24, 201);
                bench.put(21, 202);
            }),
            bench.beside(|bench| {
                bench.freeze_and_publish();
                bench.freeze_and_publish();
            }),
        ];
        join(threads);
        bench.judge();
        bench.pages_are_those_of_the_tree();
    });
}

#[test]
fn model_two_threads_that_freeze_and_publish_disturb_nobody() {
    explore("tucana: two that publish, a writer, a reader", 1000, || {
        let bench = Bench::with(Shape::Short, 32, (0..9).map(|i| i * 2));
        let threads = [
            bench.beside(Bench::freeze_and_publish),
            bench.beside(Bench::freeze_and_publish),
            bench.beside(|bench| {
                bench.put(0, 101);
                bench.put(16, 102);
                bench.delete(8);
            }),
            bench.beside(|bench| {
                bench.get(0);
                bench.get(16);
                bench.scan(Direction::Forward);
            }),
        ];
        join(threads);
        bench.judge();
        bench.pages_are_those_of_the_tree();
    });
}

/// Pages that are given back are taken again at once: whoever still reads them would see another node.
#[test]
fn model_no_page_is_used_again_under_its_readers() {
    explore(
        "tucana: readers beside pages that are given back",
        2000,
        || {
            let bench = Bench::with(Shape::Short, 32, (0..11).map(|i| i * 2));
            bench.world().publish();
            let threads = [
                bench.beside(|bench| {
                    bench.put(0, 101);
                    bench.freeze_and_publish();
                    bench.put(20, 102);
                    bench.freeze_and_publish();
                }),
                bench.beside(|bench| {
                    bench.scan(Direction::Forward);
                    bench.scan(Direction::Reverse);
                }),
                bench.beside(|bench| {
                    for number in [0, 20, 10, 0] {
                        bench.get(number);
                    }
                }),
            ];
            join(threads);
            bench.judge();
            bench.pages_are_those_of_the_tree();
        },
    );
}
