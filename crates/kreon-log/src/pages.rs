//! What the log asks of the mapping.

use kreon_base::Result;
use kreon_mapping::FinalBytes;

/// How the log reads bytes that are on the device: through the mapping.
pub trait LogPages {
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
