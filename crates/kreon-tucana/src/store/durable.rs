//! What is durable of a store, and which epochs its openings have.

use kreon_base::{Epoch, Error, ErrorKind, Incarnation, PageNo, Result, SegmentId};

use super::log_mark::LogMark;
use crate::format::Superblock;

/// Bits of an epoch that count within one opening: a freeze a second for eight years.
const EPOCH_BITS: u32 = 28;

/// Most openings.
const INCARNATION_MAX: u64 = (1 << (48 - EPOCH_BITS)) - 1;

/// The durable state.
pub(super) struct Durable {
    pub superblock: Superblock,
    /// Pages of its catalogue.
    pub catalogue_pages: Vec<PageNo>,
    /// Pages for the next catalogue.
    pub spare_pages: Vec<PageNo>,
    /// Segments that it does not need any more, but readers may reach: with the last epoch whose readers may.
    pub withheld: Vec<(Epoch, Vec<SegmentId>)>,
    /// Bytes of all records that its leaves point at.
    pub live_bytes: u64,
    /// Where the log goes on behind it.
    pub mark: Option<LogMark>,
    /// Which commit made it, of this opening.
    pub number: u64,
}

/// The first epoch of an opening.
pub(super) fn first_epoch(incarnation: Incarnation) -> Result<Epoch> {
    if incarnation.0 > INCARNATION_MAX {
        return Err(Error::new(ErrorKind::OutOfSpace, "all openings were used"));
    }
    Ok(Epoch(incarnation.0 << EPOCH_BITS))
}

/// Whether an opening has used its epochs: snapshots take some, too.
pub(super) fn is_used_up(epoch: Epoch, incarnation: Incarnation) -> bool {
    epoch.0 >= (incarnation.0 + 1) << EPOCH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_never_uses_an_epoch_of_the_next() {
        let own = Incarnation(7);
        let next = first_epoch(Incarnation(8)).unwrap();
        assert!(!is_used_up(first_epoch(own).unwrap(), own));
        assert!(!is_used_up(Epoch(next.0 - 1), own));
        assert!(is_used_up(next, own) && is_used_up(next.next(), own));
        assert!(first_epoch(Incarnation(INCARNATION_MAX)).unwrap().0 < 1 << 48);
        assert!(first_epoch(Incarnation(INCARNATION_MAX + 1)).is_err());
    }
}
