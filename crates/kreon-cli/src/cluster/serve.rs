//! `kreon cluster serve`: a server of a cluster, until a signal ends it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use kreon::ErrorKind;
use kreon_client::ClusterUrl;
use kreon_node::{Coordination, MARK, Node, NodeSettings};
use kreon_wire::ServerId;
use signal_hook::consts::SIGTERM;

use super::connect::unreached;
use super::key;
use super::page::{Pages, STATUS_PAGE};
use super::settings::ServerSettings;
use crate::failure::{Failure, Result, tell};
use crate::interrupt::Interrupt;
use crate::options::Shared;
use crate::sink::Sink;

/// Where it listens if nothing is said: on this machine only.
const LISTEN: &str = "127.0.0.1:7400";
/// What ZooKeeper is asked for; it grants 2 to 20 of its ticks.
const SESSION_MS: u32 = 1000;
const MEMORY_BYTES: usize = 1 << 30;
/// How long a start may fail for want of something outside, and the pause between two of them.
const START_MAX: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(500);
/// How long others may take to take its offices over, when SIGTERM ends it.
const HAND_OVER_MAX: Duration = Duration::from_secs(5);
/// How long a signal waits to be seen.
const PATIENCE: Duration = Duration::from_millis(50);

/// Run a server of a cluster, until SIGTERM or SIGINT
///
/// SIGTERM lets others take over the groups of which it is the primary, within 5 seconds; SIGINT, or a second signal, does
/// not wait for them.
///
/// Of the settings below all may stand in a file (TOML: `listen = "10.0.0.1:7400"`), `cluster` and `key-file` too; what is
/// given here wins.
#[derive(Debug, Args)]
pub struct Serve {
    /// The file of settings
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: ServerSettings,
}

impl Serve {
    pub fn run(&self, shared: &Shared, out: &mut Sink) -> Result<()> {
        let interrupt = Interrupt::on_signals()?;
        let given = self.given(shared)?;
        let status_at = given.status_listen.clone();
        let settings = node_settings(given)?;
        let (name, number) = (settings.cluster.clone(), settings.server.0);
        let node = Arc::new(start(&settings, &interrupt)?);
        let address = node.address();
        out.line(&format!("server {number} of `{name}` at {address}"))?;
        let shown = Arc::clone(&node);
        let pages = status_at.map(|at| Pages::serve(&at, move || shown.status()));
        let pages = pages.transpose()?;
        if let Some(pages) = &pages {
            out.line(&format!("{STATUS_PAGE}http://{}/", pages.address()))?;
        }
        out.flush()?;
        while interrupt.check().is_ok() {
            sleep(PATIENCE);
        }
        if interrupt.signal() == Some(SIGTERM) {
            // Clients wait for a hand-over only, not for the end of a session.
            match node.hand_over(HAND_OVER_MAX) {
                0 => {}
                left => tell(&format!("kreon: {left} groups were not handed over")),
            }
        }
        drop(pages);
        node.end();
        out.line(&format!("server {number} of `{name}` ended"))?;
        Ok(())
    }

    /// What flags, file and environment say.
    fn given(&self, shared: &Shared) -> Result<ServerSettings> {
        let file = match &self.config {
            Some(file) => ServerSettings::read(file)?,
            None => ServerSettings::default(),
        };
        let flags = ServerSettings {
            cluster: shared.cluster.cluster.clone(),
            key_file: shared.cluster.key_file.clone(),
            ..self.settings.clone()
        };
        // The environment comes last, as it does elsewhere.
        let environment = ServerSettings {
            cluster: shared.cluster_url(),
            key_file: shared.key_file(),
            ..ServerSettings::default()
        };
        Ok(flags.or(file).or(environment))
    }
}

fn node_settings(given: ServerSettings) -> Result<NodeSettings> {
    let missing = |what: &str| {
        Failure::usage(format!(
            "no {what}: give it here or in the file of --config"
        ))
    };
    let url = given.cluster.ok_or_else(|| missing("--cluster URL"))?;
    let url = ClusterUrl::parse(&url)?;
    let data = given.data.ok_or_else(|| missing("--data FOLDER"))?;
    let id = given
        .id
        .or_else(|| marked(&data))
        .ok_or_else(|| missing("--id NUMBER"))?;
    let listen = given.listen.unwrap_or_else(|| LISTEN.to_owned());
    let session_ms = given.session_ms.unwrap_or(SESSION_MS);
    let coordination = Coordination::zookeeper(&url.coordinator, session_ms);
    let mut settings = NodeSettings::new(&url.name, ServerId(id), data, &listen, coordination);
    settings.memory_bytes = given.memory.unwrap_or(MEMORY_BYTES) as u64;
    settings.advertised = given.advertise;
    settings.domain = given.domain;
    if let Some(primaries_max) = given.primaries_max {
        settings.primaries_max = primaries_max;
    }
    if let Some(file) = given.key_file {
        settings.key = Some(key::key(&file)?);
    }
    Ok(settings)
}

/// The number of the server whose folder it is, if it is one.
fn marked(data: &Path) -> Option<u32> {
    let mark = std::fs::read_to_string(data.join(MARK)).ok()?;
    let number = mark.lines().find_map(|line| line.strip_prefix("server "))?;
    number.trim().parse().ok()
}

/// Starts it. ZooKeeper, disks and addresses may come later than this process, after the power was back for instance.
fn start(settings: &NodeSettings, interrupt: &Interrupt) -> Result<Node> {
    let begun = Instant::now();
    loop {
        interrupt.check()?;
        match Node::start(settings.clone()) {
            Err(error) if error.kind() == ErrorKind::Io && begun.elapsed() < START_MAX => {
                tell(&format!("kreon: {error}; it is tried again"));
                sleep(AGAIN);
            }
            started => return started.map_err(unreached),
        }
    }
}
