//! Where the answer to a call is left for who waits.

use std::time::{Duration, Instant};

use kreon_fabric::{Bytes, LinkName};
use kreon_wire::limits::HEADER_BYTES;
use kreon_wire::{Frame, Header, Reply, Role};
use parking_lot::{Condvar, Mutex};

use crate::error::{Error, ErrorKind, Result};

/// A value, or a key.
pub type Value = Vec<u8>;

/// An answer: a packet that was verified, and the link on which it came.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) packet: Bytes,
    pub(crate) link: LinkName,
}

/// Answers that are kept for long are not to keep the buffer in which they came.
const SMALL_BYTES: usize = 4 << 10;

impl Answer {
    pub(crate) fn of(packet: &Bytes, link: LinkName) -> Self {
        let packet = match packet.len() <= SMALL_BYTES {
            true => Bytes::from(packet.to_vec()),
            false => packet.clone(),
        };
        Self { packet, link }
    }

    pub(crate) fn frame(&self) -> Result<Frame<'_>> {
        let header = Header::decode(&self.packet, Role::Client).map_err(Error::corrupt)?;
        let body = self.packet.get(HEADER_BYTES..).unwrap_or_default();
        Ok(Frame::verified(header, body))
    }

    /// The reply; an error for a failure.
    pub(crate) fn reply(&self) -> Result<Reply<'_>> {
        match Reply::decode(&self.frame()?).map_err(Error::corrupt)? {
            Reply::Failed(failure) => Err(Error::from(&failure)),
            reply => Ok(reply),
        }
    }
}

/// Where the answer to one call is left.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    answer: Mutex<Option<Result<Answer>>>,
    filled: Condvar,
}

impl Slot {
    /// Leaves the answer; a second one is dropped.
    pub(crate) fn fill(&self, answer: Result<Answer>) {
        let mut place = self.answer.lock();
        if place.is_none() {
            *place = Some(answer);
            // Whoever waits needs the lock first.
            drop(place);
            self.filled.notify_all();
        }
    }

    pub(crate) fn is_filled(&self) -> bool {
        self.answer.lock().is_some()
    }

    /// The answer, if it comes within `limit`.
    pub(crate) fn wait_for(&self, limit: Duration) -> Option<Result<Answer>> {
        let mut place = self.answer.lock();
        if place.is_none() {
            self.filled.wait_for(&mut place, limit);
        }
        place.clone()
    }

    /// Waits for the answer. Each call ends in its time.
    pub(crate) fn wait(&self) -> Result<Answer> {
        let mut place = self.answer.lock();
        while place.is_none() {
            self.filled.wait(&mut place);
        }
        place.clone().unwrap_or_else(|| Err(Error::strange()))
    }
}

/// Bytes of calls under way.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes_max: usize,
    used_bytes: Mutex<usize>,
    freed: Condvar,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            used_bytes: Mutex::new(0),
            freed: Condvar::new(),
        }
    }

    /// Waits until there is room for `bytes` beside the others, or for as many alone.
    pub(crate) fn take(&self, bytes: usize, limit: Duration) -> Result<()> {
        let until = Instant::now() + limit;
        let mut used = self.used_bytes.lock();
        while *used > 0 && *used + bytes > self.bytes_max {
            if self.freed.wait_until(&mut used, until).timed_out() {
                let text = "calls under way have all the memory that they may have";
                return Err(Error::new(ErrorKind::Busy, text));
            }
        }
        *used += bytes;
        Ok(())
    }

    pub(crate) fn give(&self, bytes: usize) {
        let mut used = self.used_bytes.lock();
        *used = used.saturating_sub(bytes);
        drop(used);
        self.freed.notify_all();
    }

    pub(crate) fn used_bytes(&self) -> usize {
        *self.used_bytes.lock()
    }
}
