//! Reading and writing without waiting.

use std::io::IoSlice;
use std::os::fd::AsFd;

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};

/// What a socket did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// So many bytes, 0 for none at the moment.
    Bytes(usize),
    /// The peer sends nothing more.
    End,
    /// It failed.
    Failed(Errno),
}

/// Reads into the spare capacity of `to`, which must have some.
pub(super) fn read(socket: impl AsFd, to: &mut Vec<u8>) -> Moved {
    loop {
        match rustix::io::read(&socket, spare_capacity(to)) {
            Ok(0) => return Moved::End,
            Ok(bytes) => return Moved::Bytes(bytes),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Moved::Bytes(0),
            Err(e) => return Moved::Failed(e),
        }
    }
}

/// Most parts of one write.
pub(super) const PARTS_MAX: usize = 64;

/// Writes what fits of `parts`, of which at most [`PARTS_MAX`] count. A peer that is gone is an error, never a signal.
pub(super) fn write(socket: impl AsFd, parts: &[IoSlice<'_>]) -> Moved {
    let parts = &parts[..parts.len().min(PARTS_MAX)];
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        let mut nothing = SendAncillaryBuffer::default();
        match rustix::net::sendmsg(&socket, parts, &mut nothing, flags) {
            Ok(bytes) => return Moved::Bytes(bytes),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Moved::Bytes(0),
            Err(e) => return Moved::Failed(e),
        }
    }
}
