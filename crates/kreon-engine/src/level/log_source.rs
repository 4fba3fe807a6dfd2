//! Log pages through the mapping.

use std::cell::Cell;
use std::sync::Arc;

use kreon_base::{PageNo, Priority, Result};
use kreon_log::{LogPages, ResidentPages, WrittenPages};
use kreon_mapping::{Fetched, FinalBytes, LentRecord, Mapping};

/// Eviction priority of log pages: they are evicted first (`Kreon 3.3.1`).
pub const LOG_PRIORITY: Priority = Priority(255);

/// Log bytes on the device, through the mapping.
#[derive(Clone, Copy)]
pub struct MappedLog<'a> {
    /// Frames of the store.
    pub mapping: &'a Mapping,
}

/// Keeps what the log has written in the frames of the store while those are plenty.
pub struct KeptLog(pub Arc<Mapping>);

impl WrittenPages for KeptLog {
    fn written(&self, offset_bytes: u64, bytes: &[u8]) {
        let first = PageNo::containing(offset_bytes);
        self.0.admit(first, LOG_PRIORITY, bytes);
    }
}

impl ResidentPages for MappedLog<'_> {
    #[inline]
    fn with_resident<R>(
        &self,
        offset_bytes: u64,
        len_bytes: usize,
        scratch: &mut Vec<u8>,
        use_record: impl FnOnce(LentRecord<'_>) -> R,
    ) -> Option<R> {
        self.mapping.with_resident_record(
            offset_bytes,
            len_bytes,
            LOG_PRIORITY,
            scratch,
            use_record,
        )
    }
}

impl LogPages for MappedLog<'_> {
    fn with_bytes<R>(
        &self,
        bytes: FinalBytes,
        scratch: &mut Vec<u8>,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        self.mapping
            .with_final_bytes(bytes, LOG_PRIORITY, scratch, use_bytes)
    }

    fn read_bytes(&self, offset_bytes: u64, into: &mut [u8]) -> Result<()> {
        self.mapping.read_bytes(offset_bytes, LOG_PRIORITY, into)
    }

    fn forget(&self, offset_bytes: u64, len: usize) {
        let first = PageNo::containing(offset_bytes);
        let last = PageNo::containing(offset_bytes + len.max(1) as u64 - 1);
        self.mapping.discard(first, last.0 - first.0 + 1);
    }
}

/// [`MappedLog`] with bytes that were fetched ahead.
pub struct FetchedLog<'a> {
    log: MappedLog<'a>,
    fetched: &'a Fetched,
    /// A record did not verify, so the fetched bytes are no longer used.
    is_forgotten: Cell<bool>,
}

impl<'a> FetchedLog<'a> {
    /// `fetched` must be from this log.
    pub fn new(log: MappedLog<'a>, fetched: &'a Fetched) -> Self {
        Self {
            log,
            fetched,
            is_forgotten: Cell::new(false),
        }
    }
}

impl ResidentPages for FetchedLog<'_> {
    #[inline]
    fn with_resident<R>(
        &self,
        offset_bytes: u64,
        len_bytes: usize,
        scratch: &mut Vec<u8>,
        use_record: impl FnOnce(LentRecord<'_>) -> R,
    ) -> Option<R> {
        self.log
            .with_resident(offset_bytes, len_bytes, scratch, use_record)
    }
}

impl LogPages for FetchedLog<'_> {
    fn with_bytes<R>(
        &self,
        bytes: FinalBytes,
        scratch: &mut Vec<u8>,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        let fetched = match self.is_forgotten.get() {
            true => None,
            false => self.fetched.get(bytes.offset_bytes, bytes.len_bytes),
        };
        match fetched {
            Some(fetched) => Ok(use_bytes(fetched)),
            None => self.log.with_bytes(bytes, scratch, use_bytes),
        }
    }

    fn read_bytes(&self, offset_bytes: u64, into: &mut [u8]) -> Result<()> {
        self.log.read_bytes(offset_bytes, into)
    }

    fn forget(&self, offset_bytes: u64, len: usize) {
        self.is_forgotten.set(true);
        self.log.forget(offset_bytes, len);
    }
}
