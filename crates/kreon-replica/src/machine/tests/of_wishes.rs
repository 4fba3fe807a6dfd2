//! What operators and the master want of a primary.

use kreon_base::Lsn;

use super::of_primary::{NOW, acknowledged, landed, on, primary, swap};
use super::{known, member};
use crate::machine::primary::{Action, Event, Phase, Primary};
use crate::machine::{Answer, Ask, Known, Term, Version};

#[test]
fn a_primary_that_hands_over_answers_what_it_took_and_then_leaves_office() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a, b]);
    on(&mut primary, NOW, Event::Appended(Lsn(8)));
    let begun = on(&mut primary, NOW, Event::HandOver);
    assert_eq!(
        begun,
        vec![Action::TakeWrites(false), Action::Flush(Lsn(8))]
    );
    let answered = on(&mut primary, NOW, landed(b, 8));
    assert_eq!(acknowledged(&answered), Some(Lsn(8)));
    assert_eq!(swap(&answered), None, "not durable everywhere");
    on(&mut primary, NOW, Event::Durable(Lsn(8)));
    let durable = Event::Progress {
        from: b,
        landed: Lsn(8),
        durable: Lsn(8),
    };
    let (_, next) = swap(&on(&mut primary, NOW, durable)).expect("a swap");
    assert_eq!((next.term, next.primary), (Term(2), None));
    assert_eq!(&next.in_sync[..], &[a, b]);
}

#[test]
fn a_primary_hands_over_after_a_while_whatever_has_not_landed() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut primary = primary(&[a, b]);
    on(&mut primary, NOW, Event::Appended(Lsn(8)));
    on(&mut primary, NOW, Event::HandOver);
    let early = NOW.after_us(900_000);
    assert_eq!(swap(&on(&mut primary, early, Event::Tick)), None);
    let late = on(&mut primary, NOW.after_us(1_000_000), Event::Tick);
    let look = late.iter().find_map(|action| match action {
        Action::Ask(ticket, _) => Some(*ticket),
        _ => None,
    });
    let base = Event::Answer(look.expect("a read"), Answer::Read(known(1, &[a, b])));
    let (_, next) = swap(&on(&mut primary, NOW.after_us(1_000_000), base)).expect("a swap");
    assert_eq!(next.term, Term(2));
}

#[test]
fn a_sole_primary_hands_nothing_over() {
    let mut primary = primary(&[member(1, 0)]);
    assert_eq!(on(&mut primary, NOW, Event::HandOver), vec![]);
}

#[test]
fn a_server_that_is_to_leave_leaves_and_is_not_taken_in_again() {
    let (a, b, c) = (member(1, 0), member(2, 0), member(3, 0));
    let mut primary = primary(&[a, b, c]);
    let removed = on(&mut primary, NOW, Event::Remove(b.server));
    assert_eq!(primary.phase(), Phase::Frozen);
    let (ticket, next) = swap(&removed).expect("a swap");
    assert_eq!(&next.in_sync[..], &[a, c]);
    let done = Event::Answer(ticket, Answer::Done(Version(11)));
    assert!(on(&mut primary, NOW, done).contains(&Action::Close(b)));
    let again = Event::AttachAsked(member(2, 1));
    assert_eq!(on(&mut primary, NOW, again), vec![]);
    assert_eq!(on(&mut primary, NOW, Event::Remove(a.server)), vec![]);
}

#[test]
fn a_server_that_left_comes_back_when_it_is_to_have_a_replica_again() {
    let (a, b, c) = (member(1, 0), member(2, 0), member(3, 0));
    let mut primary = primary(&[a, b, c]);
    let removed = on(&mut primary, NOW, Event::Remove(b.server));
    let (ticket, _) = swap(&removed).expect("a swap");
    let done = Event::Answer(ticket, Answer::Done(Version(11)));
    on(&mut primary, NOW, done);
    let mut without = known(1, &[a, c]);
    without.version = Version(12);
    without.config.servers = [a.server, c.server].into();
    look(&mut primary, without);
    assert_eq!(on(&mut primary, NOW, Event::AttachAsked(b)), vec![]);
    let mut with = known(1, &[a, c]);
    with.version = Version(13);
    look(&mut primary, with);
    let attached = on(&mut primary, NOW, Event::AttachAsked(b));
    assert_eq!(attached, vec![Action::Attach(b)]);
}

/// Answers the look of `primary` with this.
fn look(primary: &mut Primary, found: Known) -> Vec<Action> {
    let asked = on(primary, NOW, Event::Look);
    let [Action::Ask(ticket, Ask::Read { .. })] = asked[..] else {
        panic!("{asked:?}");
    };
    on(primary, NOW, Event::Answer(ticket, Answer::Read(found)))
}

#[test]
fn a_joiner_whose_server_is_to_have_no_replica_any_more_is_dropped() {
    let (a, b, c) = (member(1, 0), member(2, 0), member(3, 0));
    let mut primary = primary(&[a, b]);
    on(&mut primary, NOW, Event::AttachAsked(c));
    let mut without = known(1, &[a, b]);
    without.version = Version(11);
    without.config.servers = [a.server, b.server].into();
    let out = look(&mut primary, without.clone());
    assert!(out.contains(&Action::Close(c)), "{out:?}");
    assert_eq!(primary.known(), &without);
    assert_eq!(on(&mut primary, NOW, Event::AttachAsked(c)), vec![]);
    // It is to have one again.
    let mut with = known(1, &[a, b]);
    with.version = Version(12);
    look(&mut primary, with);
    let attached = on(&mut primary, NOW, Event::AttachAsked(c));
    assert_eq!(attached, vec![Action::Attach(c)]);
}

#[test]
fn a_swap_goes_on_from_ranges_that_were_changed_meanwhile() {
    let (a, b, c) = (member(1, 0), member(2, 0), member(3, 0));
    let mut primary = primary(&[a, b, c]);
    let (ticket, _) = swap(&on(&mut primary, NOW, Event::Failed(b))).expect("a swap");
    let conflict = on(&mut primary, NOW, Event::Answer(ticket, Answer::Conflict));
    let [Action::Ask(look, _)] = conflict[..] else {
        panic!("{conflict:?}");
    };
    let mut changed = known(1, &[a, b, c]);
    changed.version = Version(11);
    changed.config.ranges = [1, 2, 3].into();
    let changed = Event::Answer(look, Answer::Read(changed));
    let out = on(&mut primary, NOW, changed);
    let (_, next) = swap(&out).expect("the swap, on the new base");
    assert_eq!(&next.in_sync[..], &[a, c]);
    assert_eq!(&next.ranges[..], &[1, 2, 3]);
}
