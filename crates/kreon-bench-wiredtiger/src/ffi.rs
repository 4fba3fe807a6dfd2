//! The functions of `shim.c`.

use std::ffi::{c_char, c_int, c_void};

/// `WT_CONNECTION`, known by pointers only.
#[repr(C)]
pub struct RawConnection([u8; 0]);

/// `WT_SESSION`, known by pointers only.
#[repr(C)]
pub struct RawSession([u8; 0]);

/// `WT_CURSOR`, known by pointers only.
#[repr(C)]
pub struct RawCursor([u8; 0]);

unsafe extern "C" {
    pub safe fn kreon_wt_is_not_found(error: c_int) -> c_int;
    pub safe fn kreon_wt_is_rollback(error: c_int) -> c_int;
    /// A string of the library's own, for ever.
    pub safe fn kreon_wt_version() -> *const c_char;
    /// Not to be called by two threads at once. Ends the text with a zero.
    pub fn kreon_wt_describe(error: c_int, text: *mut c_char, text_bytes: usize);

    pub fn kreon_wt_open(
        home: *const c_char,
        config: *const c_char,
        connection: *mut *mut RawConnection,
    ) -> c_int;
    pub fn kreon_wt_close(connection: *mut RawConnection) -> c_int;

    pub fn kreon_wt_open_session(
        connection: *mut RawConnection,
        session: *mut *mut RawSession,
    ) -> c_int;
    pub fn kreon_wt_close_session(session: *mut RawSession) -> c_int;
    pub fn kreon_wt_create(
        session: *mut RawSession,
        uri: *const c_char,
        config: *const c_char,
    ) -> c_int;
    pub fn kreon_wt_checkpoint(session: *mut RawSession) -> c_int;
    pub fn kreon_wt_flush_log(session: *mut RawSession) -> c_int;
    pub fn kreon_wt_begin(session: *mut RawSession) -> c_int;
    pub fn kreon_wt_commit_buffered(session: *mut RawSession) -> c_int;
    pub fn kreon_wt_rollback(session: *mut RawSession) -> c_int;

    pub fn kreon_wt_open_cursor(
        session: *mut RawSession,
        uri: *const c_char,
        cursor: *mut *mut RawCursor,
    ) -> c_int;
    pub fn kreon_wt_put(
        cursor: *mut RawCursor,
        key: *const c_void,
        key_bytes: usize,
        value: *const c_void,
        value_bytes: usize,
    ) -> c_int;
    pub fn kreon_wt_delete(cursor: *mut RawCursor, key: *const c_void, key_bytes: usize) -> c_int;
    pub fn kreon_wt_search(cursor: *mut RawCursor, key: *const c_void, key_bytes: usize) -> c_int;
    pub fn kreon_wt_seek(cursor: *mut RawCursor, key: *const c_void, key_bytes: usize) -> c_int;
    pub fn kreon_wt_next(cursor: *mut RawCursor) -> c_int;
    /// What `key` then points at is the cursor's, until its next call.
    pub fn kreon_wt_key(
        cursor: *mut RawCursor,
        key: *mut *const c_void,
        key_bytes: *mut usize,
    ) -> c_int;
    /// What `value` then points at is the cursor's, until its next call.
    pub fn kreon_wt_value(
        cursor: *mut RawCursor,
        value: *mut *const c_void,
        value_bytes: *mut usize,
    ) -> c_int;
    pub fn kreon_wt_reset(cursor: *mut RawCursor) -> c_int;
}
