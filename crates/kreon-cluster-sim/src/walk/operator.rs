//! An operator, who accepts loss, and who restored the coordinator from a copy.

use kreon_coord::fake::Fate;
use kreon_coord::{Command, Reply};
use kreon_replica::machine::master::{self, Stage};
use kreon_replica::machine::{Configuration, Known, Member, Stamp, Term, Version};

use super::event::Happening;
use super::judge::Broken;
use super::run::Walk;
use crate::explore::GROUP;
use crate::toy::{Place, member, place};

/// A coordinator that was restored.
#[derive(Clone, Debug)]
pub(super) struct Restored {
    /// What it says.
    at: Stamp,
    /// Who had all that was acknowledged before.
    before: Configuration,
    /// What each server had seen, persisted.
    seen: Vec<Stamp>,
    /// What the primaries went by.
    known: Vec<Option<Stamp>>,
}

impl Walk {
    /// An operator accepts loss where a group waits. That nobody answers any more beside the one that goes on, the
    /// master sees to, unless the operator vouches for it; this one says the truth unless told otherwise.
    pub(super) fn operate(&mut self) {
        self.after(100_000, Happening::Operator);
        let stuck = |stage: &Stage| matches!(stage, Stage::Waiting | Stage::Restored);
        let waits = |node: &super::node::Node| {
            node.up && node.is_leader && node.master.stage(GROUP).is_some_and(stuck)
        };
        let Some(master) = self.nodes.iter().position(waits) else {
            return;
        };
        let chosen = self.dice.below(self.nodes.len() as u64) as Place;
        let own = member(chosen, self.nodes[chosen].start);
        let in_set = self.current.config.in_sync.contains(&own);
        let is_usable = self.nodes[chosen].up && self.nodes[chosen].volume.slot.is_some();
        if !is_usable || in_set || self.dice.below(3) != 0 {
            return;
        }
        let vouched = self.vouch();
        if self.restored.is_some() && vouched.is_none() {
            return; // the set that the coordinator names is not the one that counts
        }
        self.count(match vouched {
            Some(_) => "loss wanted, vouched for",
            None => "loss wanted",
        });
        let wanted = master::Event::AcceptLoss {
            group: GROUP,
            server: own.server,
            vouched,
        };
        self.for_master(master, wanted);
    }

    /// What an operator can say who sees all servers: that a process of the set has ended, and the highest term.
    fn vouch(&mut self) -> Option<Term> {
        // Of a restored coordinator nobody knows which set goes on: that of before, or that which it names.
        let before = self.restored.as_ref().map(|restored| &restored.before);
        let mut sets = before.into_iter().chain([&self.current.config]);
        let has_ended = |member: &Member| !self.runs(*member);
        let is_true = sets.all(|config| config.in_sync.iter().any(has_ended)) || self.operator_lies;
        let terms = self.nodes.iter().map(|node| {
            let promised = node.replica.promised();
            promised.max(node.volume.persisted.term)
        });
        let highest = terms.max().filter(|_| is_true);
        highest.filter(|_| self.dice.below(2) == 0 || self.restored.is_some() || self.operator_lies)
    }

    /// The coordinator goes back to where it was some changes ago.
    pub(super) fn restore(&mut self) {
        let back = 1 + self.dice.below(6) as usize;
        let Some(place) = self.moments.len().checked_sub(back + 1) else {
            return;
        };
        if self.loss_accepted.is_some() || self.coordinator_down {
            return self.after(500_000, Happening::Restored);
        }
        self.count("coordinator restored");
        let moment = self.moments[place];
        self.moments.truncate(place + 1);
        self.fake.restore(moment);
        self.sessions.clear();
        self.witness = self.fake.begin();
        let path = self.paths.group(GROUP.0);
        let get = Command::Get { path, watch: false };
        let found = self.fake.carry_out(self.witness, &get, Fate::Answered);
        let Reply::Node(node) = found else { return };
        let version = Version(node.version.0);
        let Ok(known) = Known::of_bytes(GROUP, &node.data, version) else {
            return;
        };
        let at = known.stamp();
        let before = std::mem::replace(&mut self.current, known);
        let nodes = self.nodes.iter();
        let primaries = nodes.clone().map(|node| node.primary.as_ref());
        self.restored = Some(Restored {
            at,
            before: before.config,
            seen: nodes.map(|node| node.volume.persisted).collect(),
            known: primaries
                .map(|primary| Some(primary?.known().stamp()))
                .collect(),
        });
        // That takes longer than machines rely on what they have read.
        self.coordinator_down = true;
        let us = 1_500_000 + self.dice.below(2_000_000);
        self.after(us, Happening::CoordinatorReturns);
    }

    /// Whether the primary at `at` answers by what a restored coordinator says although another one was in office later,
    /// because it never saw anything of that. It cannot be helped, and nothing that follows can be judged.
    pub(super) fn ends_unaware(&mut self, at: Place) -> bool {
        let (Some(restored), Some(primary)) = (&self.restored, &self.nodes[at].primary) else {
            return false;
        };
        let is_later = |stamp: Stamp| stamp.version > restored.at.version || stamp > restored.at;
        let knew = restored.known[at].is_some_and(is_later) || is_later(restored.seen[at]);
        let is_deposed = primary.term() < restored.before.term;
        if !is_deposed || primary.term() > restored.at.term || knew {
            return false;
        }
        self.count("restored: a primary went on that knew no better");
        self.is_over = true;
        true
    }

    /// Somebody takes office by what a restored coordinator says, and no operator said so. Whoever has seen more does
    /// not; from those who have not nothing can be expected, and the walk ends.
    pub(super) fn judge_restored(&mut self, at: Place, known: &Known) -> bool {
        let Some(restored) = &self.restored else {
            return true;
        };
        let stamp = known.stamp();
        let above = |member: &&Member| {
            let seen = restored.seen[place(**member)];
            seen.version > stamp.version || seen > stamp
        };
        let knew = known.config.in_sync.iter().find(above).copied();
        let own = self.nodes[at].me();
        if knew == Some(own) {
            self.break_with(Broken::BelowSeen(known.config.term.0));
            return false;
        }
        self.count(match self.judge.missing(&self.nodes[at].volume) {
            Some(_) => "restored: promoted, and lost what nobody knew of",
            None => "restored: promoted, and lost nothing",
        });
        self.is_over = true;
        false
    }
}
