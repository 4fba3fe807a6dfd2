//! Fragments, the parts of log records.
//!
//! A fragment: checksum (4 bytes) | length (4) | region (4) | meta (4) | payload | zeroes up to a multiple of 8. The
//! length word has the length of the payload (22 bits), 9 bits of the incarnation, and a bit that marks a pad. The meta
//! word has the length of the key (17 bits), the kind (4), flags (4) and the other 7 bits of the incarnation.
//!
//! The payload of a record: key | attributes (8 bytes, if a flag says so) | value.

use kreon_base::{
    Checksum, Error, Incarnation, KEY_BYTES_MAX, LogOffset, Lsn, RegionId, Result, SEGMENT_BYTES,
    planted,
};

use crate::StoreId;
use crate::bytes::{array_at, put, put_u32, put_u64, u32_at};
use crate::pad;

/// Length of a fragment's header in bytes.
pub const FRAGMENT_HEADER_BYTES: usize = 16;

/// Alignment of the start and end of fragments and pads, in bytes.
pub const RECORD_ALIGN_BYTES: usize = 8;

pub(crate) const LENGTH_AT: usize = 4;
const REGION_AT: usize = 8;
const META_AT: usize = 12;

const LENGTH_MASK: u32 = (1 << 22) - 1;
const LENGTH_MARK_SHIFT: u32 = 22;
/// The part of an incarnation's mark in a length word.
const LENGTH_MARK_MASK: u16 = (1 << 9) - 1;
const PAD_BIT: u32 = 1 << 31;

const KEY_MASK: u32 = (1 << 17) - 1;
const KIND_SHIFT: u32 = 17;
const KIND_MASK: u32 = 0xf;
const STARTS_RECORD: u32 = 1 << 21;
const ENDS_RECORD: u32 = 1 << 22;
const ENDS_UNIT: u32 = 1 << 23;
/// Since format 5.
const HAS_ATTRIBUTES: u32 = 1 << 24;
const META_MARK_SHIFT: u32 = 25;

const _: () = assert!(KEY_BYTES_MAX <= KEY_MASK as usize);
const _: () = assert!(SEGMENT_BYTES <= LENGTH_MASK as u64);

/// Kind of a log record, with its code. None has code 0, so zeroes are never a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// The key gets the value that follows it.
    Put = 1,
    /// The key is deleted; the record has no value.
    Delete = 2,
    /// A put that garbage collection has moved; not a new write.
    Relocation = 3,
    /// A value of a bulk load. It is valid only through the tree that points at it, so replay skips it. One without key
    /// and value marks the start of a load.
    Ingested = 4,
    /// All keys from this key to the end in the value are deleted: see [`range_end`](crate::range_end).
    DeleteRange = 5,
    /// The region of the record is created; the key is its name, the value a [`made_value`](crate::made_value).
    /// It precedes all other records of the region and those of regions with higher numbers.
    MakeRegion = 6,
    /// For the change feed alone: the region of the record is about to be dropped; the key is its name. No write of the
    /// region follows, unless the drop fails. Since format 6.
    DropRegion = 7,
    /// For the change feed alone: pairs from this key to the key in the value are about to be loaded. Since format 6.
    Loaded = 8,
    /// For the change feed alone: it begins behind this record, which has neither key nor value. Since format 6.
    Followed = 9,
}

impl RecordKind {
    /// Whether the record gives a key a value, beside which attributes may stand.
    pub const fn may_have_attributes(self) -> bool {
        matches!(self, Self::Put | Self::Relocation | Self::Ingested)
    }

    /// Whether the record is for the change feed alone: a replay passes over it, and nothing points at it.
    pub const fn is_notice(self) -> bool {
        matches!(self, Self::DropRegion | Self::Loaded | Self::Followed)
    }

    const fn of(code: u32) -> Option<Self> {
        match code {
            1 => Some(Self::Put),
            2 => Some(Self::Delete),
            3 => Some(Self::Relocation),
            4 => Some(Self::Ingested),
            5 => Some(Self::DeleteRange),
            6 => Some(Self::MakeRegion),
            7 => Some(Self::DropRegion),
            8 => Some(Self::Loaded),
            9 => Some(Self::Followed),
            _ => None,
        }
    }
}

/// The header of a fragment. A record is key and value, split into fragments only at the end of a segment; a unit is
/// one or more records that replay takes all or none of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentHeader {
    /// Bytes of key and value in this fragment, less than a segment.
    pub length_bytes: u32,
    /// The region of the record.
    pub region: RegionId,
    /// Length of the record's whole key, the same in each of its fragments.
    pub key_bytes: u32,
    /// Kind of the record.
    pub kind: RecordKind,
    /// Whether [attributes](crate::encode_attributes) stand between its key and its value, the same in each of its
    /// fragments. Only records with a value of a key have any.
    pub has_attributes: bool,
    /// Whether this is the first fragment of its record.
    pub starts_record: bool,
    /// Whether this is the last fragment of its record.
    pub ends_record: bool,
    /// Whether this is the last fragment of the last record of its unit.
    pub ends_unit: bool,
    /// Mark of the incarnation that wrote it, from [`incarnation_mark`].
    pub incarnation: u16,
}

/// Seed of the checksums of a segment's fragments, besides the offset of each. The incarnation is not part of it: a
/// segment may hold fragments of several incarnations, so each fragment carries its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentSeal {
    /// The store.
    pub store: StoreId,
    /// Sequence of the segment.
    pub sequence: u64,
}

/// A verified fragment or pad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragment<'a> {
    /// A part or all of a record.
    Record {
        /// The header.
        header: FragmentHeader,
        /// The part of key and value in this fragment.
        payload: &'a [u8],
    },
    /// A pad.
    Pad {
        /// Total length in bytes.
        pad_bytes: usize,
        /// The lower 9 bits of its incarnation's mark; compare with [`Fragment::is_of`].
        incarnation: u16,
        /// All earlier bytes were durable when the pad was written. `None` if the pad is too short for it.
        durable: Option<Lsn>,
    },
}

impl FragmentSeal {
    /// The checksum of a fragment or pad at `offset`: over the seal, the offset, `header` (without the checksum field),
    /// and the slices of `rest`.
    pub(crate) fn checksum<'p>(
        &self,
        offset: LogOffset,
        header: &[u8; 12],
        rest: impl IntoIterator<Item = &'p [u8]>,
    ) -> u32 {
        // One array, because each update of the digest costs more than these few bytes. The four bytes before the
        // header stand for the checksum field, as zero.
        let mut front = [0; 40];
        put_u64(&mut front, 0, self.store.0);
        put_u64(&mut front, 8, self.sequence);
        planted!(RecordAddressIgnored => let offset = LogOffset(0));
        put_u64(&mut front, 16, offset.0);
        put(&mut front, 28, header);
        let start = Checksum::new().with(&front);
        rest.into_iter().fold(start, Checksum::with).finish()
    }
}

impl FragmentHeader {
    /// The encoded header. Its checksum covers the header, `payload` (concatenated, `length_bytes` in all) and the
    /// zeroes up to [`RECORD_ALIGN_BYTES`]. `offset` is the offset of the fragment on the volume.
    pub fn encode(
        &self,
        seal: &FragmentSeal,
        offset: LogOffset,
        payload: &[&[u8]],
    ) -> [u8; FRAGMENT_HEADER_BYTES] {
        let payload_bytes = payload.iter().map(|slice| slice.len()).sum::<usize>();
        debug_assert_eq!(payload_bytes, self.length_bytes as usize);
        let mut bytes = [0; FRAGMENT_HEADER_BYTES];
        let length = LengthWord::new(false, payload_bytes, self.incarnation);
        put_u32(&mut bytes, LENGTH_AT, length.0);
        put_u32(&mut bytes, REGION_AT, self.region.0);
        put_u32(&mut bytes, META_AT, self.meta());
        let fill_bytes = payload_bytes.next_multiple_of(RECORD_ALIGN_BYTES) - payload_bytes;
        let fill = &[0; RECORD_ALIGN_BYTES][..fill_bytes];
        let slices = payload.iter().copied().chain([fill]);
        let checksum = seal.checksum(offset, &behind_checksum(&bytes), slices);
        put_u32(&mut bytes, 0, checksum);
        bytes
    }

    fn meta(&self) -> u32 {
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        (self.key_bytes & KEY_MASK)
            | (self.kind as u32) << KIND_SHIFT
            | flag(self.starts_record, STARTS_RECORD)
            | flag(self.ends_record, ENDS_RECORD)
            | flag(self.ends_unit, ENDS_UNIT)
            | flag(self.has_attributes, HAS_ATTRIBUTES)
            | u32::from(self.incarnation >> LENGTH_MARK_MASK.count_ones()) << META_MARK_SHIFT
    }

    /// The unverified header in `bytes`; `None` if it is not valid.
    #[inline]
    pub(crate) fn decode(bytes: &[u8; FRAGMENT_HEADER_BYTES]) -> Option<Self> {
        let meta = u32_at(bytes, META_AT);
        let length = LengthWord(u32_at(bytes, LENGTH_AT));
        let high_mark = (meta >> META_MARK_SHIFT) as u16;
        let header = Self {
            length_bytes: length.length_bytes() as u32,
            region: RegionId(u32_at(bytes, REGION_AT)),
            key_bytes: meta & KEY_MASK,
            kind: RecordKind::of(meta >> KIND_SHIFT & KIND_MASK)?,
            has_attributes: meta & HAS_ATTRIBUTES != 0,
            starts_record: meta & STARTS_RECORD != 0,
            ends_record: meta & ENDS_RECORD != 0,
            ends_unit: meta & ENDS_UNIT != 0,
            incarnation: length.mark() | high_mark << LENGTH_MARK_MASK.count_ones(),
        };
        let sound = (!header.has_attributes || header.kind.may_have_attributes())
            && header.key_bytes as usize <= KEY_BYTES_MAX
            && (header.ends_record || !header.ends_unit);
        sound.then_some(header)
    }
}

impl<'a> Fragment<'a> {
    /// Decodes and verifies the fragment or pad at the start of `bytes`, which may be longer. `offset` is its offset on
    /// the volume.
    pub fn decode(bytes: &'a [u8], seal: &FragmentSeal, offset: LogOffset) -> Result<Self> {
        let cut_off = || damaged(offset, "it is cut off");
        let start = array_at(bytes, 0).ok_or_else(cut_off)?;
        let whole = bytes.get(..fragment_extent(&start)).ok_or_else(cut_off)?;
        if LengthWord(u32_at(&start, LENGTH_AT)).is_pad() {
            return pad::decode(whole, seal, offset);
        }
        let (bytes, filled) = whole.split_first_chunk().ok_or_else(cut_off)?;
        let checksum = seal.checksum(offset, &behind_checksum(bytes), [filled]);
        planted!(RecordChecksumIgnored => let checksum = u32_at(bytes, 0));
        if checksum != u32_at(bytes, 0) {
            return Err(damaged(offset, "its checksum does not match"));
        }
        Self::of_parts(bytes, filled).ok_or_else(|| damaged(offset, "its header is wrong"))
    }

    /// The part of a record at the start of `bytes`, which were verified before and have been in memory since: their
    /// checksum is not looked at. `None` for a pad, and where no fragment stands.
    #[inline]
    pub fn decode_verified(bytes: &'a [u8]) -> Option<Self> {
        let start = array_at(bytes, 0)?;
        let is_pad = LengthWord(u32_at(&start, LENGTH_AT)).is_pad();
        let whole = bytes.get(..fragment_extent(&start)).filter(|_| !is_pad)?;
        let (bytes, filled) = whole.split_first_chunk()?;
        Self::of_parts(bytes, filled)
    }

    /// The part of a record whose header is `header`, and which is followed by `filled` with its alignment.
    #[inline]
    fn of_parts(header: &[u8; FRAGMENT_HEADER_BYTES], filled: &'a [u8]) -> Option<Self> {
        let header = FragmentHeader::decode(header)?;
        let payload = filled.get(..header.length_bytes as usize)?;
        Some(Self::Record { header, payload })
    }

    /// Whether the incarnation with the mark `incarnation` wrote it; for a pad, only 9 bits are compared.
    pub fn is_of(&self, incarnation: u16) -> bool {
        match self {
            Self::Record { header, .. } => header.incarnation == incarnation,
            Self::Pad {
                incarnation: low, ..
            } => *low == incarnation & LENGTH_MARK_MASK,
        }
    }

    /// Bytes from the start of this fragment or pad to the next.
    pub fn extent_bytes(&self) -> usize {
        match self {
            Self::Record { payload, .. } => fragment_bytes(payload.len()),
            Self::Pad { pad_bytes, .. } => *pad_bytes,
        }
    }
}

/// Bytes of a fragment with `payload_bytes` in the log.
pub const fn fragment_bytes(payload_bytes: usize) -> usize {
    FRAGMENT_HEADER_BYTES + payload_bytes.next_multiple_of(RECORD_ALIGN_BYTES)
}

/// Claimed length of the fragment or pad that starts with these 8 bytes, unverified: the bytes to read for
/// [`Fragment::decode`].
pub fn fragment_extent(start: &[u8; 8]) -> usize {
    let length = LengthWord(u32_at(start, LENGTH_AT));
    if length.is_pad() {
        pad::extent(length)
    } else {
        fragment_bytes(length.length_bytes())
    }
}

/// The unverified header that `start` is, if it is no pad, and the bytes from there to the next fragment or pad. `None` if
/// it is not valid.
pub fn fragment_start(
    start: &[u8; FRAGMENT_HEADER_BYTES],
) -> Option<(Option<FragmentHeader>, usize)> {
    let length = LengthWord(u32_at(start, LENGTH_AT));
    match length.is_pad() {
        true => Some((None, pad::extent(length))),
        false => {
            let header = FragmentHeader::decode(start)?;
            Some((Some(header), fragment_bytes(length.length_bytes())))
        }
    }
}

/// The mark of an incarnation in fragments: its lower 16 bits. A fragment of an earlier incarnation can be mistaken for
/// one of this only if it was written 65,536 openings earlier at the same offset of the same segment with the same
/// sequence.
pub const fn incarnation_mark(incarnation: Incarnation) -> u16 {
    incarnation.0 as u16
}

/// The length word of a fragment or pad.
#[derive(Clone, Copy)]
pub(crate) struct LengthWord(pub(crate) u32);

impl LengthWord {
    pub(crate) fn new(is_pad: bool, length_bytes: usize, mark: u16) -> Self {
        let pad = if is_pad { PAD_BIT } else { 0 };
        let mark = u32::from(mark & LENGTH_MARK_MASK) << LENGTH_MARK_SHIFT;
        Self(pad | mark | (length_bytes as u32 & LENGTH_MASK))
    }

    pub(crate) fn is_pad(self) -> bool {
        self.0 & PAD_BIT != 0
    }

    pub(crate) fn length_bytes(self) -> usize {
        (self.0 & LENGTH_MASK) as usize
    }

    /// The lower 9 bits of the incarnation's mark.
    pub(crate) fn mark(self) -> u16 {
        (self.0 >> LENGTH_MARK_SHIFT) as u16 & LENGTH_MARK_MASK
    }
}

fn behind_checksum(header: &[u8; FRAGMENT_HEADER_BYTES]) -> [u8; 12] {
    array_at(header, LENGTH_AT).unwrap_or_default()
}

#[cold]
pub(crate) fn damaged(offset: LogOffset, what: &str) -> Error {
    Error::corruption(format!("log fragment at {offset}: {what}"))
}
