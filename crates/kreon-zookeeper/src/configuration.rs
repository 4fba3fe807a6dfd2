//! The configuration file of a server.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use kreon_base::{Error, Result};

/// What servers are told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The unit of their times, in milliseconds: sessions are granted 2 to 20 of it.
    pub tick_ms: u32,
    /// Whether a write is on the disk before it is acknowledged. Killing a process loses nothing without.
    pub is_synced: bool,
    /// Memory of each, in MiB.
    pub heap_mib: u32,
    /// Where they run, in their order. A server without a place listens on the loopback address.
    pub places: Vec<Place>,
}

/// Where a server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where it listens.
    pub host: Ipv4Addr,
    /// A program and arguments that run what follows them, in a network namespace for instance. May be empty.
    pub launcher: Vec<String>,
}

impl Settings {
    /// Where the server `own` listens.
    pub(crate) fn host(&self, own: usize) -> Ipv4Addr {
        let place = self.places.get(own);
        place.map_or(Ipv4Addr::LOCALHOST, |place| place.host)
    }

    /// What runs the server `own`.
    pub(crate) fn launcher(&self, own: usize) -> &[String] {
        let place = self.places.get(own);
        place.map_or(&[], |place| &place.launcher)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tick_ms: 200,
            is_synced: true,
            heap_mib: 128,
            places: Vec::new(),
        }
    }
}

/// The ports of one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub client: u16,
    /// For followers, and for elections.
    pub peers: [u16; 2],
}

impl Ports {
    /// Ports for `servers`, that of the clients from `first` on, or any. Those that the system chose are free now; nobody
    /// keeps them free.
    pub(crate) fn choose(servers: usize, first: Option<u16>) -> Result<Vec<Self>> {
        let mut kept = Vec::new();
        let mut any = || -> Result<u16> {
            let io = |error| Error::io("find a free port", error);
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(io)?;
            let port = listener.local_addr().map_err(io)?.port();
            kept.push(listener);
            Ok(port)
        };
        let mut ports = Vec::with_capacity(servers);
        for server in 0..servers {
            let given =
                first.map(|first| first.saturating_add(u16::try_from(server).unwrap_or(u16::MAX)));
            let client = given.map_or_else(&mut any, Ok)?;
            let peers = [any()?, any()?];
            ports.push(Self { client, peers });
        }
        Ok(ports)
    }

    pub(crate) fn client_address(self, host: Ipv4Addr) -> SocketAddr {
        (host, self.client).into()
    }
}

/// The file of the server `own` of `all`.
pub(crate) fn text(settings: &Settings, data: &Path, own: usize, all: &[Ports]) -> String {
    let mut text = format!(
        "tickTime={}\ninitLimit=50\nsyncLimit=5\ndataDir={}\nclientPort={}\nclientPortAddress={}\n\
         maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n",
        settings.tick_ms,
        data.display(),
        all[own].client,
        settings.host(own)
    );
    if all.len() > 1 {
        for (number, ports) in all.iter().enumerate() {
            let [follow, elect] = ports.peers;
            let host = settings.host(number);
            let _ = writeln!(text, "server.{}={host}:{follow}:{elect}", number + 1);
        }
    }
    text
}
