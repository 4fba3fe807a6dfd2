//! Metrics in the text format of Prometheus. Names end in their unit; counters in `_total`.

use std::fmt::Write as _;

use kreon_node::{GroupStatus, NodeStatus};

/// A metric of each group.
struct Metric {
    name: &'static str,
    help: &'static str,
    value: fn(&GroupStatus) -> u64,
}

const OF_GROUPS: &[Metric] = &[
    Metric {
        name: "kreon_group_is_primary",
        help: "Whether this server is the primary.",
        value: |group| group.is_primary().into(),
    },
    Metric {
        name: "kreon_group_term",
        help: "Term of the group.",
        value: |group| group.term.0,
    },
    Metric {
        name: "kreon_group_in_sync",
        help: "Members of the set, as its primary knows it.",
        value: |group| group.in_sync.len() as u64,
    },
    Metric {
        name: "kreon_group_tail_bytes",
        help: "End of the log.",
        value: |group| group.tail.0,
    },
    Metric {
        name: "kreon_group_landed_bytes",
        help: "The log up to here is in the memory of all counted members.",
        value: |group| group.landed.0,
    },
    Metric {
        name: "kreon_group_durable_bytes",
        help: "The log up to here is durable.",
        value: |group| group.durable.0,
    },
    Metric {
        name: "kreon_group_replies_waiting",
        help: "Writes whose replies wait for backups.",
        value: |group| group.replies_waiting as u64,
    },
    Metric {
        name: "kreon_group_reads_waiting",
        help: "Reads that wait for their confirmation.",
        value: |group| group.reads_waiting as u64,
    },
    Metric {
        name: "kreon_group_join_owed_bytes",
        help: "Bytes that joiners still need.",
        value: |group| group.members.iter().map(|member| member.owed_bytes).sum(),
    },
    Metric {
        name: "kreon_group_term_log_bytes",
        help: "Log that the primary sent in this term.",
        value: |group| {
            group
                .members
                .iter()
                .map(|member| member.traffic.log_bytes)
                .sum()
        },
    },
    Metric {
        name: "kreon_group_term_page_bytes",
        help: "Pages that the primary sent in this term.",
        value: |group| {
            group
                .members
                .iter()
                .map(|member| member.traffic.pages_bytes)
                .sum()
        },
    },
    Metric {
        name: "kreon_group_term_copy_bytes",
        help: "Copies for joiners that the primary sent in this term.",
        value: |group| {
            group
                .members
                .iter()
                .map(|member| member.traffic.copies_bytes)
                .sum()
        },
    },
    Metric {
        name: "kreon_group_term_flushes",
        help: "Flushes on all copies in this term.",
        value: |group| group.barriers.count,
    },
    Metric {
        name: "kreon_group_term_flush_us",
        help: "Their time.",
        value: |group| group.barriers.total_us,
    },
    Metric {
        name: "kreon_group_term_flush_max_us",
        help: "Time of the longest.",
        value: |group| group.barriers.max_us,
    },
];

/// All metrics of a server.
pub fn text(status: &NodeStatus) -> String {
    let mut text = String::new();
    for metric in OF_GROUPS {
        head(&mut text, metric.name, "gauge", metric.help);
        for group in &status.groups {
            let _ = writeln!(
                text,
                "{}{{group=\"{}\"}} {}",
                metric.name,
                group.group.0,
                (metric.value)(group)
            );
        }
    }
    head(
        &mut text,
        "kreon_group_free_bytes",
        "gauge",
        "Free bytes of the smallest device known.",
    );
    for group in &status.groups {
        if let Some(free) = group.free_bytes {
            let _ = writeln!(
                text,
                "kreon_group_free_bytes{{group=\"{}\"}} {free}",
                group.group.0
            );
        }
    }
    head(
        &mut text,
        "kreon_refusals_total",
        "counter",
        "Requests of clients that were refused.",
    );
    for group in &status.groups {
        for (kind, count) in &group.refusals {
            let _ = writeln!(
                text,
                "kreon_refusals_total{{group=\"{}\",kind=\"{kind:?}\"}} {count}",
                group.group.0
            );
        }
    }
    head(
        &mut text,
        "kreon_violations_total",
        "counter",
        "Packets that break the protocol.",
    );
    for (class, count) in &status.violations {
        let class = class.to_string().replace(['\\', '"', '\n'], "_");
        let _ = writeln!(text, "kreon_violations_total{{class=\"{class}\"}} {count}");
    }
    of_server(&mut text, status);
    text
}

/// Metrics of the server: name, kind, help, value.
type OfServer = (
    &'static str,
    &'static str,
    &'static str,
    fn(&NodeStatus) -> u64,
);

const OF_SERVER: &[OfServer] = &[
    (
        "kreon_is_master",
        "gauge",
        "Whether it is in the office of the master.",
        |status| status.is_master.into(),
    ),
    (
        "kreon_session_ms",
        "gauge",
        "Time of its sessions as granted, 0 without.",
        |status| status.session_ms.unwrap_or(0).into(),
    ),
    (
        "kreon_client_links",
        "gauge",
        "Links of clients.",
        |status| status.clients.links as u64,
    ),
    (
        "kreon_requests_total",
        "counter",
        "Requests that were taken.",
        |status| status.clients.requests,
    ),
    (
        "kreon_requests_under_way",
        "gauge",
        "Requests without an answer.",
        |status| status.clients.under_way as u64,
    ),
    (
        "kreon_request_bytes",
        "gauge",
        "Bytes of these.",
        |status| status.clients.bytes as u64,
    ),
    (
        "kreon_snapshots",
        "gauge",
        "Open snapshots and scans.",
        |status| status.clients.snapshots as u64,
    ),
    (
        "kreon_requests_busy_total",
        "counter",
        "Requests beyond the limit of bytes.",
        |status| status.clients.busy,
    ),
    (
        "kreon_links_closed_for_violation_total",
        "counter",
        "Links that broke the protocol.",
        |status| status.clients.closed_for_violation,
    ),
    (
        "kreon_links_closed_unread_total",
        "counter",
        "Links whose client read no answers.",
        |status| status.clients.closed_unread,
    ),
    (
        "kreon_stream_bytes_total",
        "counter",
        "Log, pages and copies on links to servers.",
        |status| status.traffic.stream_bytes,
    ),
    (
        "kreon_control_bytes_total",
        "counter",
        "Control messages on links to servers.",
        |status| status.traffic.control_bytes,
    ),
    (
        "kreon_links_not_proven_total",
        "counter",
        "Connections without the key.",
        |status| status.not_proven,
    ),
    (
        "kreon_links_over_limit_total",
        "counter",
        "Connections beyond the limit.",
        |status| status.over_limit,
    ),
];

fn of_server(text: &mut String, status: &NodeStatus) {
    for (name, kind, help, value) in OF_SERVER {
        head(text, name, kind, help);
        let _ = writeln!(text, "{name} {}", value(status));
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}
