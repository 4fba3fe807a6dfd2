//! What the server above asks: how a group stands here, and who is in office.

use std::sync::Arc;

use kreon_base::{Lsn, Result};
use kreon_engine::Engine;
use kreon_wire::{GroupId, Member, ServerId, Standing, Term};

use super::group::{Group, Moments};
use super::server::Server;
use crate::machine::primary::{self, Met, ReadId};
use crate::machine::{Known, Version};
use crate::mirror::{BarrierTimes, MemberStanding};

/// How a group stands at this server.
#[derive(Clone, Debug)]
pub struct Told {
    /// What the server is in it, as others are told.
    pub standing: Standing,
    /// The term below which nothing counts here.
    pub term: Term,
    /// Version of the latest configuration that was seen.
    pub version: Version,
    /// Whom this replica follows, or itself if it is the primary.
    pub primary: Option<Member>,
    /// What the primary goes by, if this is it.
    pub known: Option<Known>,
    /// End of the log, if this is the primary.
    pub tail: Lsn,
    /// The backups and joiners, if this is the primary, each with the end of the log that it has in memory.
    pub members: Vec<(MemberStanding, Lsn)>,
    /// Flushes of the volume in this term, if this is the primary.
    pub barriers: BarrierTimes,
    /// Free bytes of the device, as far as known.
    pub free_bytes: Option<u64>,
    /// When it came how far in its last promotion.
    pub moments: Moments,
    /// The file failed.
    pub has_failed: bool,
}

impl Group {
    /// The term below which nothing counts here.
    pub fn promised(&self) -> Term {
        self.core().replica.promised()
    }

    /// As [`read`](Self::read), of a value that was taken in the office of `term`: in a later one it does not count.
    pub fn read_of(&self, term: Term, read: ReadId, met: Option<Met>) {
        let mut core = self.core();
        match &core.office {
            Some(office) if office.machine.term() == term => {
                self.primary(&mut core, primary::Event::Read { read, met });
            }
            _ => self.host.drop_read(read),
        }
    }

    /// The primary is to leave its office to another member: it takes no more writes, answers those that it has, and resigns.
    /// Nothing happens if this is not the primary, or nobody else is in the set.
    pub fn hand_over(&self) {
        self.primary(&mut self.core(), primary::Event::HandOver);
    }

    /// The primary is to give a member up, and does not take it in again in its term. Nothing happens if this is not the
    /// primary, or `server` is its own.
    pub fn remove(&self, server: ServerId) {
        self.primary(&mut self.core(), primary::Event::Remove(server));
    }

    /// How the group stands here. Takes the lock of its machines for a moment.
    pub fn told(&self) -> Told {
        let core = self.core();
        let office = core.office.as_ref();
        let store = office.map(|office| Arc::clone(&office.store));
        let followed = core.replica.stream().map(|stream| stream.primary);
        let following = core.following.as_ref();
        let seen = core.replica.seen();
        let mut told = Told {
            standing: self.standing(&core),
            term: core.replica.promised(),
            version: seen.version,
            primary: office.map(|_| self.me).or(followed),
            known: office.map(|office| office.machine.known().clone()),
            tail: Lsn(0),
            members: Vec::new(),
            barriers: BarrierTimes::default(),
            free_bytes: following.and_then(|following| following.device.free_bytes()),
            moments: self.moments(),
            has_failed: core.has_failed,
        };
        drop(core);
        if let Some(store) = store {
            let engine: &Engine = store.engine();
            told.tail = engine.log_tail();
            let positions = store.mirror().positions();
            let landed = |member: Member| {
                let own = positions.iter().find(|position| position.member == member);
                own.map_or(Lsn(0), |position| position.landed)
            };
            let members = store.mirror().standing().into_iter();
            told.members = members
                .map(|held| {
                    let upto = landed(held.member);
                    (held, upto)
                })
                .collect();
            told.barriers = store.mirror().barrier_times();
            told.free_bytes = kreon_device::Device::free_bytes(&**store.device());
        }
        told
    }
}

impl Server {
    /// Ends to be a replica of a group, as a crash of it would: whoever follows from the configuration goes on. Its file is
    /// closed when this returns. Nothing happens if it is not here.
    pub fn remove_group(&self, id: GroupId) {
        if let Some(group) = self.take_group(id) {
            group.end();
        }
    }

    /// An in-sync member is to be promoted. Whether it is shows in the configuration; if not,
    /// [`promotion_is_refused`](Self::promotion_is_refused) may say so at once. Whom the master wants to hand over,
    /// [`take_hand_overs`](Self::take_hand_overs) tells.
    ///
    /// # Errors
    /// `InvalidArgument`: this server is not the master.
    pub fn promote(&self, group: GroupId, to: ServerId) -> Result<()> {
        self.mastering().promote(group, to)
    }

    /// Whether the promotion that was ordered last was refused: the group is not well, or the server not in its set.
    pub fn promotion_is_refused(&self, group: GroupId) -> bool {
        self.mastering().promotion_is_refused(group)
    }

    /// Primaries that are to hand over, each told once: [`Group::hand_over`] at their servers.
    pub fn take_hand_overs(&self) -> Vec<(GroupId, Member)> {
        self.mastering().take_hand_overs()
    }

    /// The version of the node of the master's office, if this server is in it: each write of a master checks it.
    pub fn fence(&self) -> Option<Version> {
        self.mastering().fence()
    }
}
