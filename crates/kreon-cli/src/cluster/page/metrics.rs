//! Metrics in the text format of Prometheus. Names end in their unit; counters in `_total`.

use kreon_base::metrics::{labels, push_metric};
use kreon_node::{GroupStatus, MemberStatus, NodeStatus};

/// A metric of each `T`: name, help, value.
type Metric<T> = (&'static str, &'static str, fn(&T) -> u64);

const OF_GROUPS: &[Metric<GroupStatus>] = &[
    (
        "is_primary",
        "Whether this server is the primary.",
        |group| group.is_primary().into(),
    ),
    ("term", "Term of the group.", |group| group.term.0),
    (
        "in_sync",
        "Members of the set, as its primary knows it.",
        |group| group.in_sync.len() as u64,
    ),
    ("tail_bytes", "End of the log.", |group| group.tail.0),
    (
        "landed_bytes",
        "The log up to here is in the memory of all counted members.",
        |group| group.landed.0,
    ),
    ("durable_bytes", "The log up to here is durable.", |group| {
        group.durable.0
    }),
    (
        "replies_waiting",
        "Writes whose replies wait for backups.",
        |group| group.replies_waiting as u64,
    ),
    (
        "reads_waiting",
        "Reads that wait for their confirmation.",
        |group| group.reads_waiting as u64,
    ),
    (
        "join_owed_bytes",
        "Bytes that were written meanwhile and that joiners still need.",
        |group| of_members(group, |member| member.owed_bytes),
    ),
    (
        "term_log_bytes",
        "Log that the primary sent in this term.",
        |group| of_members(group, |member| member.traffic.log_bytes),
    ),
    (
        "term_page_bytes",
        "Pages that the primary sent in this term.",
        |group| of_members(group, |member| member.traffic.pages_bytes),
    ),
    (
        "term_copy_bytes",
        "Copies for joiners that the primary sent in this term.",
        |group| of_members(group, |member| member.traffic.copies_bytes),
    ),
    (
        "term_flushes",
        "Flushes on all copies in this term.",
        |group| group.barriers.count,
    ),
    ("term_flush_us", "Their time.", |group| {
        group.barriers.total_us
    }),
    ("term_flush_max_us", "Time of the longest.", |group| {
        group.barriers.max_us
    }),
];

const OF_BACKUPS: &[Metric<MemberStatus>] = &[
    (
        "is_counted",
        "Whether acknowledgements wait for it: not while it joins.",
        |member| member.is_counted.into(),
    ),
    ("lag_bytes", "Log that it has not in memory.", |member| {
        member.lag_bytes
    }),
    (
        "durable_lag_bytes",
        "Log that is not durable there.",
        |member| member.durable_lag_bytes,
    ),
    (
        "copied_bytes",
        "Bytes that it was copied in this term.",
        |member| member.traffic.copies_bytes,
    ),
    (
        "to_copy_bytes",
        "Bytes of its copy while it joins, as far as known; 0 otherwise.",
        |member| member.to_copy_bytes,
    ),
];

/// Metrics of the server, whose names say what they are.
const OF_SERVER: &[Metric<NodeStatus>] = &[
    (
        "is_master",
        "Whether it is in the office of the master.",
        |status| status.is_master.into(),
    ),
    (
        "session_ms",
        "Time of its sessions as granted, 0 without.",
        |status| status.session_ms.unwrap_or(0).into(),
    ),
    (
        "primaries",
        "Groups of which it is the primary.",
        |status| status.primaries() as u64,
    ),
    (
        "primaries_max",
        "Most groups of which it is the primary where another one can be.",
        |status| status.primaries_max.into(),
    ),
    ("client_links", "Links of clients.", |status| {
        status.clients.links as u64
    }),
    ("requests_total", "Requests that were taken.", |status| {
        status.clients.requests
    }),
    (
        "requests_under_way",
        "Requests without an answer.",
        |status| status.clients.under_way as u64,
    ),
    ("request_bytes", "Bytes of these.", |status| {
        status.clients.bytes as u64
    }),
    ("snapshots", "Open snapshots and scans.", |status| {
        status.clients.snapshots as u64
    }),
    (
        "requests_busy_total",
        "Requests beyond the limit of bytes.",
        |status| status.clients.busy,
    ),
    (
        "links_closed_for_violation_total",
        "Links that broke the protocol.",
        |status| status.clients.closed_for_violation,
    ),
    (
        "links_closed_unread_total",
        "Links whose client read no answers.",
        |status| status.clients.closed_unread,
    ),
    (
        "stream_bytes_total",
        "Log, pages and copies on links to servers.",
        |status| status.traffic.stream_bytes,
    ),
    (
        "control_bytes_total",
        "Control messages on links to servers.",
        |status| status.traffic.control_bytes,
    ),
    (
        "links_not_proven_total",
        "Connections without the key.",
        |status| status.not_proven,
    ),
    (
        "links_over_limit_total",
        "Connections beyond the limit.",
        |status| status.over_limit,
    ),
];

fn of_members(group: &GroupStatus, value: impl Fn(&MemberStatus) -> u64) -> u64 {
    group.members.iter().map(value).sum()
}

/// All metrics of a server.
pub fn text(status: &NodeStatus) -> String {
    let mut text = String::new();
    let label = |group: &GroupStatus| labels(&[("group", &group.group.0.to_string())]);
    for (name, help, value) in OF_GROUPS {
        let samples = status
            .groups
            .iter()
            .map(|group| (label(group), value(group)));
        push(&mut text, ("group_", name, help), samples);
    }
    let free = status.groups.iter();
    let free = free.filter_map(|group| Some((label(group), group.free_bytes?)));
    let help = "Free bytes of the smallest device known.";
    push(&mut text, ("group_", "free_bytes", help), free);
    for (name, help, value) in OF_BACKUPS {
        let samples = status.groups.iter().flat_map(|group| {
            let of = group.group.0.to_string();
            group.members.iter().map(move |member| {
                let server = member.member.server.0.to_string();
                let label = labels(&[("group", &of), ("server", &server)]);
                (label, value(member))
            })
        });
        push(&mut text, ("backup_", name, help), samples);
    }
    let refusals = status.groups.iter().flat_map(|group| {
        let of = group.group.0.to_string();
        let refusals = group.refusals.iter();
        refusals.map(move |(kind, count)| {
            let kind = format!("{kind:?}");
            (labels(&[("group", &of), ("kind", &kind)]), *count)
        })
    });
    let help = "Requests of clients that were refused.";
    push(&mut text, ("", "refusals_total", help), refusals);
    let violations = status
        .violations
        .iter()
        .map(|(class, count)| (labels(&[("class", &class.to_string())]), *count));
    let help = "Packets that break the protocol.";
    push(&mut text, ("", "violations_total", help), violations);
    for (name, help, value) in OF_SERVER {
        let samples = [(String::new(), value(status))].into_iter();
        push(&mut text, ("", name, help), samples);
    }
    text
}

/// A metric with its samples, each with its labels.
fn push(
    text: &mut String,
    (of, name, help): (&str, &str, &str),
    samples: impl Iterator<Item = (String, u64)>,
) {
    let name = format!("kreon_{of}{name}");
    let samples = samples.map(|(labels, value)| (labels, value.into()));
    push_metric(text, (&name, help), samples);
}
