//! An open database.

use std::ffi::CStr;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use crate::error::{Error, Result, c_text, check};
use crate::ffi::{self, RawConnection};

/// An open database. It is closed when its last user is dropped, by a checkpoint of all that is not on the device.
pub struct Connection {
    raw: NonNull<RawConnection>,
}

// SAFETY: WiredTiger's connections belong to no thread: any may call them, and close them.
unsafe impl Send for Connection {}

// SAFETY: the methods of WiredTiger's connections may be called by many threads at once (`WT_CONNECTION`, thread safety).
unsafe impl Sync for Connection {}

impl Connection {
    /// Opens the database in the folder `dir`, which must exist, with a configuration of `wiredtiger_open`.
    ///
    /// # Errors
    /// Of WiredTiger, or a path that is no text.
    pub fn open(dir: &Path, config: &str) -> Result<Arc<Self>> {
        const CALL: &str = "open";
        let dir = dir.to_str().ok_or(Error::argument(CALL))?;
        let (dir, config) = (c_text(CALL, dir)?, c_text(CALL, config)?);
        let mut raw = ptr::null_mut();
        // SAFETY: both texts end with a zero and outlive the call, which keeps neither; `raw` takes a pointer.
        let opened = unsafe { ffi::kreon_wt_open(dir.as_ptr(), config.as_ptr(), &raw mut raw) };
        check(CALL, opened)?;
        let raw = NonNull::new(raw).ok_or(Error::argument(CALL))?;
        Ok(Arc::new(Self { raw }))
    }

    /// The connection for calls; good as long as `self`.
    pub(crate) fn raw(&self) -> *mut RawConnection {
        self.raw.as_ptr()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // What fails here, WiredTiger itself tells on the standard error.
        // SAFETY: `open` made the connection and nothing else closes it; each session holds an `Arc` of it, so none is left.
        let _ = unsafe { ffi::kreon_wt_close(self.raw()) };
    }
}

/// The version of the library that is linked, as it says it: `3.2.1`.
pub fn version() -> String {
    // SAFETY: the library's constant, which ends with a zero.
    let text = unsafe { CStr::from_ptr(ffi::kreon_wt_version()) };
    // "WiredTiger 3.2.1: (June 2, 2019)"
    let text = text.to_string_lossy();
    let mut parts = text.split([' ', ':']);
    parts.nth(1).unwrap_or(&text).to_owned()
}
