//! An operator gives up what the rest of a set may have.
//!
//! A primary counts every member of the coordinator's set, so it answers nothing that began after one of them ended,
//! the primary itself included, and after the next term it cannot remove that one any more. A sole member stops when
//! its lease is over. Where neither is known, members that are cut off together may answer for ever beside a new
//! primary: loss is not accepted then, unless the operator vouches for the end of one of them.

use kreon_base::planted;

use super::group::{Group, Stage};
use super::{Action, Master};
use crate::machine::{Configuration, Member, Moment, ServerId, Term};

impl Master {
    pub(super) fn accept_loss(
        &mut self,
        now: Moment,
        group: &mut Group,
        server: ServerId,
        vouched: Option<Term>,
        out: &mut Vec<Action>,
    ) {
        let set = match &group.known {
            Some(known) if is_stuck(group) => known.config.in_sync.clone(),
            _ => return out.push(Action::RefuseLoss(group.id)),
        };
        group.loss_wanted = Some((server, now));
        // Of a restored coordinator nobody knows which set counted last.
        let knows_set = group.stage == Stage::Waiting;
        group.refused_by = group.refused_by.max(vouched.unwrap_or_default());
        if vouched.is_some() || (knows_set && set.len() == 1) {
            return self.give_up_the_rest(now, group, out);
        }
        if !knows_set {
            group.loss_wanted = None;
            return out.push(Action::RefuseLoss(group.id));
        }
        let group = group.id;
        out.extend(set.iter().map(|of| Action::Probe { group, of: *of }));
    }

    /// `member` has ended: nobody can be answered in its set any more.
    pub(super) fn on_ended(
        &mut self,
        now: Moment,
        group: &mut Group,
        member: Member,
        out: &mut Vec<Action>,
    ) {
        let of_set = group
            .known
            .as_ref()
            .is_some_and(|known| known.config.has(member));
        if of_set && group.loss_wanted.is_some() {
            self.give_up_the_rest(now, group, out);
        }
    }

    fn give_up_the_rest(&mut self, now: Moment, group: &mut Group, out: &mut Vec<Action>) {
        let wanted = group.loss_wanted.take();
        let chosen = wanted.and_then(|(server, _)| self.start_of(server));
        let (Some(known), Some(member)) = (group.known.clone(), chosen) else {
            return out.push(Action::RefuseLoss(group.id));
        };
        let is_known = known.config.servers.contains(&member.server);
        if !is_stuck(group) || !is_known {
            return out.push(Action::RefuseLoss(group.id));
        }
        let next = known.config.in_next_term();
        // Above whatever was seen before the coordinator was restored, too.
        let term = Term(next.term.0.max(group.refused_by.0 + 1));
        let next = Configuration {
            term,
            in_sync: [member].into(),
            after_loss: true,
            loss_term: term,
            all_needed: false,
            ..next
        };
        self.swap_to(now, group, known, next, out);
    }

    /// Nobody of the set was found to have ended in time.
    pub(super) fn tire_of_loss(&self, now: Moment, group: &mut Group, out: &mut Vec<Action>) {
        let late = |since: Moment| now.since_us(since) >= self.timing.seal_patience_us;
        if group.loss_wanted.is_some_and(|(_, since)| late(since)) {
            group.loss_wanted = None;
            out.push(Action::RefuseLoss(group.id));
        }
    }

    /// After accepted loss, whoever was cut off may answer until its lease is over.
    pub(super) fn is_grace_over(&self, now: Moment, group: &Group) -> bool {
        let over = group.known.as_ref().is_none_or(|known| {
            let seen = group.loss_seen.map_or(now, |(_, seen)| seen);
            !known.config.after_loss || now.since_us(seen) >= self.timing.grace_us
        });
        planted!(AcceptLossWithoutGrace => let over = true);
        over
    }
}

/// Whether only an operator can help.
fn is_stuck(group: &Group) -> bool {
    matches!(group.stage, Stage::Waiting | Stage::Restored) && group.swap.is_none()
}
