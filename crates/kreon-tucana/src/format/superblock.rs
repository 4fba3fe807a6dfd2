//! The superblock: the root record, in four slots, of which a commit writes the next one in turn.

use kreon_base::{Epoch, Error, ErrorKind, Incarnation, PageBytes, PageNo, Result};
use kreon_format::{
    PAGE_POINTER_BYTES, PagePointer, SUPERBLOCK_PAGES, StoreId, VOLUME_SEGMENTS_MAX,
};

use super::bytes::{array_at, put, u32_at, u64_at};
use super::node::FORMAT_VERSION;
use super::seal::{CHECKSUM_BYTES, checksum};

const MAGIC: [u8; 2] = *b"tS";
/// Behind the preamble, for people who inspect the volume, and for other engines.
const LABEL: [u8; 8] = *b"TucanVol";
/// Labels of other engines, and their names.
const OTHERS: [([u8; 8], &str); 2] = [(*b"KreonVol", "kreon"), (*b"KvellVol", "kvell")];

const VERSION_AT: usize = 6;
const LABEL_AT: usize = 8;
const STORE_AT: usize = 16;
const SLOT_AT: usize = 24;
const SEGMENTS_AT: usize = 28;
const COMMIT_AT: usize = 32;
const EPOCH_AT: usize = 40;
const INCARNATION_AT: usize = 48;
const CATALOGUE_AT: usize = 56;
const CATALOGUE_BYTES_AT: usize = CATALOGUE_AT + PAGE_POINTER_BYTES;

/// Most commits of a store: one a millisecond for 8,900 years.
pub const COMMIT_MAX: u64 = (1 << 48) - 1;

/// The root record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Identity of the store.
    pub store: StoreId,
    /// Number of the commit that wrote it: the largest one counts.
    pub commit: u64,
    /// The last epoch of the tree that it reaches.
    pub epoch: Epoch,
    /// The opening of the store that wrote it.
    pub incarnation: Incarnation,
    /// Length of the volume in segments.
    pub segments: u32,
    /// First page of the catalogue's chain.
    pub catalogue: PagePointer,
    /// Length of the catalogue in bytes.
    pub catalogue_bytes: u64,
}

/// The slot that a commit writes.
pub fn slot_of(commit: u64) -> usize {
    (commit % SUPERBLOCK_PAGES.len() as u64) as usize
}

impl Superblock {
    /// The name of this engine.
    pub const ENGINE: &str = "tucana";

    /// The engine whose superblock a page has or had, whole or not.
    pub fn engine_of(page: &PageBytes) -> Option<&'static str> {
        let label = &page[LABEL_AT..STORE_AT];
        let other = OTHERS.iter().find(|(other, _)| other == label);
        // One of the two marks suffices: damage may have hit the other.
        let is_ours = label == LABEL || page[CHECKSUM_BYTES..VERSION_AT] == MAGIC;
        other
            .map(|(_, engine)| *engine)
            .or(is_ours.then_some(Self::ENGINE))
    }

    /// The error for a store of another engine.
    #[cold]
    pub(crate) fn of_other(engine: &str) -> Error {
        Error::invalid(format!("a store of the engine {engine}, not of tucana"))
    }

    /// Encodes the sealed page for a slot, 0 to 3.
    pub fn encode(&self, slot: usize) -> Box<PageBytes> {
        let mut page = Box::new([0; _]);
        put(&mut *page, CHECKSUM_BYTES, &MAGIC);
        page[VERSION_AT] = FORMAT_VERSION;
        put(&mut *page, LABEL_AT, &LABEL);
        put(&mut *page, STORE_AT, &self.store.0.to_le_bytes());
        put(&mut *page, SLOT_AT, &(slot as u32).to_le_bytes());
        put(&mut *page, SEGMENTS_AT, &self.segments.to_le_bytes());
        put(&mut *page, COMMIT_AT, &self.commit.to_le_bytes());
        put(&mut *page, EPOCH_AT, &self.epoch.0.to_le_bytes());
        put(
            &mut *page,
            INCARNATION_AT,
            &self.incarnation.0.to_le_bytes(),
        );
        put(&mut *page, CATALOGUE_AT, &self.catalogue.encode());
        let bytes = self.catalogue_bytes.to_le_bytes();
        put(&mut *page, CATALOGUE_BYTES_AT, &bytes);
        let sum = checksum(&page, self.store, page_of(slot));
        put(&mut *page, 0, &sum.to_le_bytes());
        page
    }

    /// The superblock in a slot.
    ///
    /// # Errors
    /// `NotFound`: the slot was never written. `InvalidArgument`: it is of another engine, of an older or newer build, or
    /// nothing that is known. `Corruption`: it is damaged.
    pub fn decode(page: &PageBytes, slot: usize) -> Result<Self> {
        if page.iter().all(|byte| *byte == 0) {
            let message = format!("superblock slot {slot} was never written");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        match Self::engine_of(page) {
            Some(Self::ENGINE) => {}
            Some(engine) => return Err(Self::of_other(engine)),
            None => return Err(Error::invalid("not a store of tucana")),
        }
        let damaged = |what| Err(Error::corruption(format!("superblock slot {slot}: {what}")));
        let store = StoreId(u64_at(page, STORE_AT));
        if u32_at(page, 0) != checksum(page, store, page_of(slot)) {
            return damaged("the checksum does not match its bytes");
        }
        if page[VERSION_AT] != FORMAT_VERSION {
            return Err(of_other_format(page[VERSION_AT]));
        }
        let superblock = Self {
            store,
            commit: u64_at(page, COMMIT_AT),
            epoch: Epoch(u64_at(page, EPOCH_AT)),
            incarnation: Incarnation(u64_at(page, INCARNATION_AT)),
            segments: u32_at(page, SEGMENTS_AT),
            catalogue: PagePointer::decode(&array_at(page, CATALOGUE_AT)),
            catalogue_bytes: u64_at(page, CATALOGUE_BYTES_AT),
        };
        let is_here = u32_at(page, SLOT_AT) as usize == slot
            && page[CHECKSUM_BYTES..VERSION_AT] == MAGIC
            && page[LABEL_AT..STORE_AT] == LABEL;
        let is_in_range = (1..=VOLUME_SEGMENTS_MAX).contains(&superblock.segments)
            && superblock.commit <= COMMIT_MAX
            && superblock.epoch.0 < 1 << 48;
        match is_here && is_in_range {
            true => Ok(superblock),
            false => damaged("its fields are invalid"),
        }
    }
}

/// The error for a store of another version.
#[cold]
fn of_other_format(version: u8) -> Error {
    let (age, what) = match version < FORMAT_VERSION {
        true => ("an older", "the build that wrote it exports its pairs"),
        false => ("a newer", "a newer build reads it"),
    };
    Error::invalid(format!(
        "a store of tucana in {age} format, {version}: this build reads format {FORMAT_VERSION} only; {what}"
    ))
}

fn page_of(slot: usize) -> PageNo {
    SUPERBLOCK_PAGES[slot % SUPERBLOCK_PAGES.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn superblock() -> Superblock {
        Superblock {
            store: StoreId(7),
            commit: 6,
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

    fn kind(page: &PageBytes) -> ErrorKind {
        Superblock::decode(page, 0).unwrap_err().kind()
    }

    #[test]
    fn every_slot_reads_back_in_its_own_place_only() {
        for slot in 0..4 {
            let page = superblock().encode(slot);
            for place in 0..4 {
                let read = Superblock::decode(&page, place);
                assert_eq!(read.ok(), (place == slot).then(superblock));
            }
        }
    }

    #[test]
    fn another_version_is_told_apart_from_damage() {
        for (version, age) in [(FORMAT_VERSION - 1, "older"), (FORMAT_VERSION + 1, "newer")] {
            let mut page = superblock().encode(0);
            page[VERSION_AT] = version;
            let sum = checksum(&page, superblock().store, page_of(0));
            put(&mut *page, 0, &sum.to_le_bytes());
            let error = Superblock::decode(&page, 0).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            let named = format!("{age} format, {version}: this build reads format 3");
            assert!(error.to_string().contains(&named), "{error}");
        }
    }

    #[test]
    fn every_byte_counts() {
        for at in 0..128 {
            let mut page = superblock().encode(0);
            page[at] ^= 4;
            assert!(Superblock::decode(&page, 0).is_err(), "byte {at}");
        }
    }

    #[test]
    fn other_stores_are_named_and_what_is_none_is_told_apart() {
        assert_eq!(kind(&[0; _]), ErrorKind::NotFound);
        assert_eq!(kind(&[1; _]), ErrorKind::InvalidArgument);
        for (label, name) in OTHERS {
            let mut page = superblock().encode(0);
            put(&mut *page, LABEL_AT, &label);
            let error = Superblock::decode(&page, 0).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains(name), "{error}");
        }
        let mut torn = superblock().encode(0);
        torn[512..].fill(3);
        assert_eq!(kind(&torn), ErrorKind::Corruption);
        let kreon = kreon_format::Superblock {
            store: StoreId(7),
            epoch: Epoch(9),
            incarnation: Incarnation(2),
            segments: 44,
            catalogue: superblock().catalogue,
            catalogue_bytes: 100,
        };
        assert_eq!(kind(&kreon.encode(0)), ErrorKind::InvalidArgument);
        let ours = superblock().encode(0);
        assert!(kreon_format::Superblock::decode(&ours, 0).is_err());
    }
}
