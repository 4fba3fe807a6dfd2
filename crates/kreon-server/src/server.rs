//! The server: its threads, from the start to the end.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use kreon::{Error, Result, Store};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::spawn_local;
use tokio_rustls::TlsAcceptor;

use crate::clients::Clients;
use crate::keyspace::{self, Keyspace, KeyspaceOptions};
use crate::metrics::{History, Recorders};
use crate::net::{Arrival, Listener, Worker, acceptor, bind, close_idle, run_worker};
use crate::page::{Pages, take_samples};
use crate::pubsub::Channels;
use crate::settings::{Persistence, Settings};
use crate::shared::{Config, Ending, Saves, Shared, SlowLog};

/// A running server, until [`end`](Self::end) or a drop.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    metrics_address: Option<SocketAddr>,
    threads: Vec<JoinHandle<()>>,
}

/// What a thread needs to run.
struct Post {
    shared: Arc<Shared>,
    number: usize,
    tls: Option<TlsAcceptor>,
    arrivals: UnboundedReceiver<Arrival>,
}

impl Server {
    /// Serves `store`, which nobody else may change meanwhile. Returns when it listens.
    ///
    /// # Errors
    /// `InvalidArgument`: a setting is out of its range, or a file of TLS is none. `Io`: an address cannot be listened on, a
    /// thread cannot be started. Errors of the store.
    pub fn start(store: Store, settings: Settings) -> Result<Self> {
        settings.check()?;
        let tls = settings.tls.as_ref().map(acceptor).transpose()?;
        let listeners = bind(&settings)?;
        let pages = settings.metrics.as_deref().map(Pages::bind).transpose()?;
        let addresses: Vec<_> = listeners.iter().filter_map(|one| one.address()).collect();
        let options = KeyspaceOptions {
            databases: settings.databases,
            persistence: match settings.persistence {
                Persistence::Sync => keyspace::Persistence::Sync,
                Persistence::Buffered => keyspace::Persistence::Buffered,
                Persistence::Interval(time) => keyspace::Persistence::Interval(time),
            },
        };
        let keyspace = Keyspace::open(store, options)?;
        let count = settings.threads;
        let shared = Arc::new(shared(settings, keyspace, addresses.first()));
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..count).map(|_| unbounded_channel()).unzip();
        let mut server = Self {
            shared: Arc::clone(&shared),
            addresses,
            metrics_address: pages.as_ref().and_then(Pages::address),
            threads: Vec::with_capacity(count),
        };
        let (started, has_started) = mpsc::channel();
        let mut first = Some(Front {
            listeners,
            senders,
            pages,
        });
        for (number, arrivals) in receivers.into_iter().enumerate() {
            let post = Post {
                shared: Arc::clone(&shared),
                number,
                tls: tls.clone(),
                arrivals,
            };
            let (front, started) = (first.take(), started.clone());
            let thread = thread::Builder::new().name(format!("kreon-serve-{number}"));
            let thread = thread.spawn(move || run(post, front, &started));
            server.threads.push(thread.map_err(no_thread)?);
        }
        drop(started);
        for outcome in has_started.iter().take(count) {
            // A failure drops the server, which ends the threads that run.
            outcome.map_err(no_thread)?;
        }
        Ok(server)
    }

    /// Where it listens for TCP: the ports that were chosen, where 0 was asked for.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where metrics and the status page are.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// Whether a client asked for the end, by `SHUTDOWN`. [`end`](Self::end) is to be called then.
    pub fn is_ending(&self) -> bool {
        self.shared.ending.is_asked()
    }

    /// Takes no more connections, answers what was received, and closes the store: all of it is durable then. Waits for
    /// connections that do not take their replies for [`Settings::end_max`] at most.
    ///
    /// # Errors
    /// As [`Store::close`].
    pub fn end(mut self) -> Result<()> {
        self.stop();
        self.shared.keyspace.store().close()
    }

    fn stop(&mut self) {
        self.shared.ending.ask();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the server had panicked");
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What the first thread does besides.
struct Front {
    listeners: Vec<Listener>,
    senders: Vec<UnboundedSender<Arrival>>,
    pages: Option<Pages>,
}

fn no_thread(error: io::Error) -> Error {
    Error::io("start a thread of the server", error)
}

fn shared(settings: Settings, keyspace: Arc<Keyspace>, address: Option<&SocketAddr>) -> Shared {
    Shared {
        config: Config::new(&settings),
        keyspace,
        clients: Arc::new(Clients::new(settings.limits.buffers_bytes_max)),
        channels: Channels::default(),
        recorders: Recorders::new(settings.threads),
        history: History::default(),
        slow_log: SlowLog::default(),
        ending: Ending::default(),
        since: Instant::now(),
        run_id: run_id(),
        port: address.map_or(0, SocketAddr::port),
        saves: Saves::new(),
        settings,
    }
}

/// 40 digits of chance, as Redis has them.
fn run_id() -> String {
    let chance = || RandomState::new().build_hasher().finish();
    let digits = format!("{:016x}{:016x}{:016x}", chance(), chance(), chance());
    digits.chars().take(40).collect()
}

/// A thread of the server.
fn run(post: Post, front: Option<Front>, started: &mpsc::Sender<io::Result<()>>) {
    let mut builder = Builder::new_current_thread();
    let runtime = match builder.enable_all().build_local(LocalOptions::default()) {
        Ok(runtime) => runtime,
        Err(error) => return drop(started.send(Err(error))),
    };
    let Post {
        shared,
        number,
        tls,
        arrivals,
    } = post;
    runtime.block_on(async {
        let mut accepting = Vec::new();
        if let Some(Front {
            listeners,
            senders,
            pages,
        }) = front
        {
            if let Some(pages) = pages {
                spawn_local(take_samples(Arc::clone(&shared)));
                spawn_local(pages.serve(Arc::clone(&shared)));
            }
            spawn_local(Arc::clone(&shared.keyspace).maintain());
            spawn_local(close_idle(Arc::clone(&shared)));
            for listener in listeners {
                let accept = listener.accept_all(Arc::clone(&shared), senders.clone());
                accepting.push(spawn_local(accept));
            }
        }
        // Who waits for this waits for nothing else.
        let _ = started.send(Ok(()));
        run_worker(Worker::new(&shared, number, tls), arrivals).await;
        for accept in accepting {
            let _ = accept.await;
        }
    });
}
