//! The mark of a store whose creation has begun and has not ended.

use kreon_base::{PageBytes, PageNo, Result};

use crate::StoreId;
use crate::bytes::{put, u64_at};
use crate::sealed::{self, PREAMBLE_BYTES, PageKind};

/// Stands behind the preamble, so that a person who looks at the volume sees what it is.
const LABEL: [u8; 8] = *b"KreonNew";

const LABEL_AT: usize = PREAMBLE_BYTES;
const STORE_AT: usize = 16;

/// Where the mark stands: in the first superblock slot. The first superblock goes to the second slot, and its
/// mirror replaces the mark, so that no finished store has one.
pub const CREATION_PAGE: PageNo = PageNo(0);

/// Says that a store is being created here and holds nothing yet: whoever finds it may begin anew. Written and
/// flushed before anything else of the store.
///
/// All but its first 24 bytes are zero: over a blank page it cannot be torn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreationMark {
    /// The store that is being created.
    pub store: StoreId,
}

impl CreationMark {
    /// The sealed page.
    pub fn encode(&self) -> Box<PageBytes> {
        let mut bytes = sealed::begin_boxed(PageKind::Creation);
        put(&mut *bytes, LABEL_AT, &LABEL);
        put(&mut *bytes, STORE_AT, &self.store.0.to_le_bytes());
        sealed::seal(&mut bytes, self.store, CREATION_PAGE);
        bytes
    }

    /// Reads the mark. `Corruption` if the page holds something else.
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
        // What a sector holds is there or not: the rest is as on a blank page.
        assert!(bytes[512..].iter().all(|byte| *byte == 0));
        bytes[4000] ^= 1;
        assert!(CreationMark::decode(&bytes).is_err());
        assert!(CreationMark::decode(&[0; 4096]).is_err());
    }
}
