//! A server of a walk.

use std::collections::BTreeSet;

use kreon_coord::fake::SessionId;
use kreon_replica::machine::master::Master;
use kreon_replica::machine::primary::{Primary, ReadId};
use kreon_replica::machine::replica::Replica;
use kreon_replica::machine::{Member, Moment, SlotMark, Term, Timing};

use super::clients::Request;
use crate::explore::GROUP;
use crate::toy::{Place, Volume, member};

/// A checkpoint of a primary or candidate: a barrier, the superblock, a barrier.
#[derive(Clone, Debug)]
pub(super) struct Checkpoint {
    pub(super) number: u64,
    pub(super) waits_for: BTreeSet<Member>,
    /// The superblock; none before the first barrier ended.
    pub(super) slot: Option<SlotMark>,
    /// Whom it completes; none for the first of a term.
    pub(super) joiner: Option<Member>,
}

/// A read that is not shown yet: what it saw, and what had been promised when it began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) read: ReadId,
    /// It saw so much of the log.
    pub(super) saw: usize,
    /// The value that it found.
    pub(super) found: Option<crate::toy::Write>,
    pub(super) begun_us: u64,
    pub(super) request: Request,
}

/// A write of a client that waits for its acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writing {
    pub(super) write: u16,
    pub(super) end: usize,
    pub(super) sync: bool,
    pub(super) request: Request,
}

/// A server.
pub(super) struct Node {
    pub(super) at: Place,
    pub(super) start: u8,
    pub(super) up: bool,
    pub(super) paused_until_us: u64,
    /// After a pause, messages are looked at so much later.
    pub(super) backlog_us: u64,
    /// Its clock against the true one, in millionths, and where it began.
    pub(super) rate_ppm: u64,
    pub(super) clock_from_us: u64,
    pub(super) volume: Volume,
    pub(super) replica: Replica,
    pub(super) primary: Option<Primary>,
    pub(super) master: Master,
    pub(super) session: Option<SessionId>,
    pub(super) candidate: Option<String>,
    pub(super) is_leader: bool,
    pub(super) contact_us: u64,
    pub(super) is_cut_off: bool,
    pub(super) checkpoint: Option<Checkpoint>,
    /// The log of the candidate, until it is taken over.
    pub(super) package: Option<Vec<crate::toy::Entry>>,
    pub(super) reads: Vec<Reading>,
    pub(super) writes: Vec<Writing>,
    pub(super) takes_writes: bool,
    pub(super) durable_everywhere: usize,
    pub(super) flushed_us: u64,
    /// Its disk is slow until then.
    pub(super) slow_until_us: u64,
}

impl Node {
    pub(super) fn new(at: Place, rate_ppm: u64, clock_from_us: u64) -> Self {
        let volume = Volume::new();
        let timing = Timing::default();
        let me = member(at, 0);
        Self {
            at,
            start: 0,
            up: true,
            paused_until_us: 0,
            backlog_us: 0,
            rate_ppm,
            clock_from_us,
            replica: Replica::new(me, true, Term(0), volume.persisted, timing),
            volume,
            primary: None,
            master: Master::new([GROUP], timing),
            session: None,
            candidate: None,
            is_leader: false,
            contact_us: 0,
            is_cut_off: false,
            checkpoint: None,
            package: None,
            reads: Vec::new(),
            writes: Vec::new(),
            takes_writes: false,
            durable_everywhere: 0,
            flushed_us: 0,
            slow_until_us: 0,
        }
    }

    pub(super) fn me(&self) -> Member {
        member(self.at, self.start)
    }

    /// Its clock when the true one shows `us`.
    pub(super) fn clock(&self, us: u64) -> Moment {
        Moment(self.clock_from_us + us * self.rate_ppm / 1_000_000)
    }

    /// The process ends; `kept` records survive.
    pub(super) fn stop(&mut self, kept: usize) {
        self.up = false;
        self.volume.cut(kept);
        drop(self.leave_office()); // nobody is told
        self.session = None;
        self.candidate = None;
        self.is_leader = false;
    }

    /// The office ends; who waits for an answer.
    pub(super) fn leave_office(&mut self) -> (Vec<Writing>, Vec<Reading>) {
        self.primary = None;
        self.checkpoint = None;
        self.package = None;
        self.takes_writes = false;
        let writes = std::mem::take(&mut self.writes);
        (writes, std::mem::take(&mut self.reads))
    }

    /// A new process.
    pub(super) fn start_again(&mut self) {
        self.up = true;
        self.start += 1;
        self.paused_until_us = 0;
        self.volume.drop_part_of_unit();
        let (stamp, file) = (self.volume.persisted, self.volume.slot.is_some());
        let timing = Timing::default();
        self.replica = Replica::new(self.me(), file, stamp.term, stamp, timing);
        self.master = Master::new([GROUP], timing);
    }
}
