//! Commits of serializable transactions beside each other, a plain put, and a spill.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kreon_base::ErrorKind;
use kreon_log::Own;
use kreon_sync::explore;

use super::Bench;
use crate::options::Durability;
use crate::read::prefix_bounds;
use crate::transaction::{Isolation, TRANSACTION_BYTES_MAX, Transaction};

type State = BTreeMap<u8, u8>;

/// What took effect: the part of the state that it saw, and what it wrote.
#[derive(Clone, Debug)]
struct Effect {
    is_read: fn(u8) -> bool,
    seen: State,
    write: (u8, u8),
}

impl Effect {
    /// A put of somebody who has read nothing.
    fn put(key: u8, value: u8) -> Self {
        Self {
            is_read: |_| false,
            seen: State::new(),
            write: (key, value),
        }
    }

    /// The state behind it, if it can come next.
    fn after(&self, state: &State) -> Option<State> {
        let seen = state.iter().filter(|(key, _)| (self.is_read)(**key));
        if !seen.eq(&self.seen) {
            return None;
        }
        let mut after = state.clone();
        after.insert(self.write.0, self.write.1);
        Some(after)
    }
}

/// Whether some order of all `effects` leads from `state` to `end`.
fn is_serial(state: &State, effects: &[Effect], end: &State) -> bool {
    if effects.is_empty() {
        return state == end;
    }
    (0..effects.len()).any(|at| {
        let mut rest = effects.to_vec();
        let after = rest.remove(at).after(state);
        after.is_some_and(|after| is_serial(&after, &rest, end))
    })
}

fn begin(bench: &Bench) -> Transaction {
    bench
        .engine
        .transaction(Isolation::Serializable, TRANSACTION_BYTES_MAX)
}

/// Commits; nothing if others came first.
fn commit(bench: &Bench, mut transaction: Transaction, effect: Effect) -> Option<Effect> {
    let (key, value) = effect.write;
    let put = transaction.put(&bench.region, &[key], &[value]);
    put.expect("there is room");
    match bench.engine.commit(transaction, Durability::Buffered) {
        Ok(()) => Some(effect),
        Err(error) if error.kind() == ErrorKind::Conflict => None,
        Err(error) => panic!("{error}"),
    }
}

/// Sets a key to the sum of the keys that `is_read` holds for.
fn sum_of_some(bench: &Bench, key: u8, is_read: fn(u8) -> bool) -> Option<Effect> {
    let mut transaction = begin(bench);
    let mut seen = State::new();
    for read in (b'a'..=b'c').filter(|key| is_read(*key)) {
        let value = transaction.get(&bench.region, &[read], Own);
        let value = value.expect("a read of memory");
        seen.extend(value.map(|value| (read, value[0])));
    }
    let effect = Effect {
        is_read,
        write: (key, seen.values().sum()),
        seen,
    };
    commit(bench, transaction, effect)
}

/// Sets `c` to the sum of all there is.
fn sum_of_all(bench: &Bench) -> Option<Effect> {
    let mut transaction = begin(bench);
    let mut seen = State::new();
    let mut scan = transaction
        .scan(&bench.region, prefix_bounds(b""))
        .expect("there is memory");
    while let Some((key, value)) = scan.next(true).expect("a read of memory") {
        seen.insert(key[0], value[0]);
    }
    drop(scan);
    let effect = Effect {
        is_read: |_| true,
        write: (b'c', seen.values().sum()),
        seen,
    };
    commit(bench, transaction, effect)
}

/// How many transactions committed, and how many did not.
#[derive(Default)]
struct Tally {
    committed: AtomicU32,
    refused: AtomicU32,
}

impl Tally {
    fn count(&self, outcome: &Option<Effect>) {
        let counter = match outcome {
            Some(_) => &self.committed,
            None => &self.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Two who would skew each other's writes, one in whose range the other's key is new, and a put; maybe a spill. Who sets
/// `b` reads `c`, so that a scan that is not checked leaves no order either.
fn run(tally: &Tally, has_spill: bool) {
    let bench = Bench::open();
    bench.write(&[b"a"], 1);
    bench.write(&[b"b"], 2);
    let begun = State::from([(b'a', 1), (b'b', 2)]);
    let spiller =
        has_spill.then(|| bench.beside(|bench| bench.engine.checkpoint().expect("there is room")));
    let transactions = [
        bench.beside(|bench| sum_of_some(bench, b'a', |key| key != b'c')),
        bench.beside(|bench| sum_of_some(bench, b'b', |_| true)),
        bench.beside(sum_of_all),
    ];
    let put = bench.beside(|bench| bench.write(&[b"b"], 50));
    let mut effects = vec![Effect::put(b'b', 50)];
    for transaction in transactions {
        let outcome = transaction.join().unwrap();
        tally.count(&outcome);
        effects.extend(outcome);
    }
    put.join().unwrap();
    if let Some(spiller) = spiller {
        spiller.join().unwrap();
    }
    let end: State = [b'a', b'b', b'c']
        .into_iter()
        .filter_map(|key| Some((key, bench.get(&[key])?)))
        .collect();
    let is_explained = is_serial(&begun, &effects, &end);
    assert!(is_explained, "no order of {effects:?} ends with {end:?}");
}

fn explore_commits(name: &str, schedules: usize, has_spill: bool) {
    let tally = Arc::new(Tally::default());
    let counted = Arc::clone(&tally);
    explore(name, schedules, move || run(&counted, has_spill));
    let [committed, refused] =
        [&tally.committed, &tally.refused].map(|count| count.load(Ordering::Relaxed));
    println!("  {committed} commits, {refused} conflicts");
    assert!(committed > 0 && refused > 0);
}

#[test]
fn model_commits_beside_a_put_have_an_order() {
    explore_commits("commits: three transactions, a put", 2000, false);
}

#[test]
fn model_commits_beside_a_put_and_a_spill_have_an_order() {
    explore_commits(
        "commits: three transactions, a put, a checkpoint",
        1000,
        true,
    );
}
