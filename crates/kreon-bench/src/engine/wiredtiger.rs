//! WiredTiger.

use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use anyhow::Context;
use kreon_bench_wiredtiger::{Connection, Cursor, Result, Session};

use super::Engine;
use super::tuning::{self, Means};

const TABLE: &str = "table:usertable";

/// Sessions at the most; more clients share them.
const SESSIONS: usize = 128;

/// Without the variables and files from which WiredTiger would take further settings.
const OWN_SETTINGS_ONLY: &str = "use_environment=false,config_base=false";

struct Wiredtiger {
    connection: Arc<Connection>,
    /// A client takes one for a request. They are opened when they are first wanted: each that is open costs the
    /// threads that evict.
    seats: Vec<Seat>,
}

/// A session and its cursor. On cache lines of its own: each request writes the lock.
#[repr(align(128))]
struct Seat(Mutex<Option<Cursor>>);

/// Opens a new store, or one whose process has ended.
pub fn open(dir: &Path, means: &Means) -> anyhow::Result<Box<dyn Engine>> {
    let dir = dir.join("wiredtiger");
    std::fs::create_dir_all(&dir)?;
    let connection = Connection::open(&dir, &connection_settings(means));
    let connection = connection.context("open WiredTiger")?;
    Session::open(&connection)?.create(TABLE, &table_settings(means))?;
    let seats = (0..SESSIONS).map(|_| Seat(Mutex::new(None))).collect();
    Ok(Box::new(Wiredtiger { connection, seats }))
}

fn connection_settings(means: &Means) -> String {
    let tuned = tuning::wiredtiger(means);
    format!(
        "create,{OWN_SETTINGS_ONLY},session_max={SESSIONS},cache_size={},\
         log=(enabled,file_max={},zero_fill={}),transaction_sync=(enabled={},method=fsync),\
         checkpoint=(wait={},log_size={}),\
         eviction=(threads_min=1,threads_max={}),eviction_dirty_target={},eviction_dirty_trigger={}",
        tuned.cache_bytes,
        tuned.log_file_bytes,
        tuned.has_zeroed_log,
        means.is_sync,
        tuned.checkpoint_seconds,
        tuned.checkpoint_log_bytes,
        tuned.eviction_threads_max,
        tuned.dirty_percent,
        tuned.dirty_percent_max,
    )
}

fn table_settings(means: &Means) -> String {
    let tuned = tuning::wiredtiger(means);
    format!(
        "leaf_page_max={},leaf_value_max={},access_pattern_hint={}",
        tuned.leaf_bytes,
        tuned.leaf_value_bytes_max,
        if tuned.has_readahead {
            "none"
        } else {
            "random"
        },
    )
}

thread_local! {
    /// The seat that this thread had last.
    static SEAT: Cell<usize> = const { Cell::new(0) };
}

impl Wiredtiger {
    /// Does `what` with a cursor that no other thread has meanwhile. A thread keeps its seat until another one sits there; so
    /// clients soon have one each, and the locks are free.
    fn with_cursor<T>(&self, what: impl FnOnce(&mut Cursor) -> Result<T>) -> anyhow::Result<T> {
        let mut seat = self.seat();
        let cursor = match &mut *seat {
            Some(cursor) => cursor,
            free => free.insert(Session::open(&self.connection)?.cursor(TABLE)?),
        };
        Ok(what(cursor)?)
    }

    fn seat(&self) -> MutexGuard<'_, Option<Cursor>> {
        let last = SEAT.get();
        let numbers = (last..self.seats.len()).chain(0..last);
        for number in numbers {
            match self.seats[number].0.try_lock() {
                Ok(cursor) => {
                    SEAT.set(number);
                    return cursor;
                }
                // Whatever a panicking client left, the cursor's next call sets it right.
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        let seat = &self.seats[last];
        seat.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `write` again as long as it meets other transactions, or is picked to make room in a full cache.
    fn write(&self, write: impl Fn(&mut Cursor) -> Result<()>) -> anyhow::Result<()> {
        self.with_cursor(|cursor| {
            loop {
                match write(cursor) {
                    Err(error) if error.is_rollback() => {}
                    written => return written,
                }
            }
        })
    }
}

impl Engine for Wiredtiger {
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        self.write(|cursor| cursor.put(key, value))
    }

    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool> {
        self.with_cursor(|cursor| cursor.get(key, show))
    }

    fn scan(
        &self,
        start: &[u8],
        count: usize,
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> anyhow::Result<usize> {
        self.with_cursor(|cursor| cursor.scan(start, count, show))
    }

    fn write_buffered(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> anyhow::Result<()> {
        self.write(|cursor| cursor.put_together(pairs))
    }

    fn persist(&self) -> anyhow::Result<()> {
        self.with_cursor(|cursor| cursor.session().flush_log())
    }

    fn settle(&self) -> anyhow::Result<()> {
        self.with_cursor(|cursor| cursor.session().checkpoint())
    }
}
