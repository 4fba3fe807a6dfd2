//! What an open store tells other processes of itself.
//!
//! One thread waits for those who ask and answers one after the other. It takes no lock that a call of the store would not
//! take for the same figures, and whoever asks and does not read holds up nobody but others who ask.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use kreon_base::{Error, Result};
use kreon_device::StatusSocket;
use kreon_sync::{AtomicBool, Mutex, Ordering, Wakeup};

use super::handle::Engine;
use super::subsystems::Subsystems;

/// The first line of an answer.
pub const STATUS_HEAD: &str = "kreon status 1\n";

/// How long one who asks may read nothing.
const READER_PATIENCE: Duration = Duration::from_secs(5);

/// Pause after a failure to wait, such as a lack of descriptors.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers until the store is closed.
pub struct StatusServer {
    socket: StatusSocket,
    /// Who is being answered.
    current: Mutex<Option<UnixStream>>,
    pause: Wakeup,
    is_stopped: AtomicBool,
}

impl StatusServer {
    fn new(socket: StatusSocket) -> Self {
        Self {
            socket,
            current: Mutex::default(),
            pause: Wakeup::default(),
            is_stopped: AtomicBool::new(false),
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    fn serve(&self, text: impl Fn() -> String) {
        while !self.is_stopped() {
            match self.socket.accept() {
                Ok(Some(stream)) => {
                    if let Err(error) = self.answer(stream, &text) {
                        tracing::debug!(%error, "who asked for the status got no answer");
                    }
                }
                Ok(None) => tracing::debug!("another user asked for the status"),
                Err(_) if self.is_stopped() => return,
                Err(error) => {
                    tracing::debug!(%error, "nobody can ask for the status now");
                    self.pause.wait_for(PAUSE);
                }
            }
        }
    }

    fn answer(&self, mut stream: UnixStream, text: impl Fn() -> String) -> std::io::Result<()> {
        stream.set_write_timeout(Some(READER_PATIENCE))?;
        *self.current.lock() = Some(stream.try_clone()?);
        // A stop before this has not seen the stream.
        let outcome = match self.is_stopped() {
            true => Ok(()),
            false => stream.write_all(text().as_bytes()),
        };
        *self.current.lock() = None;
        outcome
    }

    /// Answers nobody any more, and breaks off the answer under way.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.socket.shut();
        if let Some(stream) = self.current.lock().take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.pause.call();
    }
}

impl Engine {
    /// Tells who asks on `socket` how the store is, in a thread of its own, until the store is closed. Called once. Without a
    /// socket or a thread nobody can ask: that is logged, and changes nothing else.
    pub fn serve_status(&self, socket: Result<StatusSocket>) {
        if let Err(error) = socket.and_then(|socket| self.try_serve_status(socket)) {
            tracing::warn!(%error, "nobody can ask for the status of the store");
        }
    }

    fn try_serve_status(&self, socket: StatusSocket) -> Result<()> {
        let mut threads = self.threads.lock();
        self.subsystems.storage.check_open()?;
        let server = Arc::new(StatusServer::new(socket));
        let (subsystems, serving) = (Arc::clone(&self.subsystems), Arc::clone(&server));
        let thread = std::thread::Builder::new()
            .name("kreon-status".to_owned())
            .spawn(move || serving.serve(|| answer(&subsystems)))
            .map_err(|error| Error::io("start a thread that tells the status", error))?;
        threads.push(thread);
        *self.status.lock() = Some(server);
        Ok(())
    }
}

/// The parts of an answer, each behind a line with its name and its length in bytes.
fn answer(subsystems: &Subsystems) -> String {
    let stats = subsystems.inspector.stats();
    let regions = subsystems.regions.list();
    let regions: Vec<_> = regions
        .iter()
        .map(|region| region.name.to_string())
        .collect();
    let mut text = STATUS_HEAD.to_owned();
    for (name, part) in [
        ("json", stats.to_json(&regions)),
        ("prometheus", stats.to_prometheus()),
        ("table", stats.to_string()),
    ] {
        _ = write!(text, "{name} {}\n{part}", part.len());
    }
    text
}
