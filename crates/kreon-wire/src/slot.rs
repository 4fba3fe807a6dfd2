//! What a member has: its best superblock, and the end of its log.

use kreon_base::{Epoch, Incarnation, Lsn, PAGE_BYTES};
use kreon_format::{EPOCH_MAX, INCARNATION_MAX};

use crate::fields::Fields;
use crate::frame::BodyFront;
use crate::stream::lsn;
use crate::violation::Violation;

/// Incarnation and epoch of a superblock. The higher one, in this order, has the newer state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Slot {
    /// The incarnation that wrote it, up to [`INCARNATION_MAX`].
    pub incarnation: Incarnation,
    /// Its epoch, up to [`EPOCH_MAX`].
    pub epoch: Epoch,
}

/// The best superblock of a member, and the end of its log under it. Of two members the higher one, in this order, has
/// all that was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Extent {
    /// The highest superblock of its four slots.
    pub slot: Slot,
    /// The end of the last whole unit of the main log.
    pub log_end: Lsn,
}

impl Extent {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, Violation> {
        let slot = Slot {
            incarnation: Incarnation(fields.u64_upto(INCARNATION_MAX)?),
            epoch: Epoch(fields.u64_upto(EPOCH_MAX)?),
        };
        let log_end = lsn(fields)?;
        Ok(Self { slot, log_end })
    }

    pub(crate) fn put(&self, front: &mut BodyFront) {
        front.put_u64(self.slot.incarnation.0);
        front.put_u64(self.slot.epoch.0).put_u64(self.log_end.0);
    }
}

/// Bytes of the pages of the four slots.
pub(crate) const SUPERBLOCKS_BYTES: usize = 4 * PAGE_BYTES;

/// The pages of the four superblock slots, in their order, as the primary's build encodes them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Superblocks(Box<[u8]>);

impl Superblocks {
    /// The pages in `bytes`, one behind the other. `Length` if they are not four.
    pub fn of(bytes: &[u8]) -> Result<Self, Violation> {
        match bytes.len() == SUPERBLOCKS_BYTES {
            true => Ok(Self(bytes.into())),
            false => Err(Violation::Length),
        }
    }

    /// All four, one behind the other.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The page of this slot, 0 to 3; `None` for higher ones.
    pub fn page(&self, slot: usize) -> Option<&[u8]> {
        self.0.chunks_exact(PAGE_BYTES).nth(slot)
    }
}

impl std::fmt::Debug for Superblocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Superblocks of {} bytes", self.0.len())
    }
}
