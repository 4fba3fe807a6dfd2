//! Planned promotions: every member of a set has all that was acknowledged, so any of those with the highest superblock may
//! be the next primary.

use super::group::{Group, Stage, Wish};
use super::{Action, Master};
use crate::machine::{Configuration, Member, Moment, Report, ServerId, preference};

impl Master {
    pub(super) fn promote(
        &mut self,
        now: Moment,
        group: &mut Group,
        to: ServerId,
        out: &mut Vec<Action>,
    ) {
        let is_well = matches!(group.stage, Stage::Healthy | Stage::UnderReplicated);
        let known = group
            .known
            .as_ref()
            .filter(|_| is_well && group.swap.is_none());
        let primary = known.and_then(|known| known.config.primary);
        let (Some(known), Some(primary)) = (known, primary) else {
            return out.push(Action::RefusePromotion(group.id));
        };
        let mut members = self.in_sync_live(&known.config);
        if primary.server == to || !members.any(|member| member.server == to) {
            return out.push(Action::RefusePromotion(group.id));
        }
        let term = known.config.term;
        group.wish = Some(Wish {
            to,
            after: term,
            since: now,
        });
        out.push(Action::HandOver {
            group: group.id,
            to: primary,
            term,
        });
    }

    /// The primary did not hand over in time.
    pub(super) fn tire_of_primary(
        &mut self,
        now: Moment,
        group: &mut Group,
        out: &mut Vec<Action>,
    ) {
        let Some(wish) = group.wish else { return };
        let Some(known) = group.known.clone() else {
            return;
        };
        if known.config.term != wish.after {
            group.wish = None; // it was promoted, or somebody else
        } else if now.since_us(wish.since) >= 2 * self.timing.seal_patience_us {
            let next = known.config.in_next_term();
            self.swap_to(now, group, known, next, out);
        }
    }
}

impl Group {
    /// Who of those that reported is to be promoted: of those with the highest superblock the one that is wished for, else
    /// who has most of the log. If the members have different ends (`all_needed`), only the last counts.
    pub(super) fn winner(
        &self,
        config: &Configuration,
        reports: &[(Member, Report)],
    ) -> Option<Member> {
        let of_set = || reports.iter().filter(|(from, _)| config.has(*from));
        let top = of_set().map(|(_, report)| report.slot).max()?;
        let wish = self
            .wish
            .filter(|wish| wish.after.next() == config.term && !config.all_needed);
        let is_wished = |(from, report): &&(Member, Report)| {
            report.slot == top && wish.is_some_and(|wish| wish.to == from.server)
        };
        let order = preference(self.id, &config.servers);
        let rank = |member: &Member| order.iter().position(|server| *server == member.server);
        let highest = || {
            of_set().max_by_key(|(from, report)| (*report, std::cmp::Reverse((rank(from), *from))))
        };
        let winner = of_set().find(is_wished).or_else(highest);
        winner.map(|(from, _)| *from)
    }
}
