//! The superblock: the root record, in four slots.

use kreon_base::{Checksum, Error, ErrorKind, PAGE_BYTES, PageBytes, Result};
use kreon_format::StoreId;

use super::bytes::{array_at, put, u16_at, u32_at, u64_at};
use super::classes::{ATOMIC_BYTES_MAX, ATOMIC_BYTES_MIN};
use super::geometry::EXTENT_BYTES;
use super::timestamp::{INCARNATION_MAX, Timestamp};

/// The version of the format that this build writes, and the only one that it reads.
pub const FORMAT_VERSION: u8 = 1;

/// Most partitions of a store.
pub const PARTITIONS_MAX: usize = 256;

/// Slots of the superblock: one page each, from the start of the device on.
pub const SUPERBLOCK_SLOTS: usize = 4;

const MAGIC: [u8; 2] = *b"vS";

/// A label for people who inspect the volume, and for openers of other engines. It stands where Kreon's superblock has
/// its own.
const LABEL: [u8; 8] = *b"KvellVol";

/// Labels of other engines, and their names.
const OTHERS: [([u8; 8], &str); 3] = [
    (*b"KreonVol", "Kreon"),
    (*b"KreonNew", "Kreon"),
    (*b"TucanVol", "Tucana"),
];

// The preamble: checksum (4 bytes), magic (2), format version (1), zero (1). Equal in all versions, as the label and the
// store are.
pub(super) const MAGIC_AT: usize = 4;
pub(super) const VERSION_AT: usize = 6;
const LABEL_AT: usize = 8;
const STORE_AT: usize = 16;
const SEQUENCE_AT: usize = 24;
const INCARNATION_AT: usize = 32;
const EXTENTS_END_AT: usize = 36;
const EXTENT_BYTES_AT: usize = 40;
const ATOMIC_BYTES_AT: usize = 44;
const PARTITIONS_AT: usize = 48;
const INDEX_KEY_BYTES_AT: usize = 50;
const STATE_AT: usize = 52;
const IMAGE_OFFSET_AT: usize = 56;
const IMAGE_BYTES_AT: usize = 64;
const IMAGE_CHECKSUM_AT: usize = 72;
const MARKS_AT: usize = 128;

const _: () = assert!(MARKS_AT + PARTITIONS_MAX * 8 <= PAGE_BYTES);

/// Whether the store was closed, with its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The store is open, or was not closed: items may be newer than the marks.
    Dirty = 1,
    /// The store was closed: all items are durable, and none is newer than its mark.
    Clean = 2,
}

/// Where the image of the index is that a clean close wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImagePlace {
    /// Byte offset on the device.
    pub offset: u64,
    /// Its length, 1 or more.
    pub bytes: u64,
    /// CRC-32C of its bytes.
    pub checksum: u32,
}

/// The root record.
///
/// The one with sequence S is written to slot S modulo [`SUPERBLOCK_SLOTS`], so the newest is never overwritten by the
/// next. A superblock whose marks are all 0 has all its bytes in the first sector: written over blank bytes, as at the
/// creation of a store, it is never torn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Identity of the store, drawn at random at its creation.
    pub store: StoreId,
    /// Counts the superblocks of the store.
    pub sequence: u64,
    /// The opening for writing that wrote it, up to [`INCARNATION_MAX`]; 0 at the creation.
    pub incarnation: u32,
    /// Extents up to which the store may have written, extent 0 included; 0: derive it from the length of the device.
    pub extents_end: u32,
    /// The atomic unit in bytes: a power of two of [`ATOMIC_BYTES_MIN`] to [`ATOMIC_BYTES_MAX`]. It decides the classes.
    pub atomic_bytes: u32,
    /// A hint for the index: bytes of each key that it holds in memory.
    pub index_key_bytes: u16,
    /// Whether the store was closed.
    pub state: State,
    /// The image of the index, if there is one.
    pub image: Option<ImagePlace>,
    /// The durable mark of each partition, 1 to [`PARTITIONS_MAX`] of them: its items up to this timestamp are durable.
    pub durable: Vec<Timestamp>,
}

/// The label in a page of a volume, if it has one: eight letters or digits where Kreon, KVell and Tucana have theirs.
pub fn label_of(page: &[u8]) -> Option<[u8; 8]> {
    let label: [u8; 8] = array_at(page, LABEL_AT);
    label.iter().all(u8::is_ascii_alphanumeric).then_some(label)
}

/// Whether the first pages of a volume, or what can be read of them, have the mark of KVell.
pub fn is_volume(pages: &[u8]) -> bool {
    let (pages, _) = pages.as_chunks::<PAGE_BYTES>();
    pages.iter().take(SUPERBLOCK_SLOTS).any(is_ours)
}

/// The newest superblock in the slots of a device, which are its first pages; `None` if all are blank.
///
/// `InvalidArgument`: a volume of another engine, of something else, or of a newer format. `Corruption`: a volume of KVell
/// without a whole superblock.
pub fn newest(slots: &[PageBytes; SUPERBLOCK_SLOTS]) -> Result<Option<Superblock>> {
    let mut found = None::<Superblock>;
    let mut failure = None::<Error>;
    for (slot, bytes) in slots.iter().enumerate() {
        match Superblock::decode(bytes, slot) {
            Ok(Some(superblock)) => {
                let is_newer = |found: &Superblock| found.sequence < superblock.sequence;
                if found.as_ref().is_none_or(is_newer) {
                    found = Some(superblock);
                }
            }
            Ok(None) => {}
            // A whole superblock of a newer format, or of a store that another engine made here: what is in the other
            // slots no longer holds.
            Err(error) if error.kind() == ErrorKind::InvalidArgument && is_known(bytes) => {
                return Err(error);
            }
            // Damage to a slot of a KVell volume tells more than what else there is.
            Err(error) if failure.is_none() || is_ours(bytes) => failure = Some(error),
            Err(_) => {}
        }
    }
    match (found, failure) {
        (Some(superblock), _) => Ok(Some(superblock)),
        (None, Some(failure)) => Err(failure),
        (None, None) => Ok(None),
    }
}

impl Superblock {
    /// Raises the durable marks; those that would fall stay.
    pub fn raise(&mut self, marks: &[Timestamp]) {
        for (known, mark) in self.durable.iter_mut().zip(marks) {
            *known = (*mark).max(*known);
        }
    }

    /// The slot that it is written to.
    pub const fn slot(&self) -> usize {
        (self.sequence % SUPERBLOCK_SLOTS as u64) as usize
    }

    /// Byte offset of that slot on the device.
    pub const fn offset(&self) -> u64 {
        (self.slot() * PAGE_BYTES) as u64
    }

    /// The bytes of its slot, sealed. Marks beyond [`PARTITIONS_MAX`] are left out.
    pub fn encode(&self) -> Box<PageBytes> {
        debug_assert!((1..=PARTITIONS_MAX).contains(&self.durable.len()));
        let mut page = Box::new([0; PAGE_BYTES]);
        let bytes = &mut page[..];
        put(bytes, MAGIC_AT, &MAGIC);
        put(bytes, VERSION_AT, &[FORMAT_VERSION]);
        put(bytes, LABEL_AT, &LABEL);
        put(bytes, STORE_AT, &self.store.0.to_le_bytes());
        put(bytes, SEQUENCE_AT, &self.sequence.to_le_bytes());
        put(bytes, INCARNATION_AT, &self.incarnation.to_le_bytes());
        put(bytes, EXTENTS_END_AT, &self.extents_end.to_le_bytes());
        put(bytes, EXTENT_BYTES_AT, &(EXTENT_BYTES as u32).to_le_bytes());
        put(bytes, ATOMIC_BYTES_AT, &self.atomic_bytes.to_le_bytes());
        let partitions = self.durable.len() as u16;
        put(bytes, PARTITIONS_AT, &partitions.to_le_bytes());
        let index_key_bytes = self.index_key_bytes.to_le_bytes();
        put(bytes, INDEX_KEY_BYTES_AT, &index_key_bytes);
        put(bytes, STATE_AT, &[self.state as u8]);
        if let Some(image) = self.image {
            put(bytes, IMAGE_OFFSET_AT, &image.offset.to_le_bytes());
            put(bytes, IMAGE_BYTES_AT, &image.bytes.to_le_bytes());
            put(bytes, IMAGE_CHECKSUM_AT, &image.checksum.to_le_bytes());
        }
        for (partition, mark) in self.durable.iter().take(PARTITIONS_MAX).enumerate() {
            put(bytes, MARKS_AT + partition * 8, &mark.0.to_le_bytes());
        }
        let checksum = checksum(&page, self.slot());
        put(&mut *page, 0, &checksum.to_le_bytes());
        page
    }

    /// The superblock in `slot`; `None` if the slot was never written. `InvalidArgument` (another volume, or a newer
    /// format) or `Corruption` (damaged).
    pub fn decode(bytes: &PageBytes, slot: usize) -> Result<Option<Self>> {
        if *bytes == [0; PAGE_BYTES] {
            return Ok(None);
        }
        if !is_ours(bytes) {
            return Err(match other_engine(bytes) {
                Some(name) => Error::invalid(format!("a volume of {name}, not of KVell")),
                None => foreign(),
            });
        }
        let within = |error: Error| error.within(format_args!("superblock slot {slot}"));
        Self::verified(bytes, slot).map(Some).map_err(within)
    }

    fn verified(bytes: &PageBytes, slot: usize) -> Result<Self> {
        let stored = u32_at(bytes, 0);
        let actual = checksum(bytes, slot);
        if stored != actual {
            return Err(Error::corruption(format!(
                "checksum {stored:08x} stands there, its bytes make {actual:08x}"
            )));
        }
        if bytes[VERSION_AT] != FORMAT_VERSION {
            return Err(newer(bytes[VERSION_AT]));
        }
        let superblock = Self::read(bytes).filter(|read| read.slot() == slot);
        superblock.ok_or_else(|| Error::corruption("its fields are invalid"))
    }

    /// The fields, if all are in range.
    fn read(bytes: &PageBytes) -> Option<Self> {
        let image_bytes = u64_at(bytes, IMAGE_BYTES_AT);
        let image = (image_bytes != 0).then(|| ImagePlace {
            offset: u64_at(bytes, IMAGE_OFFSET_AT),
            bytes: image_bytes,
            checksum: u32_at(bytes, IMAGE_CHECKSUM_AT),
        });
        let partitions = usize::from(u16_at(bytes, PARTITIONS_AT));
        let marks = bytes.get(MARKS_AT..)?.get(..partitions * 8)?;
        let (marks, _) = marks.as_chunks::<8>();
        let superblock = Self {
            store: StoreId(u64_at(bytes, STORE_AT)),
            sequence: u64_at(bytes, SEQUENCE_AT),
            incarnation: u32_at(bytes, INCARNATION_AT),
            extents_end: u32_at(bytes, EXTENTS_END_AT),
            atomic_bytes: u32_at(bytes, ATOMIC_BYTES_AT),
            index_key_bytes: u16_at(bytes, INDEX_KEY_BYTES_AT),
            state: match bytes[STATE_AT] {
                1 => State::Dirty,
                2 => State::Clean,
                _ => return None,
            },
            image,
            durable: marks
                .iter()
                .map(|mark| Timestamp(u64::from_le_bytes(*mark)))
                .collect(),
        };
        let atomic_bytes = superblock.atomic_bytes as usize;
        let in_range = bytes[LABEL_AT..STORE_AT] == LABEL
            && bytes[MAGIC_AT..VERSION_AT] == MAGIC
            && (1..=PARTITIONS_MAX).contains(&partitions)
            && superblock.incarnation <= INCARNATION_MAX
            && u32_at(bytes, EXTENT_BYTES_AT) as usize == EXTENT_BYTES
            && atomic_bytes.is_power_of_two()
            && (ATOMIC_BYTES_MIN..=ATOMIC_BYTES_MAX).contains(&atomic_bytes);
        in_range.then_some(superblock)
    }
}

/// Whether the page is marked as a superblock of KVell. One of the two marks suffices: damage may have hit the other.
fn is_ours(bytes: &PageBytes) -> bool {
    bytes[MAGIC_AT..VERSION_AT] == MAGIC || bytes[LABEL_AT..STORE_AT] == LABEL
}

/// The engine that wrote the page, if it is another one that is known.
fn other_engine(bytes: &PageBytes) -> Option<&'static str> {
    let label = label_of(bytes)?;
    let named = OTHERS.iter().find(|(other, _)| *other == label);
    named.map(|(_, name)| *name)
}

/// Whether a known engine wrote the page, this one or another.
pub fn is_known(bytes: &PageBytes) -> bool {
    is_ours(bytes) || other_engine(bytes).is_some()
}

/// Checksum of the page of `slot`, with the store that stands in it.
fn checksum(bytes: &PageBytes, slot: usize) -> u32 {
    let seed = [u64_at(bytes, STORE_AT), slot as u64].map(u64::to_le_bytes);
    let sealed = bytes.get(MAGIC_AT..).unwrap_or_default();
    Checksum::new()
        .with(seed.as_flattened())
        .with(sealed)
        .finish()
}

/// The error for a structure of a version that this build cannot read.
#[cold]
pub(super) fn newer(version: u8) -> Error {
    Error::invalid(format!(
        "written by a newer format {version}, this build reads up to {FORMAT_VERSION}"
    ))
}

/// The error for a volume of something else than KVell.
#[cold]
pub fn foreign() -> Error {
    Error::invalid(
        "not a KVell volume: it was left untouched; `Options::format` or `kreon put --engine kvell --format-store` \
         would overwrite it",
    )
}
