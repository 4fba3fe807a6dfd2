//! The work under way.

use kreon_base::Lsn;
use kreon_wire::FlushNumber;

/// What the end of the work under way means.
#[derive(Clone, Debug)]
pub(super) enum Doing {
    /// Log was written, so many bytes.
    Log(u64),
    /// So many packets with so many bytes were written.
    Pages { packets: usize, bytes: u64 },
    /// The first packet was carried out, `space_bytes` of it an allocation.
    First { space_bytes: u64 },
    /// A flush, with the log up to a position.
    Flush { number: FlushNumber, log: Lsn },
    /// The last flush of a sealed follower.
    Last,
}

/// Whether the follower takes nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sealing {
    No,
    /// What was received is on its way to the file.
    Draining,
    Done,
}
