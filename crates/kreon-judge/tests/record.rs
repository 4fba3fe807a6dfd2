//! What clients of a cluster report: calls that succeed, fail, or end in doubt.

use kreon_judge::{Outcome, Recorder, Register, Seen, State, Verdict, Version, judge};

const A: Register = 1;
const B: Register = 2;

/// A put of a new version with this outcome.
fn put(recorder: &Recorder, register: Register, outcome: Outcome) -> Version {
    let version = recorder.next_version();
    let begun = recorder.begin(0, "put", vec![(register, Some(version))]);
    recorder.end(begun, outcome);
    version
}

fn get(recorder: &Recorder, register: Register, seen: Seen) {
    let begun = recorder.begin(1, "get", Vec::new());
    recorder.end(begun, Outcome::Done(vec![(register, seen)]));
}

fn done() -> Outcome {
    Outcome::Done(Vec::new())
}

fn is_right(recorder: &Recorder) -> bool {
    let verdict = judge(&recorder.history());
    assert_ne!(verdict, Verdict::Undecided);
    verdict == Verdict::Linearizable
}

#[test]
fn a_write_in_doubt_may_be_there_at_once_later_or_never_but_not_go_again() {
    let recorder = Recorder::default();
    let old = put(&recorder, A, done());
    let doubtful = put(&recorder, A, Outcome::Unknown);
    get(&recorder, A, Seen::Version(old));
    assert!(is_right(&recorder), "not yet, or never");
    get(&recorder, A, Seen::Version(doubtful));
    assert!(is_right(&recorder), "later");
    get(&recorder, A, Seen::Version(old));
    assert!(!is_right(&recorder), "and gone again");
}

#[test]
fn a_write_that_failed_was_seen_by_nobody() {
    let recorder = Recorder::default();
    let old = put(&recorder, A, done());
    let failed = put(&recorder, A, Outcome::Failed);
    get(&recorder, A, Seen::Version(old));
    assert!(is_right(&recorder));
    get(&recorder, A, Seen::Version(failed));
    assert!(!is_right(&recorder));
}

#[test]
fn a_call_whose_client_ends_is_in_doubt() {
    let recorder = Recorder::default();
    let version = recorder.next_version();
    drop(recorder.begin(0, "put", vec![(A, Some(version))]));
    get(&recorder, A, Seen::Absent);
    get(&recorder, A, Seen::Version(version));
    assert!(is_right(&recorder));
}

#[test]
fn a_batch_in_doubt_is_there_in_whole_or_not_at_all() {
    let recorder = Recorder::default();
    let versions = [recorder.next_version(), recorder.next_version()];
    let writes = vec![(A, Some(versions[0])), (B, Some(versions[1]))];
    let batch = recorder.begin(0, "batch", writes);
    recorder.end(batch, Outcome::Unknown);
    get(&recorder, A, Seen::Version(versions[0]));
    assert!(is_right(&recorder));
    get(&recorder, B, Seen::Absent);
    assert!(!is_right(&recorder));
}

#[test]
fn a_deletion_in_doubt_explains_what_is_absent() {
    let recorder = Recorder::default();
    put(&recorder, A, done());
    let deletion = recorder.begin(0, "delete", vec![(A, None)]);
    recorder.end(deletion, Outcome::Unknown);
    get(&recorder, A, Seen::Absent);
    assert!(is_right(&recorder));
}

#[test]
fn more_calls_in_doubt_than_can_be_under_way_are_judged_if_nobody_saw_them() {
    let recorder = Recorder::default();
    for _ in 0..1000 {
        put(&recorder, A, Outcome::Unknown);
    }
    let last = put(&recorder, A, done());
    get(&recorder, A, Seen::Version(last));
    assert!(is_right(&recorder));
    get(&recorder, A, Seen::Absent);
    assert!(!is_right(&recorder));
}

#[test]
fn a_second_recorder_goes_on_with_versions_of_its_own() {
    let first = Recorder::default();
    let version = put(&first, A, done());
    let second = Recorder::after(State::from([(A, version)]));
    get(&second, A, Seen::Version(version));
    assert!(put(&second, A, done()) > version);
    assert!(is_right(&second));
    get(&second, A, Seen::Version(version));
    assert!(!is_right(&second));
}

#[test]
fn threads_that_keep_the_order_of_one_register_are_found_right() {
    let (recorder, held) = (Recorder::default(), std::sync::Mutex::new(None::<Version>));
    std::thread::scope(|scope| {
        for client in 0..4 {
            let (recorder, held) = (&recorder, &held);
            scope.spawn(move || {
                for number in 0..200 {
                    let version = recorder.next_version();
                    let is_put = (number + client) % 3 == 0;
                    let writes = is_put.then_some((A, Some(version)));
                    let begun = recorder.begin(client, "call", writes.into_iter().collect());
                    let mut register = held.lock().unwrap();
                    let before = *register;
                    if is_put {
                        *register = Some(version);
                    }
                    drop(register);
                    let seen = before.map_or(Seen::Absent, Seen::Version);
                    recorder.end(begun, Outcome::Done(vec![(A, seen)]));
                }
            });
        }
    });
    assert!(is_right(&recorder));
}
