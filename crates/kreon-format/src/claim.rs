//! What bytes claim to be, before anything vouches for them.
//!
//! An open store follows pointers, and a pointer says what must stand behind it. Who looks for what is
//! left of a damaged store has no pointer: it asks a page what it claims to be, and then checks that
//! claim with the decoder of the structure. Nothing here may be believed by itself.

use kreon_base::{Epoch, PageBytes, PageNo, RegionId};

use crate::bytes::{array_at, u32_at, u48_at, u64_at};
use crate::fragment::{LENGTH_AT, LengthWord};
use crate::sealed::{self, PREAMBLE_BYTES, PageKind};
use crate::{
    BitmapBlock, FragmentHeader, LogSegmentHeader, PagePointer, StoreId, bitmap_page, group_of,
};

/// Page number and epoch stand at the same places in nodes and catalogue pages.
const PAGE_AT: usize = PREAMBLE_BYTES;
const EPOCH_AT: usize = 14;
const REGION_OF_NODE_AT: usize = 20;

const STORE_OF_SUPERBLOCK_AT: usize = 16;
const STORE_OF_LOG_SEGMENT_AT: usize = PREAMBLE_BYTES;

/// A tree node as it describes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeClaim {
    /// The pointer that a parent would have; [`check_node`](crate::check_node) wants it.
    pub pointer: PagePointer,
    /// The region whose tree it is part of.
    pub region: RegionId,
    /// 0 for a leaf.
    pub level: u8,
}

/// A fragment or pad as its first bytes describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentClaim {
    /// Part or all of a record.
    Record(FragmentHeader),
    /// Filler, with the lower 9 bits of its incarnation's mark.
    Pad(u16),
}

/// What a page marked as a tree node claims to be.
pub fn claimed_node(bytes: &PageBytes) -> Option<NodeClaim> {
    PageKind::Node.marks(bytes).then(|| NodeClaim {
        pointer: claimed_pointer(bytes),
        region: RegionId(u32_at(bytes, REGION_OF_NODE_AT)),
        level: sealed::detail(bytes),
    })
}

/// The pointer that leads to a page marked as a catalogue page, as the page has it;
/// [`decode_page`](crate::decode_page) wants it.
pub fn claimed_catalogue_page(bytes: &PageBytes) -> Option<PagePointer> {
    PageKind::Catalogue
        .marks(bytes)
        .then(|| claimed_pointer(bytes))
}

/// The store that a superblock or the header of a log segment names, if the page is marked as one of
/// the two.
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

/// What a page shows of any store, as a name for it: the first page of a log segment that verifies, a
/// bitmap block, tree node or catalogue page that says that it belongs to `page`. Bytes of something else hardly ever
/// look like one.
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

/// What stands at the start of `bytes`, if it makes sense as a fragment or pad at all.
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
