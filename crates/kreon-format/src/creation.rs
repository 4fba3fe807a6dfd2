//! The mark of a store whose creation is incomplete.

use kreon_base::{PageBytes, PageNo, Result};

use crate::StoreId;
use crate::bytes::{put, put_u64, u64_at};
use crate::sealed::{self, PREAMBLE_BYTES, PageKind};

/// A label behind the preamble for people who inspect the volume.
const LABEL: [u8; 8] = *b"KreonNew";

const LABEL_AT: usize = PREAMBLE_BYTES;
const STORE_AT: usize = 16;

/// Address of the mark: the first superblock slot. The first superblock is written to the second slot, and its mirror
/// then replaces the mark, so a complete store has no mark.
pub const CREATION_PAGE: PageNo = PageNo(0);

/// States that a store is being created here and has no data yet, so that an interrupted creation can start anew. It is
/// written and flushed before all else of the store.
///
/// Only its first 24 bytes are not zero, so on a blank page it cannot be torn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreationMark {
    /// The store that is being created.
    pub store: StoreId,
}

impl CreationMark {
    /// Encodes the sealed page.
    pub fn encode(&self) -> Box<PageBytes> {
        let mut bytes = sealed::begin_boxed(PageKind::Creation);
        put(&mut *bytes, LABEL_AT, &LABEL);
        put_u64(&mut *bytes, STORE_AT, self.store.0);
        sealed::seal(&mut bytes, self.store, CREATION_PAGE);
        bytes
    }

    /// Decodes the mark. `Corruption` if the page is not a valid mark.
    pub fn decode(bytes: &PageBytes) -> Result<Self> {
        let store = StoreId(u64_at(bytes, STORE_AT));
        sealed::verify(bytes, PageKind::Creation, store, CREATION_PAGE)?;
        match bytes[LABEL_AT..STORE_AT] == LABEL {
            true => Ok(Self { store }),
            false => Err(PageKind::Creation.damaged(CREATION_PAGE, "without its label")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Superblock, SuperblockSlot};

    #[test]
    fn a_mark_reads_back_and_is_no_superblock() {
        let mark = CreationMark { store: StoreId(7) };
        let mut bytes = mark.encode();
        assert_eq!(CreationMark::decode(&bytes).unwrap(), mark);
        let slot = Superblock::examine(&bytes, 0);
        assert!(matches!(slot, SuperblockSlot::Foreign), "{slot:?}");
        // A sector is written as a whole: the rest is equal to a blank page.
        assert!(bytes[512..].iter().all(|byte| *byte == 0));
        bytes[4000] ^= 1;
        assert!(CreationMark::decode(&bytes).is_err());
        assert!(CreationMark::decode(&[0; 4096]).is_err());
    }
}
