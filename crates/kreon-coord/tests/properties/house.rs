//! Where sessions come from.

use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kreon_coord::ZooKeeper;
use kreon_coord::fake::FakeSession;
use kreon_zookeeper::{Ensemble, Jars, Settings};
use tempfile::TempDir;

use crate::seat::Seat;

/// How long servers may take to start, on a machine that does other things.
pub const START: Duration = Duration::from_secs(120);

/// One real ZooKeeper at a time.
static ONE: Mutex<()> = Mutex::new(());

/// A real ZooKeeper.
pub struct Real {
    pub ensemble: Ensemble,
    _folder: TempDir,
    _one: MutexGuard<'static, ()>,
}

impl Real {
    /// `count` servers; none, said aloud, where there is no ZooKeeper.
    pub fn start(count: usize, tick_ms: u32) -> Option<Self> {
        let jars = match Jars::find(&Jars::cache()) {
            Ok(jars) => jars,
            Err(error) => {
                let required = std::env::var_os("KREON_ZOOKEEPER_REQUIRED").is_some();
                assert!(!required, "{error}");
                // Not by a macro: those are captured.
                let _ = writeln!(std::io::stderr(), "SKIPPED, no ZooKeeper: {error}");
                return None;
            }
        };
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            tick_ms,
            is_synced: false,
            heap_mib: 64,
            places: Vec::new(),
        };
        // Another process may take a port between its choice and its use.
        let start = || Ensemble::start(&jars, &settings, folder.path(), count, None, START);
        let ensemble = start().or_else(|_| start()).unwrap();
        Some(Self {
            ensemble,
            _folder: folder,
            _one: one,
        })
    }

    /// A session with any of the servers.
    pub fn seat(&self, session_ms: u32) -> Seat {
        seat(&self.ensemble.addresses(), session_ms)
    }

    /// A session that knows one server only.
    pub fn seat_at(&self, server: usize, session_ms: u32) -> Seat {
        let address = self.ensemble.servers[server].address();
        seat(&address.to_string(), session_ms)
    }
}

/// A session; tried again while no server serves.
pub fn seat(servers: &str, session_ms: u32) -> Seat {
    let begun = std::time::Instant::now();
    loop {
        match ZooKeeper::connect(servers, session_ms) {
            Ok(session) => return Seat::new(session),
            Err(error) => assert!(begun.elapsed() < START, "{error}"),
        }
    }
}

/// A coordinator that new sessions can be had of.
pub enum House {
    InProcess(FakeSession),
    Real(Real),
}

impl House {
    pub fn in_process() -> Self {
        Self::InProcess(FakeSession::new())
    }

    /// Sessions last for 30 seconds at a tick of 2.
    pub fn real() -> Option<Self> {
        Real::start(1, 2000).map(Self::Real)
    }

    pub fn seat(&self) -> Seat {
        match self {
            Self::InProcess(first) => Seat::new(first.another()),
            Self::Real(real) => real.seat(30_000),
        }
    }

    /// Ends a session, and waits until its ephemeral nodes are gone.
    pub fn end(&self, seat: Seat) {
        drop(seat);
    }
}
