//! Trees of few keys under many schedules. `cargo xtask interleavings shuttle`.
//!
//! - `history`: what calls told, and whether an order of them explains it
//! - `writers`: writers of the same leaves, and of the same key
//! - `merges`: leaves that become one, and trees that become lower
//! - `freezes`: ends of epochs, publications, and what readers still reach
//!
//! Leaves have room for 8 entries here. Others go on at every latch, at the gate, at the lock of the pages, at the tail of the
//! log, and before a node is read in its page. A call of the mapping and one of `ArcSwap` is one step: what threads do to each
//! other within the mapping is the matter of its own models, under loom.

mod freezes;
mod history;
mod merges;
mod writers;

use std::sync::Arc;

use kreon_base::Lsn;
use shuttle::thread;

use super::keys::Shape;
use super::{Direction, ScanRange, World, pairs};
use history::{History, Outcome};

/// Memory of the mapping, in KiB: about a hundred frames.
const MEMORY_KIB: usize = 512;

/// A tree whose keys have numbers, and what its calls told.
#[derive(Clone)]
struct Bench(Arc<Parts>);

struct Parts {
    world: World,
    shape: Shape,
    /// Keys have numbers below this.
    keys: u32,
    history: History,
}

impl Bench {
    /// An empty tree for keys with numbers below `keys`.
    fn new(shape: Shape, keys: u32) -> Self {
        Self(Arc::new(Parts {
            world: World::new(MEMORY_KIB),
            shape,
            keys,
            history: History::default(),
        }))
    }

    /// The same with some keys. The value of each is its number.
    fn with(shape: Shape, keys: u32, present: impl IntoIterator<Item = u32>) -> Self {
        let bench = Self::new(shape, keys);
        for number in present {
            bench.put(number, number.into());
        }
        bench
    }

    fn world(&self) -> &World {
        &self.0.world
    }

    fn key(&self, number: u32) -> Vec<u8> {
        self.0.shape.key(number)
    }

    /// A thread with work on the tree.
    fn beside<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        let bench = self.clone();
        thread::spawn(move || work(&bench))
    }

    fn put(&self, number: u32, value: u64) {
        let (key, bytes) = (self.key(number), value.to_le_bytes());
        self.0.history.call(number, || {
            let existed = self.world().tree.put(&key, &bytes).expect("a put");
            Outcome::Put { value, existed }
        });
    }

    fn delete(&self, number: u32) {
        let key = self.key(number);
        self.0.history.call(number, || Outcome::Delete {
            existed: self.world().tree.delete(&key).expect("a deletion"),
        });
    }

    fn get(&self, number: u32) {
        let key = self.key(number);
        self.0.history.call(number, || {
            let found = self.world().tree.get(&key).expect("a get");
            Outcome::Get(found.as_deref().map(value_of))
        });
    }

    /// Scans all pairs. Each key, present or not, was as the scan tells at a moment of its own.
    fn scan(&self, direction: Direction) {
        let begun = self.0.history.now();
        let mut found = pairs(&self.world().tree, direction);
        let ended = self.0.history.now();
        if direction == Direction::Reverse {
            found.reverse();
        }
        assert!(
            found.is_sorted_by(|a, b| a.0 < b.0),
            "a scan is in order, and shows a key once"
        );
        for number in 0..self.0.keys {
            let key = self.key(number);
            let at = found.binary_search_by(|(other, _)| other.cmp(&key));
            let value = at.ok().map(|at| value_of(&found[at].1));
            let outcome = Outcome::Get(value);
            self.0.history.add(number, (begun, ended), outcome);
        }
    }

    /// When all other threads have ended: the tree is whole, all calls have an order, and the log tells the same as the tree.
    fn judge(&self) {
        self.scan(Direction::Forward);
        (0..self.0.keys).for_each(|number| self.get(number));
        self.0.history.judge();
        assert_eq!(self.world().pairs(), self.state_at(self.world().log.tail()));
    }

    /// The pairs that the log tells of before a position.
    fn state_at(&self, end: Lsn) -> Vec<(Vec<u8>, Vec<u8>)> {
        let newest = self.world().log.newest_before(end).into_iter();
        newest
            .filter_map(|(key, value)| value.map(|value| (key, value)))
            .collect()
    }
}

fn value_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("a value of 8 bytes"))
}

/// Waits for threads that all run already: an iterator that begins them would begin each one after the end of the one before.
fn join<R>(threads: impl Into<Vec<thread::JoinHandle<R>>>) {
    for thread in threads.into() {
        thread.join().expect("no panic");
    }
}
