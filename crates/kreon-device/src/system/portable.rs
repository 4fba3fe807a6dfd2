//! Systems of which only the plain calls of Unix are used.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::fs::Stat;
use rustix::io::Errno;

use crate::file::{Holder, Kind};

/// Unit of `st_blocks` in bytes, on all of them.
const BLOCK_BYTES: u64 = 512;

/// There is no direct I/O that all such systems have: the page cache is used.
pub(crate) fn make_direct(_: BorrowedFd<'_>, _: Kind) -> Result<u32, String> {
    Err("this build has it on Linux only".into())
}

/// Blocks are allocated by the writes into them. A file system that has too few left is told here all the same, as a
/// write that fails later costs more: by what is missing of the range if all holes of the file were in it. Others may
/// take the space meanwhile.
pub(crate) fn allocate(
    file: BorrowedFd<'_>,
    _offset: u64,
    len_bytes: u64,
) -> rustix::io::Result<()> {
    let about = rustix::fs::fstat(file)?;
    let [size, blocks] = [about.st_size, about.st_blocks].map(|n| u64::try_from(n).unwrap_or(0));
    let missing_bytes = len_bytes.min(size.saturating_sub(blocks.saturating_mul(BLOCK_BYTES)));
    let volume = rustix::fs::fstatvfs(file)?;
    // One that does not know its size does not know what is left, either.
    let is_full = missing_bytes > volume.f_bavail.saturating_mul(volume.f_frsize);
    match is_full && volume.f_blocks > 0 {
        true => Err(Errno::NOSPC),
        false => Ok(()),
    }
}

/// Nothing is given back to the file system.
pub(crate) fn discard(_: BorrowedFd<'_>, _: u64, _: u64) -> rustix::io::Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// Makes what was written durable. A plain `fsync` of Apple's systems leaves it in the cache of the device.
pub(crate) fn flush(file: BorrowedFd<'_>) -> rustix::io::Result<()> {
    #[cfg(target_vendor = "apple")]
    return rustix::fs::fcntl_fullfsync(file);
    #[cfg(not(target_vendor = "apple"))]
    return rustix::fs::fsync(file);
}

/// Readahead stays as the system has it.
pub(crate) fn no_readahead(_: BorrowedFd<'_>) -> rustix::io::Result<()> {
    Ok(())
}

/// There is no list of locks that all such systems have.
pub(crate) fn lock_holders(_: &Stat) -> Vec<Holder> {
    Vec::new()
}

/// There are no names outside the file system.
pub(crate) fn listen(_: &str) -> io::Result<UnixListener> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Nobody has such a name.
pub(crate) fn connect(_: &str) -> io::Result<UnixStream> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Nobody is connected.
pub(crate) fn peer_user(_: BorrowedFd<'_>) -> io::Result<u32> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There are none to ask for.
pub(crate) fn want_huge_pages(_: NonNull<u8>, _: usize) {}

/// There is none: the number of the process tells.
pub(crate) fn forked_page() -> Option<NonNull<AtomicU64>> {
    None
}
