//! The judge of histories, judged: bad histories by hand, good ones from a generator, and both against
//! a brute-force search.

#[path = "history/oracle.rs"]
mod oracle;

use kreon_judge::{Call, History, Register, Seen, Verdict, Version, judge};
use oracle::{any_history, has_an_order, moved, small_history};
use proptest::prelude::*;

const A: Register = 1;
const B: Register = 2;

fn write(at: (u64, u64), writes: &[(Register, Option<Version>)]) -> Call {
    let writes = writes.to_vec();
    Call {
        writes,
        ..Call::read("write", at.0, at.1)
    }
}

fn put(at: (u64, u64), register: Register, version: Version) -> Call {
    write(at, &[(register, Some(version))])
}

fn delete(at: (u64, u64), register: Register) -> Call {
    write(at, &[(register, None)])
}

fn read(at: (u64, u64), reads: &[(Register, Seen)]) -> Call {
    let reads = reads.to_vec();
    Call {
        reads,
        ..Call::read("read", at.0, at.1)
    }
}

fn get(at: (u64, u64), register: Register, version: Version) -> Call {
    read(at, &[(register, Seen::Version(version))])
}

fn miss(at: (u64, u64), register: Register) -> Call {
    read(at, &[(register, Seen::Absent)])
}

fn durable(call: Call) -> Call {
    Call {
        is_durable: true,
        ..call
    }
}

fn unfinished(call: Call) -> Call {
    Call {
        returned: None,
        ..call
    }
}

fn of(calls: Vec<Call>) -> History {
    History {
        calls,
        ..History::default()
    }
}

fn recovered(calls: Vec<Call>, state: &[(Register, Version)]) -> History {
    History {
        recovered: Some(state.iter().copied().collect()),
        ..of(calls)
    }
}

#[track_caller]
fn accepts(history: &History) {
    assert_eq!(judge(history), Verdict::Linearizable);
    assert!(has_an_order(history));
}

#[track_caller]
fn rejects(history: &History) {
    assert!(matches!(judge(history), Verdict::Wrong(_)), "accepted");
    assert!(!has_an_order(history));
}

#[test]
fn a_stale_read_is_rejected() {
    let base = vec![put((1, 2), A, 10), put((3, 4), A, 11)];
    rejects(&of([base.clone(), vec![get((5, 6), A, 10)]].concat()));
    accepts(&of([base.clone(), vec![get((5, 6), A, 11)]].concat()));
    // Beside the second write either is right, but never back again.
    let beside = vec![put((1, 2), A, 10), put((3, 10), A, 11)];
    let (old, new) = (get((4, 5), A, 10), get((4, 5), A, 11));
    accepts(&of([beside.clone(), vec![old, get((6, 7), A, 11)]].concat()));
    rejects(&of([beside, vec![new, get((6, 7), A, 10)]].concat()));
}

#[test]
fn a_lost_write_is_rejected() {
    rejects(&of(vec![put((1, 2), A, 10), miss((3, 4), A)]));
    // Of two at the same time one is lost for good, and it does not come back.
    let both = vec![put((1, 4), A, 10), put((2, 3), A, 11)];
    accepts(&of([both.clone(), vec![get((5, 6), A, 10)]].concat()));
    accepts(&of([both.clone(), vec![get((5, 6), A, 11)]].concat()));
    let seen_both = vec![get((5, 6), A, 10), get((7, 8), A, 11)];
    rejects(&of([both, seen_both].concat()));
}

#[test]
fn a_batch_seen_in_part_is_rejected() {
    let batch = || write((3, 8), &[(A, Some(11)), (B, Some(21))]);
    let base = || vec![put((1, 2), A, 10), put((1, 2), B, 20), batch()];
    let snapshot = |a, b| {
        vec![read(
            (4, 5),
            &[(A, Seen::Version(a)), (B, Seen::Version(b))],
        )]
    };
    accepts(&of([base(), snapshot(10, 20)].concat()));
    accepts(&of([base(), snapshot(11, 21)].concat()));
    rejects(&of([base(), snapshot(11, 20)].concat()));
    rejects(&of([base(), snapshot(10, 21)].concat()));
    // One get after the other: what was seen once must be there in whole.
    rejects(&of(
        [base(), vec![get((4, 5), B, 21), get((6, 7), A, 10)]].concat()
    ));
    accepts(&of(
        [base(), vec![get((4, 5), B, 20), get((6, 7), A, 11)]].concat()
    ));
}

#[test]
fn a_value_within_a_batch_that_was_replaced_is_seen_by_nobody() {
    let batch = write((1, 4), &[(A, Some(10)), (A, Some(11))]);
    rejects(&of(vec![batch.clone(), get((2, 3), A, 10)]));
    accepts(&of(vec![batch, get((2, 3), A, 11)]));
}

#[test]
fn a_snapshot_that_moves_is_rejected() {
    // Reads through a snapshot happen later, but at the moment of its opening.
    let base = vec![
        put((1, 2), A, 10),
        put((1, 2), B, 20),
        put((5, 6), A, 11),
        put((7, 8), B, 21),
    ];
    let snapshot = |a, b| {
        vec![read(
            (3, 4),
            &[(A, Seen::Version(a)), (B, Seen::Version(b))],
        )]
    };
    accepts(&of([base.clone(), snapshot(10, 20)].concat()));
    rejects(&of([base.clone(), snapshot(11, 20)].concat()));
    rejects(&of([base, snapshot(10, 21)].concat()));
}

#[test]
fn snapshots_that_go_back_are_rejected() {
    let write = put((1, 20), A, 10);
    let (seen, not_seen) = (get((2, 3), A, 10), miss((4, 5), A));
    rejects(&of(vec![write.clone(), seen, not_seen]));
    // Two snapshots that see two writes in different orders.
    let writes = [put((1, 20), A, 10), put((1, 20), B, 20)];
    let first = read((2, 9), &[(A, Seen::Version(10)), (B, Seen::Absent)]);
    let second = read((2, 9), &[(A, Seen::Absent), (B, Seen::Version(20))]);
    rejects(&of([writes.to_vec(), vec![first, second]].concat()));
}

#[test]
fn a_value_that_nobody_wrote_is_rejected() {
    rejects(&of(vec![get((1, 2), A, 10)]));
    rejects(&of(vec![put((1, 2), B, 10), get((3, 4), A, 10)]));
    rejects(&of(vec![get((1, 2), A, 10), put((3, 4), A, 10)]));
}

#[test]
fn a_deleted_value_that_comes_back_is_rejected() {
    let base = vec![put((1, 2), A, 10), delete((3, 4), A)];
    rejects(&of([base.clone(), vec![get((5, 6), A, 10)]].concat()));
    let present = read((5, 6), &[(A, Seen::Present)]);
    rejects(&of([base.clone(), vec![present]].concat()));
    accepts(&of([base, vec![miss((5, 6), A)]].concat()));
}

#[test]
fn a_write_to_a_region_that_is_gone_is_rejected() {
    // B is the mark of a dropped region.
    let into = |at| Call {
        reads: vec![(B, Seen::Absent)],
        ..put(at, A, 10)
    };
    accepts(&of(vec![put((1, 4), B, 1), into((2, 3))]));
    rejects(&of(vec![put((1, 2), B, 1), into((3, 4))]));
}

#[test]
fn a_recovery_that_lost_a_durable_write_is_rejected() {
    let calls = || {
        vec![
            put((1, 2), A, 10),
            durable(put((3, 4), B, 20)),
            put((5, 6), A, 11),
            unfinished(put((7, 8), B, 21)),
        ]
    };
    accepts(&recovered(calls(), &[(A, 10), (B, 20)]));
    accepts(&recovered(calls(), &[(A, 11), (B, 20)]));
    accepts(&recovered(calls(), &[(A, 11), (B, 21)]));
    rejects(&recovered(calls(), &[(A, 10)]));
    rejects(&recovered(calls(), &[(B, 20)]));
}

#[test]
fn a_recovery_that_kept_a_later_write_and_lost_an_earlier_one_is_rejected() {
    let calls = || vec![put((1, 2), A, 10), put((3, 4), B, 20)];
    accepts(&recovered(calls(), &[]));
    accepts(&recovered(calls(), &[(A, 10)]));
    rejects(&recovered(calls(), &[(B, 20)]));
    let batch = vec![write((1, 2), &[(A, Some(10)), (B, Some(20))])];
    rejects(&recovered(batch, &[(A, 10)]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn small_histories_are_judged_as_a_brute_force_search_does(
        history in small_history(),
        changes in prop::collection::vec(any::<[u8; 4]>(), 0..3),
    ) {
        let mut history = history;
        for change in changes {
            history = moved(history, change);
        }
        let verdict = judge(&history);
        prop_assert!(verdict != Verdict::Undecided);
        prop_assert_eq!(
            verdict == Verdict::Linearizable,
            has_an_order(&history),
            "{:?}: {:#?}", judge(&history), history
        );
        let mut shorter = history.clone();
        shorter.forget_unseen();
        let is_right = |history: &History| judge(history) == Verdict::Linearizable;
        prop_assert_eq!(is_right(&shorter), is_right(&history), "{:#?}", history);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn long_histories_with_an_order_are_accepted(history in any_history(400, 8, 9)) {
        prop_assert_eq!(judge(&history), Verdict::Linearizable);
    }
}
