//! Frozen nodes become pages of the mapping, in the order of the pages (`Tucana 2.2.3`).

use std::sync::Arc;

use kreon_base::{Epoch, PageBytes, PageNo, Result};
use kreon_mapping::OpenFrame;

use super::generation::Generation;
use super::node::{Body, OpenNode};
use super::parts::Parts;

/// Nodes that are published before their pages are written back: 1 MiB.
const BATCH: usize = 256;

/// Publishes and writes back the nodes that were changed in a generation, which is frozen. Returns their pages.
///
/// # Errors
/// Those of the device. Nodes may be in no page then, and are read in memory: the tree must not be written any more.
pub(crate) fn publish<L>(parts: &Parts<L>, generation: &Generation) -> Result<Vec<PageNo>> {
    let mut nodes = Vec::new();
    if let Some(root) = generation.end().frozen {
        collect(&root, generation.epoch, &mut nodes);
    }
    nodes.sort_unstable_by_key(|node| node.page());
    let batch = BATCH.min(parts.mapping.open_frames_max() / 4).max(1);
    let mut published = Vec::with_capacity(nodes.len());
    let mut copy = None;
    for some in nodes.chunks(batch) {
        for node in some {
            let Some((level, frame)) = take(node, &mut copy) else {
                continue;
            };
            // No latch is held: the mapping may write to the device here.
            parts.publish(node.page(), level, frame)?;
            copy = settle(node);
        }
        let mut pages: Vec<PageNo> = some.iter().map(|node| node.page()).collect();
        parts.mapping.write_back(&mut pages)?;
        published.append(&mut pages);
    }
    parts.published.set(generation.epoch);
    Ok(published)
}

/// Takes the frame of a node and leaves `copy` with its content to readers, until the page is there. `None` if the node has
/// no frame: a publication that failed had taken it.
fn take(node: &OpenNode, copy: &mut Option<Box<PageBytes>>) -> Option<(u8, OpenFrame)> {
    let mut state = node.write();
    match std::mem::replace(&mut state.body, Body::Published) {
        Body::Open(frame) => {
            let mut bytes = copy.take().unwrap_or_else(|| Box::new([0; _]));
            bytes.copy_from_slice(&*frame);
            state.body = Body::Leaving(bytes);
            Some((state.level, frame))
        }
        other => {
            state.body = other;
            None
        }
    }
}

/// The page of a node is there. Returns the memory of the copy.
fn settle(node: &OpenNode) -> Option<Box<PageBytes>> {
    match std::mem::replace(&mut node.write().body, Body::Published) {
        Body::Leaving(copy) => Some(copy),
        Body::Open(_) | Body::Published => None,
    }
}

/// All nodes of an epoch in the subtree of a node.
fn collect(node: &Arc<OpenNode>, epoch: Epoch, nodes: &mut Vec<Arc<OpenNode>>) {
    if node.epoch() != epoch {
        return;
    }
    nodes.push(Arc::clone(node));
    let children: Vec<_> = node.read().children.iter().flatten().cloned().collect();
    for child in &children {
        collect(child, epoch, nodes);
    }
}
