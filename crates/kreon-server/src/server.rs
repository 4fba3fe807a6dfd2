//! The server: its threads, from the start to the end.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Instant, SystemTime};

use kreon::{Clock, Error, Options, Result, Store, Timestamp};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::spawn_local;
use tokio_rustls::TlsAcceptor;

use crate::budget::Budget;
use crate::clients::Clients;
use crate::keyspace::{Keyspace, KeyspaceOptions, Rooms};
use crate::metrics::{History, Recorders};
use crate::net::{Arrival, Listener, Worker, acceptor, bind, close_idle, run_worker};
use crate::page::{Pages, take_samples};
use crate::pubsub::Channels;
use crate::settings::Settings;
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
    /// Opens the store at `path` and serves it. Returns when it listens. Keys expire by the exact wall clock, where stores
    /// have one that ticks with the kernel.
    ///
    /// # Errors
    /// `InvalidArgument`: a setting is out of its range, or a file of TLS is none. `Io`: an address cannot be listened on, a
    /// thread cannot be started. Errors of the store.
    pub fn start(store: Options, path: &Path, settings: Settings) -> Result<Self> {
        settings.check()?;
        let clock = exact_clock();
        let store = store.clock(clock.clone()).open(path)?;
        Self::serve(store, clock, settings)
    }

    /// Serves a store that was opened with `clock`.
    fn serve(store: Store, clock: Clock, settings: Settings) -> Result<Self> {
        let tls = settings.tls.as_ref().map(acceptor).transpose()?;
        let listeners = bind(&settings)?;
        let pages = settings.metrics.as_deref().map(Pages::bind).transpose()?;
        let addresses: Vec<_> = listeners.iter().filter_map(|one| one.address()).collect();
        let options = KeyspaceOptions {
            databases: settings.databases,
            persistence: settings.persistence,
            rooms: Rooms {
                reply_bytes_max: settings.limits.output_bytes_max,
                budget: Budget::new(settings.limits.buffers_bytes_max),
            },
        };
        let keyspace = Keyspace::open(store, options, clock)?;
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

/// Milliseconds as they pass: a client that waits for `PTTL` finds its key gone.
fn exact_clock() -> Clock {
    Clock::of(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let ms = since.unwrap_or_default().as_millis();
        Timestamp::of_ms(u64::try_from(ms).unwrap_or(u64::MAX))
    })
}

fn no_thread(error: io::Error) -> Error {
    Error::io("start a thread of the server", error)
}

fn shared(settings: Settings, keyspace: Arc<Keyspace>, address: Option<&SocketAddr>) -> Shared {
    let budget = Arc::clone(&keyspace.rooms().budget);
    Shared {
        config: Config::new(&settings),
        keyspace,
        clients: Arc::new(Clients::new(budget)),
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use kreon_sim::{Keep, SimDevice, SimOptions};

    use super::*;
    use crate::settings::Persistence;

    /// Sends requests, and returns what was replied up to the last reply, which is `last`.
    fn ask(stream: &mut TcpStream, requests: &str, last: &str) {
        stream.write_all(requests.as_bytes()).unwrap();
        let mut received = Vec::new();
        while !received.ends_with(last.as_bytes()) {
            let mut part = [0; 4096];
            let count = stream.read(&mut part).unwrap();
            assert!(count > 0, "the connection ended");
            received.extend_from_slice(&part[..count]);
        }
    }

    #[test]
    fn reply_comes_when_a_power_cut_leaves_what_it_tells() {
        let device = Arc::new(SimDevice::new(SimOptions::default()));
        let options = || Store::options().memory_bytes(16 << 20);
        let store = options().open_on(Arc::clone(&device) as _).unwrap();
        let settings = Settings {
            listen: vec!["127.0.0.1:0".to_owned()],
            threads: 2,
            persistence: Persistence::Sync,
            ..Settings::default()
        };
        let server = Server::serve(store, Clock::default(), settings).unwrap();
        let address = server.addresses()[0];
        let check = |record: &str, what: &str| {
            let history = device.history();
            let crash = history.crash_after(history.events.len());
            let image = crash.image(&mut Keep::Nothing);
            let left = Arc::new(SimDevice::from_image(image, SimOptions::default()));
            let left = options().open_on(left).unwrap();
            let region = left.region("redis:0").unwrap();
            assert!(region.contains(record).unwrap(), "{what} was told of");
        };
        let check = &check;
        thread::scope(|scope| {
            for client in 0..3 {
                scope.spawn(move || {
                    let mut stream = TcpStream::connect(address).unwrap();
                    for round in 0..8 {
                        let own = format!("{client}-{round}");
                        let set = format!("SET {own} x\r\n");
                        ask(&mut stream, &set, "+OK\r\n");
                        check(&format!("k{own}"), &set);
                        let more = format!("SET {own}a x\r\nINCR {own}b\r\nLPUSH {own}c x y z\r\n");
                        ask(&mut stream, &more, ":3\r\n");
                        check(&format!("c{own}c"), &more);
                        check(&format!("k{own}b"), &more);
                        let multi = format!("MULTI\r\nSET {own}d x\r\nEXEC\r\n");
                        ask(&mut stream, &multi, "*1\r\n+OK\r\n");
                        check(&format!("k{own}d"), &multi);
                    }
                });
            }
        });
        server.end().unwrap();
    }
}
