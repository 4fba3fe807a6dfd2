//! What a process of the cluster runs: one server.

use std::path::PathBuf;
use std::time::Duration;

use kreon_fabric::Key;
use kreon_node::{Coordination, Node, NodeSettings};
use kreon_wire::ServerId;
use tracing_subscriber::util::SubscriberInitExt;

use crate::clock::Clock;
use crate::course::logs::subscriber;

/// The process that is killed and frozen.
#[derive(clap::Args, Debug)]
pub struct Serve {
    /// Name of the cluster.
    #[arg(long)]
    cluster: String,
    /// The ZooKeepers.
    #[arg(long)]
    zookeepers: String,
    /// Time of a session.
    #[arg(long)]
    session_ms: u32,
    /// Its number.
    #[arg(long)]
    server: u32,
    /// Its folder.
    #[arg(long)]
    data: PathBuf,
    /// Where it listens.
    #[arg(long)]
    listen: String,
    /// File with the key.
    #[arg(long)]
    key: PathBuf,
    /// Memory of its stores.
    #[arg(long)]
    memory_mib: u64,
    /// When the run began, by the machine's monotonic clock: its log counts from there.
    #[arg(long)]
    begun_us: u64,
    /// How fast its clock goes.
    #[arg(long, default_value_t = 100)]
    clock_percent: u32,
    /// A planted bug.
    #[arg(long)]
    bug: Option<String>,
}

impl Serve {
    /// Serves until it is killed.
    ///
    /// # Errors
    /// The server does not start.
    pub fn run(&self) -> Result<(), String> {
        if let Some(bug) = &self.bug {
            plant(bug)?;
        }
        let clock = Clock::of_run(self.begun_us);
        subscriber(clock, std::io::stderr).init();
        kreon_replica::drive::set_clock_percent(self.clock_percent);
        let said = |error: std::io::Error| error.to_string();
        let key = std::fs::read(&self.key).map_err(said)?;
        std::fs::create_dir_all(&self.data).map_err(said)?;
        let coordination = Coordination::zookeeper(&self.zookeepers, self.session_ms);
        let key = Key::new(key.trim_ascii()).map_err(|error| error.to_string())?;
        let server = ServerId(self.server);
        let _node = loop {
            let usual = NodeSettings::new(
                &self.cluster,
                server,
                &self.data,
                &self.listen,
                coordination.clone(),
            );
            let settings = NodeSettings {
                memory_bytes: self.memory_mib << 20,
                key: Some(key.clone()),
                ..usual
            };
            match Node::start(settings) {
                Ok(node) => break node,
                // ZooKeeper is down or cut off, or the process before is not quite gone: as a supervisor does.
                Err(error) => {
                    eprintln!("server {}: {error}: again", self.server);
                    std::thread::sleep(Duration::from_millis(300));
                }
            }
        };
        loop {
            std::thread::park();
        }
    }
}

#[cfg(feature = "planted")]
fn plant(name: &str) -> Result<(), String> {
    let mut all = kreon_base::Bug::ALL.iter();
    let bug = all.find(|bug| format!("{bug:?}") == name);
    bug.ok_or_else(|| format!("no bug {name}"))?.plant();
    Ok(())
}

#[cfg(not(feature = "planted"))]
fn plant(name: &str) -> Result<(), String> {
    Err(format!("{name}: built without the feature planted"))
}
