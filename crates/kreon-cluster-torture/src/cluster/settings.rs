//! How large a cluster is.

use std::path::PathBuf;
use std::time::Duration;

use crate::clock::Clock;
use crate::place::tools::Tools;

/// Bytes of the file system of a server, if it has its own: sparse.
pub const DISK_BYTES: u64 = 2 << 30;

/// How large a cluster is, and where.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Logs and data.
    pub folder: PathBuf,
    /// What logs and figures count by.
    pub clock: Clock,
    /// What this machine has.
    pub tools: Tools,
    /// Servers; each group has a replica on at most three.
    pub servers: u32,
    /// ZooKeepers.
    pub zookeepers: u32,
    /// Groups, each with one range of the table.
    pub groups: u32,
    /// Time of a session.
    pub session: Duration,
    /// Memory of each server.
    pub memory_mib: u32,
    /// Whether all clients wait for frozen servers.
    pub is_patient: bool,
    /// A bug of the servers.
    pub bug: Option<String>,
}

impl Settings {
    /// Name of the cluster.
    pub const CLUSTER: &'static str = "torture";

    /// So long may it take until all is as it was after the last fault.
    pub const PATIENCE: Duration = Duration::from_secs(120);
}
