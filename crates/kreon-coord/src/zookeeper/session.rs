//! A session as its users see it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use zookeeper_client::Client;

use super::shared::Shared;
use super::thread::{Sent, Session};
use crate::checked::check;
use crate::command::Command;
use crate::coordinator::{CallId, Coordinator, Event};

/// A session with a ZooKeeper. It ends when this is dropped, and its ephemeral nodes go.
pub struct ZooKeeper {
    shared: Arc<Shared>,
    calls: mpsc::UnboundedSender<Sent>,
    /// The thread ends when it goes.
    wanted: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ZooKeeper {
    /// Begins a session with `servers`, `host:port` with commas between, and asks for `session_ms` milliseconds, of which
    /// ZooKeeper grants 2 to 20 of its ticks. Waits for that long at most.
    ///
    /// # Errors
    /// `InvalidArgument` for servers that are none; `Io` if none can be reached.
    pub fn connect(servers: &str, session_ms: u32) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| Error::io("begin a session", error))?;
        let limit = Duration::from_millis(session_ms.max(1).into());
        let connector = Client::connector().with_session_timeout(limit);
        let client = runtime.block_on(connector.connect(servers));
        let client = client.map_err(|error| refused(servers, &error))?;
        let granted = client.session_timeout().as_millis();
        let shared = Arc::new(Shared::new(u32::try_from(granted).unwrap_or(u32::MAX)));
        let (calls, calls_of_thread) = mpsc::unbounded_channel();
        let (wanted, unwanted) = oneshot::channel();
        let session = Session {
            servers: servers.to_owned(),
            shared: Arc::clone(&shared),
            calls: calls_of_thread,
            unwanted,
        };
        let thread = std::thread::Builder::new().name("kreon-coord".into());
        let thread = thread.spawn(move || serve(&runtime, session, client));
        let thread = thread.map_err(|error| Error::io("begin a session", error))?;
        Ok(Self {
            shared,
            calls,
            wanted: Some(wanted),
            thread: Some(thread),
        })
    }
}

fn serve(runtime: &Runtime, session: Session, client: Client) {
    /// Callers learn even of a panic.
    struct Ended(Arc<Shared>);
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.fail();
        }
    }
    let _ended = Ended(Arc::clone(&session.shared));
    runtime.block_on(session.run(client));
}

fn refused(servers: &str, error: &zookeeper_client::Error) -> Error {
    let kind = match error {
        zookeeper_client::Error::BadArguments(_) => ErrorKind::InvalidArgument,
        _ => ErrorKind::Io,
    };
    Error::new(
        kind,
        format!("no session with ZooKeeper at {servers}: {error}"),
    )
}

impl Coordinator for ZooKeeper {
    fn send(&self, call: CallId, command: Command) -> Result<()> {
        check(&command)?;
        self.shared.begin(call, |serial| {
            // If the thread has just ended, it has given up this call, or does so next.
            let _ = self.calls.send(Sent { serial, command });
        })
    }

    fn poll(&self, out: &mut Vec<Event>, patience: Duration) -> Result<()> {
        self.shared.poll(out, patience)
    }

    fn session_ms(&self) -> u32 {
        self.shared.session_ms()
    }
}

impl Drop for ZooKeeper {
    fn drop(&mut self) {
        drop(self.wanted.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
