//! What must hold in every state.

use kreon_base::Lsn;
use kreon_replica::machine::Configuration;
use kreon_replica::machine::primary::{Phase, Primary};

use super::World;
use crate::toy::{Place, Write};

/// What does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A write was acknowledged, and a primary that takes office does not have it.
    Lost(Write),
    /// A primary acknowledges a write that a later primary does not have.
    LateAcknowledgement(Write),
    /// Two servers are in office in one term.
    TwoPrimaries(u64),
    /// A record lands on a log that is not what was before it.
    Diverged(Place),
    /// The members of the set are not equal when a primary takes office.
    Unequal(Place),
    /// A member of the coordinator's set is not counted by the primary.
    Uncounted(Place),
}

impl World {
    /// The server at `at` takes office.
    pub(super) fn check_office(&self, at: Place) -> Result<(), Violation> {
        let volume = &self.at(at).volume;
        let mut acknowledged = (0..64).filter(|write| self.acknowledged >> write & 1 == 1);
        if let Some(write) = acknowledged.find(|write| !volume.has(*write)) {
            return Err(Violation::Lost(write));
        }
        let Some(primary) = &self.at(at).primary else {
            return Ok(());
        };
        let peers = primary.peers().iter();
        let unequal = peers
            .filter_map(|peer| self.running(peer.member))
            .find(|place| self.at(*place).volume.log != volume.log);
        match unequal {
            Some(place) => Err(Violation::Unequal(place)),
            None => self.check_terms(),
        }
    }

    fn serving(&self) -> impl Iterator<Item = (Place, &Primary)> {
        let servers = self.servers.iter().enumerate();
        servers
            .filter(|(_, server)| server.up)
            .filter_map(|(place, server)| Some((place, server.primary.as_ref()?)))
            .filter(|(_, primary)| primary.phase() != Phase::Deposed)
    }

    /// One primary per term.
    pub(super) fn check_terms(&self) -> Result<(), Violation> {
        for (place, primary) in self.serving() {
            let same =
                |(other, p): &(Place, &Primary)| *other != place && p.term() == primary.term();
            if self.serving().any(|other| same(&other)) {
                return Err(Violation::TwoPrimaries(primary.term().0));
            }
        }
        Ok(())
    }

    /// Everybody in the coordinator's set is counted by the primary of its term.
    pub(super) fn check_counted(&self) -> Result<(), Violation> {
        let config = &self.config.config;
        for (place, primary) in self.serving() {
            if config.term != primary.term() {
                continue;
            }
            let counted = |member| {
                let mut peers = primary.peers().iter();
                peers.any(|peer| peer.member == member && peer.standing.is_counted())
            };
            let others = config.in_sync.iter().filter(|m| **m != self.member(place));
            if let Some(missing) = others.copied().find(|member| !counted(*member)) {
                return Err(Violation::Uncounted(crate::toy::place(missing)));
            }
        }
        Ok(())
    }

    /// A whole set failed and comes back as `next`: what no member with the highest superblock kept is lost, as promised. But
    /// a sole member has acknowledged only what was durable.
    pub(super) fn excuse(&mut self, next: &Configuration) {
        let before = &self.config.config;
        let gone = before
            .in_sync
            .iter()
            .all(|member| self.running(*member).is_none());
        let restarted = next.in_sync.iter().any(|member| !before.has(*member));
        if before.in_sync.len() > 1
            && next.term > before.term
            && restarted
            && (gone || before.all_needed)
        {
            let members = next.in_sync.iter();
            let volumes = members.map(|member| &self.at(crate::toy::place(*member)).volume);
            let highest = volumes.clone().map(|volume| volume.slot).max();
            let kept = |write: &Write| {
                let mut highest = volumes
                    .clone()
                    .filter(|volume| Some(volume.slot) == highest);
                highest.any(|volume| volume.has(*write))
            };
            let kept = (0..64).filter(kept).fold(0, |all, write| all | 1 << write);
            self.acknowledged &= kept;
        }
    }

    /// Replies to writes up to `upto` leave the server at `at`.
    pub(super) fn acknowledge(&mut self, at: Place, upto: Lsn) -> Result<(), Violation> {
        let server = &self.servers[at];
        let Some(primary) = &server.primary else {
            return Ok(());
        };
        let (term, upto) = (primary.term(), upto.0 as usize);
        for entry in &server.volume.log[..upto.min(server.volume.log.len())] {
            if self.acknowledged >> entry.write & 1 == 1 {
                continue;
            }
            self.acknowledged |= 1 << entry.write;
            let lacks = |(_, p): &(Place, &Primary)| p.term() > term;
            let mut later = self.serving().filter(lacks);
            if later.any(|(place, _)| !self.at(place).volume.has(entry.write)) {
                return Err(Violation::LateAcknowledgement(entry.write));
            }
        }
        Ok(())
    }
}
