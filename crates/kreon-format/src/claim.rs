//! Unverified descriptions of pages and fragments by their own bytes.
//!
//! An open store follows pointers, which state what a page must be. A salvage has no pointers: it reads what a page
//! claims to be, then verifies the claim with the decoder of that structure. Results of this module must not be trusted
//! without that.

use kreon_base::{Epoch, PageBytes, PageNo, RegionId};

use crate::bytes::{array_at, u32_at, u48_at, u64_at};
use crate::fragment::{LENGTH_AT, LengthWord};
use crate::sealed::{self, PREAMBLE_BYTES, PageKind};
use crate::{
    BitmapBlock, FragmentHeader, LogSegmentHeader, PagePointer, StoreId, bitmap_page, group_of,
};

/// Nodes and catalogue pages have page number and epoch at the same offsets.
const PAGE_AT: usize = PREAMBLE_BYTES;
const EPOCH_AT: usize = 14;
const REGION_OF_NODE_AT: usize = 20;

const STORE_OF_SUPERBLOCK_AT: usize = 16;
const STORE_OF_LOG_SEGMENT_AT: usize = PREAMBLE_BYTES;

/// A tree node as described by its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeClaim {
    /// The pointer that its parent would have, for [`check_node`](crate::check_node).
    pub pointer: PagePointer,
    /// The region whose tree it is part of.
    pub region: RegionId,
    /// 0 for a leaf.
    pub level: u8,
}

/// A fragment or pad as described by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentClaim {
    /// A part or all of a record.
    Record(FragmentHeader),
    /// A pad, with the lower 9 bits of its incarnation's mark.
    Pad(u16),
}

/// The claim of a page that is marked as a tree node.
pub fn claimed_node(bytes: &PageBytes) -> Option<NodeClaim> {
    PageKind::Node.marks(bytes).then(|| NodeClaim {
        pointer: claimed_pointer(bytes),
        region: RegionId(u32_at(bytes, REGION_OF_NODE_AT)),
        level: sealed::detail(bytes),
    })
}

/// The pointer to a page that is marked as a catalogue page, as its own bytes have it, for
/// [`decode_page`](crate::decode_page).
pub fn claimed_catalogue_page(bytes: &PageBytes) -> Option<PagePointer> {
    PageKind::Catalogue
        .marks(bytes)
        .then(|| claimed_pointer(bytes))
}

/// The store id in a page that is marked as a superblock or as the header of a log segment.
pub fn claimed_store(bytes: &PageBytes) -> Option<StoreId> {
    let at = if PageKind::Superblock.marks(bytes) {
        STORE_OF_SUPERBLOCK_AT
    } else if PageKind::LogSegment.marks(bytes) {
        STORE_OF_LOG_SEGMENT_AT
    } else {
        return None;
    };
    Some(StoreId(u64_at(bytes, at)))
}

/// Name of the structure that a page appears to be, of any store: a verified header of a log segment, or a bitmap
/// block, tree node or catalogue page that claims the address `page`. Other data hardly ever looks like one.
pub fn trace_of(bytes: &PageBytes, page: PageNo) -> Option<&'static str> {
    let segment = page.segment();
    let is_header = |store| {
        page == segment.first_page() && LogSegmentHeader::decode(bytes, store, segment).is_ok()
    };
    if claimed_store(bytes).is_some_and(is_header) {
        return Some("a log segment");
    }
    let group = group_of(segment);
    let is_copy =
        |copy| page == bitmap_page(group, copy) && BitmapBlock::is_claimed(bytes, group, copy);
    if (0..2).any(is_copy) {
        return Some("a bitmap block");
    }
    if claimed_node(bytes).is_some_and(|node| node.pointer.page == page) {
        return Some("a tree page");
    }
    if claimed_catalogue_page(bytes).is_some_and(|pointer| pointer.page == page) {
        return Some("a catalogue page");
    }
    None
}

/// The fragment or pad that `bytes` appear to start with.
pub fn claimed_fragment(bytes: &[u8]) -> Option<FragmentClaim> {
    let length = LengthWord(u32_at(bytes, LENGTH_AT));
    if length.is_pad() {
        return Some(FragmentClaim::Pad(length.mark()));
    }
    FragmentHeader::decode(&array_at(bytes, 0)?).map(FragmentClaim::Record)
}

fn claimed_pointer(bytes: &PageBytes) -> PagePointer {
    PagePointer {
        page: PageNo(u48_at(bytes, PAGE_AT)),
        epoch: Epoch(u48_at(bytes, EPOCH_AT)),
        checksum: sealed::stored_checksum(bytes),
    }
}
