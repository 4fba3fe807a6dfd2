//! What the log asks of the mapping.

use kreon_base::Result;
use kreon_mapping::{FinalBytes, LentRecord};

/// What is told of each run of whole pages that the log has written.
pub trait WrittenPages: Send + Sync {
    /// The device has these bytes from `offset_bytes` on, and they are final: they may be kept in memory. Until the call
    /// returns, their segment is not used for anything else.
    fn written(&self, offset_bytes: u64, bytes: &[u8]);
}

/// Keeps nothing.
impl WrittenPages for () {
    fn written(&self, _: u64, _: &[u8]) {}
}

/// Records in frames.
pub trait ResidentPages {
    /// Calls `f` with the record of `len_bytes` at `offset_bytes`, if it stands in memory, and whoever looked up the place may
    /// still believe in it. Never waits.
    fn with_resident<R>(
        &self,
        offset_bytes: u64,
        len_bytes: usize,
        scratch: &mut Vec<u8>,
        f: impl FnOnce(LentRecord<'_>) -> R,
    ) -> Option<R>;
}

/// How the log reads bytes that are on the device: through the mapping.
pub trait LogPages: ResidentPages {
    /// Calls `f` with bytes of the volume: without a copy where they stand in one page, else through
    /// `scratch`.
    fn with_bytes<R>(
        &self,
        bytes: FinalBytes,
        scratch: &mut Vec<u8>,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<R>;

    /// Fills `into` with the bytes of the volume from `offset_bytes` on.
    fn read_bytes(&self, offset_bytes: u64, into: &mut [u8]) -> Result<()>;

    /// Keeps nothing of these bytes in memory: they did not verify, and are read from the device again.
    fn forget(&self, offset_bytes: u64, len: usize);
}
