//! What goes wrong.

use kreon_replica::machine::master::{self, Stage};

use super::event::Happening;
use super::run::Walk;
use crate::explore::GROUP;
use crate::toy::{Place, member, place};

/// What a walk tries most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    /// Everything.
    Everything,
    /// Primaries that are deposed while they are paused.
    Zombies,
    /// Answers of the coordinator that get lost.
    LostAnswers,
}

impl Focus {
    /// The focus of the walk with this seed.
    pub(super) fn of(seed: u64) -> Self {
        match seed % 4 {
            1 => Self::Zombies,
            2 => Self::LostAnswers,
            _ => Self::Everything,
        }
    }
}

impl Walk {
    pub(super) fn fault(&mut self) {
        if self.focus == Focus::Zombies {
            return self.make_zombie();
        }
        let us = 200_000 + self.dice.below(2_500_000);
        self.after(us, Happening::Fault);
        let at = self.dice.below(self.nodes.len() as u64) as Place;
        if let (Some(primary), 1) = (
            self.current.config.primary,
            self.current.config.in_sync.len(),
        ) {
            self.isolate(place(primary));
        }
        match self.dice.below(12) {
            0..=2 => self.crash(at),
            3 => (0..self.nodes.len()).for_each(|at| self.crash(at)),
            4..=5 => self.pause(at),
            6..=8 => self.cut_links(at),
            9 => self.cut_off(at),
            10 => {
                self.count("coordinator down");
                self.coordinator_down = true;
                let us = self.dice.below(2_000_000);
                self.after(us, Happening::CoordinatorReturns);
            }
            _ => self.expire(at),
        }
    }

    /// The primary is paused for so long that another one is promoted, and comes back.
    fn make_zombie(&mut self) {
        if let Some(primary) = self.current.config.primary {
            self.pause(place(primary));
            let us = 3_000_000 + self.dice.below(3_000_000);
            self.nodes[place(primary)].paused_until_us = self.now_us + us;
        }
        self.after(9_000_000, Happening::Fault);
    }

    pub(super) fn crash(&mut self, at: Place) {
        if !self.nodes[at].up {
            return;
        }
        self.count("power cut");
        let (durable, all) = (
            self.nodes[at].volume.durable,
            self.nodes[at].volume.log.len(),
        );
        let kept = durable + self.dice.below((all - durable) as u64 + 1) as usize;
        if self.dice.below(2) == 0 {
            let gone = self.nodes[at].me();
            self.silenced.push(gone);
        }
        self.nodes[at].stop(kept);
        let us = 50_000 + self.dice.below(4_000_000);
        self.after(us, Happening::Restarts(at));
    }

    pub(super) fn restart(&mut self, at: Place) {
        if !self.nodes[at].up {
            self.nodes[at].start_again();
            self.begin_process(at);
        }
    }

    fn pause(&mut self, at: Place) {
        self.count("pause");
        self.nodes[at].backlog_us = self.dice.below(600);
        self.nodes[at].paused_until_us = self.now_us + 100_000 + self.dice.below(8_000_000);
    }

    fn cut_links(&mut self, at: Place) {
        self.count("links cut");
        let both = self.dice.below(2) == 0;
        for other in 0..self.nodes.len() {
            if other != at && self.dice.below(3) != 0 {
                self.cut[at][other] = true;
                self.cut[other][at] |= both;
            }
        }
        let us = 100_000 + self.dice.below(4_000_000);
        self.after(us, Happening::Heals);
    }

    pub(super) fn heal(&mut self) {
        for row in &mut self.cut {
            row.fill(false);
        }
    }

    fn cut_off(&mut self, at: Place) {
        self.count("cut off from the coordinator");
        self.nodes[at].is_cut_off = true;
        let us = 100_000 + self.dice.below(6_000_000);
        self.after(us, Happening::CoordinatorHeals(at));
    }

    /// A sole member is cut off from everybody but clients, and its session may be over at once.
    fn isolate(&mut self, at: Place) {
        if self.dice.below(2) == 0 {
            return;
        }
        self.count("sole member isolated");
        self.nodes[at].is_cut_off = true;
        for other in 0..self.nodes.len() {
            (self.cut[at][other], self.cut[other][at]) = (true, true);
        }
        let us = 2_000_000 + self.dice.below(6_000_000);
        self.after(us, Happening::Heals);
        self.after(us, Happening::CoordinatorHeals(at));
        if self.dice.below(2) == 0 {
            self.expire(at);
        }
    }

    fn expire(&mut self, at: Place) {
        if let Some(session) = self.nodes[at].session {
            self.count("session ended early");
            self.fake.expire(session);
        }
    }

    /// An operator accepts loss where a group waits, if whoever is given up is dead, or alone and cut off: of a set of
    /// several that is cut off as a whole nobody can know that it stopped.
    pub(super) fn operate(&mut self) {
        self.after(100_000, Happening::Operator);
        let waits = |node: &super::node::Node| {
            node.up && node.is_leader && node.master.stage(GROUP) == Some(&Stage::Waiting)
        };
        let Some(master) = self.nodes.iter().position(waits) else {
            return;
        };
        let set = &self.current.config.in_sync;
        let runs = |at: Place| self.nodes[at].up;
        let alive = |m: &&kreon_replica::machine::Member| {
            let at = place(**m);
            runs(at) && self.nodes[at].me() == **m
        };
        let running = set.iter().filter(alive).count();
        if running > 0 && set.len() > 1 {
            return;
        }
        let chosen = self.dice.below(self.nodes.len() as u64) as Place;
        let in_set = set.contains(&member(chosen, self.nodes[chosen].start));
        let usable = runs(chosen) && self.nodes[chosen].volume.slot.is_some() && !in_set;
        if usable && self.dice.below(3) == 0 {
            self.count("loss accepted");
            let server = self.nodes[chosen].me().server;
            self.for_master(master, master::Event::AcceptLoss(GROUP, server));
        }
    }
}
