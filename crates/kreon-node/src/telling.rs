//! How a server stands, as its parts tell.

use kreon_base::Lsn;
use kreon_replica::mirror::MemberStanding;
use kreon_sync::Ordering;
use kreon_wire::{Backup, Violation};

use crate::hosted::Hosted;
use crate::parts::Parts;
use crate::status::{GroupStatus, MemberStatus, NodeStatus, Traffic};

/// How a server stands now.
pub fn of(parts: &Parts) -> NodeStatus {
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
        primaries_max: parts.settings.primaries_max,
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
    let member = |(backup, standing, landed): (Backup, MemberStanding, Lsn)| MemberStatus {
        lag_bytes: backup.lag_bytes,
        durable_lag_bytes: backup.durable_lag_bytes,
        to_copy_bytes: backup.to_copy_bytes,
        member: standing.member,
        is_counted: standing.is_counted,
        landed,
        durable: standing.progress.log_durable,
        traffic: standing.traffic,
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
        members: hosted.backups().into_iter().map(member).collect(),
        barriers: told.barriers,
        replies_waiting,
        reads_waiting,
        free_bytes: told.free_bytes,
        moments: told.moments,
        has_failed: told.has_failed,
        refusals: hosted.refusals(),
    })
}
