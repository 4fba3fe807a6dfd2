//! Replayed records on their way into L0.

use kreon_base::{LogOffset, Lsn, RegionId};
use kreon_l0::L0;

/// What stands in a replayed record, for L0.
pub struct Replayed<'a> {
    /// Its order.
    pub lsn: Lsn,
    /// Where it stands.
    pub offset: LogOffset,
    /// Its region, which exists.
    pub region: RegionId,
    /// Its key.
    pub key: &'a [u8],
    /// Length of the value; `None` for a deletion.
    pub value_bytes: Option<u32>,
    /// The value, if it is short.
    pub value: Option<&'a [u8]>,
}

/// Puts replayed records into L0, at most [`TOGETHER`] of them. L0 orders the versions of a key by their LSNs: records
/// may come in any order, and from many threads.
pub type Insert<'a> = &'a (dyn Fn(&L0, &[Replayed<'_>]) + Sync);

/// As many as the processor fetches at once.
pub const TOGETHER: usize = 8;
