//! The parts of a server, and how they are put together.

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, Result};
use kreon_coord::{Coordinator, Paths};
use kreon_fabric::tcp::{TcpFabric, TcpSettings};
use kreon_fabric::{Address, Fabric};
use kreon_replica::drive::{Asking, Begin, Clients, Links, LinksSettings, Server, ServerSettings};
use kreon_sync::{AtomicU32, Ordering};
use kreon_wire::{GroupId, Member, ProcessId, ServerNode};

use crate::answer::Desk;
use crate::client::Usage;
use crate::holding::Holding;
use crate::orders::Orders;
use crate::pool::Pool;
use crate::settings::NodeSettings;

/// How long a connection to another server may take.
const CONNECT: Duration = Duration::from_secs(1);

/// What the parts of a server share.
pub struct Parts {
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
    /// Puts them together; nothing of it waits for the coordinator.
    ///
    /// # Errors
    /// Those of [`Node::start`](crate::Node::start).
    pub fn new(settings: NodeSettings, paths: &Paths, groups: Vec<GroupId>) -> Result<Self> {
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

/// Sessions of the machines; what was granted is remembered.
fn counted(settings: &NodeSettings, granted: &Arc<AtomicU32>) -> Begin {
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
