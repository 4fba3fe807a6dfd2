//! Replayed records for L0.

use kreon_base::{LogOffset, Lsn, RegionId};
use kreon_l0::L0;

/// A replayed record, as L0 needs it.
pub struct Replayed<'a> {
    /// Its LSN.
    pub lsn: Lsn,
    /// Its place on the volume.
    pub offset: LogOffset,
    /// Its region, which must exist.
    pub region: RegionId,
    /// Its key.
    pub key: &'a [u8],
    /// Length of the value; `None` for a deletion.
    pub value_bytes: Option<u32>,
    /// The value, if it is inline.
    pub value: Option<&'a [u8]>,
}

/// Inserts at most [`TOGETHER`] replayed records into L0, in any order and from any thread: L0 orders the versions of a
/// key by LSN.
pub type Insert<'a> = &'a (dyn Fn(&L0, &[Replayed<'_>]) + Sync);

/// Records per call: as many cache misses as a processor overlaps.
pub const TOGETHER: usize = 8;
