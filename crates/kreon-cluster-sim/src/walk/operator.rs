//! An operator, who accepts loss, restored the coordinator from a copy, and wants planned promotions, removals, other servers
//! and ranges while all is well.

use std::sync::Arc;

use kreon_coord::fake::Fate;
use kreon_coord::{Command, Operation, Reply};
use kreon_replica::machine::master::{self, Office, Stage};
use kreon_replica::machine::{
    Configuration, Known, Member, ServerId, Stamp, Term, Version, primary,
};
use kreon_wire::KeyRange;

use super::clients::ranges;
use super::event::Happening;
use super::judge::Broken;
use super::office::bytes_of;
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
    /// because it never saw anything of that, and what it saw the coordinator has again by now. It cannot be helped, and nothing
    /// that follows can be judged.
    pub(super) fn ends_unaware(&mut self, at: Place) -> bool {
        let (Some(restored), Some(primary)) = (&self.restored, &self.nodes[at].primary) else {
            return false;
        };
        let now = self.current.stamp();
        let is_later = |stamp: Stamp| stamp.version > now.version || stamp > now;
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
        self.count(
            match self.judge.missing(&self.nodes[at].volume, Term(u64::MAX)) {
                Some(_) => "restored: promoted, and lost what nobody knew of",
                None => "restored: promoted, and lost nothing",
            },
        );
        self.is_over = true;
        false
    }

    /// Something is wanted while all is well.
    pub(super) fn wish(&mut self) {
        let us = 300_000 + self.dice.below(3_000_000);
        self.after(us, Happening::Wish);
        let leads = |node: &super::node::Node| node.up && node.is_leader;
        let leader = self.nodes.iter().position(leads);
        let server = ServerId(1 + self.dice.below(self.nodes.len() as u64) as u32);
        match (self.dice.below(4), leader) {
            (0, Some(leader)) => self.want_promotion(leader, server),
            (1, Some(leader)) => self.change_servers(leader, server),
            (2, Some(leader)) => self.change_ranges(leader),
            (3, _) => self.want_removal(server),
            _ => {}
        }
    }

    fn want_promotion(&mut self, leader: Place, to: ServerId) {
        self.count("promotion wanted");
        self.wished = Some((to, self.current.config.term.next()));
        self.for_master(leader, master::Event::Promote { group: GROUP, to });
    }

    fn want_removal(&mut self, server: ServerId) {
        if let Some(primary) = self.current.config.primary {
            self.count("removal wanted");
            let remove = primary::Event::Remove(server);
            self.for_primary(place(primary), None, remove);
        }
    }

    /// A server that is in no set is to have no replica, or is to have one again.
    fn change_servers(&mut self, leader: Place, server: ServerId) {
        let changed = |config: &Configuration| {
            let mut servers = config.servers.to_vec();
            match servers.iter().position(|held| *held == server) {
                Some(index) => {
                    let is_in_set = config.in_sync.iter().any(|m| m.server == server);
                    if is_in_set || servers.len() == 1 {
                        return None;
                    }
                    servers.remove(index);
                }
                None => servers.push(server),
            }
            servers.sort_unstable();
            Some(Configuration {
                servers: servers.into(),
                ..config.clone()
            })
        };
        if self.edit(leader, changed) {
            self.count("servers changed");
        }
    }

    /// Another table is in the group, or not any more.
    fn change_ranges(&mut self, leader: Place) {
        let another = KeyRange {
            table: "u".to_owned(),
            start: Vec::new(),
            end: None,
        };
        let both: Arc<[u8]> = [ranges(), KeyRange::encode_all(&[another])].concat().into();
        let changed = |config: &Configuration| {
            let next = match config.ranges == both {
                true => ranges().into(),
                false => Arc::clone(&both),
            };
            Some(Configuration {
                ranges: next,
                ..config.clone()
            })
        };
        if self.edit(leader, changed) {
            self.count("ranges changed");
        }
    }

    /// The master's office changes the configuration, whatever the machines do meanwhile; whether it did.
    fn edit(
        &mut self,
        leader: Place,
        changed: impl Fn(&Configuration) -> Option<Configuration>,
    ) -> bool {
        let node = &self.nodes[leader];
        let (Some(session), Office::Leader { fence }) = (node.session, node.master.office()) else {
            return false;
        };
        if node.is_cut_off || self.coordinator_down {
            return false;
        }
        let path = self.paths.group(GROUP.0);
        self.fake.carry_out(session, &Command::Sync, Fate::Answered);
        let get = Command::Get {
            path: path.clone(),
            watch: false,
        };
        let Reply::Node(found) = self.fake.carry_out(session, &get, Fate::Answered) else {
            return false;
        };
        let Ok(known) = Known::of_bytes(GROUP, &found.data, Version(found.version.0)) else {
            return false;
        };
        let Some(next) = changed(&known.config) else {
            return false;
        };
        let fence = kreon_coord::Version(fence.0);
        let swap = Command::Multi(vec![
            Operation::Set(path, bytes_of(&next), found.version),
            Operation::Check(self.paths.master_fence(), fence),
        ]);
        self.fake.carry_out(session, &swap, Fate::Answered);
        let is_changed = self.witness();
        if is_changed {
            self.on_swapped(&next);
        }
        is_changed
    }
}
