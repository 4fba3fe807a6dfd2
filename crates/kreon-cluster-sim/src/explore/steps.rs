//! Which steps are possible, and what each does.

use kreon_replica::machine::master::{self, Stage};
use kreon_replica::machine::primary::{self, Phase, Primary};
use kreon_replica::machine::{Moment, Timing, replica};

use super::world::{GROUP, MASTER};
use super::{Bounds, Step, Violation, Work, World};
use crate::toy::{Entry, Place, place};

impl World {
    /// Appends all steps that are possible within `bounds`.
    pub fn steps(&self, bounds: &Bounds, out: &mut Vec<Step>) {
        for at in 0..self.servers.len() {
            match self.at(at).up {
                true => self.steps_of(at, bounds, out),
                false => out.push(Step::Restart(at)),
            }
        }
        if self.config.config.term.0 < bounds.terms && self.config.config.primary.is_some() {
            out.push(Step::Expire);
        }
        if self.may_decide() {
            out.push(Step::Decide);
        }
    }

    fn steps_of(&self, at: Place, bounds: &Bounds, out: &mut Vec<Step>) {
        let server = self.at(at);
        if !server.seals.is_empty() {
            out.push(Step::Seal(at));
        }
        if let Some(package) = &server.package
            && let Some(from) = self.running(package.from)
        {
            out.push(Step::Equalise(from, at));
        }
        if let Some(primary) = &server.primary {
            self.steps_of_primary(at, primary, bounds, out);
        }
        self.steps_of_candidate(at, out);
        if self.crashes < bounds.crashes {
            let kept = server.volume.durable..=server.volume.log.len();
            out.extend(kept.map(|kept| Step::Crash(at, kept)));
        }
    }

    fn steps_of_primary(&self, at: Place, primary: &Primary, bounds: &Bounds, out: &mut Vec<Step>) {
        let volume = &self.at(at).volume;
        let takes_writes = matches!(primary.phase(), Phase::Serving | Phase::Frozen);
        if takes_writes && self.written < bounds.writes {
            out.push(Step::Put(at));
        }
        if volume.durable < volume.log.len() {
            out.push(Step::Flush(at));
        }
        if self.at(at).asked.is_some() {
            out.push(Step::Swap(at));
        }
        if self.at(at).completing.is_some() && self.can_complete(at) {
            out.push(Step::Complete(at));
        }
        for peer in primary.peers() {
            if !peer.is_failed {
                out.push(Step::Fail(at, place(peer.member)));
            }
            let to = place(peer.member);
            if (self.at(at).received[to] as u64) > peer.landed.0 {
                out.push(Step::Progress(at, to));
            }
            if self.running(peer.member).is_some() && self.can_land(at, to) {
                out.push(Step::Land(at, to));
            }
        }
        if self.joins < bounds.joins {
            let others = (0..self.servers.len()).filter(|to| self.can_join(at, primary, *to));
            out.extend(others.map(|to| Step::Join(at, to)));
        }
    }

    fn can_land(&self, at: Place, to: Place) -> bool {
        let Some(primary) = &self.at(at).primary else {
            return false;
        };
        let next = self.at(at).received[to];
        let admitted = self.at(to).replica.admits(self.member(at), primary.term());
        admitted && next < self.at(at).volume.log.len()
    }

    fn can_join(&self, at: Place, primary: &Primary, to: Place) -> bool {
        let known = primary.known();
        let mut peers = primary.peers().iter();
        let server = self.at(to);
        to != at
            && server.up
            && server.primary.is_none()
            && *known == *self.config
            && primary.changes_to().is_none()
            && !peers.any(|peer| place(peer.member) == to)
    }

    fn steps_of_candidate(&self, at: Place, out: &mut Vec<Step>) {
        let office = match self.at(at).replica.state() {
            replica::State::Equalising(office) | replica::State::Opening(office) => office,
            _ => return,
        };
        for (member, _, is_failed) in &office.mates {
            if !is_failed {
                out.push(Step::Fail(at, place(*member)));
            }
        }
        let everybody = office
            .mates
            .iter()
            .all(|(member, ..)| self.running(*member).is_some());
        if self.at(at).opening.is_some() && everybody {
            out.push(Step::Opened(at));
        }
    }

    fn may_decide(&self) -> bool {
        matches!(self.master.stage(GROUP), Some(Stage::Sealing { reports, .. }) if !reports.is_empty())
            && self.config.config.primary.is_none()
    }

    /// Takes a step that is possible, and checks what is left.
    pub fn take(&mut self, step: Step) -> Result<(), Violation> {
        match step {
            Step::Put(at) => self.put(at),
            Step::Flush(at) => {
                let volume = &mut self.at_mut(at).volume;
                volume.flush();
                let durable = primary::Event::Durable(volume.end());
                self.settle(Work::Primary(at, durable))
            }
            Step::Land(at, to) => self.land(at, to),
            Step::Progress(at, from) => {
                let landed = kreon_base::Lsn(self.at(at).received[from] as u64);
                let progress = primary::Event::Progress {
                    from: self.peer_at(at, from),
                    landed,
                    durable: kreon_base::Lsn(0),
                };
                self.settle(Work::Primary(at, progress))
            }
            Step::Fail(at, of) => self.fail(at, of),
            Step::Swap(at) => self.swap(at),
            Step::Join(_, to) => {
                self.joins += 1;
                self.joining = true;
                let joined = self.settle(Work::Replica(to, replica::Event::Look));
                self.joining = false;
                joined
            }
            Step::Complete(at) => {
                let mut queue = std::collections::VecDeque::new();
                self.complete(at, &mut queue);
                queue.into_iter().try_for_each(|work| self.settle(work))
            }
            Step::Crash(at, kept) => {
                self.crashes += 1;
                self.crash(at, kept);
                Ok(())
            }
            Step::Restart(at) => self.restart(at),
            Step::Expire => self.expire(),
            Step::Seal(at) => self.seal(at),
            Step::Decide => {
                let later = Moment(Timing::default().seal_patience_us);
                self.settle(Work::MasterLater(later))
            }
            Step::Equalise(_, at) => self.equalise(at),
            Step::Opened(at) => self.opened(at),
        }?;
        self.check_terms()?;
        self.check_counted()
    }

    fn put(&mut self, at: Place) -> Result<(), Violation> {
        let Some(term) = self.at(at).primary.as_ref().map(Primary::term) else {
            return Ok(());
        };
        let entry = Entry {
            write: self.written as u16,
            term: term.0 as u16,
            ends_unit: true,
        };
        self.written += 1;
        let volume = &mut self.at_mut(at).volume;
        volume.log.push(entry);
        let appended = primary::Event::Appended(volume.end());
        self.settle(Work::Primary(at, appended))
    }

    fn land(&mut self, at: Place, to: Place) -> Result<(), Violation> {
        let next = self.at(at).received[to];
        let source = &self.at(at).volume.log;
        if self.at(to).volume.log[..] != source[..next] {
            return Err(Violation::Diverged(to));
        }
        let entry = source[next];
        self.at_mut(to).volume.log.push(entry);
        self.at_mut(at).received[to] = next + 1;
        Ok(())
    }

    /// The start of the server at `of` that the primary at `at` knows.
    fn peer_at(&self, at: Place, of: Place) -> kreon_replica::machine::Member {
        let primary = self.at(at).primary.as_ref();
        let peer = primary.and_then(|primary| {
            let mut peers = primary.peers().iter();
            peers.find(|peer| place(peer.member) == of)
        });
        peer.map_or(self.member(of), |peer| peer.member)
    }

    fn fail(&mut self, at: Place, of: Place) -> Result<(), Violation> {
        if self.at(at).primary.is_some() {
            let failed = primary::Event::Failed(self.peer_at(at, of));
            return self.settle(Work::Primary(at, failed));
        }
        let office = match self.at(at).replica.state() {
            replica::State::Equalising(office) | replica::State::Opening(office) => office,
            _ => return Ok(()),
        };
        let mut mates = office.mates.iter().map(|(member, ..)| *member);
        match mates.find(|member| place(*member) == of) {
            Some(member) => self.settle(Work::Replica(at, replica::Event::Failed(member))),
            None => Ok(()),
        }
    }

    fn swap(&mut self, at: Place) -> Result<(), Violation> {
        let Some((ticket, ask)) = self.at_mut(at).asked.take() else {
            return Ok(());
        };
        let mut queue = std::collections::VecDeque::new();
        let answer = self.ask(&ask, &mut queue);
        self.settle(Work::Primary(at, primary::Event::Answer(ticket, answer)))?;
        queue.into_iter().try_for_each(|work| self.settle(work))
    }

    fn crash(&mut self, at: Place, kept: usize) {
        let gone = self.member(at);
        self.at_mut(at).stop(kept);
        for place in 0..self.servers.len() {
            let of_gone = |server: &super::world::Server| {
                server.package.is_some_and(|package| package.from == gone)
                    || server.seals.iter().any(|(from, _)| *from == gone.server)
            };
            if of_gone(self.at(place)) {
                let server = self.at_mut(place);
                server.package = server.package.filter(|package| package.from != gone);
                server.seals.retain(|(from, _)| *from != gone.server);
            }
        }
    }

    fn restart(&mut self, at: Place) -> Result<(), Violation> {
        self.at_mut(at).start_again(at);
        self.live[at] = Some(self.at(at).start);
        self.tell_live()
    }

    /// The session of the primary ends. If it lives, it gets a new one at once.
    fn expire(&mut self) -> Result<(), Violation> {
        let Some(primary) = self.config.config.primary else {
            return Ok(());
        };
        let at = place(primary);
        self.live[at] = None;
        self.tell_live()?;
        if self.at(at).up {
            self.live[at] = Some(self.at(at).start);
            self.tell_live()?;
        }
        Ok(())
    }

    fn tell_live(&mut self) -> Result<(), Violation> {
        let live = self.live_members();
        self.settle(Work::Master(master::Event::Live(live)))
    }

    fn seal(&mut self, at: Place) -> Result<(), Violation> {
        let seals = std::mem::take(&mut self.at_mut(at).seals);
        for (from, term) in seals.into_iter().rev() {
            debug_assert!(from == MASTER || term.0 > 0);
            self.settle(Work::Replica(at, replica::Event::Seal { from, term }))?;
        }
        Ok(())
    }

    fn equalise(&mut self, at: Place) -> Result<(), Violation> {
        let Some(package) = self.at_mut(at).package.take() else {
            return Ok(());
        };
        let event = replica::Event::Equalise {
            from: package.from,
            term: package.term,
            top: package.top,
            log_end: package.log_end,
        };
        self.settle(Work::Replica(at, event))
    }

    /// The candidate's engine is open: its first checkpoint is on all members.
    fn opened(&mut self, at: Place) -> Result<(), Violation> {
        let Some(term) = self.at_mut(at).opening.take() else {
            return Ok(());
        };
        let mates: Vec<_> = match self.at(at).replica.state() {
            replica::State::Opening(office) => office.mates.iter().map(|m| m.0).collect(),
            _ => return Ok(()),
        };
        self.at_mut(at).volume.checkpoint(term);
        let slot = self.at(at).volume.slot;
        self.give_slot(&mates, slot);
        self.settle(Work::Replica(at, replica::Event::Opened(term)))
    }
}
