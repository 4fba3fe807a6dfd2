//! Opens LMDB for the bench: the calls of its binding that are unsafe.
#![cfg(feature = "lmdb")]

use std::path::Path;

pub use heed;
use heed::{Env, EnvFlags, EnvOpenOptions, WithoutTls};

/// Opens an environment in the folder `dir`, which no other process may have open.
///
/// `map_bytes` bounds the size of the data. Without `is_sync` commits do not flush, and a crash of the machine may
/// take the whole environment along; pages are then changed in the map instead of being copied and written.
///
/// # Errors
/// Those of LMDB.
pub fn open(dir: &Path, map_bytes: usize, is_sync: bool) -> heed::Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map_bytes).max_readers(256);
    // The device's readahead would read megabytes for each page that is missed.
    let mut flags = EnvFlags::NO_READ_AHEAD;
    if !is_sync {
        flags |= EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP | EnvFlags::MAP_ASYNC;
    }
    // SAFETY: NO_SYNC and MAP_ASYNC give up durability, not the soundness of this process; NO_READ_AHEAD is a hint.
    // WRITE_MAP makes the map writable: only LMDB gets pointers into it that may be written through; the slices that
    // readers see are shared ones of pages that no transaction changes while they can be seen.
    unsafe { options.flags(flags) };
    // SAFETY: the bench makes a new folder for each run and opens it once, from one process, so that nothing
    // else changes the file under the map.
    unsafe { options.open(dir) }
}

/// Opens the environment in the folder `dir` for reading only. This process must not have it open.
///
/// # Errors
/// Those of LMDB.
pub fn open_to_read(dir: &Path, map_bytes: usize) -> heed::Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map_bytes).max_readers(256);
    // SAFETY: READ_ONLY makes the map read-only; NO_READ_AHEAD is a hint.
    unsafe { options.flags(EnvFlags::READ_ONLY | EnvFlags::NO_READ_AHEAD) };
    // SAFETY: the bench has written the folder and closed it before, and nothing changes the file under the map.
    unsafe { options.open(dir) }
}
