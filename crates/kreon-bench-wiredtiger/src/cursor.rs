//! A place in a table.

use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::slice;

use crate::error::{Error, Result, c_text, check, check_found};
use crate::ffi::{self, RawCursor};
use crate::session::Session;

/// A cursor over a table of keys and values of bytes, with the session that it belongs to. Keys have at least one byte. Between
/// two calls it stands nowhere: a position would keep a page in the cache, and old versions with it.
pub struct Cursor {
    raw: NonNull<RawCursor>,
    session: Session,
}

// SAFETY: as its session, by any thread but by no two at once; it is not `Sync`.
unsafe impl Send for Cursor {}

/// One of the calls that hand out a part of the record at which the cursor stands.
type Part = unsafe extern "C" fn(*mut RawCursor, *mut *const c_void, *mut usize) -> c_int;

impl Cursor {
    pub(crate) fn open(session: Session, uri: &str) -> Result<Self> {
        const CALL: &str = "open a cursor";
        let uri = c_text(CALL, uri)?;
        let mut raw = ptr::null_mut();
        // SAFETY: the session is open and this thread's; the text ends with a zero and outlives the call; `raw` takes a pointer.
        check(CALL, unsafe {
            ffi::kreon_wt_open_cursor(session.raw(), uri.as_ptr(), &raw mut raw)
        })?;
        Ok(Self {
            raw: NonNull::new(raw).ok_or(Error::argument(CALL))?,
            session,
        })
    }

    /// The session, for calls that are about no table.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Inserts or overwrites a record, in a transaction of its own, which is durable on return if the configuration says so.
    ///
    /// # Errors
    /// Of WiredTiger.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        // SAFETY: the cursor is open and this thread's; key and value are readable for their lengths during the call. An address
        // that is left in the cursor is not read: whatever is called next sets a key, or takes the address away.
        check("put", unsafe {
            ffi::kreon_wt_put(
                self.raw(),
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
            )
        })
    }

    /// Inserts or overwrites records in one transaction, whose log is not flushed, whatever the configuration says.
    ///
    /// # Errors
    /// Of WiredTiger; nothing was written then.
    pub fn put_together(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        self.session.begin()?;
        let put = pairs
            .iter()
            .try_for_each(|(key, value)| self.put(key, value));
        if let Err(error) = put {
            // The first error says more than one of the rollback would.
            let _ = self.session.rollback();
            return Err(error);
        }
        self.session.commit_buffered()
    }

    /// Removes the record of `key`, if there is one.
    ///
    /// # Errors
    /// Of WiredTiger.
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        // SAFETY: as of `put`.
        let deleted = unsafe { ffi::kreon_wt_delete(self.raw(), key.as_ptr().cast(), key.len()) };
        check_found("delete", deleted)?;
        self.leave()
    }

    /// Shows the value of `key`; whether there is one.
    ///
    /// # Errors
    /// Of WiredTiger.
    pub fn get(&mut self, key: &[u8], show: impl FnOnce(&[u8])) -> Result<bool> {
        const CALL: &str = "get";
        // SAFETY: as of `put`.
        let found = unsafe { ffi::kreon_wt_search(self.raw(), key.as_ptr().cast(), key.len()) };
        let is_found = check_found(CALL, found)?;
        if is_found {
            show(self.part(CALL, ffi::kreon_wt_value)?);
        }
        self.leave()?;
        Ok(is_found)
    }

    /// Shows up to `count` records from `start` on, in the order of their keys as bytes; how many there were.
    ///
    /// # Errors
    /// Of WiredTiger.
    pub fn scan(
        &mut self,
        start: &[u8],
        count: usize,
        mut show: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        const CALL: &str = "scan";
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: as of `put`.
        let found = unsafe { ffi::kreon_wt_seek(self.raw(), start.as_ptr().cast(), start.len()) };
        let mut is_found = check_found(CALL, found)?;
        let mut shown = 0;
        while is_found {
            let key = self.part(CALL, ffi::kreon_wt_key)?;
            show(key, self.part(CALL, ffi::kreon_wt_value)?);
            shown += 1;
            is_found = shown < count && self.step(CALL)?;
        }
        self.leave()?;
        Ok(shown)
    }

    /// Goes to the next record; whether there is one.
    fn step(&mut self, call: &'static str) -> Result<bool> {
        // SAFETY: the cursor is open, this thread's, and stands at a record.
        check_found(call, unsafe { ffi::kreon_wt_next(self.raw()) })
    }

    /// Leaves the record, and the addresses that the last call passed.
    fn leave(&mut self) -> Result<()> {
        // SAFETY: the cursor is open and this thread's.
        check("reset", unsafe { ffi::kreon_wt_reset(self.raw()) })
    }

    /// The key or the value of the record at which the cursor stands. What moves the cursor takes it by `&mut`.
    fn part(&self, call: &'static str, part: Part) -> Result<&[u8]> {
        let (mut data, mut bytes) = (ptr::null(), 0);
        // SAFETY: the cursor is open and this thread's, and both arguments take what they are for.
        check(call, unsafe {
            part(self.raw(), &raw mut data, &raw mut bytes)
        })?;
        if data.is_null() || bytes == 0 {
            return Ok(&[]);
        }
        // SAFETY: so many bytes are at `data` until the cursor's next call that moves it, which the borrow of `self` prevents.
        Ok(unsafe { slice::from_raw_parts(data.cast(), bytes) })
    }

    fn raw(&self) -> *mut RawCursor {
        self.raw.as_ptr()
    }
}
