//! All connections of one process, and what making one needs.

use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kreon_base::{Error, Result};
use parking_lot::Mutex;

use super::connection::{Connection, Surroundings, TcpLink};
use super::inbox::Inbox;
use super::settings::TcpSettings;
use super::waiting::Token;
use crate::handshake::{Challenge, Credentials};
use crate::peer::PeerId;

/// All connections of one process, and what making one needs.
pub(super) struct Registry {
    pub(super) settings: TcpSettings,
    pub(super) credentials: Credentials,
    pub(super) around: Surroundings,
    connections: Mutex<HashMap<Token, Arc<Connection>>>,
    last_token: AtomicU64,
}

impl Registry {
    pub(super) fn new(settings: TcpSettings, around: Surroundings) -> Self {
        let credentials = Credentials {
            cluster: settings.cluster.clone(),
            key: settings.key.clone(),
        };
        Self {
            settings,
            credentials,
            around,
            connections: Mutex::default(),
            last_token: AtomicU64::new(0),
        }
    }

    /// One that no socket has had.
    pub(super) fn next_token(&self) -> Token {
        self.last_token.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Makes a connection to a proven peer of a socket that was added under `token`.
    pub(super) fn link(
        &self,
        socket: TcpStream,
        token: Token,
        peer: PeerId,
        inbox: Inbox,
    ) -> Result<TcpLink> {
        let around = self.around.clone();
        let connection = Arc::new(Connection::new(socket, token, peer, inbox, around)?);
        self.connections.lock().insert(token, connection.clone());
        self.around.counts.linked.add_one();
        Ok(TcpLink(connection))
    }

    pub(super) fn get(&self, token: Token) -> Option<Arc<Connection>> {
        self.connections.lock().get(&token).cloned()
    }

    pub(super) fn forget(&self, token: Token) -> Option<Arc<Connection>> {
        self.connections.lock().remove(&token)
    }

    pub(super) fn all(&self) -> Vec<Arc<Connection>> {
        self.connections.lock().values().cloned().collect()
    }

    pub(super) fn is_full(&self) -> bool {
        self.connections.lock().len() >= self.settings.links_max
    }
}

/// What every new socket gets: it does not block, sends at once, notices after a minute or so that a silent peer is gone, and
/// after the time that is set that what was sent does not arrive.
pub(super) fn prepare(socket: &TcpStream, settings: &TcpSettings) -> Result<()> {
    use rustix::net::sockopt::{
        set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
        set_tcp_user_timeout,
    };
    let failed = |e| Error::io("prepare a socket", e);
    socket.set_nonblocking(true).map_err(failed)?;
    socket.set_nodelay(true).map_err(failed)?;
    set_socket_keepalive(socket, true)
        .and_then(|()| set_tcp_keepidle(socket, std::time::Duration::from_secs(30)))
        .and_then(|()| set_tcp_keepintvl(socket, std::time::Duration::from_secs(10)))
        .and_then(|()| set_tcp_keepcnt(socket, 3))
        .and_then(|()| set_tcp_user_timeout(socket, settings.unacknowledged_ms))
        .map_err(|e| failed(e.into()))
}

/// Fresh random bytes.
pub(super) fn challenge() -> Result<Challenge> {
    let mut bytes = [0; 32];
    let flags = rustix::rand::GetRandomFlags::empty();
    match rustix::rand::getrandom(&mut bytes, flags) {
        Ok(32) => Ok(bytes),
        Ok(_) => Err(Error::new(
            kreon_base::ErrorKind::Io,
            "too few random bytes",
        )),
        Err(e) => Err(Error::io("get random bytes", e.into())),
    }
}
