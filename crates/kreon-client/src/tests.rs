//! Where calls go, and how they end.

use kreon_coord::Version;
use kreon_wire::{GroupConfig, GroupId, KeyRange, Member, ProcessId, ServerId, Term};

use crate::call::{Attempt, CallId, Kind};
use crate::event::{Action, Event, Outcome, Reply};
use crate::machine::Client;
use crate::moment::{Moment, Timing};

const CALL: CallId = CallId(7);

fn member(server: u32) -> Member {
    Member {
        server: ServerId(server),
        process: ProcessId([server as u8; 16]),
    }
}

fn map(version: u64, primary: Option<Member>) -> Event {
    let config = GroupConfig {
        group: GroupId(1),
        term: Term(version),
        loss_accepted: false,
        loss_term: Term(0),
        all_needed: false,
        min_in_sync: 1,
        primary,
        in_sync: primary.into_iter().collect(),
        members: vec![ServerId(1), ServerId(2)],
        ranges: vec![KeyRange {
            table: "t".into(),
            start: b"b".to_vec(),
            end: Some(b"x".to_vec()),
        }],
    };
    Event::Map(vec![(Version(version), config)])
}

fn on(client: &mut Client, us: u64, event: Event) -> Vec<Action> {
    let mut out = Vec::new();
    client.on(Moment(us), event, &mut out);
    out
}

fn call(kind: Kind) -> Event {
    Event::Call {
        call: CALL,
        kind,
        table: "t".into(),
        key: b"k".to_vec(),
    }
}

fn sent(attempt: u32, term: u64, to: Member) -> Action {
    Action::Send {
        call: CALL,
        attempt: Attempt(attempt),
        group: GroupId(1),
        term: Term(term),
        to,
    }
}

fn done(outcome: Outcome) -> Vec<Action> {
    vec![Action::Done {
        call: CALL,
        outcome,
    }]
}

fn replied(attempt: u32, reply: Reply) -> Event {
    Event::Replied {
        call: CALL,
        attempt: Attempt(attempt),
        reply,
    }
}

/// A client whose call went to server 1 in term 3.
fn waiting(kind: Kind) -> Client {
    let mut client = Client::new(Timing::default());
    let asked = on(&mut client, 0, call(kind));
    assert_eq!(asked, vec![Action::ReadMap { synced: false }]);
    let routed = on(&mut client, 0, map(3, Some(member(1))));
    assert_eq!(routed, vec![sent(1, 3, member(1))]);
    client
}

#[test]
fn a_call_that_moved_follows_a_map_read_anew() {
    let mut client = waiting(Kind::Write);
    let moved = on(&mut client, 0, replied(1, Reply::Moved(Term(4))));
    assert_eq!(moved, vec![Action::ReadMap { synced: true }]);
    let routed = on(&mut client, 0, map(4, Some(member(2))));
    assert_eq!(routed, vec![sent(2, 4, member(2))]);
    assert_eq!(on(&mut client, 0, replied(1, Reply::Ok)), vec![], "late");
    assert_eq!(on(&mut client, 0, replied(2, Reply::Ok)), done(Outcome::Ok));
}

#[test]
fn an_older_map_changes_nothing() {
    let mut client = waiting(Kind::Read);
    on(&mut client, 0, replied(1, Reply::Moved(Term(4))));
    let routed = on(&mut client, 0, map(2, Some(member(2))));
    assert_eq!(routed, vec![sent(2, 3, member(1))]);
}

#[test]
fn an_unavailable_call_rests_and_is_sent_again() {
    let mut client = waiting(Kind::Write);
    on(&mut client, 0, replied(1, Reply::Unavailable));
    on(&mut client, 0, map(3, Some(member(1))));
    assert_eq!(on(&mut client, 0, replied(2, Reply::Unavailable)), vec![]);
    assert_eq!(on(&mut client, 39_999, Event::Tick), vec![]);
    let looks = on(&mut client, 40_000, Event::Tick);
    assert_eq!(looks, vec![Action::ReadMap { synced: true }]);
    let routed = on(&mut client, 40_000, map(3, Some(member(1))));
    assert_eq!(routed, vec![sent(3, 3, member(1))]);
}

#[test]
fn a_write_that_may_have_landed_is_reported_and_never_sent_again() {
    for lost in [replied(1, Reply::Unknown), Event::Closed(member(1))] {
        let mut client = waiting(Kind::Write);
        assert_eq!(on(&mut client, 0, lost), done(Outcome::Unknown));
        assert_eq!(client.calls(), 0);
    }
    let mut client = waiting(Kind::Write);
    assert_eq!(on(&mut client, 9_999_999, Event::Tick), vec![]);
    let late = on(&mut client, 10_000_000, Event::Tick);
    assert_eq!(late, done(Outcome::Unknown));
}

#[test]
fn a_read_that_nobody_answers_is_sent_again() {
    let mut client = waiting(Kind::Read);
    let looks = on(&mut client, 1_000_000, Event::Tick);
    assert_eq!(looks, vec![Action::ReadMap { synced: true }]);
    let routed = on(&mut client, 1_000_000, map(4, Some(member(2))));
    assert_eq!(routed, vec![sent(2, 4, member(2))]);
}

#[test]
fn a_read_whose_primary_is_replaced_is_sent_to_the_next_one_at_once() {
    let mut client = waiting(Kind::Read);
    assert_eq!(on(&mut client, 10, map(4, None)), vec![], "nobody yet");
    let routed = on(&mut client, 20, map(5, Some(member(2))));
    assert_eq!(routed, vec![sent(2, 5, member(2))]);
    assert_eq!(on(&mut client, 30, replied(1, Reply::Ok)), vec![], "late");
    assert_eq!(
        on(&mut client, 40, replied(2, Reply::Ok)),
        done(Outcome::Ok)
    );
}

#[test]
fn a_write_whose_primary_is_replaced_waits_for_its_last_word_only() {
    let mut client = waiting(Kind::Write);
    assert_eq!(on(&mut client, 10, map(4, None)), vec![]);
    // It is in office again: it has the write, and answers.
    assert_eq!(on(&mut client, 10, map(5, Some(member(1)))), vec![]);
    assert_eq!(on(&mut client, 2_000_000, Event::Tick), vec![]);
    let routed = on(&mut client, 2_000_000, map(6, Some(member(2))));
    assert_eq!(routed, vec![], "never sent twice");
    assert_eq!(on(&mut client, 2_249_999, Event::Tick), vec![]);
    let mut answered = client.clone();
    let told = on(&mut answered, 2_249_999, replied(1, Reply::Ok));
    assert_eq!(told, done(Outcome::Ok));
    let given_up = on(&mut client, 2_250_000, Event::Tick);
    assert_eq!(given_up, done(Outcome::Unknown));
}

#[test]
fn a_call_that_never_left_ends_as_unavailable() {
    let mut client = waiting(Kind::Write);
    let not_sent = Event::NotSent {
        call: CALL,
        attempt: Attempt(1),
    };
    on(&mut client, 0, not_sent);
    assert_eq!(on(&mut client, 0, map(4, None)), vec![], "nobody in office");
    let late = on(&mut client, 10_000_000, Event::Tick);
    assert_eq!(late, done(Outcome::Unavailable));
}
