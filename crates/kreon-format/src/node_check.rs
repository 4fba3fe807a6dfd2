//! Full verification of a node read from the device.

use std::cmp::Ordering;

use kreon_base::{Lsn, PageBytes, Result, planted};

use crate::filter::FilterView;
use crate::heads::{HEAD_BYTES, compare_rests};
use crate::index::{TAG_AMBIGUOUS, TAG_FILTERED};
use crate::leaf_builder::order_of_equals;
use crate::leaf_entry::{decode_body, is_long, is_well_formed};
use crate::node::{FILTERS_VERSION, NodeView, RawEntry, TAG_WIDE};
use crate::sealed::{self, PageKind};
use crate::{PAGE_POINTER_BYTES, PagePointer, StoreId};

/// Verifies a node read from the device: checksum (computed, stored and in the pointer), page number, epoch, level, and
/// the whole structure. Each byte of the page must belong to exactly one part, keys must be in order, and each entry
/// must decode. Takes about a microsecond for a full leaf.
pub fn check_node(
    bytes: &PageBytes,
    store: StoreId,
    pointer: &PagePointer,
    level: u8,
) -> Result<()> {
    let damaged = |what: &str| PageKind::Node.damaged(pointer.page, what);
    let verified = sealed::verify(bytes, PageKind::Node, store, pointer.page);
    planted!(NodeChecksumIgnored => let verified = Ok(pointer.checksum));
    let checksum = verified?;
    planted!(StaleNodeBelieved => let checksum = pointer.checksum);
    if checksum != pointer.checksum {
        return Err(damaged("intact, but not the node that the pointer names"));
    }
    if sealed::detail(bytes) != level {
        return Err(damaged("a node of another level"));
    }
    let node = NodeView::open(bytes, level == 0)?;
    let is_expected = node.page_no() == pointer.page && node.epoch() == pointer.epoch;
    planted!(StaleNodeBelieved => let is_expected = true);
    if !is_expected {
        return Err(damaged("a node of another page or epoch"));
    }
    if !node.is_clean() {
        return Err(damaged("bytes outside of all parts are not zero"));
    }
    if level == 0 && node.heads.is_empty() {
        return Err(damaged("an empty leaf"));
    }
    if level > 0 && !is_well_filtered(&node) {
        return Err(damaged("the filter of the first child is invalid"));
    }
    check_entries(&node)
}

/// Whether the node may have filters.
fn may_have_filters(node: &NodeView<'_>) -> bool {
    node.level() == 1 && node.version() >= FILTERS_VERSION
}

/// Whether the filter of an index node's first child is valid, if there is one.
fn is_well_filtered(node: &NodeView<'_>) -> bool {
    node.top_filter().is_none_or(|bytes| {
        let filter = FilterView::open(bytes).filter(|_| may_have_filters(node));
        filter.is_some_and(|filter| filter.encoded_bytes() == bytes.len())
    })
}

fn check_entries(node: &NodeView<'_>) -> Result<()> {
    let leaf = node.level() == 0;
    let (heap_start, mut end) = node.heap();
    let mut last_head = 0;
    for (index, head) in node.heads.iter().enumerate() {
        let damaged = || node.damaged(index);
        let start = node.entry_at(index).ok_or_else(damaged)?;
        let raw = node.entry(index)?;
        let body_bytes = if leaf {
            leaf_body_bytes(node, &raw)
        } else {
            index_body_bytes(node, &raw)
        };
        let front_bytes = front_bytes(node, start, raw.length).ok_or_else(damaged)?;
        let bytes = front_bytes + raw.rest.len() + body_bytes.ok_or_else(damaged)?;
        // Entries are contiguous, the first one last.
        if start + bytes != end || !is_filled_up(head, raw.length) {
            return Err(damaged());
        }
        end = start;
        // Heads usually decide; entries are read again only if heads are equal.
        let head = u64::from_be_bytes(*head);
        if head < last_head || (head == last_head && index > 0 && !follows(node, index, leaf)) {
            return Err(damaged());
        }
        last_head = head;
    }
    if end == heap_start {
        Ok(())
    } else {
        Err(node.damaged(node.heads.len()))
    }
}

/// Bytes of tag and key length; `None` if the length uses more bytes than it needs.
fn front_bytes(node: &NodeView<'_>, start: usize, length: usize) -> Option<usize> {
    let wide = node.byte(start)? & TAG_WIDE != 0;
    match (wide, length > usize::from(u8::MAX)) {
        (false, _) => Some(2),
        (true, true) => Some(3),
        (true, false) => None,
    }
}

fn leaf_body_bytes(node: &NodeView<'_>, raw: &RawEntry<'_>) -> Option<usize> {
    let body = decode_body(raw)?;
    is_well_formed(raw.tag, node.prefix.len() + raw.length, &body).then_some(body.bytes)
}

fn index_body_bytes(node: &NodeView<'_>, raw: &RawEntry<'_>) -> Option<usize> {
    let (_, behind) = raw.body.split_at_checked(PAGE_POINTER_BYTES)?;
    match raw.tag & !TAG_AMBIGUOUS {
        0 => Some(PAGE_POINTER_BYTES),
        TAG_FILTERED if may_have_filters(node) => {
            let filter = FilterView::open(behind)?;
            Some(PAGE_POINTER_BYTES + filter.encoded_bytes())
        }
        _ => None,
    }
}

/// Whether the head of a key that ends within it is padded with zeroes.
fn is_filled_up(head: &[u8; HEAD_BYTES], length: usize) -> bool {
    length >= HEAD_BYTES || head.iter().skip(length).all(|&byte| byte == 0)
}

/// Whether entry `index` may follow its predecessor, which has the same head.
fn follows(node: &NodeView<'_>, index: usize, leaf: bool) -> bool {
    let (Some(last), Some(next)) = (node.raw(index - 1), node.raw(index)) else {
        return false;
    };
    match compare_rests((last.length, last.rest), (next.length, next.rest)) {
        Ordering::Less => true,
        Ordering::Equal if leaf => match (version(&last), version(&next)) {
            (Some(last), Some(next)) => order_of_equals(last, next) == Ordering::Less,
            _ => false,
        },
        Ordering::Equal => next.tag & TAG_AMBIGUOUS != 0,
        Ordering::Greater => false,
    }
}

/// Whether the key of a leaf's entry is long, and its LSN.
fn version(raw: &RawEntry<'_>) -> Option<(bool, Lsn)> {
    Some((is_long(raw.tag), decode_body(raw)?.lsn))
}
