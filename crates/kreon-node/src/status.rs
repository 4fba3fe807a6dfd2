//! How a server stands, for people, pages and metrics.

use kreon_base::Lsn;
use kreon_replica::drive::Moments;
use kreon_replica::mirror::MemberStanding;
use kreon_sync::Ordering;
use kreon_wire::{FailureKind, GroupId, Member, ServerId, Stage, Term, Violation};

use crate::hosted::Hosted;
use crate::node::Parts;

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

/// How a server stands now.
pub(crate) fn of(parts: &Parts) -> NodeStatus {
    let counts = parts.fabric.counts();
    let session_ms = parts.session_ms.load(Ordering::Relaxed);
    let (stream_bytes, control_bytes) = parts.links.sent_bytes();
    let usage = &parts.desk.usage;
    let by_class = |(class, of_links): (Violation, u64)| {
        let all = of_links + counts.violations.of(class) + usage.violations.of(class);
        (all > 0).then_some((class, all))
    };
    NodeStatus {
        cluster: parts.settings.cluster.clone(),
        me: parts.me,
        address: parts.address.clone(),
        domain: parts.settings.domain(),
        is_master: parts.server.fence().is_some(),
        session_ms: Some(session_ms).filter(|ms| *ms > 0),
        groups: parts
            .desk
            .groups()
            .iter()
            .filter_map(|hosted| group(hosted))
            .collect(),
        clients: usage.status(),
        traffic: Traffic {
            stream_bytes,
            control_bytes,
        },
        violations: parts
            .links
            .violations()
            .all()
            .filter_map(by_class)
            .collect(),
        not_proven: counts.not_proven.get(),
        over_limit: counts.over_limit.get(),
    }
}

/// How a group stands; none if it is being given up.
fn group(hosted: &Hosted) -> Option<GroupStatus> {
    let told = hosted.group()?.told();
    let (replies_waiting, reads_waiting) = hosted.waiting();
    let config = told.known.map(|known| known.config);
    let member = |(standing, landed): (MemberStanding, Lsn)| MemberStatus {
        member: standing.member,
        is_counted: standing.is_counted,
        landed,
        durable: standing.progress.log_durable,
        owed_bytes: standing.owed_bytes,
        is_log_behind: standing.is_log_behind,
        ended: standing.ended.map(|error| error.to_string()),
    };
    Some(GroupStatus {
        group: hosted.id,
        stage: told.standing.stage,
        term: told.term,
        version: told.version.0,
        primary: told.primary,
        in_sync: config
            .as_ref()
            .map_or(Vec::new(), |config| config.in_sync.to_vec()),
        min_in_sync: config.map_or(0, |config| config.min_in_sync),
        tail: told.tail,
        landed: told.standing.landed,
        durable: told.standing.durable,
        members: told.members.into_iter().map(member).collect(),
        replies_waiting,
        reads_waiting,
        free_bytes: told.free_bytes,
        moments: told.moments,
        has_failed: told.has_failed,
        refusals: hosted.refusals(),
    })
}
