//! `kreon cluster status` and `groups`: how a cluster stands.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use indicatif::HumanBytes;
use kreon_client::{Backup, Cluster, ClusterUrl, GroupId, GroupStatus, Standing};
use kreon_coord::Coordinator as _;
use kreon_wire::{GroupConfig, Member, ServerId};
use serde_json::{Value, json};

use super::backups;
use super::connect::session;
use super::page::stage_name;
use super::survey::{Survey, Surveyor};
use crate::encoding::{Encoding, shown};
use crate::failure::{Result, tell};
use crate::sink::Sink;

/// Servers ask for this unless they are told otherwise.
const SESSION_MS: u32 = 1000;

/// Show how the cluster stands: servers, and for each group its term, primary and copies; warnings on standard error
#[derive(Debug, Args)]
pub struct Status {
    /// Everything as one JSON object
    #[arg(long)]
    json: bool,
    /// Also a line for each copy: what its server says of it
    #[arg(long, conflicts_with = "json")]
    copies: bool,
}

/// List what lies in which group: tables and the keys of their ranges; and how far its backups are
#[derive(Debug, Args)]
pub struct Groups {}

impl Status {
    pub fn run(
        &self,
        url: &str,
        cluster: &Cluster,
        surveyor: &mut Surveyor,
        out: &mut Sink,
    ) -> Result<()> {
        let url = ClusterUrl::parse(url)?;
        let survey = surveyor.look()?;
        // A session as servers have them: what is granted depends on the ticks of ZooKeeper.
        let session_ms = session(&url, SESSION_MS)?.session_ms();
        let seen = Seen {
            url,
            session_ms,
            survey,
            told: cluster
                .groups()?
                .into_iter()
                .map(|group| (group.config.group, group))
                .collect(),
        };
        if self.json {
            return Ok(out.line(&as_json(&seen).to_string())?);
        }
        out.write(as_text(&seen, self.copies).as_bytes())?;
        out.flush()?;
        for warning in seen.survey.warnings() {
            tell(&format!("kreon: warning: {warning}"));
        }
        Ok(())
    }
}

/// What was seen of a cluster.
struct Seen {
    url: ClusterUrl,
    session_ms: u32,
    survey: Survey,
    /// What members say of their groups.
    told: BTreeMap<GroupId, GroupStatus>,
}

impl Seen {
    fn standings(
        &self,
        group: GroupId,
    ) -> impl Iterator<Item = (ServerId, &kreon_client::Result<Standing>)> {
        let told = self.told.get(&group);
        told.into_iter()
            .flat_map(|told| &told.standings)
            .map(|(server, standing)| (*server, standing))
    }

    /// The backups and joiners, as the primary sees them.
    fn backups(&self, group: GroupId) -> impl Iterator<Item = &Backup> {
        let backups = self.told.get(&group).map(|told| &told.backups);
        backups.into_iter().flatten().flatten()
    }

    /// How much log all copies in sync have in memory, and how much of it is not durable on all of them yet: as the
    /// primary knows it.
    fn log(&self, config: &GroupConfig) -> Option<[u64; 2]> {
        let own = primary(config)?;
        let mut standings = self.standings(config.group);
        let (_, standing) = standings.find(|(server, _)| *server == own)?;
        let (landed, durable) = standing.as_ref().map(|s| (s.landed.0, s.durable.0)).ok()?;
        Some([landed, landed.saturating_sub(durable)])
    }
}

impl Groups {
    pub fn run(&self, cluster: &Cluster, surveyor: &mut Surveyor, out: &mut Sink) -> Result<()> {
        let survey = surveyor.look()?;
        let told = cluster.groups()?;
        let key = |key: &[u8]| shown(Encoding::Escapes, key);
        for (_, config) in &survey.groups {
            for range in &config.ranges {
                let end = range
                    .end
                    .as_deref()
                    .map_or_else(|| "end".to_owned(), |end| format!("`{}`", key(end)));
                out.line(&format!(
                    "group {}: table `{}` from `{}` to {end}",
                    config.group.0,
                    key(range.table.as_bytes()),
                    key(&range.start)
                ))?;
            }
            if config.ranges.is_empty() {
                out.line(&format!("group {}: nothing", config.group.0))?;
            }
            let of_group = told.iter().filter(|told| told.config.group == config.group);
            for backup in of_group.flat_map(|told| &told.backups).flatten() {
                out.line(&format!(
                    "group {}: backup on server {}: {}",
                    config.group.0,
                    backup.member.server.0,
                    backups::told(backup)
                ))?;
            }
        }
        Ok(())
    }
}

fn servers(of: &[ServerId]) -> String {
    let numbers: Vec<_> = of.iter().map(|server| server.0.to_string()).collect();
    match numbers.is_empty() {
        true => "-".to_owned(),
        false => numbers.join(","),
    }
}

fn set(config: &GroupConfig) -> Vec<ServerId> {
    config.in_sync.iter().map(|member| member.server).collect()
}

fn primary(config: &GroupConfig) -> Option<ServerId> {
    config.primary.map(|member: Member| member.server)
}

fn copies(survey: &Survey, server: ServerId) -> [usize; 2] {
    let groups = || survey.groups.iter().map(|(_, config)| config);
    [
        groups()
            .filter(|config| primary(config) == Some(server))
            .count(),
        groups()
            .filter(|config| config.members.contains(&server))
            .count(),
    ]
}

fn as_text(seen: &Seen, with_copies: bool) -> String {
    let survey = &seen.survey;
    let master = survey
        .master
        .map_or_else(|| "none".to_owned(), |server| server.0.to_string());
    let mut text = format!(
        "cluster `{}` at {}: master {master}, sessions of {} ms\n\n",
        seen.url.name, seen.url.coordinator, seen.session_ms
    );
    let _ = writeln!(
        text,
        "{:>6} {:<5} {:>9} {:>7} {:>6}  {:<22} domain",
        "server", "state", "primaries", "at most", "copies", "address"
    );
    for node in &survey.servers {
        let state = match survey.is_live(node.server) {
            true => "up",
            false => "down",
        };
        let [primaries, copies] = copies(survey, node.server);
        let most = survey.primaries_max.get(&node.server);
        let most = most.map_or_else(|| "-".to_owned(), u32::to_string);
        let _ = writeln!(
            text,
            "{:>6} {state:<5} {primaries:>9} {most:>7} {copies:>6}  {:<22} {}",
            node.server.0, node.client_address, node.domain
        );
    }
    let _ = writeln!(
        text,
        "\n{:>6} {:>6} {:>7}  {:<9} {:<9} {:>11} {:>11}  tables",
        "group", "term", "primary", "in sync", "copies", "log", "to flush"
    );
    for (_, config) in &survey.groups {
        let primary =
            primary(config).map_or_else(|| "none".to_owned(), |server| server.0.to_string());
        let [log, unflushed] = seen.log(config).map_or_else(
            || ["?".to_owned(), "?".to_owned()],
            |bytes| bytes.map(|bytes| HumanBytes(bytes).to_string()),
        );
        let _ = writeln!(
            text,
            "{:>6} {:>6} {primary:>7}  {:<9} {:<9} {log:>11} {unflushed:>11}  {}",
            config.group.0,
            config.term.0,
            servers(&set(config)),
            servers(&config.members),
            tables(config)
        );
    }
    push_backups(&mut text, seen);
    if with_copies {
        push_copies(&mut text, seen);
    }
    text
}

/// A line for each backup or joiner: how far it is, as its primary sees it.
fn push_backups(text: &mut String, seen: &Seen) {
    let _ = writeln!(text, "\n{:>6} {:>6}  backup", "group", "server");
    for (_, config) in &seen.survey.groups {
        for backup in seen.backups(config.group) {
            let (server, told) = (backup.member.server.0, backups::told(backup));
            let _ = writeln!(text, "{:>6} {server:>6}  {told}", config.group.0);
        }
    }
}

/// A line for each copy: what its server says of it.
fn push_copies(text: &mut String, seen: &Seen) {
    let _ = writeln!(text, "\n{:>6} {:>6}  copy", "group", "server");
    for (_, config) in &seen.survey.groups {
        for (server, standing) in seen.standings(config.group) {
            let what = match standing {
                Ok(standing) => stage_name(standing.stage).to_owned(),
                Err(error) => error.to_string(),
            };
            let _ = writeln!(text, "{:>6} {:>6}  {what}", config.group.0, server.0);
        }
    }
}

/// Names of tables that have ranges in the group, each once.
fn tables(config: &GroupConfig) -> String {
    let mut names: Vec<_> = config
        .ranges
        .iter()
        .map(|range| shown(Encoding::Escapes, range.table.as_bytes()))
        .collect();
    names.dedup();
    match names.is_empty() {
        true => "-".to_owned(),
        false => names.join(", "),
    }
}

fn as_json(seen: &Seen) -> Value {
    let survey = &seen.survey;
    let numbers = |of: &[ServerId]| of.iter().map(|server| server.0).collect::<Vec<_>>();
    let servers = survey.servers.iter().map(|node| {
        let [primaries, copies] = copies(survey, node.server);
        json!({
            "server": node.server.0,
            "is_live": survey.is_live(node.server),
            "address": node.client_address,
            "peer_address": node.peer_address,
            "domain": node.domain,
            "primaries": primaries,
            "copies": copies,
            "primaries_max": survey.primaries_max.get(&node.server),
        })
    });
    let groups = survey.groups.iter().map(|(version, config)| {
        json!({
            "group": config.group.0,
            "version": version,
            "term": config.term.0,
            "primary": primary(config).map(|server| server.0),
            "in_sync": numbers(&set(config)),
            "members": numbers(&config.members),
            "min_in_sync": config.min_in_sync,
            "ranges": config.ranges.len(),
            "landed": seen.log(config).map(|[landed, _]| landed),
            "not_durable": seen.log(config).map(|[_, unflushed]| unflushed),
            "backups": seen.backups(config.group).map(backups::as_json).collect::<Vec<_>>(),
            "copies": seen.standings(config.group).map(|(server, standing)| copy(server, standing)).collect::<Vec<_>>(),
        })
    });
    json!({
        "cluster": seen.url.name,
        "coordinator": seen.url.coordinator,
        "session_ms": seen.session_ms,
        "master": survey.master.map(|server| server.0),
        "servers": servers.collect::<Vec<_>>(),
        "groups": groups.collect::<Vec<_>>(),
        "tables": survey.tables.iter().map(|table| &table.table).collect::<Vec<_>>(),
        "warnings": survey.warnings(),
    })
}

fn copy(server: ServerId, standing: &kreon_client::Result<Standing>) -> Value {
    match standing {
        Ok(standing) => json!({ "server": server.0, "stage": stage_name(standing.stage) }),
        Err(error) => json!({ "server": server.0, "error": error.to_string() }),
    }
}
