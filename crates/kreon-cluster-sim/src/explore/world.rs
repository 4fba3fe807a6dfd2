//! The state of a small cluster: the machines, toy volumes, the coordinator, and what is under way between them.

use std::sync::Arc;

use kreon_base::Lsn;
use kreon_replica::machine::master::{self, GroupId, Master};
use kreon_replica::machine::primary::Primary;
use kreon_replica::machine::replica::{self, Replica};
use kreon_replica::machine::{
    Ask, Configuration, Known, Member, Moment, ServerId, SlotMark, Term, Ticket, Timing, Version,
};

use super::{Bounds, Step, Work};
use crate::toy::{Place, Volume, member};

/// The only group.
pub const GROUP: GroupId = GroupId(1);

/// The server of the master; it has no replica.
pub const MASTER: ServerId = ServerId(99);

/// All that happens within bounds happens at one moment: no machine waits for a clock here.
pub const NOW: Moment = Moment(0);

/// State of a candidate that is on its way to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// The candidate.
    pub from: Member,
    /// Its term.
    pub term: Term,
    /// The superblock.
    pub top: SlotMark,
    /// End of the log.
    pub log_end: Lsn,
}

/// A server with its replica.
#[derive(Clone, Debug)]
pub struct Server {
    /// Which start of it this is, or was.
    pub start: u8,
    /// Whether it runs.
    pub up: bool,
    /// Its volume.
    pub volume: Volume,
    /// The machine of the replica.
    pub replica: Replica,
    /// The machine of the primary, while it is in office.
    pub primary: Option<Primary>,
    /// While it is in office: how much of its log each server has received.
    pub received: Vec<usize>,
    /// A swap of the primary that the coordinator has not carried out.
    pub asked: Option<(Ticket, Ask)>,
    /// The checkpoint that completes this joiner's volume.
    pub completing: Option<Member>,
    /// The engine opens.
    pub opening: Option<Term>,
    /// Seals on their way here.
    pub seals: Vec<(ServerId, Term)>,
    /// The state of a candidate, on its way here.
    pub package: Option<Package>,
}

/// A small cluster.
#[derive(Clone, Debug)]
pub struct World {
    /// What the coordinator holds.
    pub config: Arc<Known>,
    /// The servers.
    pub servers: Vec<Arc<Server>>,
    /// The machine of the only master.
    pub master: Arc<Master>,
    /// Which starts of servers have a session, as the master was told.
    pub live: Vec<Option<u8>>,
    /// Writes so far.
    pub written: usize,
    /// Writes that were acknowledged, a bit each.
    pub acknowledged: u64,
    /// Power cuts so far.
    pub crashes: u8,
    /// Joins so far.
    pub joins: u8,
    /// A join is what happens now.
    pub joining: bool,
}

impl World {
    /// All servers are in the set, the first one is the primary.
    pub fn new(bounds: &Bounds) -> Self {
        let places = 0..bounds.replicas;
        let in_sync: Vec<Member> = places.clone().map(|place| member(place, 0)).collect();
        let config = Configuration {
            term: Term(1),
            primary: None,
            servers: in_sync.iter().map(|member| member.server).collect(),
            in_sync: in_sync.into(),
            min_in_sync: 1,
            after_loss: false,
            loss_term: Term(0),
            all_needed: false,
            ranges: Arc::new([]),
        };
        let known = Known {
            version: Version(1),
            config,
        };
        let mut world = Self {
            config: Arc::new(known),
            servers: places
                .clone()
                .map(|place| Arc::new(Server::new(place, bounds)))
                .collect(),
            master: Arc::new(Master::new([GROUP], Timing::default())),
            live: places.map(|_| Some(0)).collect(),
            written: 0,
            acknowledged: 0,
            crashes: 0,
            joins: 0,
            joining: false,
        };
        world.elect();
        world
    }

    /// The server at `place`.
    pub fn at(&self, place: Place) -> &Server {
        &self.servers[place]
    }

    /// The server at `place`, to change.
    pub fn at_mut(&mut self, place: Place) -> &mut Server {
        Arc::make_mut(&mut self.servers[place])
    }

    /// Who the server at `place` is at present.
    pub fn member(&self, place: Place) -> Member {
        member(place, self.at(place).start)
    }

    /// The place of a member that runs.
    pub fn running(&self, wanted: Member) -> Option<Place> {
        let place = crate::toy::place(wanted);
        let server = self.servers.get(place)?;
        (server.up && self.member(place) == wanted).then_some(place)
    }

    /// The live members, as the master is told.
    pub fn live_members(&self) -> Vec<Member> {
        let live = self.live.iter().enumerate();
        live.filter_map(|(place, start)| start.map(|start| member(place, start)))
            .collect()
    }

    /// The master is elected and promotes the first server in term 1, as after a start of the whole cluster.
    fn elect(&mut self) {
        let live = self.live_members();
        let told = [
            Work::Master(master::Event::Live(live)),
            Work::Master(master::Event::Elected(Version(1))),
        ];
        for work in told {
            // Nothing was written yet, so nothing can be lost.
            let _ = self.settle(work);
        }
        let bounds = Bounds {
            writes: 0,
            crashes: 0,
            terms: 1,
            joins: 0,
            ..Bounds::TWO
        };
        let mut steps = Vec::new();
        loop {
            steps.clear();
            self.steps(&bounds, &mut steps);
            let starts =
                |step: &&Step| matches!(step, Step::Seal(_) | Step::Equalise(..) | Step::Opened(_));
            let Some(step) = steps.iter().find(starts) else {
                return;
            };
            let _ = self.take(*step);
        }
    }
}

impl Server {
    fn new(place: Place, bounds: &Bounds) -> Self {
        let volume = Volume::new();
        Self {
            start: 0,
            up: true,
            replica: Replica::new(
                member(place, 0),
                true,
                Term(0),
                volume.persisted,
                Timing::default(),
            ),
            volume,
            primary: None,
            received: vec![0; bounds.replicas],
            asked: None,
            completing: None,
            opening: None,
            seals: Vec::new(),
            package: None,
        }
    }

    /// The process is gone, and what was on its way to it.
    pub fn stop(&mut self, kept: usize) {
        self.up = false;
        self.volume.cut(kept);
        self.primary = None;
        self.asked = None;
        self.completing = None;
        self.opening = None;
        self.seals.clear();
        self.package = None;
        self.received.fill(0);
    }

    /// A new process with what the volume has.
    pub fn start_again(&mut self, place: Place) {
        self.up = true;
        self.start += 1;
        let stamp = self.volume.persisted;
        let file = self.volume.slot.is_some();
        let me = member(place, self.start);
        self.replica = Replica::new(me, file, stamp.term, stamp, Timing::default());
    }

    /// Whether the replica is sealed in `term`.
    pub fn is_sealed(&self, term: Term) -> bool {
        matches!(self.replica.state(), replica::State::Sealed { term: sealed, .. } if *sealed == term)
    }
}
