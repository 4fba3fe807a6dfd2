//! TCP, with plain sockets.
//!
//! A link is one connection, so that pages do not delay beats: two servers have one link for streams and one for control
//! messages. A sender writes its packet itself if nobody else is writing and nothing waits; otherwise, and if small packets
//! come one upon the other, it leaves it to the one progress thread of the process, which writes all that has come by then
//! at once. Who polls reads, one link or a gathering of many. No thread spins.
//!
//! **Security.** With a key, both ends of every connection prove that they have it before anything else is understood
//! (HMAC-SHA-256 of both challenges, roles and processes); a connection that has not proven itself has sent at most
//! 4 KiB, lives for 5 s and is one of few. What follows is **neither encrypted nor signed**: whoever can read or change packets
//! between two servers reads the data and can take over a link. A fabric with a key belongs in a network that is trusted;
//! one without a key uses loopback addresses only, and there every process of the machine may connect.

mod address;
mod connection;
mod connector;
mod counts;
mod gathering;
mod greeting;
mod inbox;
#[cfg(all(test, shuttle))]
mod models;
mod outbox;
mod progress;
mod registry;
mod sending;
mod settings;
mod transfer;
mod waiting;

use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Result};
use kreon_wire::limits::{HEADER_BYTES, REQUEST_BYTES_MAX};

pub use counts::{Count, TcpCounts};
pub use settings::TcpSettings;

use crate::address::Address;
use crate::fabric::{Fabric, Listening, Traits, Welcome};
use crate::gathering::Gathering;
use crate::link::Link;
use crate::peer::PeerId;
use address::usable;
use connection::Surroundings;
use gathering::TcpGathering;
use progress::{Command, Mailbox, Progress};
use registry::Registry;
use waiting::{Sockets, Token};

/// TCP as one process uses it. Dropping it closes its links, and waits until the rest of them is sent or
/// [`TcpSettings::linger_ms`] are over.
pub struct TcpFabric {
    registry: Arc<Registry>,
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<()>>,
}

impl TcpFabric {
    /// A fabric with its progress thread.
    ///
    /// # Errors
    /// `InvalidArgument`: a setting is outside its range; `Io`: no thread, no file.
    pub fn new(settings: TcpSettings) -> Result<Self> {
        settings.check()?;
        let around = Surroundings {
            sockets: Arc::new(Sockets::new()?),
            counts: Arc::default(),
            window_bytes: settings.window_bytes as usize,
            linger: Duration::from_millis(settings.linger_ms.into()),
        };
        let registry = Arc::new(Registry::new(settings, around));
        let mailbox = Arc::new(Mailbox::new(&registry)?);
        let progress = Progress::new(registry.clone(), mailbox.clone());
        let thread = std::thread::Builder::new().name("kreon-fabric".into());
        let thread = thread.spawn(move || progress.run());
        let thread = thread.map_err(|e| Error::io("start the progress thread", e))?;
        Ok(Self {
            registry,
            mailbox,
            thread: Some(thread),
        })
    }

    /// What this process has seen of others.
    pub fn counts(&self) -> &TcpCounts {
        &self.registry.around.counts
    }

    fn usable(&self, at: &Address) -> Result<std::net::SocketAddr> {
        usable(at, self.registry.settings.key.is_some())
    }
}

impl Fabric for TcpFabric {
    fn traits(&self) -> Traits {
        Traits {
            lands_without_peer_cpu: false,
            packet_bytes_max: HEADER_BYTES as u32 + REQUEST_BYTES_MAX,
            window_bytes: self.registry.settings.window_bytes,
        }
    }

    fn listen(&self, at: &Address, judge: Arc<dyn Welcome>) -> Result<Box<dyn Listening>> {
        let to = self.usable(at)?;
        let failed = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::AddrInUse => {
                Error::new(ErrorKind::Busy, format!("listen at {at}: {e}"))
            }
            _ => Error::io(format!("listen at {at}"), e),
        };
        let socket = TcpListener::bind(to).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let address = Address::new(&socket.local_addr().map_err(failed)?.to_string());
        let shown = socket.try_clone().map_err(failed)?;
        let token = self.registry.next_token();
        self.registry.around.sockets.add(&socket, token)?;
        self.mailbox.send(Command::Listen(token, socket, judge));
        Ok(Box::new(TcpListening {
            address,
            socket: shown,
            token,
            mailbox: self.mailbox.clone(),
        }))
    }

    fn connect(&self, to: &Address, me: &PeerId, limit: Duration) -> Result<Arc<dyn Link>> {
        let at = self.usable(to)?;
        let link = connector::connect(&self.registry, at, me, limit);
        let link = link.map_err(|e| e.within(format!("connect to {to}")))?;
        Ok(Arc::new(link))
    }

    fn gathering(&self) -> Result<Arc<dyn Gathering>> {
        Ok(Arc::new(TcpGathering::new()?))
    }
}

impl Drop for TcpFabric {
    fn drop(&mut self) {
        self.mailbox.send(Command::Stop);
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

struct TcpListening {
    address: Address,
    /// The same socket that the progress thread has.
    socket: TcpListener,
    token: Token,
    mailbox: Arc<Mailbox>,
}

impl Listening for TcpListening {
    fn address(&self) -> Address {
        self.address.clone()
    }
}

impl Drop for TcpListening {
    fn drop(&mut self) {
        // Nobody connects from now on, not only when the thread has closed its half.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        self.mailbox.send(Command::Unlisten(self.token));
    }
}
