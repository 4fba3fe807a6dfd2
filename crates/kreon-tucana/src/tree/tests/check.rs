//! The invariants of a whole tree.

use std::sync::Arc;

use kreon_base::PageBytes;

use crate::format::{Index, Leaf, NodeHeader, NodePointer, key_hash};
use crate::log::{MemoryLog, Record, RecordLog};
use crate::tree::Tree;
use crate::tree::node::{Fences, OldNode, OpenNode};
use crate::tree::parts::Parts;

/// Looks at every node of the newest state: ranges, order, heads, hashes, headers, open nodes.
pub(super) fn check(tree: &Tree<MemoryLog>) {
    let (parts, generation) = tree.inside();
    let root = match generation.open_root() {
        Some(root) => OldNode {
            pointer: root.pointer,
            level: root.read().level,
            frozen: Some(Arc::clone(root)),
        },
        None => generation.start().clone(),
    };
    check_node(parts, &root, &Fences::default());
}

fn check_node(parts: &Parts<MemoryLog>, node: &OldNode, fences: &Fences) {
    let header = NodeHeader::read(&bytes_of(parts, node));
    let expected = NodeHeader {
        pointer: node.pointer,
        region: parts.seal.region,
        level: node.level,
    };
    assert_eq!(header, expected);
    if let Some(open) = &node.frozen {
        assert_eq!(
            open.pointer, node.pointer,
            "the node in a slot is that of its pointer"
        );
        let state = open.read();
        assert_eq!((&state.fences, state.level), (fences, node.level));
    }
    match node.level {
        0 => check_leaf(parts, node, fences),
        _ => check_index(parts, node, fences),
    }
}

fn check_leaf(parts: &Parts<MemoryLog>, node: &OldNode, fences: &Fences) {
    let bytes = bytes_of(parts, node);
    let leaf = Leaf::of(&bytes);
    assert!(leaf.is_sound());
    assert!(leaf.prefix_bytes() <= fences.common_bytes());
    let mut last: Option<Vec<u8>> = None;
    for index in 0..leaf.count() {
        let entry = leaf.entry(index);
        let read = |record: Record<'_>| (record.key.to_vec(), record.value.is_some());
        let (key, is_put) = parts.log.read(entry.location, read).expect("a record");
        assert!(is_put && last.as_ref().is_none_or(|last| *last < key));
        assert!(*key >= *fences.low && fences.high.as_ref().is_none_or(|high| *key < **high));
        assert_eq!(
            (entry.head, entry.hash),
            (leaf.head_of(&key), key_hash(&key))
        );
        last = Some(key);
    }
}

fn check_index(parts: &Parts<MemoryLog>, node: &OldNode, fences: &Fences) {
    let bytes = bytes_of(parts, node);
    let index = Index::of(&bytes);
    assert!(index.is_sound());
    let children: Vec<Option<Arc<OpenNode>>> = match &node.frozen {
        Some(open) => open.read().children.clone(),
        None => vec![None; index.count()],
    };
    assert_eq!(children.len(), index.count());
    let pointers: Vec<NodePointer> = (0..index.count()).map(|slot| index.child(slot)).collect();
    for (slot, (pointer, frozen)) in pointers.into_iter().zip(children).enumerate() {
        let child = OldNode {
            pointer,
            level: node.level - 1,
            frozen,
        };
        assert!(
            pointer.epoch <= node.pointer.epoch,
            "a child is as old as its parent or older"
        );
        check_node(parts, &child, &fences.of_child(index, slot));
    }
}

fn bytes_of(parts: &Parts<MemoryLog>, node: &OldNode) -> Box<PageBytes> {
    if let Some(open) = &node.frozen
        && let Some(body) = open.read().body.bytes()
    {
        return Box::new(*body);
    }
    let copy = |bytes: &PageBytes| Box::new(*bytes);
    let read = parts.read_node(node.pointer, node.level, copy);
    read.expect("a published node")
}
