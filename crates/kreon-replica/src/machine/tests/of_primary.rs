use kreon_base::Lsn;

use super::{known, member};
use crate::machine::primary::{Action, Event, JOINER_SILENCES, Met, Phase, Primary, ReadId};
use crate::machine::{
    Answer, Ask, BeatNumber, Configuration, Known, Member, Moment, Term, Ticket, Timing, Version,
};

pub(super) const NOW: Moment = Moment(5_000_000);

pub(super) fn primary(in_sync: &[Member]) -> Primary {
    let known = known(1, in_sync);
    Primary::new(in_sync[0], known, Lsn(0), NOW, NOW, Timing::default())
}

pub(super) fn on(primary: &mut Primary, now: Moment, event: Event) -> Vec<Action> {
    let mut out = Vec::new();
    primary.on(now, event, &mut out);
    out
}

pub(super) fn landed(from: Member, landed: u64) -> Event {
    Event::Progress {
        from,
        landed: Lsn(landed),
        durable: Lsn(0),
    }
}

/// The swap that is asked for in `actions`.
pub(super) fn swap(actions: &[Action]) -> Option<(Ticket, Configuration)> {
    actions.iter().find_map(|action| match action {
        Action::Ask(ticket, Ask::Swap { next, .. }) => Some((*ticket, next.clone())),
        _ => None,
    })
}

pub(super) fn acknowledged(actions: &[Action]) -> Option<Lsn> {
    actions.iter().find_map(|action| match action {
        Action::Acknowledge(upto) => Some(*upto),
        _ => None,
    })
}

#[test]
fn a_write_is_acknowledged_when_all_members_have_it() {
    let (a, b, c) = (member(1, 0), member(2, 0), member(3, 0));
    let mut primary = primary(&[a, b, c]);
    on(&mut primary, NOW, Event::Appended(Lsn(8)));
    assert_eq!(acknowledged(&on(&mut primary, NOW, landed(b, 8))), None);
    assert_eq!(
        acknowledged(&on(&mut primary, NOW, landed(c, 5))),
        Some(Lsn(5))
    );
    assert_eq!(
        acknowledged(&on(&mut primary, NOW, landed(c, 8))),
        Some(Lsn(8))
    );
}

#[test]
fn a_removal_freezes_flushes_swaps_closes_and_thaws_in_this_order() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a, b]);
    on(&mut primary, NOW, Event::Appended(Lsn(8)));
    on(&mut primary, NOW, landed(b, 6));
    let failed = on(&mut primary, NOW, Event::Failed(b));
    assert_eq!(failed, vec![Action::Flush(Lsn(6))]);
    assert_eq!(primary.phase(), Phase::Frozen);
    assert_eq!(on(&mut primary, NOW, landed(b, 8)), vec![], "frozen");
    let flushed = on(&mut primary, NOW, Event::Durable(Lsn(6)));
    let (ticket, next) = swap(&flushed).expect("a swap");
    assert_eq!(&next.in_sync[..], &[a]);
    let done = Event::Answer(ticket, Answer::Done(Version(11)));
    let done = on(&mut primary, NOW, done);
    assert_eq!(done[0], Action::Close(b));
    assert!(done.contains(&Action::Flush(Lsn(8))), "{done:?}");
    assert_eq!(primary.phase(), Phase::Serving);
    let flushed = on(&mut primary, NOW, Event::Durable(Lsn(8)));
    assert_eq!(acknowledged(&flushed), Some(Lsn(8)));
}

#[test]
fn a_lost_answer_to_a_swap_is_looked_up_until_the_outcome_is_known() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a, b]);
    let (ticket, next) = swap(&on(&mut primary, NOW, Event::Failed(b))).expect("a swap");
    let unknown = on(&mut primary, NOW, Event::Answer(ticket, Answer::Unknown));
    let [Action::Ask(look, Ask::Read { synced: true })] = unknown[..] else {
        panic!("{unknown:?}");
    };
    // Not carried out as yet, but it may be under way: the same swap again.
    let still = Event::Answer(look, Answer::Read(known(1, &[a, b])));
    let (again, same) = swap(&on(&mut primary, NOW, still)).expect("the swap again");
    assert_eq!(same, next);
    let conflict = on(&mut primary, NOW, Event::Answer(again, Answer::Conflict));
    let [Action::Ask(look, _)] = conflict[..] else {
        panic!("{conflict:?}");
    };
    let after = Known {
        version: Version(11),
        config: next,
    };
    on(&mut primary, NOW, Event::Answer(look, Answer::Read(after)));
    assert_eq!(primary.phase(), Phase::Serving);
    assert!(primary.is_sole());
}

#[test]
fn a_sole_primary_flushes_while_a_joiner_is_counted_but_not_added() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a]);
    on(&mut primary, NOW, Event::AttachAsked(b));
    let copied = Event::Copied {
        peer: b,
        landed: Lsn(0),
    };
    on(&mut primary, NOW, copied);
    on(&mut primary, NOW, Event::Completed(b));
    on(&mut primary, NOW, Event::Appended(Lsn(4)));
    assert_eq!(
        acknowledged(&on(&mut primary, NOW, landed(b, 4))),
        None,
        "not flushed"
    );
    let flushed = on(&mut primary, NOW, Event::Durable(Lsn(4)));
    assert_eq!(acknowledged(&flushed), Some(Lsn(4)));
    on(&mut primary, NOW, Event::Appended(Lsn(6)));
    let flushed = on(&mut primary, NOW, Event::Durable(Lsn(6)));
    assert_eq!(acknowledged(&flushed), None, "the joiner may be in the set");
}

#[test]
fn a_sole_primary_answers_within_its_lease_only() {
    let a = member(1, 0);
    let mut primary = primary(&[a]);
    on(&mut primary, NOW, Event::Appended(Lsn(4)));
    let late = NOW.after_us(1_000_000);
    assert_eq!(
        acknowledged(&on(&mut primary, late, Event::Durable(Lsn(4)))),
        None
    );
    let tick = on(&mut primary, late, Event::Tick);
    let Some(Action::Ask(ticket, _)) = tick.iter().find(|a| matches!(a, Action::Ask(..))) else {
        panic!("{tick:?}");
    };
    let answered = Event::Answer(*ticket, Answer::Read(known(1, &[a])));
    let answered = on(&mut primary, late.after_us(10), answered);
    assert_eq!(acknowledged(&answered), Some(Lsn(4)));
}

#[test]
fn a_read_waits_for_a_beat_that_was_sent_after_it_took_its_value() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a, b]);
    let read = |number| Event::Read {
        read: ReadId(number),
        met: None,
    };
    let first = on(&mut primary, NOW, read(1));
    let beat = |number| BeatNumber(number);
    assert_eq!(
        first,
        vec![Action::Beat {
            to: b,
            beat: beat(1)
        }]
    );
    assert_eq!(
        on(&mut primary, NOW, read(2)),
        vec![],
        "the first beat is older"
    );
    let beaten = |number| Event::Beaten {
        from: b,
        beat: beat(number),
    };
    let answered = on(&mut primary, NOW, beaten(1));
    let expected = vec![
        Action::Beat {
            to: b,
            beat: beat(2),
        },
        Action::Show(ReadId(1)),
    ];
    assert_eq!(answered, expected);
    assert_eq!(
        on(&mut primary, NOW, beaten(2)),
        vec![Action::Show(ReadId(2))]
    );
}

#[test]
fn a_read_of_a_batch_waits_until_all_of_it_has_landed() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a, b]);
    on(&mut primary, NOW, Event::Appended(Lsn(9)));
    let met = Met {
        start: Lsn(0),
        end: Lsn(3),
        unlanded_from: Lsn(0),
        tail: Lsn(9),
    };
    let read = Event::Read {
        read: ReadId(1),
        met: Some(met),
    };
    on(&mut primary, NOW, read);
    let beaten = Event::Beaten {
        from: b,
        beat: BeatNumber(1),
    };
    on(&mut primary, NOW, beaten);
    let part = on(&mut primary, NOW, landed(b, 3));
    assert!(!part.contains(&Action::Show(ReadId(1))), "{part:?}");
    let whole = on(&mut primary, NOW, landed(b, 9));
    assert!(whole.contains(&Action::Show(ReadId(1))), "{whole:?}");
}

#[test]
fn a_primary_that_finds_another_term_is_deposed_and_answers_nothing() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a, b]);
    let look = on(&mut primary, NOW, Event::Look);
    let [Action::Ask(ticket, _)] = look[..] else {
        panic!("{look:?}");
    };
    let later = Event::Answer(ticket, Answer::Read(known(2, &[b, a])));
    assert_eq!(on(&mut primary, NOW, later), vec![Action::Abandon]);
    on(&mut primary, NOW, Event::Appended(Lsn(4)));
    assert_eq!(on(&mut primary, NOW, landed(b, 4)), vec![]);
}

#[test]
fn a_primary_whose_device_fails_ends_its_term_and_leaves_nobody_alone() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a, b]);
    on(&mut primary, NOW, Event::Appended(Lsn(4)));
    let (_, next) = swap(&on(&mut primary, NOW, Event::DeviceFailed)).expect("a swap");
    assert_eq!((next.term, next.primary), (Term(2), None));
    assert_eq!(&next.in_sync[..], &[a, b]);
    assert_eq!(acknowledged(&on(&mut primary, NOW, landed(b, 4))), None);
}

#[test]
fn a_primary_that_may_be_the_sole_member_by_now_shows_no_reads_after_its_lease() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a, b]);
    let (ticket, _) = swap(&on(&mut primary, NOW, Event::Failed(b))).expect("a swap");
    on(&mut primary, NOW, Event::Answer(ticket, Answer::Unknown));
    let late = NOW.after_us(1_000_000);
    let read = Event::Read {
        read: ReadId(1),
        met: None,
    };
    on(&mut primary, late, read);
    let beaten = Event::Beaten {
        from: b,
        beat: BeatNumber(9),
    };
    let shown = on(&mut primary, late, beaten);
    assert!(!shown.contains(&Action::Show(ReadId(1))), "{shown:?}");
}

/// A primary of two whose swap to be alone got no answer, and the question that looks it up.
fn unanswered() -> (Primary, Ticket) {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a, b]);
    let (ticket, _) = swap(&on(&mut primary, NOW, Event::Failed(b))).expect("a swap");
    let unknown = on(&mut primary, NOW, Event::Answer(ticket, Answer::Unknown));
    let [Action::Ask(look, Ask::Read { synced: true })] = unknown[..] else {
        panic!("{unknown:?}");
    };
    (primary, look)
}

#[test]
fn another_term_at_the_version_of_a_swap_is_not_its_base() {
    let (mut primary, look) = unanswered();
    // Restored from a copy, and gone on.
    let other = Known {
        version: primary.known().version,
        ..known(2, &[member(2, 0), member(1, 0)])
    };
    let out = on(&mut primary, NOW, Event::Answer(look, Answer::Read(other)));
    assert_eq!(swap(&out), None);
    assert_eq!(primary.phase(), Phase::Deposed);
}

#[test]
fn a_swap_waits_while_the_coordinator_knows_less_than_its_base() {
    let (mut primary, look) = unanswered();
    let base = primary.known().clone();
    let restored = Known {
        version: Version(base.version.0 - 1),
        ..base.clone()
    };
    let restored = Event::Answer(look, Answer::Read(restored));
    assert_eq!(on(&mut primary, NOW, restored), vec![]);
    assert_eq!(on(&mut primary, NOW, Event::Tick), vec![], "not at once");
    let tick = on(&mut primary, NOW.after_us(250_000), Event::Tick);
    let look = tick.iter().find_map(|action| match action {
        Action::Ask(ticket, Ask::Read { synced: true }) => Some(*ticket),
        _ => None,
    });
    let look = look.expect("a read");
    // Versions have caught up, but somebody joined meanwhile.
    let other = Known {
        version: base.version,
        ..known(1, &[member(1, 0), member(2, 0), member(3, 0)])
    };
    let other = Event::Answer(look, Answer::Read(other));
    assert_eq!(on(&mut primary, NOW, other), vec![]);
    assert_eq!(primary.phase(), Phase::Frozen);
}

#[test]
fn a_swap_whose_base_nobody_saw_for_long_reads_it_first() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a, b]);
    let late = NOW.after_us(1_000_000);
    let failed = on(&mut primary, late, Event::Failed(b));
    let [Action::Ask(look, Ask::Read { synced: true })] = failed[..] else {
        panic!("{failed:?}");
    };
    assert_eq!(primary.phase(), Phase::Frozen);
    let base = Event::Answer(look, Answer::Read(known(1, &[a, b])));
    let (_, next) = swap(&on(&mut primary, late, base)).expect("a swap");
    assert_eq!(&next.in_sync[..], &[a]);
}

#[test]
fn a_sole_primary_takes_nothing_else_at_its_version_for_its_lease() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a]);
    on(&mut primary, NOW, Event::Appended(Lsn(4)));
    let late = NOW.after_us(1_000_000);
    on(&mut primary, late, Event::Durable(Lsn(4)));
    let tick = on(&mut primary, late, Event::Tick);
    let look = tick.iter().find_map(|action| match action {
        Action::Ask(ticket, _) => Some(*ticket),
        _ => None,
    });
    let other = Event::Answer(look.expect("a read"), Answer::Read(known(1, &[a, b])));
    assert_eq!(acknowledged(&on(&mut primary, late, other)), None);
}

#[test]
fn a_primary_whose_device_hangs_in_a_flush_before_it_is_alone_leaves_office() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a, b]);
    on(&mut primary, NOW, Event::Appended(Lsn(8)));
    on(&mut primary, NOW, landed(b, 8));
    assert_eq!(
        on(&mut primary, NOW, Event::Failed(b)),
        vec![Action::Flush(Lsn(8))]
    );
    let (_, next) = swap(&on(&mut primary, NOW, Event::DeviceFailed)).expect("a swap");
    assert_eq!((next.term, next.primary), (Term(2), None));
    assert_eq!(&next.in_sync[..], &[a, b]);
}

#[test]
fn a_joiner_that_lags_is_silent_only_when_nothing_moves_there() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a]);
    on(&mut primary, NOW, Event::AttachAsked(b));
    on(&mut primary, NOW, Event::Appended(Lsn(8)));
    let copied = Event::Copied {
        peer: b,
        landed: Lsn(4),
    };
    on(&mut primary, NOW, copied);
    let mut now = NOW;
    let mut tick = |primary: &mut Primary, moves: bool| {
        now = now.after_us(400_000);
        let beats = on(primary, now, Event::Tick);
        for action in beats {
            if let Action::Beat { to, beat } = action {
                on(primary, now, Event::Beaten { from: to, beat });
            }
        }
        if moves {
            on(primary, now, Event::Moved(b));
        }
        primary.peers().len()
    };
    assert!((0..10).all(|_| tick(&mut primary, true) == 1));
    assert!((0..2).all(|_| tick(&mut primary, false) == 1));
    tick(&mut primary, false);
    assert_eq!(primary.peers(), &[], "it hangs");
}

#[test]
fn a_joiner_that_answers_beats_is_given_up_when_its_copy_stands_still_for_long() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a]);
    on(&mut primary, NOW, Event::AttachAsked(b));
    let silence_us = Timing::default().silence_us;
    let step_us = silence_us / 4;
    let mut now = NOW;
    let mut passes = |primary: &mut Primary, us: u64| {
        for _ in 0..us / step_us {
            now = now.after_us(step_us);
            for action in on(primary, now, Event::Tick) {
                if let Action::Beat { to, beat } = action {
                    on(primary, now, Event::Beaten { from: to, beat });
                }
            }
        }
        primary.peers().len()
    };
    let patience_us = JOINER_SILENCES * silence_us;
    assert_eq!(passes(&mut primary, patience_us - step_us), 1);
    on(
        &mut primary,
        NOW.after_us(patience_us - step_us),
        Event::Moved(b),
    );
    assert_eq!(passes(&mut primary, patience_us - step_us), 1, "it moved");
    assert_eq!(passes(&mut primary, step_us), 0);
}
