//! Errors of WiredTiger.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::ffi;

/// A call that failed. WiredTiger has written to the standard error what it knows beside the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    call: &'static str,
    number: c_int,
}

/// Of this crate's calls.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Of a text with a zero in it, or another argument that cannot be passed on.
    pub(crate) fn argument(call: &'static str) -> Self {
        const EINVAL: c_int = 22;
        Self {
            call,
            number: EINVAL,
        }
    }

    /// Whether the call met another transaction and may be tried again.
    pub fn is_rollback(self) -> bool {
        ffi::kreon_wt_is_rollback(self.number) != 0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, number } = self;
        write!(f, "WiredTiger, {call}: {} ({number})", describe(*number))
    }
}

impl std::error::Error for Error {}

/// What a call returned, as a result.
pub(crate) fn check(call: &'static str, number: c_int) -> Result<()> {
    match number {
        0 => Ok(()),
        number => Err(Error { call, number }),
    }
}

/// What a call for a record returned: whether there is one.
pub(crate) fn check_found(call: &'static str, number: c_int) -> Result<bool> {
    match ffi::kreon_wt_is_not_found(number) {
        0 => check(call, number).map(|()| true),
        _ => Ok(false),
    }
}

/// `text` as C wants it.
pub(crate) fn c_text(call: &'static str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::argument(call))
}

fn describe(number: c_int) -> String {
    /// The library's function may have one buffer for all threads.
    static ALONE: Mutex<()> = Mutex::new(());
    let mut text: [c_char; 128] = [0; 128];
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: `text` is writable for the length that is told, which is above zero; the lock keeps other threads out.
    unsafe { ffi::kreon_wt_describe(number, text.as_mut_ptr(), text.len()) };
    drop(alone);
    // SAFETY: the array ends with a zero whatever was written, by `kreon_wt_describe`.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    text.to_string_lossy().into_owned()
}
