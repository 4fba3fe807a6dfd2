//! The superblock: the root record, in four slots.

use kreon_base::{Epoch, Error, ErrorKind, Incarnation, PageBytes, PageNo, Result, planted};

use crate::bytes::{array_at, put, put_u32, put_u64, u32_at, u64_at};
use crate::sealed::{self, PREAMBLE_BYTES, PageKind};
use crate::{EPOCH_MAX, PAGE_POINTER_BYTES, PagePointer, StoreId, VOLUME_SEGMENTS_MAX};

/// A label behind the preamble for people who inspect the volume.
const LABEL: [u8; 8] = *b"KreonVol";

const LABEL_AT: usize = PREAMBLE_BYTES;
const STORE_AT: usize = 16;
const SLOT_AT: usize = 24;
const SEGMENTS_AT: usize = 28;
const EPOCH_AT: usize = 32;
const INCARNATION_AT: usize = 40;
const CATALOGUE_AT: usize = 48;
const CATALOGUE_BYTES_AT: usize = CATALOGUE_AT + PAGE_POINTER_BYTES;

/// Pages of the four slots. The checkpoint of epoch E writes slot E % 4.
pub const SUPERBLOCK_PAGES: [PageNo; 4] = [PageNo(0), PageNo(8), PageNo(16), PageNo(24)];

/// Largest incarnation: an opening a millisecond for 8,900 years.
pub const INCARNATION_MAX: u64 = (1 << 48) - 1;

/// The root record: the durable epoch and the place of its catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Identity of the store.
    pub store: StoreId,
    /// The durable epoch, up to [`EPOCH_MAX`].
    pub epoch: Epoch,
    /// The incarnation that wrote it, up to [`INCARNATION_MAX`].
    pub incarnation: Incarnation,
    /// Length of the volume in segments, 1 to [`VOLUME_SEGMENTS_MAX`].
    pub segments: u32,
    /// First page of the catalogue's chain.
    pub catalogue: PagePointer,
    /// Length of the catalogue in bytes.
    pub catalogue_bytes: u64,
}

/// Content of a superblock slot.
#[derive(Clone, Debug)]
pub enum SuperblockSlot {
    /// A valid superblock.
    Valid(Superblock),
    /// All zeroes: never written.
    Blank,
    /// Not a superblock.
    Foreign,
    /// A valid superblock of a newer format than this build reads.
    Newer {
        /// Its format version.
        version: u8,
    },
    /// A superblock that does not verify.
    Damaged(Error),
}

impl Superblock {
    /// Encodes the sealed page for `slot`, 0 to 3.
    pub fn encode(&self, slot: usize) -> Box<PageBytes> {
        let mut bytes = sealed::begin_boxed(PageKind::Superblock);
        put(&mut *bytes, LABEL_AT, &LABEL);
        put_u64(&mut *bytes, STORE_AT, self.store.0);
        put_u32(&mut *bytes, SLOT_AT, slot as u32);
        put_u32(&mut *bytes, SEGMENTS_AT, self.segments);
        put_u64(&mut *bytes, EPOCH_AT, self.epoch.0);
        put_u64(&mut *bytes, INCARNATION_AT, self.incarnation.0);
        put(&mut *bytes, CATALOGUE_AT, &self.catalogue.encode());
        put_u64(&mut *bytes, CATALOGUE_BYTES_AT, self.catalogue_bytes);
        sealed::seal(&mut bytes, self.store, slot_page(slot));
        bytes
    }

    /// Classifies the content of `slot`.
    pub fn examine(bytes: &PageBytes, slot: usize) -> SuperblockSlot {
        if bytes.iter().all(|&byte| byte == 0) {
            return SuperblockSlot::Blank;
        }
        // One of the two marks suffices: damage may have hit the other.
        if !PageKind::Superblock.marks(bytes) && bytes[LABEL_AT..STORE_AT] != LABEL {
            return SuperblockSlot::Foreign;
        }
        match Self::verified(bytes, slot) {
            Ok(superblock) => SuperblockSlot::Valid(superblock),
            // Preamble and checksum are the same in every version, so a newer superblock verifies up to its version
            // number; one whose version byte is damaged does not.
            Err(error) if error.kind() == ErrorKind::InvalidArgument => SuperblockSlot::Newer {
                version: sealed::version(bytes),
            },
            Err(error) => SuperblockSlot::Damaged(error),
        }
    }

    /// The superblock in `slot`. Otherwise `NotFound` (never written), `InvalidArgument` (not a Kreon volume, or a
    /// newer format) or `Corruption` (damaged).
    pub fn decode(bytes: &PageBytes, slot: usize) -> Result<Self> {
        match Self::examine(bytes, slot) {
            SuperblockSlot::Valid(superblock) => Ok(superblock),
            SuperblockSlot::Blank => Err(Error::new(
                ErrorKind::NotFound,
                format!("superblock slot {slot} was never written"),
            )),
            SuperblockSlot::Foreign => Err(Error::invalid("not a Kreon volume")),
            SuperblockSlot::Newer { version } => Err(sealed::newer(version)),
            SuperblockSlot::Damaged(error) => Err(error),
        }
    }

    fn verified(bytes: &PageBytes, slot: usize) -> Result<Self> {
        let page = slot_page(slot);
        let superblock = Self {
            store: StoreId(u64_at(bytes, STORE_AT)),
            epoch: Epoch(u64_at(bytes, EPOCH_AT)),
            incarnation: Incarnation(u64_at(bytes, INCARNATION_AT)),
            segments: u32_at(bytes, SEGMENTS_AT),
            catalogue: PagePointer::decode(&array_at(bytes, CATALOGUE_AT).unwrap_or_default()),
            catalogue_bytes: u64_at(bytes, CATALOGUE_BYTES_AT),
        };
        let verified = sealed::verify(bytes, PageKind::Superblock, superblock.store, page);
        planted!(SlotResealed => let verified = Ok(0));
        verified?;
        let here = u32_at(bytes, SLOT_AT) as usize == slot && bytes[LABEL_AT..STORE_AT] == LABEL;
        let in_range = (1..=VOLUME_SEGMENTS_MAX).contains(&superblock.segments)
            && superblock.epoch.0 <= EPOCH_MAX
            && superblock.incarnation.0 <= INCARNATION_MAX;
        if !here || !in_range {
            return Err(PageKind::Superblock.damaged(page, "its fields are invalid"));
        }
        Ok(superblock)
    }
}

/// The page of `slot`, extrapolated for numbers above 3.
fn slot_page(slot: usize) -> PageNo {
    PageNo((slot as u64).saturating_mul(8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FORMAT_VERSION;

    fn superblock() -> Superblock {
        Superblock {
            store: StoreId(7),
            epoch: Epoch(9),
            incarnation: Incarnation(2),
            segments: 44,
            catalogue: PagePointer {
                page: PageNo(70),
                epoch: Epoch(9),
                checksum: 5,
            },
            catalogue_bytes: 100,
        }
    }

    #[test]
    fn every_slot_reads_back_in_its_own_place_only() {
        for (slot, page) in SUPERBLOCK_PAGES.into_iter().enumerate() {
            assert_eq!(page, slot_page(slot));
            let bytes = superblock().encode(slot);
            for place in 0..4 {
                let read = Superblock::decode(&bytes, place);
                assert_eq!(read.is_ok(), place == slot);
            }
            assert_eq!(Superblock::decode(&bytes, slot).unwrap(), superblock());
        }
    }

    #[test]
    fn numbers_that_would_overflow_are_refused() {
        let mut late = superblock();
        late.epoch = Epoch(EPOCH_MAX + 1);
        assert!(Superblock::decode(&late.encode(0), 0).is_err());
        let mut old = superblock();
        old.incarnation = Incarnation(u64::MAX);
        assert!(Superblock::decode(&old.encode(0), 0).is_err());
        assert!(Superblock::decode(&superblock().encode(0), usize::MAX).is_err());
    }

    #[test]
    fn what_is_no_superblock_is_told_apart() {
        let kind = |bytes: &PageBytes| Superblock::decode(bytes, 0).unwrap_err().kind();
        assert_eq!(kind(&[0; 4096]), ErrorKind::NotFound);
        assert_eq!(kind(&[1; 4096]), ErrorKind::InvalidArgument);
        assert!(matches!(
            Superblock::examine(&[1; 4096], 0),
            SuperblockSlot::Foreign
        ));

        let mut newer = superblock().encode(0);
        newer[6] = FORMAT_VERSION + 1;
        assert_eq!(kind(&newer), ErrorKind::Corruption);
        sealed::seal(&mut newer, StoreId(7), PageNo(0));
        let error = Superblock::decode(&newer, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let expected = format!("newer format {}", FORMAT_VERSION + 1);
        assert!(error.to_string().contains(&expected), "{error}");

        let mut torn = superblock().encode(0);
        torn[512..].fill(0xff);
        assert_eq!(kind(&torn), ErrorKind::Corruption);
    }
}
