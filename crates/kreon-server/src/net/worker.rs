//! A thread that serves connections.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_rustls::TlsAcceptor;

use super::buffers::Buffers;
use super::connection::{Connection, End};
use super::listener::set_up;
use super::stream::Stream;
use crate::clients::{Admission, ClientEntry, ClientKind};
use crate::command::Combiner;
use crate::keyspace::SyncGroup;
use crate::metrics::Recorder;
use crate::shared::Shared;

/// A client has so long for the handshake of TLS.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// A connection that was let in.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(super) socket: Socket,
    pub(super) admission: Admission,
    pub(super) entry: Arc<ClientEntry>,
}

/// Its socket, of no thread yet.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Socket {
    /// Says why and closes it. The socket's own buffer takes the text, or the client does not learn it.
    pub(super) fn refuse(self, why: &str) {
        let _ = match self {
            Self::Tcp(mut stream) => stream.write(why.as_bytes()),
            Self::Unix(mut stream) => stream.write(why.as_bytes()),
        };
    }
}

/// What the connections of a thread share.
pub(crate) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) buffers: Buffers,
    pub(super) combiner: Combiner,
    pub(super) syncs: SyncGroup,
    tls: Option<TlsAcceptor>,
    /// To be woken at the end.
    connections: RefCell<HashMap<u64, Arc<ClientEntry>>>,
    is_ending: Cell<bool>,
    is_empty: Notify,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("connections", &self.connections.borrow().len())
            .finish_non_exhaustive()
    }
}

impl Worker {
    pub(crate) fn new(shared: &Arc<Shared>, thread: usize, tls: Option<TlsAcceptor>) -> Rc<Self> {
        Rc::new(Self {
            shared: Arc::clone(shared),
            recorder: shared.recorders.of(thread),
            buffers: Buffers::default(),
            combiner: Combiner::default(),
            syncs: SyncGroup::default(),
            tls,
            connections: RefCell::default(),
            is_ending: Cell::new(false),
            is_empty: Notify::new(),
        })
    }

    /// Whether connections end when they have answered.
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.get()
    }

    fn end_connections(&self) {
        self.is_ending.set(true);
        for entry in self.connections.borrow().values() {
            entry.mailbox.wake();
        }
    }

    async fn serve(self: Rc<Self>, arrival: Arrival) {
        let Arrival {
            socket,
            admission,
            entry,
        } = arrival;
        let id = admission.id;
        self.connections.borrow_mut().insert(id, Arc::clone(&entry));
        match self.stream(socket).await {
            Ok(stream) => {
                let end = Connection::new(&self, stream, &entry).serve().await;
                told(&end, &entry);
            }
            Err(error) => tracing::debug!(%error, from = entry.address, "no connection"),
        }
        self.connections.borrow_mut().remove(&id);
        if self.connections.borrow().is_empty() {
            self.is_empty.notify_waiters();
        }
    }

    async fn stream(&self, socket: Socket) -> io::Result<Stream> {
        match socket {
            Socket::Unix(stream) => Ok(Stream::Unix(UnixStream::from_std(stream)?)),
            Socket::Tcp(stream) => {
                let stream = TcpStream::from_std(stream)?;
                set_up(&stream)?;
                let Some(tls) = &self.tls else {
                    return Ok(Stream::Tcp(stream));
                };
                let handshake = tokio::time::timeout(HANDSHAKE_MAX, tls.accept(stream));
                let stream = handshake.await.map_err(|_| io::ErrorKind::TimedOut)??;
                Ok(Stream::Tls(Box::new(stream)))
            }
        }
    }
}

fn told(end: &End, entry: &ClientEntry) {
    let (id, from) = (entry.id, &entry.address);
    match end {
        End::Quit | End::ServerEnds => tracing::debug!(id, from, "a connection ended"),
        End::Memory(why) => tracing::warn!(id, from, why, "a connection was ended"),
        End::Io(error) => tracing::debug!(id, from, %error, "a connection broke"),
        other => tracing::debug!(id, from, ?other, "a connection was ended"),
    }
}

/// Serves what arrives until the server ends and the last connection has ended, or its time is over.
pub(crate) async fn run_worker(worker: Rc<Worker>, mut arrivals: UnboundedReceiver<Arrival>) {
    loop {
        tokio::select! {
            arrival = arrivals.recv() => match arrival {
                Some(arrival) => drop(tokio::task::spawn_local(Rc::clone(&worker).serve(arrival))),
                None => break,
            },
            () = worker.shared.ending.asked() => break,
        }
    }
    worker.end_connections();
    let end_max = worker.shared.settings.end_max;
    let all_ended = async {
        loop {
            let notified = worker.is_empty.notified();
            if worker.connections.borrow().is_empty() {
                return;
            }
            notified.await;
        }
    };
    if tokio::time::timeout(end_max, all_ended).await.is_err() {
        let left = worker.connections.borrow().len();
        tracing::warn!(left, "connections were cut off");
    }
}

/// Ends connections that are idle for longer than they may, once a second, until the server ends.
pub(crate) async fn close_idle(shared: Arc<Shared>) {
    let mut clock = tokio::time::interval(Duration::from_secs(1));
    loop {
        clock.tick().await;
        let Some(idle_max) = shared.config.idle_max() else {
            continue;
        };
        let now = std::time::Instant::now();
        for entry in shared.clients.entries() {
            let waits = entry.is_waiting.load(std::sync::atomic::Ordering::Relaxed);
            let is_subscriber = entry.kind() == ClientKind::PubSub;
            if entry.idle_s(now) >= idle_max.as_secs() && !waits && !is_subscriber {
                entry.mailbox.kill();
            }
        }
    }
}
