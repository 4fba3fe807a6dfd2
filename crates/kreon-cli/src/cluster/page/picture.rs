//! The page for people: groups, roles, how far members are behind, and what goes over the links.

use std::fmt::Write as _;

use indicatif::HumanBytes;
use kreon_node::{GroupStatus, MemberStatus, NodeStatus};
use kreon_wire::Backup;

use super::as_json::stage_name;
use crate::cluster::backups;

const STYLE: &str = "\
body{font:15px system-ui,sans-serif;margin:2em;color:#222;background:#fff}\
h1{font-size:1.3em}table{border-collapse:collapse}td,th{padding:.25em .8em;text-align:left;border-bottom:1px solid #ddd;white-space:nowrap}\
td.n,th.n{text-align:right}td.n{font-variant-numeric:tabular-nums}\
td:last-child{white-space:normal}\
.role{border-radius:.6em;padding:.05em .6em;color:#fff;background:#888}\
.primary{background:#2a7d3f}.backup{background:#2f6db3}.warn{background:#b3452f}\
.bar{display:inline-block;width:4em;height:.8em;background:#eee;vertical-align:middle}\
.bar i{display:block;height:100%;background:#b3452f}small{color:#666}";

/// The whole page.
pub fn page(status: &NodeStatus) -> String {
    let mut text = String::new();
    let (cluster, server) = (escaped(&status.cluster), status.me.server.0);
    let _ = write!(
        text,
        "<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=2>\
         <title>kreon {cluster}: server {server}</title><style>{STYLE}</style>\
         <h1>Server {server} of {cluster}</h1><p>{} &middot; {} &middot; {} &middot; primary in {} groups, at most {} &middot; \
         <small>process {}</small></p>",
        escaped(&status.address),
        escaped(&status.domain),
        match (status.is_master, status.session_ms) {
            (true, Some(ms)) => format!("master, sessions of {ms} ms"),
            (false, Some(ms)) => format!("sessions of {ms} ms"),
            (_, None) => "no session with ZooKeeper".to_owned(),
        },
        status.primaries(),
        status.primaries_max,
        status.me.process
    );
    text.push_str(
        "<table><tr><th class=n>Group<th>Role<th class=n>Term<th class=n>Primary<th>In sync<th class=n>Log<th>Not durable \
         yet<th>Backups and joiners</tr>",
    );
    for group in &status.groups {
        row(&mut text, group);
    }
    let (clients, traffic) = (&status.clients, status.traffic);
    let _ = write!(
        text,
        "</table><p>Clients: {} links, {} requests, {} under way, {} snapshots, {} refused as busy.</p>\
         <p>To other servers: {} of log, pages and copies, {} of control messages.</p>\
         <p><small><a href=/metrics>metrics</a> &middot; <a href=/status.json>JSON</a></small></p></html>",
        clients.links,
        clients.requests,
        clients.under_way,
        clients.snapshots,
        clients.busy,
        HumanBytes(traffic.stream_bytes),
        HumanBytes(traffic.control_bytes)
    );
    text
}

fn row(text: &mut String, group: &GroupStatus) {
    use kreon_wire::Stage;
    let class = match group.stage {
        Stage::Serving | Stage::Frozen => "primary",
        Stage::InSync => "backup",
        _ => "warn",
    };
    let primary = group
        .primary
        .map_or_else(|| "none".to_owned(), |member| member.server.0.to_string());
    let set: Vec<_> = group
        .in_sync
        .iter()
        .map(|member| member.server.0.to_string())
        .collect();
    // Backups are not asked for the end of their log: their primary knows.
    let (log, unflushed) = match group.is_primary() {
        true => (
            HumanBytes(group.tail.0).to_string(),
            bar(group.landed.0.saturating_sub(group.durable.0)),
        ),
        false => ("&ndash;".to_owned(), "&ndash;".to_owned()),
    };
    let _ = write!(
        text,
        "<tr><td class=n>{}<td><span class='role {class}'>{}</span><td class=n>{}<td class=n>{primary}<td>{}<td class=n>{}<td>{}<td>",
        group.group.0,
        stage_name(group.stage),
        group.term.0,
        if set.is_empty() {
            "&ndash;".to_owned()
        } else {
            set.join(", ")
        },
        log,
        unflushed,
    );
    members(text, group);
    text.push_str("</tr>");
}

/// A line for each backup and joiner of a primary.
fn members(text: &mut String, group: &GroupStatus) {
    for member in &group.members {
        let what = match &member.ended {
            Some(why) => format!("ended: {}", escaped(why)),
            None => backups::told(&backup(member)),
        };
        let traffic = member.traffic;
        let sent = traffic.log_bytes + traffic.pages_bytes + traffic.copies_bytes;
        let _ = write!(
            text,
            "{} server {}: {what}, {} sent<br>",
            bar(member.lag_bytes),
            member.member.server.0,
            HumanBytes(sent)
        );
    }
}

fn backup(member: &MemberStatus) -> Backup {
    Backup {
        member: member.member,
        is_counted: member.is_counted,
        has_ended: member.ended.is_some(),
        lag_bytes: member.lag_bytes,
        durable_lag_bytes: member.durable_lag_bytes,
        copied_bytes: member.traffic.copies_bytes,
        to_copy_bytes: member.to_copy_bytes,
    }
}

/// A bar for bytes, in the measure of the log's buffers: full at 32 MiB.
fn bar(bytes: u64) -> String {
    const FULL_BYTES: u64 = 32 << 20;
    let percent = bytes.min(FULL_BYTES) * 100 / FULL_BYTES;
    format!(
        "<span class=bar title='{}'><i style='width:{percent}%'></i></span>",
        HumanBytes(bytes)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('\'', "&#39;")
}
