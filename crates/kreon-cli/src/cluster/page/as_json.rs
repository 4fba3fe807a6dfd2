//! How a server stands, as JSON.

use kreon_node::{GroupStatus, MemberStatus, NodeStatus};
use kreon_wire::{Member, Stage};
use serde_json::{Value, json};

/// The word for a stage.
pub const fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Absent => "absent",
        Stage::Joining => "joining",
        Stage::InSync => "in sync",
        Stage::Sealed => "sealed",
        Stage::Equalising => "equalising",
        Stage::Opening => "opening",
        Stage::Serving => "primary",
        Stage::Frozen => "primary (set shrinks)",
        Stage::Short => "primary (reads only)",
        Stage::Deposed => "deposed",
        Stage::Stale => "stale",
    }
}

pub fn node(status: &NodeStatus) -> Value {
    let violations = status.violations.iter();
    let violations = violations.map(|(class, count)| (class.to_string(), json!(count)));
    json!({
        "cluster": status.cluster,
        "server": status.me.server.0,
        "process": status.me.process.to_string(),
        "address": status.address,
        "domain": status.domain,
        "is_master": status.is_master,
        "primaries": status.primaries(),
        "primaries_max": status.primaries_max,
        "session_ms": status.session_ms,
        "groups": status.groups.iter().map(group).collect::<Vec<_>>(),
        "clients": {
            "links": status.clients.links,
            "requests": status.clients.requests,
            "under_way": status.clients.under_way,
            "bytes": status.clients.bytes,
            "snapshots": status.clients.snapshots,
            "closed_for_violation": status.clients.closed_for_violation,
            "closed_unread": status.clients.closed_unread,
            "busy": status.clients.busy,
        },
        "traffic": {
            "stream_bytes": status.traffic.stream_bytes,
            "control_bytes": status.traffic.control_bytes,
        },
        "violations": violations.collect::<serde_json::Map<_, _>>(),
        "not_proven": status.not_proven,
        "over_limit": status.over_limit,
    })
}

fn server(member: Member) -> u32 {
    member.server.0
}

fn group(status: &GroupStatus) -> Value {
    json!({
        "group": status.group.0,
        "stage": stage_name(status.stage),
        "term": status.term.0,
        "version": status.version,
        "primary": status.primary.map(server),
        "in_sync": status.in_sync.iter().copied().map(server).collect::<Vec<_>>(),
        "min_in_sync": status.min_in_sync,
        "tail": status.tail.0,
        "landed": status.landed.0,
        "durable": status.durable.0,
        "members": status.members.iter().map(member).collect::<Vec<_>>(),
        "flushes": {
            "count": status.barriers.count,
            "total_us": status.barriers.total_us,
            "max_us": status.barriers.max_us,
            "waited_us": status.barriers.waited_us,
        },
        "replies_waiting": status.replies_waiting,
        "reads_waiting": status.reads_waiting,
        "free_bytes": status.free_bytes,
        "has_failed": status.has_failed,
        "refusals": status.refusals.iter().map(|(kind, count)| (format!("{kind:?}"), json!(count)))
            .collect::<serde_json::Map<_, _>>(),
    })
}

fn member(status: &MemberStatus) -> Value {
    json!({
        "server": server(status.member),
        "is_counted": status.is_counted,
        "landed": status.landed.0,
        "durable": status.durable.0,
        "log_bytes": status.traffic.log_bytes,
        "pages_bytes": status.traffic.pages_bytes,
        "copies_bytes": status.traffic.copies_bytes,
        "lag_bytes": status.lag_bytes,
        "durable_lag_bytes": status.durable_lag_bytes,
        "to_copy_bytes": status.to_copy_bytes,
        "owed_bytes": status.owed_bytes,
        "is_log_behind": status.is_log_behind,
        "ended": status.ended,
    })
}
