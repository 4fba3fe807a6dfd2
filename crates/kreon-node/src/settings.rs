//! What a server is started with.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use kreon_base::{Error, Result};
use kreon_coord::{Coordinator, ZooKeeper};
use kreon_engine::{MEMORY_BYTES_MIN, Options};
use kreon_fabric::{Address, Key};
use kreon_replica::machine::Timing;
use kreon_wire::ServerId;
use kreon_wire::limits::{REQUEST_BYTES_MAX, TEXT_BYTES_MAX};

/// Most primaries of one server, unless it is told otherwise: each costs threads, memory and flushes of its own.
pub const PRIMARIES_MAX: u32 = 8;

/// How sessions with the coordinator begin. A server has three of them.
#[derive(Clone)]
pub struct Coordination(Arc<dyn Fn() -> Result<Arc<dyn Coordinator>> + Send + Sync>);

impl Coordination {
    /// With the ZooKeepers at `servers`, `host:port` with commas between. `session_ms` are asked for; what is granted,
    /// [`NodeStatus`](crate::NodeStatus) tells.
    pub fn zookeeper(servers: &str, session_ms: u32) -> Self {
        let servers = servers.to_owned();
        Self::by(move || {
            let session = ZooKeeper::connect(&servers, session_ms)?;
            Ok(Arc::new(session) as Arc<dyn Coordinator>)
        })
    }

    /// By a call of `begin` for each.
    pub fn by(begin: impl Fn() -> Result<Arc<dyn Coordinator>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(begin))
    }

    /// Begins a session.
    ///
    /// # Errors
    /// Those of the coordinator.
    pub fn begin(&self) -> Result<Arc<dyn Coordinator>> {
        (self.0)()
    }
}

impl fmt::Debug for Coordination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Coordination")
    }
}

/// What clients may take of a server.
#[derive(Clone, Debug)]
pub struct ClientLimits {
    /// Links at a time, those of other servers included; more are refused as busy.
    pub links_max: usize,
    /// Threads that serve clients; each serves many. At least 1.
    pub threads: usize,
    /// Bytes of requests of one client that are not answered yet, and of their answers: more is not read from it.
    pub link_bytes_max: usize,
    /// The same of all clients together; beyond it requests are answered with `Busy`.
    pub bytes_max: usize,
    /// Snapshots and scans of one client that are open.
    pub snapshots_max: usize,
    /// A snapshot or scan that nobody uses for so long is closed, in milliseconds.
    pub snapshot_idle_ms: u32,
    /// A client that reads none of its answers for so long is closed, in milliseconds.
    pub unread_ms: u32,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            links_max: 4096,
            threads: 2,
            link_bytes_max: 32 << 20,
            bytes_max: 256 << 20,
            snapshots_max: 64,
            snapshot_idle_ms: 60_000,
            unread_ms: 10_000,
        }
    }
}

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Name of the cluster.
    pub cluster: String,
    /// How sessions with the coordinator begin.
    pub coordination: Coordination,
    /// Number of the server, from 1 on, as the cluster was made with it or as it was added.
    pub server: ServerId,
    /// Its files stand here; made if need be. A file `CLUSTER` in it says whose it is.
    pub folder: PathBuf,
    /// Where it listens, for clients and other servers: `"10.0.0.7:7400"`. Port 0 takes a free one.
    pub listen: Address,
    /// Where others reach it, if that is not where it listens.
    pub advertised: Option<String>,
    /// What fails together with it: a rack, a power line. Default: the server itself, `server-N`.
    pub domain: Option<String>,
    /// Bytes of memory of its stores, those that it may have to open included: each gets its part of `primaries_max`. What
    /// clients take stands in [`ClientLimits`] and comes on top.
    pub memory_bytes: u64,
    /// Most primaries.
    pub primaries_max: u32,
    /// The secret of the cluster. Without one, only this machine is listened and connected to.
    pub key: Option<Key>,
    /// How long is waited for what. The same on all servers.
    pub timing: Timing,
    /// What clients may take.
    pub clients: ClientLimits,
    /// Stores are opened with this; memory and mirroring are set by the server.
    pub store: Options,
}

impl NodeSettings {
    /// The usual ones: one gibibyte, 8 primaries, no key.
    pub fn new(
        cluster: &str,
        server: ServerId,
        folder: impl Into<PathBuf>,
        listen: &str,
        coordination: Coordination,
    ) -> Self {
        Self {
            cluster: cluster.to_owned(),
            coordination,
            server,
            folder: folder.into(),
            listen: Address::new(listen),
            advertised: None,
            domain: None,
            memory_bytes: 1 << 30,
            primaries_max: PRIMARIES_MAX,
            key: None,
            timing: Timing::default(),
            clients: ClientLimits::default(),
            store: Options::default(),
        }
    }

    /// Bytes of memory of one store.
    pub(crate) fn store_bytes(&self) -> u64 {
        self.memory_bytes / u64::from(self.primaries_max.max(1))
    }

    /// What fails together with it.
    pub(crate) fn domain(&self) -> String {
        let own = || format!("server-{}", self.server.0);
        self.domain.clone().unwrap_or_else(own)
    }

    pub(crate) fn check(&self) -> Result<()> {
        let limits = &self.clients;
        if self.server.0 == 0 || self.primaries_max == 0 {
            return Err(Error::invalid(
                "a server has a number and takes primaries: from 1 on",
            ));
        }
        if self.cluster.contains('/') {
            return Err(Error::invalid("the name of a cluster has no slash"));
        }
        if self.store_bytes() < MEMORY_BYTES_MIN as u64 {
            let least = (MEMORY_BYTES_MIN as u64 * u64::from(self.primaries_max)) >> 20;
            let text = format!(
                "{} primaries need at least {least} MiB of memory",
                self.primaries_max
            );
            return Err(Error::invalid(text));
        }
        let domain = self.domain();
        if domain.is_empty() || domain.len() > TEXT_BYTES_MAX || domain.contains(char::is_control) {
            let text = "a failure domain has 1 to 255 bytes without control characters";
            return Err(Error::invalid(text));
        }
        let request = REQUEST_BYTES_MAX as usize;
        if limits.threads == 0
            || limits.link_bytes_max < request
            || limits.bytes_max < limits.link_bytes_max
        {
            let text = "clients need a thread, and memory for a request of 17 MiB";
            return Err(Error::invalid(text));
        }
        Ok(())
    }
}
