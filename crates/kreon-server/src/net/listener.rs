//! Listening, and who is let in.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kreon::{Error, Result};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc::UnboundedSender;

use super::arrival::{Arrival, Socket};
use crate::clients::{ClientEntry, Mailbox};
use crate::settings::Settings;
use crate::shared::Shared;

/// Pause after a failure to accept, such as a lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// A socket that takes connections, of no thread yet.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener, PathBuf),
}

/// One that a thread listens at.
enum Accepting {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

/// Listens at all addresses.
///
/// # Errors
/// `Io` names the address.
pub(crate) fn bind(settings: &Settings) -> Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    for address in &settings.listen {
        let failed = |error| Error::io(format!("listen at {address}"), error);
        for address in address.to_socket_addrs().map_err(failed)? {
            listeners.push(Listener::Tcp(bind_tcp(address).map_err(failed)?));
        }
    }
    if let Some(path) = &settings.unix {
        let failed = |error| Error::io(format!("listen at {}", path.display()), error);
        let listener = bind_unix(path).map_err(failed)?;
        listeners.push(Listener::Unix(listener, path.clone()));
    }
    Ok(listeners)
}

fn bind_tcp(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// For the user of the process only: there may be no password.
fn bind_unix(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    let is_socket =
        std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    // Left by a process that was killed: nobody answers.
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
    Ok(listener)
}

impl Listener {
    /// The address, if it has one.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(..) => None,
        }
    }

    /// Hands connections to the threads by turns, until the server ends.
    pub(crate) async fn accept_all(
        self,
        shared: Arc<Shared>,
        threads: Vec<UnboundedSender<Arrival>>,
    ) {
        let accepting = match self {
            Self::Tcp(listener) => TcpListener::from_std(listener).map(Accepting::Tcp),
            Self::Unix(listener, path) => {
                UnixListener::from_std(listener).map(|listener| Accepting::Unix(listener, path))
            }
        };
        match accepting {
            Ok(accepting) => accepting.accept_all(&shared, &threads).await,
            Err(error) => tracing::error!(%error, "nobody can be accepted"),
        }
    }
}

impl Accepting {
    async fn accept_all(self, shared: &Arc<Shared>, threads: &[UnboundedSender<Arrival>]) {
        let mut turn = 0;
        loop {
            let accepted = tokio::select! {
                accepted = self.accept(shared) => accepted,
                () = shared.ending.asked() => break,
            };
            match accepted {
                Ok(Some(arrival)) => {
                    turn += 1;
                    if let Some(thread) = threads.get(turn % threads.len().max(1)) {
                        // It ends only with the server.
                        let _ = thread.send(arrival);
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "no connection could be accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        if let Self::Unix(_, path) = &self {
            // A later server would remove it.
            let _ = std::fs::remove_file(path);
        }
    }

    /// The next connection. None: it was refused.
    async fn accept(&self, shared: &Arc<Shared>) -> io::Result<Option<Arrival>> {
        match self {
            Self::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                let local = stream
                    .local_addr()
                    .map_or_else(|_| String::new(), |at| at.to_string());
                let addresses = (from.to_string(), local);
                let is_near = from.ip().to_canonical().is_loopback();
                Ok(admit(
                    shared,
                    addresses,
                    is_near,
                    Socket::Tcp(stream.into_std()?),
                ))
            }
            Self::Unix(listener, path) => {
                let (stream, _) = listener.accept().await?;
                let path = format!("{}:0", path.display());
                let addresses = (path.clone(), path);
                Ok(admit(
                    shared,
                    addresses,
                    true,
                    Socket::Unix(stream.into_std()?),
                ))
            }
        }
    }
}

/// Lets a connection in, or tells it why not.
fn admit(
    shared: &Arc<Shared>,
    addresses: (String, String),
    is_near: bool,
    socket: Socket,
) -> Option<Arrival> {
    let settings = &shared.settings;
    if settings.is_protected && settings.password.is_none() && !is_near {
        socket.refuse(
            "-DENIED Kreon is running in protected mode because no password is set. Connections are accepted only from the \
             machine it runs on. Start it with --auth-file, or with --unprotected if everybody may do everything.\r\n",
        );
        return None;
    }
    let clients_max = shared
        .config
        .clients_max
        .load(std::sync::atomic::Ordering::Relaxed);
    let Some(admission) = shared.clients.admit(clients_max) else {
        socket.refuse("-ERR max number of clients reached\r\n");
        return None;
    };
    let output_bytes_max = settings.limits.output_bytes_max;
    let mailbox = Mailbox::new(output_bytes_max, &shared.clients.budget);
    let entry = Arc::new(ClientEntry::new(admission.id, addresses, mailbox));
    admission.list(&entry);
    Some(Arrival {
        socket,
        admission,
        entry,
    })
}
