use kreon_base::{Epoch, Lsn};

use super::{known, member};
use crate::machine::replica::{Action, Event, Replica, State};
use crate::machine::{
    Answer, Ask, Known, Member, Moment, Report, ServerId, SlotMark, Stamp, Term, Timing, Version,
};

const NOW: Moment = Moment(5_000_000);

fn on(replica: &mut Replica, event: Event) -> Vec<Action> {
    let mut out = Vec::new();
    replica.on(NOW, event, &mut out);
    out
}

fn report(log_end: u64) -> Report {
    Report {
        slot: SlotMark::default(),
        log_end: Lsn(log_end),
    }
}

fn seal(term: u64) -> Event {
    Event::Seal {
        from: ServerId(9),
        term: Term(term),
    }
}

/// Answers the read that is asked for in `actions`.
fn answer(replica: &mut Replica, actions: &[Action], known: Known) -> Vec<Action> {
    let ticket = actions.iter().find_map(|action| match action {
        Action::Ask(ticket, Ask::Read { synced: true }) => Some(*ticket),
        _ => None,
    });
    on(
        replica,
        Event::Answer(ticket.expect("a read"), Answer::Read(known)),
    )
}

/// A replica that follows `primary` in term 1.
fn following(me: Member, primary: Member) -> Replica {
    let mut replica = Replica::new(me, true, Term(0), Stamp::default(), Timing::default());
    on(&mut replica, seal(1));
    let sealed = Event::Ended {
        term: Term(1),
        report: report(0),
    };
    let sealed = on(&mut replica, sealed);
    answer(&mut replica, &sealed, known(1, &[primary, me]));
    let equalise = Event::Equalise {
        from: primary,
        term: Term(1),
        top: SlotMark::default(),
        log_end: Lsn(0),
    };
    on(&mut replica, equalise);
    on(&mut replica, Event::Repaired(Term(1)));
    assert!(replica.admits(primary, Term(1)));
    replica
}

#[test]
fn a_lower_term_is_refused_after_a_seal() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut replica = following(b, a);
    let sealed = on(&mut replica, seal(2));
    let order: Vec<_> = sealed.iter().map(std::mem::discriminant).collect();
    let expected = [
        Action::Persist(Stamp::default()),
        Action::Drain,
        Action::ComputeEnd(Term(2)),
    ];
    assert_eq!(order, expected.each_ref().map(std::mem::discriminant));
    assert!(!replica.admits(a, Term(1)));
    let beat = Event::Beat {
        from: a,
        term: Term(1),
        beat: crate::machine::BeatNumber(3),
    };
    let refused = Action::Refuse {
        to: a.server,
        promised: Term(2),
    };
    assert_eq!(on(&mut replica, beat), vec![refused.clone()]);
    let lower = on(
        &mut replica,
        Event::Seal {
            from: a.server,
            term: Term(1),
        },
    );
    assert_eq!(lower, vec![refused]);
}

#[test]
fn a_sealed_member_reports_to_everyone_who_asks() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut replica = following(b, a);
    on(&mut replica, seal(2));
    let other = Event::Seal {
        from: ServerId(8),
        term: Term(2),
    };
    assert_eq!(on(&mut replica, other.clone()), vec![], "not sealed yet");
    let ended = Event::Ended {
        term: Term(2),
        report: report(4),
    };
    let reports = |actions: &[Action]| {
        let reported = |action: &&Action| matches!(action, Action::Report { .. });
        actions.iter().filter(reported).count()
    };
    assert_eq!(reports(&on(&mut replica, ended)), 2);
    assert_eq!(reports(&on(&mut replica, other)), 1, "again");
}

#[test]
fn a_message_that_names_a_primary_is_only_a_reason_to_look() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut replica = following(b, a);
    on(&mut replica, seal(2));
    let ended = Event::Ended {
        term: Term(2),
        report: report(4),
    };
    let looks = on(&mut replica, ended);
    let mut nobody = known(2, &[b, a]);
    nobody.config.primary = None;
    answer(&mut replica, &looks, nobody);
    let hint = on(&mut replica, Event::Hint(known(2, &[b, a]).config));
    assert!(
        matches!(replica.state(), State::Sealed { .. }),
        "{:?}",
        replica.state()
    );
    let office = answer(&mut replica, &hint, known(2, &[b, a]));
    assert!(
        matches!(replica.state(), State::Equalising(_)),
        "{:?}",
        replica.state()
    );
    let seals = Action::Seal {
        to: a,
        term: Term(2),
    };
    assert!(office.contains(&seals), "{office:?}");
}

#[test]
fn a_coordinator_that_was_restored_from_a_copy_is_not_believed() {
    let (a, b) = (member(1, 0), member(2, 0));
    let stamp = Stamp {
        term: Term(5),
        version: Version(60),
    };
    let mut replica = Replica::new(b, true, Term(5), stamp, Timing::default());
    let looks = on(&mut replica, Event::Look);
    assert_eq!(answer(&mut replica, &looks, known(4, &[b, a])), vec![]);
    assert_eq!((replica.seen(), replica.state()), (stamp, &State::Stale));
}

#[test]
fn a_coordinator_with_another_primary_in_the_term_that_is_followed_is_not_believed() {
    let (a, b, c) = (member(1, 0), member(2, 0), member(3, 0));
    let mut replica = following(b, a);
    let later = Moment(NOW.0 + 1);
    let mut out = Vec::new();
    replica.on(later, Event::Look, &mut out);
    let [Action::Ask(ticket, _)] = out[..] else {
        panic!("{out:?}");
    };
    // Restored, and the first term was begun once more: versions have caught up.
    let other = Known {
        version: Version(20),
        ..known(1, &[c, b])
    };
    let mut out = Vec::new();
    replica.on(later, Event::Answer(ticket, Answer::Read(other)), &mut out);
    assert_eq!(out, vec![]);
    assert!(replica.admits(a, Term(1)));
    let refused = on(&mut replica, seal(2));
    assert!(
        refused.iter().any(|a| matches!(a, Action::Refuse { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_restarted_process_joins_anew() {
    let (a, b) = (member(1, 0), member(2, 1));
    let mut replica = Replica::new(b, true, Term(1), Stamp::default(), Timing::default());
    let looks = on(&mut replica, Event::Look);
    let asked = answer(&mut replica, &looks, known(1, &[a, member(2, 0)]));
    let attach = Action::AskAttach {
        to: a,
        term: Term(1),
    };
    assert!(asked.contains(&attach), "{asked:?}");
    on(
        &mut replica,
        Event::Attached {
            from: a,
            term: Term(1),
        },
    );
    let refused = on(&mut replica, seal(2));
    assert!(
        matches!(refused[..], [Action::Refuse { .. }]),
        "nothing to promote: {refused:?}"
    );
    on(&mut replica, Event::Completed(Term(1)));
    assert!(matches!(replica.state(), State::InSync(_)));
}

#[test]
fn a_replica_outside_the_set_asks_its_primary_again_with_every_beat_and_reads_with_every_silence() {
    let (a, b, timing) = (member(1, 0), member(2, 1), Timing::default());
    let mut replica = Replica::new(b, true, Term(1), Stamp::default(), timing);
    let looks = on(&mut replica, Event::Look);
    answer(&mut replica, &looks, known(1, &[a, member(2, 0)]));
    let ticks = |replica: &mut Replica, us: u64| {
        let mut out = Vec::new();
        replica.on(NOW.after_us(us), Event::Tick, &mut out);
        out
    };
    // The primary was a candidate when it was asked.
    let term = Term(1);
    let attach = vec![Action::AskAttach { to: a, term }];
    let beat_us = timing.beat_every_us;
    assert_eq!(ticks(&mut replica, 0), vec![], "the first question stands");
    assert_eq!(ticks(&mut replica, beat_us - 1), vec![]);
    assert_eq!(ticks(&mut replica, beat_us), attach);
    assert_eq!(ticks(&mut replica, 2 * beat_us - 1), vec![]);
    assert_eq!(ticks(&mut replica, 2 * beat_us), attach);
    let late = ticks(&mut replica, timing.silence_us);
    assert!(matches!(late[0], Action::Ask(..)), "{late:?}");
    // Nobody is in office: nobody is asked.
    let mut nobody = known(2, &[a]);
    nobody.config.primary = None;
    answer(&mut replica, &late, nobody);
    assert_eq!(ticks(&mut replica, 0), vec![]);
    assert_eq!(ticks(&mut replica, timing.silence_us - 1), vec![]);
}

#[test]
fn a_replica_that_was_taken_in_asks_no_more() {
    let (a, b, timing) = (member(1, 0), member(2, 1), Timing::default());
    let mut replica = Replica::new(b, true, Term(1), Stamp::default(), timing);
    let looks = on(&mut replica, Event::Look);
    answer(&mut replica, &looks, known(1, &[a]));
    let (from, term) = (a, Term(1));
    on(&mut replica, Event::Attached { from, term });
    let mut out = Vec::new();
    replica.on(NOW.after_us(10 * timing.silence_us), Event::Tick, &mut out);
    assert_eq!(out, vec![]);
}

#[test]
fn a_replica_that_saw_more_than_the_coordinator_takes_no_part_in_promotions() {
    let (a, b) = (member(1, 0), member(2, 0));
    let mut replica = following(b, a);
    let later = Moment(NOW.0 + 1);
    let look = |replica: &mut Replica, found: Known| {
        let mut out = Vec::new();
        replica.on(later, Event::Look, &mut out);
        let Some(Action::Ask(ticket, _)) = out.first() else {
            panic!("{out:?}");
        };
        let answer = Event::Answer(*ticket, Answer::Read(found));
        let mut out = Vec::new();
        replica.on(later, answer, &mut out);
        out
    };
    let restored = Known {
        version: Version(9),
        ..known(2, &[b, a])
    };
    assert_eq!(
        look(&mut replica, restored.clone()),
        vec![],
        "version 10 was seen"
    );
    let refused = Action::Refuse {
        to: ServerId(9),
        promised: Term(3),
    };
    assert_eq!(on(&mut replica, seal(2)), vec![refused]);
    // A grace period that the copy names is no operator's word.
    let mut inherited = restored.clone();
    inherited.config.after_loss = true;
    inherited.config.loss_term = Term(1);
    assert_eq!(look(&mut replica, inherited), vec![]);
    let refused = on(&mut replica, seal(2));
    assert!(matches!(refused[..], [Action::Refuse { .. }]));
    let mut accepted = restored;
    accepted.config.term = Term(3);
    accepted.config.loss_term = Term(3);
    let sealed = look(&mut replica, accepted);
    assert!(sealed.contains(&Action::ComputeEnd(Term(3))), "{sealed:?}");
}

#[test]
fn a_member_with_a_superblock_that_the_candidate_lacks_leaves_the_set() {
    let (a, b, c) = (member(1, 0), member(2, 0), member(3, 0));
    let mut replica = Replica::new(a, true, Term(0), Stamp::default(), Timing::default());
    on(&mut replica, seal(1));
    let sealed = Event::Ended {
        term: Term(1),
        report: report(4),
    };
    let sealed = on(&mut replica, sealed);
    answer(&mut replica, &sealed, known(1, &[a, b, c]));
    assert!(matches!(replica.state(), State::Equalising(_)));
    let told = |from, report| Event::Sealed {
        from,
        term: Term(1),
        report,
    };
    assert_eq!(on(&mut replica, told(b, report(6))), vec![]);
    let higher = Report {
        slot: SlotMark {
            epoch: Epoch(9),
            ..SlotMark::default()
        },
        log_end: Lsn(4),
    };
    let late = on(&mut replica, told(c, higher));
    let [Action::Ask(ticket, Ask::Swap { next, .. })] = &late[..] else {
        panic!("{late:?}");
    };
    assert_eq!(&next.in_sync[..], &[a, b]);
    let done = Event::Answer(*ticket, Answer::Done(Version(11)));
    let done = on(&mut replica, done);
    assert!(done.contains(&Action::Close(c)), "{done:?}");
    let equalise = Action::Equalise {
        to: b,
        term: Term(1),
        top: SlotMark::default(),
        log_end: Lsn(4),
    };
    assert!(done.contains(&equalise), "{done:?}");
}
