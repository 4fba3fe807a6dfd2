//! Where committed log comes from.

use kreon_base::{Lsn, Result};

/// Committed bytes of one segment of the log.
#[derive(Clone, Copy, Debug)]
pub struct Committed<'a> {
    /// Behind them.
    pub end: Lsn,
    /// Where they stand on the volume, in bytes.
    pub offset: u64,
    /// The bytes; those of a segment's start with its header.
    pub bytes: &'a [u8],
}

/// Where committed log comes from.
pub trait LogSource: Send + Sync {
    /// Calls `ship` with committed bytes from `from` on, up to `max_bytes` of payload; `false`: there are none yet.
    ///
    /// # Errors
    /// They cannot be had any more.
    fn run(
        &self,
        from: Lsn,
        max_bytes: u32,
        ship: &mut dyn FnMut(Committed<'_>) -> Result<()>,
    ) -> Result<bool>;

    /// Behind the last byte that is being appended.
    ///
    /// # Errors
    /// `Closed`: the log is gone.
    fn tail(&self) -> Result<Lsn>;

    /// More has landed on all counted members. Called without locks of the mirror.
    fn landed(&self);
}
