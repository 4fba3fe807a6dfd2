//! What the pages of a server show of it.

use kreon_node::{ClientStatus, GroupStatus, MemberStatus, NodeStatus, StreamTraffic, Traffic};
use kreon_wire::{FailureKind, GroupId, Member, ProcessId, ServerId, Stage, Term, Violation};

use super::{as_json, metrics, picture};

fn member(server: u32) -> Member {
    Member {
        server: ServerId(server),
        process: ProcessId([7; 16]),
    }
}

/// A backup that is in sync, or a joiner.
fn backup(server: u32, is_counted: bool) -> MemberStatus {
    MemberStatus {
        member: member(server),
        is_counted,
        landed: Default::default(),
        durable: Default::default(),
        lag_bytes: 1024 * u64::from(server),
        durable_lag_bytes: 1 << 20,
        to_copy_bytes: if is_counted { 0 } else { 8 << 20 },
        traffic: StreamTraffic {
            copies_bytes: 2 << 20,
            ..StreamTraffic::default()
        },
        owed_bytes: 0,
        is_log_behind: false,
        ended: None,
    }
}

fn status() -> NodeStatus {
    let group = GroupStatus {
        group: GroupId(4),
        stage: Stage::Serving,
        term: Term(9),
        version: 12,
        primary: Some(member(1)),
        in_sync: vec![member(1), member(2)],
        min_in_sync: 2,
        tail: Default::default(),
        landed: Default::default(),
        durable: Default::default(),
        members: vec![backup(2, true), backup(3, false)],
        barriers: Default::default(),
        replies_waiting: 5,
        reads_waiting: 0,
        free_bytes: None,
        moments: Default::default(),
        has_failed: false,
        refusals: vec![(FailureKind::Moved, 6)],
    };
    NodeStatus {
        cluster: "<prod>".to_owned(),
        me: member(1),
        address: "127.0.0.1:7401".to_owned(),
        domain: "rack".to_owned(),
        is_master: true,
        session_ms: Some(1000),
        primaries_max: 3,
        groups: vec![group],
        clients: ClientStatus::default(),
        traffic: Traffic::default(),
        violations: vec![(Violation::Magic, 2)],
        not_proven: 0,
        over_limit: 0,
    }
}

#[test]
fn metrics_tell_of_servers_groups_and_backups() {
    let text = metrics::text(&status());
    for line in [
        "kreon_is_master 1",
        "kreon_primaries 1",
        "kreon_primaries_max 3",
        "kreon_group_term{group=\"4\"} 9",
        "kreon_group_replies_waiting{group=\"4\"} 5",
        "kreon_backup_is_counted{group=\"4\",server=\"3\"} 0",
        "kreon_backup_lag_bytes{group=\"4\",server=\"2\"} 2048",
        "kreon_backup_durable_lag_bytes{group=\"4\",server=\"2\"} 1048576",
        "kreon_backup_copied_bytes{group=\"4\",server=\"3\"} 2097152",
        "kreon_backup_to_copy_bytes{group=\"4\",server=\"3\"} 8388608",
        "kreon_refusals_total{group=\"4\",kind=\"Moved\"} 6",
        "# TYPE kreon_requests_total counter",
        "# TYPE kreon_group_free_bytes gauge",
    ] {
        assert!(text.lines().any(|told| told == line), "{line}: {text}");
    }
    let mut types: Vec<_> = text.lines().filter(|l| l.starts_with("# TYPE")).collect();
    let all = types.len();
    types.sort_unstable();
    types.dedup();
    assert_eq!(types.len(), all, "each metric once");
}

#[test]
fn pages_tell_lags_and_joins() {
    let page = picture::page(&status());
    for told in [
        "&lt;prod&gt;",
        "2.00 KiB behind, 1.00 MiB not durable",
        "joins: 2.00 MiB of 8.00 MiB (25%) copied",
        "primary in 1 groups, at most 3",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
    let json = as_json::node(&status());
    let joiner = &json["groups"][0]["members"][1];
    assert_eq!(
        (&joiner["to_copy_bytes"], &joiner["lag_bytes"]),
        (&(8 << 20).into(), &3072.into())
    );
    assert_eq!(json["primaries_max"], 3);
}
