use kreon_base::{Epoch, Incarnation, Lsn};

use super::{known, member};
use crate::machine::master::{Action, Event, GroupId, Master, Office, Stage};
use crate::machine::{
    Answer, Ask, Configuration, Known, Member, Moment, Report, SlotMark, Term, Ticket, Timing,
    Version,
};

const GROUP: GroupId = GroupId(1);
const NOW: Moment = Moment(5_000_000);

fn on(master: &mut Master, now: Moment, event: Event) -> Vec<Action> {
    let mut out = Vec::new();
    master.on(now, event, &mut out);
    out
}

fn leader(live: &[Member], known: Known) -> (Master, Vec<Action>) {
    let mut master = Master::new([GROUP], Timing::default());
    assert_eq!(on(&mut master, NOW, Event::Live(live.to_vec())), vec![]);
    let elected = on(&mut master, NOW, Event::Elected(Version(7)));
    let [Action::Ask(_, ticket, Ask::Read { synced: true })] = elected[..] else {
        panic!("{elected:?}");
    };
    let out = on(
        &mut master,
        NOW,
        Event::Answer(GROUP, ticket, Answer::Read(known)),
    );
    (master, out)
}

fn swap(actions: &[Action]) -> Option<(Ticket, Configuration)> {
    actions.iter().find_map(|action| match action {
        Action::Ask(_, ticket, Ask::Swap { next, fence, .. }) => {
            assert_eq!(*fence, Some(Version(7)));
            Some((*ticket, next.clone()))
        }
        _ => None,
    })
}

/// The swap that follows the reading of its base, which nobody had seen for long.
fn read_and_swap(
    master: &mut Master,
    now: Moment,
    asked: &[Action],
    base: Known,
) -> Option<(Ticket, Configuration)> {
    assert_eq!(swap(asked), None, "the base is read first");
    let read = asked.iter().find_map(|action| match action {
        Action::Ask(_, ticket, Ask::Read { synced: true }) => Some(*ticket),
        _ => None,
    })?;
    swap(&on(
        master,
        now,
        Event::Answer(GROUP, read, Answer::Read(base)),
    ))
}

/// What stands at the coordinator after this swap.
fn after(version: u64, config: &Configuration) -> Known {
    Known {
        version: Version(version),
        config: config.clone(),
    }
}

fn sealed(from: Member, term: u64, epoch: u64, log_end: u64) -> Event {
    let slot = SlotMark {
        incarnation: Incarnation(1),
        epoch: Epoch(epoch),
    };
    Event::Sealed {
        group: GROUP,
        from,
        term: Term(term),
        report: Report {
            slot,
            log_end: Lsn(log_end),
        },
    }
}

#[test]
fn the_next_term_comes_before_any_seal_and_the_highest_report_wins() {
    let (a, b, c) = (member(1, 0), member(2, 0), member(3, 0));
    let (mut master, out) = leader(&[b, c], known(1, &[a, b, c]));
    let (ticket, next) = swap(&out).expect("a swap");
    assert_eq!((next.term, next.primary), (Term(2), None));
    assert!(
        !out.iter()
            .any(|action| matches!(action, Action::Seal { .. }))
    );
    let done = Event::Answer(GROUP, ticket, Answer::Done(Version(11)));
    let seals = on(&mut master, NOW, done);
    assert_eq!(
        seals
            .iter()
            .filter(|a| matches!(a, Action::Seal { .. }))
            .count(),
        3
    );
    assert_eq!(on(&mut master, NOW, sealed(b, 2, 4, 90)), vec![]);
    let decided = on(&mut master, NOW, sealed(c, 2, 5, 80));
    let (_, next) = swap(&decided).expect("a swap");
    assert_eq!(next.primary, Some(c), "the superblock counts first");
}

#[test]
fn a_set_that_failed_as_a_whole_is_waited_for_and_all_of_it_reports() {
    let (a, b) = (member(1, 0), member(2, 0));
    let (mut master, out) = leader(&[member(1, 1)], known(1, &[a, b]));
    assert_eq!(swap(&out), None);
    assert_eq!(master.stage(GROUP), Some(&Stage::Waiting));
    let live = vec![member(1, 1), member(2, 1)];
    let (ticket, next) = swap(&on(&mut master, NOW, Event::Live(live))).expect("a swap");
    assert_eq!(&next.in_sync[..], &[member(1, 1), member(2, 1)]);
    assert!(next.all_needed);
    on(
        &mut master,
        NOW,
        Event::Answer(GROUP, ticket, Answer::Done(Version(11))),
    );
    on(&mut master, NOW, sealed(member(1, 1), 2, 4, 3));
    let late = NOW.after_us(10_000_000);
    assert_eq!(
        swap(&on(&mut master, late, Event::Tick)),
        None,
        "no patience runs out"
    );
    let decided = on(&mut master, late, sealed(member(2, 1), 2, 4, 8));
    let swapped = read_and_swap(&mut master, late, &decided, after(11, &next));
    assert_eq!(swapped.expect("a swap").1.primary, Some(member(2, 1)));
}

#[test]
fn after_accepted_loss_nobody_takes_office_before_the_grace_period_is_over() {
    let (a, c) = (member(1, 0), member(3, 4));
    let (mut master, _) = leader(&[c], known(1, &[a]));
    let accepted = on(&mut master, NOW, accept_loss(c, None));
    let (ticket, next) = swap(&accepted).expect("a swap");
    assert!(next.after_loss);
    assert_eq!(next.loss_term, next.term);
    on(
        &mut master,
        NOW,
        Event::Answer(GROUP, ticket, Answer::Done(Version(11))),
    );
    let early = NOW.after_us(1_900_000);
    assert_eq!(swap(&on(&mut master, early, sealed(c, 2, 4, 3))), None);
    let late = NOW.after_us(2_000_000);
    let over = on(&mut master, late, Event::Tick);
    let swapped = read_and_swap(&mut master, late, &over, after(11, &next));
    assert_eq!(swapped.expect("a swap").1.primary, Some(c));
}

#[test]
fn a_master_whose_fence_is_gone_stands_down() {
    let (a, b) = (member(1, 0), member(2, 0));
    let (mut master, out) = leader(&[b], known(1, &[a, b]));
    let (ticket, _) = swap(&out).expect("a swap");
    let lost = on(
        &mut master,
        NOW,
        Event::Answer(GROUP, ticket, Answer::FenceLost),
    );
    assert_eq!(lost, vec![Action::StandDown]);
    assert_eq!(master.office(), Office::Candidate);
    assert_eq!(on(&mut master, NOW, Event::Live(vec![b])), vec![]);
}

fn accept_loss(server: Member, vouched: Option<Term>) -> Event {
    Event::AcceptLoss {
        group: GROUP,
        server: server.server,
        vouched,
    }
}

/// A master whose group waits for two members that nobody hears of.
fn waiting() -> (Master, [Member; 3]) {
    let members = [member(1, 0), member(2, 0), member(3, 4)];
    let [a, b, c] = members;
    let (master, _) = leader(&[c], known(1, &[a, b]));
    assert_eq!(master.stage(GROUP), Some(&Stage::Waiting));
    (master, members)
}

#[test]
fn loss_is_accepted_when_a_process_of_the_set_is_known_to_have_ended() {
    let (mut master, [a, b, c]) = waiting();
    let probe = |of| Action::Probe { group: GROUP, of };
    let asked = on(&mut master, NOW, accept_loss(c, None));
    assert_eq!(asked, vec![probe(a), probe(b)]);
    assert_eq!(
        swap(&on(&mut master, NOW, Event::Ended(GROUP, c))),
        None,
        "not of the set"
    );
    let (_, next) = swap(&on(&mut master, NOW, Event::Ended(GROUP, b))).expect("a swap");
    assert_eq!((&next.in_sync[..], next.after_loss), (&[c][..], true));
}

#[test]
fn loss_is_refused_while_the_whole_set_may_run() {
    let (mut master, [_, b, c]) = waiting();
    on(&mut master, NOW, accept_loss(c, None));
    let late = on(&mut master, NOW.after_us(1_000_000), Event::Tick);
    assert!(late.contains(&Action::RefuseLoss(GROUP)), "{late:?}");
    assert_eq!(swap(&late), None);
    let ended = Event::Ended(GROUP, b);
    assert_eq!(swap(&on(&mut master, NOW, ended)), None, "asked for anew");
    let (_, next) = swap(&on(&mut master, NOW, accept_loss(c, Some(Term(4))))).expect("a swap");
    assert!(next.after_loss, "the operator vouches");
    assert_eq!(next.term, Term(5));
}

#[test]
fn nobody_is_promoted_by_a_coordinator_that_knows_less_than_a_member() {
    let (a, b, c) = (member(1, 0), member(2, 0), member(3, 0));
    let (mut master, out) = leader(&[b, c], known(1, &[a, b, c]));
    let (ticket, next) = swap(&out).expect("a swap");
    let done = Event::Answer(GROUP, ticket, Answer::Done(Version(11)));
    on(&mut master, NOW, done);
    on(&mut master, NOW, sealed(c, 2, 5, 80));
    on(&mut master, NOW, Event::Refused(GROUP, Term(6)));
    assert_eq!(master.stage(GROUP), Some(&Stage::Restored));
    let late = NOW.after_us(10_000_000);
    assert_eq!(swap(&on(&mut master, late, Event::Tick)), None);
    let unforced = on(&mut master, late, accept_loss(b, None));
    assert_eq!(unforced, vec![Action::RefuseLoss(GROUP)]);
    let forced = on(&mut master, late, accept_loss(b, Some(Term(4))));
    let swapped = read_and_swap(&mut master, late, &forced, after(11, &next));
    assert_eq!(swapped.expect("a swap").1.term, Term(7));
}

#[test]
fn a_term_that_inherits_a_grace_period_is_not_begun_by_an_operator() {
    let (a, c) = (member(1, 0), member(3, 4));
    let (mut master, _) = leader(&[c], known(1, &[a]));
    let (ticket, next) = swap(&on(&mut master, NOW, accept_loss(c, None))).expect("a swap");
    let done = Event::Answer(GROUP, ticket, Answer::Done(Version(11)));
    on(&mut master, NOW, done);
    let restarted = on(&mut master, NOW, Event::Live(vec![member(3, 5)]));
    let (_, after) = swap(&restarted).expect("a swap");
    assert_eq!((after.term, after.after_loss), (Term(3), true));
    assert_eq!(after.loss_term, next.term);
}

fn promote(to: Member) -> Event {
    Event::Promote {
        group: GROUP,
        to: to.server,
    }
}

/// A master that wants `b` promoted; the set is `a`, in office, `b` and `c`, and the term after this one has begun.
fn promoting() -> (Master, [Member; 3], Known) {
    let members = [member(1, 0), member(2, 0), member(3, 0)];
    let [a, b, _] = members;
    let (mut master, _) = leader(&members, known(1, &members));
    let hand_over = Action::HandOver {
        group: GROUP,
        to: a,
        term: Term(1),
    };
    assert_eq!(on(&mut master, NOW, promote(b)), vec![hand_over]);
    let resigned = after(11, &known(1, &members).config.in_next_term());
    let look = on(&mut master, NOW, Event::Look(GROUP));
    let [Action::Ask(_, ticket, _)] = look[..] else {
        panic!("{look:?}");
    };
    let found = Event::Answer(GROUP, ticket, Answer::Read(resigned.clone()));
    on(&mut master, NOW, found);
    (master, members, resigned)
}

#[test]
fn who_is_wished_for_is_promoted_although_another_has_more_log() {
    let (mut master, [a, b, c], _) = promoting();
    on(&mut master, NOW, sealed(a, 2, 4, 9));
    on(&mut master, NOW, sealed(b, 2, 4, 3));
    let decided = on(&mut master, NOW, sealed(c, 2, 4, 8));
    assert_eq!(swap(&decided).expect("a swap").1.primary, Some(b));
}

#[test]
fn who_is_wished_for_is_not_promoted_with_a_lower_superblock() {
    let (mut master, [a, b, c], _) = promoting();
    on(&mut master, NOW, sealed(a, 2, 5, 9));
    on(&mut master, NOW, sealed(b, 2, 4, 30));
    let decided = on(&mut master, NOW, sealed(c, 2, 5, 8));
    assert_eq!(swap(&decided).expect("a swap").1.primary, Some(a));
}

#[test]
fn a_wish_ends_with_the_promotion() {
    let (mut master, [a, b, c], _) = promoting();
    on(&mut master, NOW, sealed(a, 2, 5, 9));
    on(&mut master, NOW, sealed(b, 2, 4, 3));
    let decided = on(&mut master, NOW, sealed(c, 2, 5, 8));
    let (ticket, _) = swap(&decided).expect("a swap");
    let done = Event::Answer(GROUP, ticket, Answer::Done(Version(12)));
    on(&mut master, NOW, done);
    // The one that was promoted ends.
    let failed = on(&mut master, NOW, Event::Live(vec![b, c]));
    let (ticket, next) = swap(&failed).expect("a swap");
    assert_eq!(next.term, Term(3));
    let done = Event::Answer(GROUP, ticket, Answer::Done(Version(13)));
    on(&mut master, NOW, done);
    on(&mut master, NOW, sealed(b, 3, 5, 3));
    let decided = on(&mut master, NOW, sealed(c, 3, 5, 8));
    assert_eq!(swap(&decided).expect("a swap").1.primary, Some(c));
}

#[test]
fn a_primary_that_does_not_hand_over_is_deposed() {
    let members = [member(1, 0), member(2, 0), member(3, 0)];
    let (mut master, _) = leader(&members, known(1, &members));
    on(&mut master, NOW, promote(members[1]));
    let early = NOW.after_us(1_900_000);
    assert_eq!(on(&mut master, early, Event::Tick), vec![]);
    let late = NOW.after_us(2_000_000);
    let tired = on(&mut master, late, Event::Tick);
    let swapped = read_and_swap(&mut master, late, &tired, known(1, &members));
    let next = swapped.expect("a swap").1;
    assert_eq!((next.term, next.primary), (Term(2), None));
}

#[test]
fn nobody_is_promoted_who_is_in_office_or_not_in_the_set_or_without_a_session() {
    let (a, b, c) = (member(1, 0), member(2, 0), member(3, 0));
    let (mut master, _) = leader(&[a, c], known(1, &[a, b]));
    for to in [a, b, c] {
        let refused = on(&mut master, NOW, promote(to));
        assert_eq!(refused, vec![Action::RefusePromotion(GROUP)], "{to:?}");
    }
}
