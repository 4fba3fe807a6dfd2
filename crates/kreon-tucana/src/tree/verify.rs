//! Whether a state of a tree is whole: every node, and every record that a leaf points at.

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_base::{Error, PageBytes, PageNo, Result, SegmentId};

use super::node::{Fences, OldNode, OpenNode};
use super::parts::Parts;
use crate::format::{Index, Leaf, key_hash};
use crate::log::RecordLog;

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Pages of the nodes.
    pub pages: Vec<PageNo>,
    /// Keys.
    pub keys: u64,
    /// Bytes of the records in each segment of the log.
    pub live_bytes: BTreeMap<SegmentId, u64>,
}

/// Reads the subtree of a node that does not change.
///
/// # Errors
/// `Corruption`; those of the device.
pub(crate) fn verify<L: RecordLog>(
    parts: &Parts<L>,
    node: &OldNode,
    fences: &Fences,
    found: &mut Verified,
) -> Result<()> {
    let bytes = bytes_of(parts, node)?;
    found.pages.push(node.pointer.page);
    if node.level == 0 {
        return verify_leaf(parts, node, (Leaf::of(&bytes), fences), found);
    }
    let index = Index::of(&bytes);
    let children: Vec<Option<Arc<OpenNode>>> = match &node.frozen {
        Some(open) => open.read().children.clone(),
        None => Vec::new(),
    };
    for slot in 0..index.count() {
        let child = OldNode {
            pointer: index.child(slot),
            level: node.level - 1,
            frozen: children.get(slot).cloned().flatten(),
        };
        if child.pointer.epoch > node.pointer.epoch {
            return Err(damaged(node, "a child is newer than its parent"));
        }
        verify(parts, &child, &fences.of_child(index, slot), found)?;
    }
    Ok(())
}

fn verify_leaf<L: RecordLog>(
    parts: &Parts<L>,
    node: &OldNode,
    (leaf, fences): (Leaf<'_>, &Fences),
    found: &mut Verified,
) -> Result<()> {
    if leaf.prefix_bytes() > fences.common_bytes() {
        return Err(damaged(node, "its prefix is longer than that of its range"));
    }
    let mut last: Option<Box<[u8]>> = None;
    for index in 0..leaf.count() {
        let entry = leaf.entry(index);
        let key = parts.log.read(entry.location, |record| {
            let is_ours = record.value.is_some() && record.region == parts.seal.region;
            is_ours.then(|| Box::<[u8]>::from(record.key))
        })?;
        let key = key.ok_or_else(|| damaged(node, "it points at a record of no value"))?;
        let is_within = *key >= *fences.low && fences.high.as_ref().is_none_or(|high| key < *high);
        let is_next = last.as_ref().is_none_or(|last| *last < key);
        let is_described = (entry.head, entry.hash) == (leaf.head_of(&key), key_hash(&key));
        if !(is_within && is_next && is_described) {
            return Err(damaged(node, "an entry is not that of its record"));
        }
        last = Some(key);
        found.keys += 1;
        let segment = entry.location.offset.segment();
        *found.live_bytes.entry(segment).or_default() += entry.location.extent_bytes() as u64;
    }
    Ok(())
}

fn bytes_of<L>(parts: &Parts<L>, node: &OldNode) -> Result<Box<PageBytes>> {
    if let Some(open) = &node.frozen
        && let Some(body) = open.read().body.bytes()
    {
        return Ok(Box::new(*body));
    }
    parts.read_node(node.pointer, node.level, |bytes| Box::new(*bytes))
}

#[cold]
fn damaged(node: &OldNode, what: &str) -> Error {
    Error::corruption(format!("tree node at {}: {what}", node.pointer.page))
}
