//! The header that leaves and index nodes share, and its seal.

use kreon_base::{Epoch, Error, PAGE_BYTES, PageBytes, PageNo, RegionId, Result, planted};
use kreon_format::StoreId;

use super::bytes::{put, put_u16, put_u48, u16_at, u32_at, u48_at};
use super::pointer::NodePointer;
use super::seal::checksum;
use super::{Index, Leaf};

/// Bytes of a node's header.
pub const NODE_HEADER_BYTES: usize = 32;

/// The version of the format that this build writes, and the only one that it reads.
pub const FORMAT_VERSION: u8 = 3;

const MAGIC: [u8; 2] = *b"tN";
const MAGIC_AT: usize = 4;
const VERSION_AT: usize = 6;
const LEVEL_AT: usize = 7;
const PAGE_AT: usize = 8;
const EPOCH_AT: usize = 14;
const REGION_AT: usize = 20;
const COUNT_AT: usize = 24;
const DETAIL_AT: usize = 26;
const SPARE_AT: usize = 28;

const _: () = assert!(SPARE_AT + 4 == NODE_HEADER_BYTES && PAGE_BYTES <= u16::MAX as usize);

/// What a node's header says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeHeader {
    /// Its page and epoch.
    pub pointer: NodePointer,
    /// The region whose tree it is part of.
    pub region: RegionId,
    /// Height above the leaves: 0 for a leaf.
    pub level: u8,
}

/// Seals and verifies the nodes of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSeal {
    /// The store.
    pub store: StoreId,
    /// The region.
    pub region: RegionId,
}

impl NodeHeader {
    /// Starts a node in `page`, without content.
    pub fn begin(&self, page: &mut PageBytes) {
        page.fill(0);
        put(page, MAGIC_AT, &MAGIC);
        page[VERSION_AT] = FORMAT_VERSION;
        page[LEVEL_AT] = self.level;
        put(page, REGION_AT, &self.region.0.to_le_bytes());
        Self::move_to(page, self.pointer);
    }

    /// Makes a node one of another page and epoch.
    pub fn move_to(page: &mut PageBytes, pointer: NodePointer) {
        put_u48(page, PAGE_AT, pointer.page.0);
        put_u48(page, EPOCH_AT, pointer.epoch.0);
    }

    /// Reads the header of a node.
    pub fn read(page: &PageBytes) -> Self {
        Self {
            pointer: NodePointer {
                page: PageNo(u48_at(page, PAGE_AT)),
                epoch: Epoch(u48_at(page, EPOCH_AT)),
            },
            region: RegionId(u32_at(page, REGION_AT)),
            level: level(page),
        }
    }
}

impl NodeSeal {
    /// Writes the checksum into a finished node.
    pub fn seal(&self, page: &mut PageBytes) {
        let number = NodeHeader::read(page).pointer.page;
        let checksum = checksum(page, self.store, number);
        put(page, 0, &checksum.to_le_bytes());
    }

    /// Verifies that these bytes are the node that `pointer` points at, of this height, and that nothing in them leads
    /// out of the page.
    ///
    /// # Errors
    /// `Corruption` if not; `InvalidArgument` if a newer build wrote it.
    pub fn verify(&self, page: &PageBytes, pointer: NodePointer, level: u8) -> Result<()> {
        let damaged = |what: &str| {
            Err(Error::corruption(format!(
                "tree node at {}: {what}",
                pointer.page
            )))
        };
        if u32_at(page, 0) != checksum(page, self.store, pointer.page) {
            return damaged("the checksum does not match its bytes");
        }
        if page[MAGIC_AT..VERSION_AT] != MAGIC {
            return damaged("the page holds something else");
        }
        if page[VERSION_AT] != FORMAT_VERSION {
            return Err(Error::invalid(format!(
                "tree node at {}: format {}, this build reads {FORMAT_VERSION}",
                pointer.page, page[VERSION_AT]
            )));
        }
        let region = self.region;
        let expected = NodeHeader {
            pointer,
            region,
            level,
        };
        let header = NodeHeader::read(page);
        planted!(NodeEpochIgnored => let header = NodeHeader { pointer, ..header });
        if header != expected {
            return damaged("it is another node");
        }
        let is_sound = match level {
            0 => Leaf::of(page).is_sound(),
            _ => Index::of(page).is_sound(),
        };
        match is_sound {
            true => Ok(()),
            false => damaged("its content is invalid"),
        }
    }
}

/// The height of a node above the leaves.
pub(super) fn level(page: &PageBytes) -> u8 {
    page[LEVEL_AT]
}

pub(super) fn set_level(page: &mut PageBytes, level: u8) {
    page[LEVEL_AT] = level;
}

/// Entries of a leaf, or children of an index node.
pub(super) fn count(page: &PageBytes) -> usize {
    usize::from(u16_at(page, COUNT_AT))
}

pub(super) fn set_count(page: &mut PageBytes, count: usize) {
    put_u16(page, COUNT_AT, count);
}

/// The field with a meaning of its own in leaves and index nodes.
pub(super) fn detail(page: &PageBytes) -> usize {
    usize::from(u16_at(page, DETAIL_AT))
}

pub(super) fn set_detail(page: &mut PageBytes, value: usize) {
    put_u16(page, DETAIL_AT, value);
}

/// How many first bytes two keys have in common.
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The shortest key that is greater than `left` and not greater than `right`, given that `left < right`.
pub fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    debug_assert!(left < right);
    let shortest = right.get(..=common_prefix(left, right));
    shortest.unwrap_or(right)
}
