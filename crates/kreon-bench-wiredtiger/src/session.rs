//! What a thread needs to call the database.

use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::connection::Connection;
use crate::cursor::Cursor;
use crate::error::{Error, Result, c_text, check};
use crate::ffi::{self, RawSession};

/// A session, for one thread at a time.
pub struct Session {
    raw: NonNull<RawSession>,
    /// Stays open as long as its sessions.
    _connection: Arc<Connection>,
}

// SAFETY: a session may be used by any thread, as long as no two use it at once (`WT_SESSION`, thread safety); it is not
// `Sync`.
unsafe impl Send for Session {}

impl Session {
    /// Opens a session of `connection`.
    ///
    /// # Errors
    /// Of WiredTiger: there are as many as its configuration allows (`session_max`).
    pub fn open(connection: &Arc<Connection>) -> Result<Self> {
        const CALL: &str = "open a session";
        let mut raw = ptr::null_mut();
        // SAFETY: the connection is open, and `raw` takes a pointer.
        check(CALL, unsafe {
            ffi::kreon_wt_open_session(connection.raw(), &raw mut raw)
        })?;
        Ok(Self {
            raw: NonNull::new(raw).ok_or(Error::argument(CALL))?,
            _connection: Arc::clone(connection),
        })
    }

    /// Makes the table `uri` (`table:name`) of keys and values of bytes, if there is none. `config` is the rest of its
    /// configuration.
    ///
    /// # Errors
    /// Of WiredTiger; or there is a table with another configuration.
    pub fn create(&self, uri: &str, config: &str) -> Result<()> {
        const CALL: &str = "create a table";
        let config = format!("key_format=u,value_format=u,{config}");
        let (uri, config) = (c_text(CALL, uri)?, c_text(CALL, &config)?);
        // SAFETY: the session is open and this thread's; both texts end with a zero and outlive the call, which keeps neither.
        let created = unsafe { ffi::kreon_wt_create(self.raw(), uri.as_ptr(), config.as_ptr()) };
        check(CALL, created)
    }

    /// A cursor over the table `uri`, which [`Session::create`] has made. It takes the session.
    ///
    /// # Errors
    /// Of WiredTiger.
    pub fn cursor(self, uri: &str) -> Result<Cursor> {
        Cursor::open(self, uri)
    }

    /// Writes all tables as they are now, and flushes them.
    ///
    /// # Errors
    /// Of WiredTiger.
    pub fn checkpoint(&self) -> Result<()> {
        // SAFETY: the session is open and this thread's.
        check("checkpoint", unsafe {
            ffi::kreon_wt_checkpoint(self.raw())
        })
    }

    /// Makes durable what was committed so far, of tables with a log.
    ///
    /// # Errors
    /// Of WiredTiger.
    pub fn flush_log(&self) -> Result<()> {
        // SAFETY: the session is open and this thread's.
        check("flush the log", unsafe {
            ffi::kreon_wt_flush_log(self.raw())
        })
    }

    /// Begins a transaction that sees one moment.
    pub(crate) fn begin(&self) -> Result<()> {
        // SAFETY: the session is open and this thread's.
        check("begin", unsafe { ffi::kreon_wt_begin(self.raw()) })
    }

    /// Ends the transaction, without a flush of the log, whatever the configuration says.
    pub(crate) fn commit_buffered(&self) -> Result<()> {
        // SAFETY: the session is open and this thread's.
        check("commit", unsafe {
            ffi::kreon_wt_commit_buffered(self.raw())
        })
    }

    /// Ends the transaction, and undoes what it wrote.
    pub(crate) fn rollback(&self) -> Result<()> {
        // SAFETY: the session is open and this thread's.
        check("roll back", unsafe { ffi::kreon_wt_rollback(self.raw()) })
    }

    /// The session for calls; good as long as `self`.
    pub(crate) fn raw(&self) -> *mut RawSession {
        self.raw.as_ptr()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Its cursor ends with it, and a transaction that was left is rolled back.
        // SAFETY: `open` made the session and nothing else closes it; the connection is still open.
        let _ = unsafe { ffi::kreon_wt_close_session(self.raw()) };
    }
}
