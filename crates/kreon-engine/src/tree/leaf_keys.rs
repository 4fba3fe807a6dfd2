//! Whole keys of leaf entries. A leaf holds only the stored part of a long key; the rest is in the log.

use std::ops::Range;

use kreon_base::{Error, LogOffset, Lsn, Payload, Result};
use kreon_format::{IndexNode, LONG_KEY_STORED_BYTES, Leaf, LeafEntry, LeafSearch, PagePointer};

use super::NodeSource;

/// Whether a leaf holds only the stored part of a key of this length.
pub(super) fn is_long(key_bytes: u32) -> bool {
    key_bytes as usize > LONG_KEY_STORED_BYTES
}

/// The part of a key that nodes hold.
pub(super) fn stored_part(key: &[u8]) -> &[u8] {
    key.get(..LONG_KEY_STORED_BYTES).unwrap_or(key)
}

/// The record with the whole key of an entry with a long key.
pub(super) fn record_of(entry: &LeafEntry<'_>) -> Result<LogOffset> {
    match entry.payload {
        Payload::Logged { offset, .. }
        | Payload::Tombstone { offset }
        | Payload::Erased { key_at: offset } => Ok(offset),
        Payload::Inline { .. } => Err(Error::corruption("a long key with an inline value")),
    }
}

/// Replaces the content of `key` by the whole key of entry `index`.
pub(super) fn key_of<S: NodeSource>(
    source: &S,
    leaf: &Leaf<'_>,
    index: usize,
    key: &mut Vec<u8>,
) -> Result<()> {
    entry_of(source, leaf, index, key).map(drop)
}

/// Entry `index`; its whole key replaces the content of `key`.
#[inline]
pub(super) fn entry_of<'l, S: NodeSource>(
    source: &S,
    leaf: &Leaf<'l>,
    index: usize,
    key: &mut Vec<u8>,
) -> Result<LeafEntry<'l>> {
    let entry = leaf.entry_and_key(index, key)?;
    if is_long(entry.key_bytes) {
        source.read_key(record_of(&entry)?, entry.key_bytes, key)?;
    }
    Ok(entry)
}

/// The first entry of `leaf` with a key not below `key`, and whether the keys are equal.
pub(super) fn lower_bound<S: NodeSource>(
    source: &S,
    leaf: &Leaf<'_>,
    key: &[u8],
) -> Result<(usize, bool)> {
    match leaf.search(key)? {
        LeafSearch::Found(index) => Ok((index, true)),
        LeafSearch::Absent(index) => Ok((index, false)),
        LeafSearch::Long { first, end } => lower_bound_of_long(source, leaf, first..end, key),
    }
}

#[cold]
fn lower_bound_of_long<S: NodeSource>(
    source: &S,
    leaf: &Leaf<'_>,
    range: Range<usize>,
    key: &[u8],
) -> Result<(usize, bool)> {
    let mut here = Vec::new();
    let mut is_equal = false;
    let first = partition_point(range, |index| {
        key_of(source, leaf, index, &mut here)?;
        let order = here.as_slice().cmp(key);
        if order.is_ge() {
            is_equal = order.is_eq();
        }
        Ok(order.is_lt())
    })?;
    Ok((first, is_equal))
}

/// The first index in `range` for which `is_before` is false. It must be true for all in front of that one, and false
/// behind it.
pub(super) fn partition_point(
    range: Range<usize>,
    mut is_before: impl FnMut(usize) -> Result<bool>,
) -> Result<usize> {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start.midpoint(end);
        match is_before(middle)? {
            true => start = middle + 1,
            false => end = middle,
        }
    }
    Ok(start)
}

/// The LSN of the first entry under a node of `level`; its key goes to `key`. Reads down to the first leaf.
pub(super) fn first_under<S: NodeSource>(
    source: &S,
    node: &PagePointer,
    level: u8,
    key: &mut Vec<u8>,
) -> Result<Lsn> {
    let leaf = first_leaf_under(source, node, level)?;
    let (lsn, rest) = source.read_node(&leaf, 0, |page| {
        let leaf = Leaf::open(page)?;
        let entry = leaf.entry(0)?;
        leaf.key_into(0, key)?;
        let rest = if is_long(entry.key_bytes) {
            Some((record_of(&entry)?, entry.key_bytes))
        } else {
            None
        };
        Ok((entry.lsn, rest))
    })?;
    if let Some((offset, key_bytes)) = rest {
        source.read_key(offset, key_bytes, key)?;
    }
    Ok(lsn)
}

/// The first leaf under a node of `level`.
pub(super) fn first_leaf_under<S: NodeSource>(
    source: &S,
    node: &PagePointer,
    level: u8,
) -> Result<PagePointer> {
    let mut node = *node;
    for level in (1..=level).rev() {
        node = source.read_node(&node, level, |page| IndexNode::open(page)?.child(0))?;
    }
    Ok(node)
}

/// The number of `nodes`, consecutive on one level, that begin before a target. `is_before` compares the
/// first (key, LSN) under a node with the target.
pub(super) fn count_before<S: NodeSource>(
    source: &S,
    nodes: &[PagePointer],
    level: u8,
    is_before: impl Fn(&[u8], Lsn) -> bool,
) -> Result<usize> {
    let mut first_key = Vec::new();
    partition_point(0..nodes.len(), |index| {
        let lsn = first_under(source, &nodes[index], level, &mut first_key)?;
        Ok(is_before(&first_key, lsn))
    })
}
