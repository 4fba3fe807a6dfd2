//! How a server stands, for people, pages and metrics.

use kreon_base::Lsn;
use kreon_replica::drive::Moments;
pub use kreon_replica::mirror::{BarrierTimes, StreamTraffic};
use kreon_wire::{FailureKind, GroupId, Member, ServerId, Stage, Term, Violation};

/// How a server stands at one moment. Taking it costs a lock of each group, held for microseconds.
#[derive(Clone, Debug)]
pub struct NodeStatus {
    /// Name of the cluster.
    pub cluster: String,
    /// The server, in this start.
    pub me: Member,
    /// Where others reach it.
    pub address: String,
    /// What fails together with it.
    pub domain: String,
    /// Whether it is in the office of the master.
    pub is_master: bool,
    /// Milliseconds after which the coordinator ends a session without contact, as granted; none without a session.
    pub session_ms: Option<u32>,
    /// Most groups of which it is the primary where another member can be.
    pub primaries_max: u32,
    /// Its groups, ascending.
    pub groups: Vec<GroupStatus>,
    /// Its clients.
    pub clients: ClientStatus,
    /// What went over its links to other servers.
    pub traffic: Traffic,
    /// Packets that were refused, by class: on links, in handshakes, and in requests of clients; only classes that were met.
    pub violations: Vec<(Violation, u64)>,
    /// Connections that did not prove that they have the key.
    pub not_proven: u64,
    /// Connections and links beyond the limit.
    pub over_limit: u64,
}

/// How a group stands at a server.
#[derive(Clone, Debug)]
pub struct GroupStatus {
    /// The group.
    pub group: GroupId,
    /// What the server is in it.
    pub stage: Stage,
    /// The term that it goes by.
    pub term: Term,
    /// Version of the configuration that it saw last.
    pub version: u64,
    /// The primary that it knows.
    pub primary: Option<Member>,
    /// The set, if this is the primary.
    pub in_sync: Vec<Member>,
    /// Fewest members for writes, if this is the primary.
    pub min_in_sync: u8,
    /// Behind the last record of the log, if this is the primary.
    pub tail: Lsn,
    /// The log up to here is in the memory of all counted members, if this is the primary; what was received otherwise.
    pub landed: Lsn,
    /// The log up to here is durable: on all counted members, if this is the primary.
    pub durable: Lsn,
    /// The backups and joiners, if this is the primary.
    pub members: Vec<MemberStatus>,
    /// Flushes of the volume, here and on all counted members, in this term, if this is the primary.
    pub barriers: BarrierTimes,
    /// Writes whose replies wait, if this is the primary.
    pub replies_waiting: usize,
    /// Reads that wait for their confirmation, if this is the primary.
    pub reads_waiting: usize,
    /// Free bytes of the device, of the smallest counted one if this is the primary; none if unknown.
    pub free_bytes: Option<u64>,
    /// When it came how far in its last promotion.
    pub moments: Moments,
    /// The device here failed: it joins anew.
    pub has_failed: bool,
    /// Client requests of this group that were refused since the start, by kind.
    pub refusals: Vec<(FailureKind, u64)>,
}

/// A backup or joiner, as its primary sees it.
#[derive(Clone, Debug)]
pub struct MemberStatus {
    /// Who.
    pub member: Member,
    /// Whether acknowledgements wait for it.
    pub is_counted: bool,
    /// It has the log in memory up to here.
    pub landed: Lsn,
    /// And durably up to here.
    pub durable: Lsn,
    /// Bytes of the log that it has not in memory.
    pub lag_bytes: u64,
    /// Bytes of the log that are not durable there.
    pub durable_lag_bytes: u64,
    /// While it joins: bytes that its copy has, as far as known, those that were copied included; otherwise 0.
    pub to_copy_bytes: u64,
    /// What it was sent in this term, by class.
    pub traffic: StreamTraffic,
    /// While it joins: bytes that are still to be copied from the primary's file, as far as known.
    pub owed_bytes: u64,
    /// While it joins: log that it lacks has left memory.
    pub is_log_behind: bool,
    /// Why its stream has ended, if it has.
    pub ended: Option<String>,
}

/// What clients do here.
#[derive(Clone, Debug, Default)]
pub struct ClientStatus {
    /// Links that are open.
    pub links: usize,
    /// Requests that were taken since the start.
    pub requests: u64,
    /// Those that are not answered yet.
    pub under_way: usize,
    /// Bytes of these and of answers that wait.
    pub bytes: usize,
    /// Open snapshots and scans.
    pub snapshots: usize,
    /// Links that were closed because they sent what they must not.
    pub closed_for_violation: u64,
    /// Links that were closed because their client read no answers.
    pub closed_unread: u64,
    /// Requests that were refused because of the limit of bytes.
    pub busy: u64,
}

/// Bytes that went over links to other servers since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// On links for streams: log, pages and copies.
    pub stream_bytes: u64,
    /// On links for control messages.
    pub control_bytes: u64,
}

impl NodeStatus {
    /// How a group stands here.
    pub fn group(&self, group: GroupId) -> Option<&GroupStatus> {
        self.groups.iter().find(|held| held.group == group)
    }

    /// Of how many groups it is the primary.
    pub fn primaries(&self) -> usize {
        let groups = self.groups.iter();
        groups.filter(|group| group.is_primary()).count()
    }

    /// The number of the server.
    pub fn server(&self) -> ServerId {
        self.me.server
    }
}

impl GroupStatus {
    /// Whether this server is the primary and takes reads.
    pub fn is_primary(&self) -> bool {
        matches!(self.stage, Stage::Serving | Stage::Frozen | Stage::Short)
    }
}
