//! What calls told, and whether one order of them explains it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use parking_lot::Mutex;

/// All calls. Its own locks are no points where others go on.
#[derive(Default)]
pub(super) struct History {
    clock: AtomicU64,
    calls: Mutex<Vec<Call>>,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    key: u32,
    begun: u64,
    ended: u64,
    outcome: Outcome,
}

/// What a call of one key told.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Put { value: u64, existed: bool },
    Delete { existed: bool },
    Get(Option<u64>),
}

impl Outcome {
    /// What is of the key after it, if it can tell this of a key that has `before`.
    fn apply(self, before: Option<u64>) -> Option<Option<u64>> {
        let (is_told, after) = match self {
            Self::Put { value, existed } => (existed == before.is_some(), Some(value)),
            Self::Delete { existed } => (existed == before.is_some(), None),
            Self::Get(found) => (found == before, before),
        };
        is_told.then_some(after)
    }
}

impl History {
    /// A moment after all that were told of before.
    pub(super) fn now(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst)
    }

    /// Notes what a call tells.
    pub(super) fn call(&self, key: u32, call: impl FnOnce() -> Outcome) {
        let begun = self.now();
        let outcome = call();
        let ended = self.now();
        self.add(key, (begun, ended), outcome);
    }

    /// Notes what was true of a key at some moment between two.
    pub(super) fn add(&self, key: u32, (begun, ended): (u64, u64), outcome: Outcome) {
        self.calls.lock().push(Call {
            key,
            begun,
            ended,
            outcome,
        });
    }

    /// The calls of each key have an order in which none comes before one that had ended when it began, and each tells what is
    /// true after those before it (linearizability: Herlihy and Wing, TOPLAS 1990). No key had a value at the begin.
    pub(super) fn judge(&self) {
        let all = self.calls.lock();
        let keys: HashSet<u32> = all.iter().map(|call| call.key).collect();
        for key in keys {
            let calls = all.iter().filter(|call| call.key == key);
            let mut calls: Vec<Call> = calls.copied().collect();
            calls.sort_unstable_by_key(|call| call.begun);
            assert!(calls.len() <= 64, "a bit for each call");
            let is_ordered = has_order(&calls, 0, None, &mut HashSet::new());
            assert!(is_ordered, "no order of these calls of a key: {calls:#?}");
        }
    }
}

/// Whether the calls that are not among `done` have an order that begins with this value.
fn has_order(
    calls: &[Call],
    done: u64,
    value: Option<u64>,
    tried: &mut HashSet<(u64, Option<u64>)>,
) -> bool {
    let left = || (0..calls.len()).filter(|index| done & (1 << index) == 0);
    let Some(first_end) = left().map(|index| calls[index].ended).min() else {
        return true;
    };
    if !tried.insert((done, value)) {
        return false;
    }
    left().any(|index| {
        let call = calls[index];
        let after = call.outcome.apply(value);
        call.begun < first_end
            && after.is_some_and(|after| has_order(calls, done | (1 << index), after, tried))
    })
}
