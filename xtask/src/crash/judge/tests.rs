//! The judge must see each kind of loss, or the loop finds nothing.

use super::*;

const SEED: u64 = 11;
const ROUND: u32 = 2;

/// Threads take turns; the state after `survived` operations of each thread, and all that was
/// acknowledged: `acknowledged` operations of each thread. `sync`: which of them as `Sync`.
struct Case {
    before: State,
    acks: Vec<Ack>,
    seen: State,
}

fn case(acknowledged: u32, survived: [u32; 4], sync: impl Fn(u8, u32) -> bool) -> Case {
    let mut before = State::default();
    for thread in 0..THREADS {
        for sequence in 0..50 {
            let operation = operation(SEED, ROUND - 1, thread, sequence);
            operation.changes.iter().for_each(|c| before.apply(*c));
        }
    }
    let mut seen = before.clone();
    let mut acks = Vec::new();
    let mut number = 0;
    for sequence in 0..acknowledged.max(*survived.iter().max().unwrap()) {
        for thread in 0..THREADS {
            let operation = operation(SEED, ROUND, thread, sequence);
            number += u64::from(operation.counted);
            if sequence < acknowledged {
                acks.push(Ack {
                    thread,
                    sequence,
                    sync: sync(thread, sequence),
                    number: number * u64::from(operation.counted),
                });
            }
            if sequence < survived[usize::from(thread)] {
                operation.changes.iter().for_each(|c| seen.apply(*c));
                if operation.counted {
                    let counter = Counter {
                        number,
                        round: ROUND,
                        thread,
                        sequence,
                    };
                    seen.counters = [Some(counter); 2];
                }
            }
        }
    }
    Case { before, acks, seen }
}

impl Case {
    fn judge(&self) -> Result<Verdict, String> {
        let round = Round {
            seed: SEED,
            number: ROUND,
            before: &self.before,
            acks: &self.acks,
        };
        judge(&round, &self.seen)
    }

    fn fault(&self) -> String {
        self.judge().unwrap_err()
    }
}

/// A slot that the last of `survived` operations of thread 0 put, and that operation.
fn last_put(survived: u32) -> (Slot, Version) {
    let operation = operation(SEED, ROUND, 0, survived - 1);
    match operation.changes[..] {
        [.., Change::Put(slot, version)] => (slot, version),
        _ => panic!("choose another length"),
    }
}

#[test]
fn all_that_was_acknowledged_may_be_there() {
    let verdict = case(100, [100; 4], |_, _| true).judge().unwrap();
    assert_eq!((verdict.acknowledged, verdict.synced), (400, 400));
    assert_eq!(verdict.gone, 0);
}

#[test]
fn one_operation_more_than_acknowledged_may_be_there() {
    case(100, [101, 100, 100, 100], |_, _| true)
        .judge()
        .unwrap();
}

#[test]
fn two_operations_more_than_acknowledged_cannot_be() {
    // Of two operations in flight at least one would have to be invented.
    assert!(
        case(100, [102, 100, 100, 100], |_, _| true)
            .judge()
            .is_err()
    );
}

#[test]
fn a_buffered_suffix_may_be_gone() {
    let verdict = case(100, [90; 4], |_, n| n < 90).judge().unwrap();
    assert_eq!(verdict.gone, 40);
}

#[test]
fn a_sync_operation_that_is_gone_is_lost() {
    let fault = case(100, [90; 4], |thread, n| thread == 2 && n == 90).fault();
    assert!(
        fault.contains("thread 2") && fault.contains("Sync"),
        "{fault}"
    );
}

#[test]
fn a_thread_that_lost_more_than_a_later_survivor_of_another_breaks_the_order() {
    // Threads take turns, so a lag of one is in flight and a lag of three is not.
    case(100, [90, 90, 89, 89], |_, _| false).judge().unwrap();
    let fault = case(100, [90, 90, 87, 90], |_, _| false).fault();
    assert!(
        fault.contains("thread 2 was acknowledged before"),
        "{fault}"
    );
}

#[test]
fn a_key_that_went_back_is_seen() {
    let mut case = case(100, [90; 4], |_, _| false);
    let (slot, _) = last_put(30);
    match case.before.slots.get(&slot) {
        Some(old) => case.seen.slots.insert(slot, *old),
        None => case.seen.slots.remove(&slot),
    };
    let fault = case.fault();
    assert!(fault.contains("no prefix of thread 0"), "{fault}");
}

#[test]
fn a_deleted_key_that_came_back_is_seen() {
    let mut case = case(100, [90; 4], |_, _| false);
    let absent = |slot: &Slot| slot.thread == 1 && !case.seen.slots.contains_key(slot);
    let slot = Slot::all().find(absent).unwrap();
    let version = Version {
        round: 0,
        sequence: 0,
        part: 0,
    };
    case.seen.slots.insert(slot, version);
    assert!(case.fault().contains("no prefix of thread 1"));
}

#[test]
fn half_a_batch_is_seen() {
    let batch = (60..)
        .find(|n| {
            let operation = operation(SEED, ROUND, 0, *n);
            let slots = operation.changes.iter().map(|change| match change {
                Change::Put(slot, _) | Change::Delete(slot) => slot,
            });
            let first_is_put = matches!(operation.changes[..], [Change::Put(..), _, ..]);
            let distinct = slots.clone().collect::<std::collections::BTreeSet<_>>();
            operation.batch && !operation.counted && first_is_put && distinct.len() == slots.len()
        })
        .unwrap();
    let mut case = case(batch, [batch; 4], |_, _| false);
    case.seen.apply(operation(SEED, ROUND, 0, batch).changes[0]);
    assert!(case.fault().contains("no prefix of thread 0"));
}

#[test]
fn a_counter_that_differs_between_regions_is_torn() {
    let mut case = case(100, [90; 4], |_, _| false);
    case.seen.counters[1] = None;
    assert!(case.fault().starts_with("TORN"));
}

#[test]
fn a_counter_that_went_back_is_lost() {
    let mut case = case(100, [90; 4], |_, _| false);
    let mut older = case.seen.counters[0].unwrap();
    older.number -= 1;
    case.seen.counters = [Some(older); 2];
    assert!(case.fault().starts_with("TORN"), "{}", case.fault());
    case.before.counters = [Some(older); 2];
    case.seen.counters = [None; 2];
    assert!(case.fault().starts_with("LOST"), "{}", case.fault());
}
