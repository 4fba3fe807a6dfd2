//! A server from start to end.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, Result};
use kreon_coord::{Coordinator, Paths};
use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_fabric::{Address, Fabric};
use kreon_replica::drive::{Asking, Clients, Links, LinksSettings, Server, ServerSettings};
use kreon_sync::{AtomicU32, Mutex, Ordering};
use kreon_wire::limits::NODE_VERSION;
use kreon_wire::{FormatNode, GroupId, Member, ProcessId, ServerNode};

use crate::answer::Desk;
use crate::client::Usage;
use crate::holding::Holding;
use crate::mark::Mark;
use crate::orders::Orders;
use crate::pool::Pool;
use crate::settings::NodeSettings;
use crate::talk::Talk;
use crate::watcher::{Watcher, Watching};

/// How long a connection to another server may take.
const CONNECT: Duration = Duration::from_secs(1);

/// A server of a cluster that runs in this process. Dropping it ends it.
pub struct Node {
    pub(crate) parts: Arc<Parts>,
    watcher: Mutex<Option<Watcher>>,
    _mark: Mark,
}

/// What the parts of a server share.
pub(crate) struct Parts {
    pub settings: NodeSettings,
    pub me: Member,
    pub address: String,
    pub fabric: Arc<TcpFabric>,
    pub links: Arc<Links>,
    pub server: Arc<Server>,
    pub desk: Arc<Desk>,
    pub pool: Arc<Pool>,
    pub orders: Arc<Orders>,
    pub holding: Arc<Holding>,
    /// As granted last; 0 before.
    pub session_ms: Arc<AtomicU32>,
}

impl Parts {
    fn start(settings: NodeSettings, paths: &Paths, groups: Vec<GroupId>) -> Result<Self> {
        let me = Member {
            server: settings.server,
            process: new_process()?,
        };
        let fabric = Arc::new(TcpFabric::new(TcpSettings {
            links_max: settings.clients.links_max,
            ..TcpSettings::new(&settings.cluster, settings.key.clone())
        })?);
        let desk = Desk::new(Usage::new(settings.clients.clone()));
        let pool = Pool::start(&desk, &*fabric)?;
        let links = Links::start(
            Arc::clone(&fabric) as Arc<dyn Fabric>,
            LinksSettings {
                me,
                listen_at: settings.listen.clone(),
                connect: CONNECT,
            },
            Arc::clone(&pool) as Arc<dyn Clients>,
        )?;
        let address = advertised(&settings, links.address());
        let node = ServerNode {
            server: settings.server,
            peer_address: address.clone(),
            client_address: address.clone(),
            domain: settings.domain(),
        };
        node.check()?;
        let session_ms = Arc::new(AtomicU32::new(0));
        let begin = counted(&settings, &session_ms);
        let asking = Asking::new((paths.clone(), begin), (me, node), true);
        let server_settings = ServerSettings {
            timing: settings.timing,
            mastered: groups,
        };
        let server = Server::start(server_settings, Arc::clone(&links), asking)?;
        let orders = Orders::start(settings.coordination.clone(), paths.clone(), &server)?;
        desk.set_orders(Arc::clone(&orders));
        let holding = Arc::new(Holding::new(&settings, &desk));
        Ok(Self {
            settings,
            me,
            address,
            fabric,
            links,
            server,
            desk,
            pool,
            orders,
            holding,
            session_ms,
        })
    }
}

impl Node {
    /// Starts a server: takes its folder, listens, registers, and holds every group that names it.
    ///
    /// # Errors
    /// `InvalidArgument`: a setting, a folder of another server, or no such cluster; `Busy`: folder or port are taken; `Io`:
    /// the coordinator cannot be reached, or a file not be made.
    pub fn start(settings: NodeSettings) -> Result<Self> {
        settings.check()?;
        let paths = Paths::new(&settings.cluster);
        let mut talk = Talk::new(settings.coordination.begin()?);
        let groups = groups_of(&mut talk, &paths, &settings.cluster)?;
        let mark = Mark::take(&settings.folder, &settings.cluster, settings.server)?;
        let parts = Arc::new(Parts::start(settings, &paths, groups.clone())?);
        let watching = Watching {
            me: parts.me,
            paths,
            groups,
            coordination: parts.settings.coordination.clone(),
            server: Arc::downgrade(&parts.server),
            desk: Arc::clone(&parts.desk),
            holding: Arc::clone(&parts.holding),
        };
        let watcher = Watcher::start(watching, talk);
        let node = Self {
            parts,
            watcher: Mutex::new(None),
            _mark: mark,
        };
        // If it fails, the server is ended by the drop of this.
        *node.watcher.lock() = Some(watcher?);
        Ok(node)
    }

    /// Where others reach it.
    pub fn address(&self) -> Address {
        Address::new(&self.parts.address)
    }

    /// The server, in this start.
    pub fn me(&self) -> Member {
        self.parts.me
    }

    /// Ends it: no request is taken any more, what its primaries have acknowledged is made durable where that is quick, and
    /// the others find out that it is gone. A second call does nothing.
    pub fn end(&self) {
        let Some(watcher) = self.watcher.lock().take() else {
            return;
        };
        self.parts.pool.end();
        self.parts.orders.end();
        watcher.end();
        self.parts.holding.settle();
        self.parts.server.end();
    }

    /// Ends it as a crash does: nothing more is made durable.
    pub fn abandon(&self) {
        if let Some(watcher) = self.watcher.lock().take() {
            self.parts.server.end();
            self.parts.pool.end();
            self.parts.orders.end();
            watcher.end();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
        // Without a watcher the start had failed half way.
        self.parts.server.end();
        self.parts.pool.end();
        self.parts.orders.end();
    }
}

/// Sessions of the machines; what was granted is remembered.
fn counted(settings: &NodeSettings, granted: &Arc<AtomicU32>) -> kreon_replica::drive::Begin {
    let (coordination, granted) = (settings.coordination.clone(), Arc::clone(granted));
    Box::new(move || {
        let session: Arc<dyn Coordinator> = coordination.begin()?;
        granted.store(session.session_ms(), Ordering::Relaxed);
        Ok(session)
    })
}

fn advertised(settings: &NodeSettings, listens: Option<Address>) -> String {
    let listens = listens.map(|at| at.to_string());
    let own = settings.advertised.clone().or(listens);
    own.unwrap_or_else(|| settings.listen.to_string())
}

/// The groups of the cluster, which are made with it.
fn groups_of(talk: &mut Talk, paths: &Paths, cluster: &str) -> Result<Vec<GroupId>> {
    let missing = || {
        let text = format!("there is no cluster {cluster:?}: make it with `kreon cluster init`");
        Error::invalid(text)
    };
    let format = talk.read(&paths.format(), false)?.ok_or_else(missing)?;
    let format = FormatNode::decode(&format.data)?;
    if format.version != u32::from(NODE_VERSION) {
        let text = format!(
            "cluster {cluster:?} has format {}, this program knows {NODE_VERSION}",
            format.version
        );
        return Err(Error::invalid(text));
    }
    let names = talk.children(&paths.groups(), false)?.ok_or_else(missing)?;
    let numbers = names.iter().filter_map(|name| name.parse().ok());
    Ok(numbers.map(GroupId).collect())
}

/// The number of a start, which no other start has.
fn new_process() -> Result<ProcessId> {
    let mut bytes = [0; 16];
    let flags = rustix::rand::GetRandomFlags::empty();
    match rustix::rand::getrandom(&mut bytes, flags) {
        Ok(16) => Ok(ProcessId(bytes)),
        Ok(_) => Err(Error::new(
            kreon_base::ErrorKind::Io,
            "too few random bytes",
        )),
        Err(error) => Err(Error::io("get random bytes", error.into())),
    }
}

impl Node {
    /// How it stands.
    pub fn status(&self) -> crate::status::NodeStatus {
        crate::status::of(&self.parts)
    }
}
