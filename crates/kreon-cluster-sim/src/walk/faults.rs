//! What goes wrong.

use super::event::Happening;
use super::run::Walk;
use crate::toy::{Place, place};

/// What a walk tries most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    /// Everything.
    Everything,
    /// Primaries that are deposed while they are paused.
    Zombies,
    /// Answers of the coordinator that get lost.
    LostAnswers,
    /// Sets that are cut off together, for so long that their loss is accepted.
    CutOff,
}

impl Focus {
    /// The focus of the walk with this seed.
    pub(super) fn of(seed: u64) -> Self {
        match seed % 8 {
            1 | 5 => Self::Zombies,
            2 | 6 => Self::LostAnswers,
            3 => Self::CutOff,
            _ => Self::Everything,
        }
    }
}

impl Walk {
    pub(super) fn fault(&mut self) {
        match self.focus {
            Focus::Zombies => return self.make_zombie(),
            Focus::CutOff => return self.cut_off_set(),
            Focus::Everything | Focus::LostAnswers => {}
        }
        let us = 200_000 + self.dice.below(2_500_000);
        self.after(us, Happening::Fault);
        let at = self.dice.below(self.nodes.len() as u64) as Place;
        let set = self.current.config.in_sync.len();
        if self.current.config.primary.is_some() && set < self.nodes.len() {
            let us = 2_000_000 + self.dice.below(6_000_000);
            self.isolate_set(us);
        }
        match self.dice.below(15) {
            0..=2 => self.crash(at),
            3 => {
                self.count("all failed at once");
                (0..self.nodes.len()).for_each(|at| self.crash(at));
            }
            11 => self.kill(at),
            12..=13 => self.slow_down(at),
            14 => self.fail_device(),
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

    /// A member is left behind, and then the rest of the set is cut off together.
    fn cut_off_set(&mut self) {
        let set = self.current.config.in_sync.len();
        if set < self.nodes.len() && self.current.config.primary.is_some() {
            let us = 4_000_000 + self.dice.below(5_000_000);
            self.isolate_set(us);
            return self.after(us + 2_000_000, Happening::Fault);
        }
        let at = self.dice.below(self.nodes.len() as u64) as Place;
        self.crash(at);
        let us = 1_200_000 + self.dice.below(1_500_000);
        self.after(us, Happening::Fault);
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

    /// The process ends and is started again at once: what was written stays.
    fn kill(&mut self, at: Place) {
        if self.nodes[at].up {
            self.count("process killed");
            let all = self.nodes[at].volume.log.len();
            self.nodes[at].stop(all);
            let us = 5_000 + self.dice.below(200_000);
            self.after(us, Happening::Restarts(at));
        }
    }

    pub(super) fn restart(&mut self, at: Place) {
        if !self.nodes[at].up {
            self.count("restart");
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
        let both = self.dice.below(2) == 0;
        self.count(match both {
            true => "links cut both ways",
            false => "links cut one way",
        });
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

    /// The whole set is cut off from everybody but clients, and the session of its primary may be over at once.
    fn isolate_set(&mut self, us: u64) {
        if self.focus != Focus::CutOff && self.dice.below(2) == 0 {
            return;
        }
        let set: Vec<Place> = self
            .current
            .config
            .in_sync
            .iter()
            .map(|m| place(*m))
            .collect();
        self.count(match set.len() {
            1 => "sole member isolated",
            _ => "set isolated together",
        });
        for &at in &set {
            self.nodes[at].is_cut_off = true;
            self.after(us, Happening::CoordinatorHeals(at));
            for other in 0..self.nodes.len() {
                if !set.contains(&other) {
                    (self.cut[at][other], self.cut[other][at]) = (true, true);
                }
            }
        }
        self.after(us, Happening::Heals);
        if self.dice.below(2) == 0
            && let Some(primary) = self.current.config.primary
        {
            self.expire(place(primary));
        }
    }

    fn expire(&mut self, at: Place) {
        if let Some(session) = self.nodes[at].session {
            self.count("session ended early");
            self.fake.expire(session);
        }
    }

    /// How long a flush takes at a server.
    pub(super) fn flush_us(&mut self, at: Place, usual_us: u64) -> u64 {
        match self.nodes[at].slow_until_us > self.now_us {
            true => 200_000 + self.dice.below(2_000_000),
            false => self.dice.below(usual_us),
        }
    }

    fn slow_down(&mut self, at: Place) {
        self.count("slow disk");
        self.nodes[at].slow_until_us = self.now_us + 500_000 + self.dice.below(4_000_000);
    }

    /// The device of the primary fails.
    fn fail_device(&mut self) {
        if let Some(primary) = self.current.config.primary
            && self.nodes[place(primary)].primary.is_some()
        {
            self.count("device of a primary failed");
            let failed = kreon_replica::machine::primary::Event::DeviceFailed;
            self.for_primary(place(primary), None, failed);
        }
    }
}
