//! Frozen nodes become pages of the mapping, in the order of the pages (`Tucana 2.2.3`).

use std::sync::Arc;

use kreon_base::{Epoch, PageNo, Result};

use super::generation::Generation;
use super::node::OpenNode;
use super::parts::Parts;

/// Nodes that are published before their pages are written back: 1 MiB. Few enough never to be too many dirty pages for the
/// mapping, so that it writes nothing under a latch.
const BATCH: usize = 256;

/// Publishes and writes back the nodes that were changed in a generation, which is frozen. Returns their pages.
///
/// # Errors
/// Those of the device. Nodes may be lost then: the tree must not be written any more.
pub(crate) fn publish<L>(parts: &Parts<L>, generation: &Generation) -> Result<Vec<PageNo>> {
    let mut nodes = Vec::new();
    if let Some(root) = generation.end().frozen {
        collect(&root, generation.epoch, &mut nodes);
    }
    nodes.sort_unstable_by_key(|node| node.page());
    let batch = BATCH.min(parts.mapping.open_frames_max() / 4).max(1);
    let mut published = Vec::with_capacity(nodes.len());
    for some in nodes.chunks(batch) {
        for node in some {
            // Readers of this node wait until its page is there.
            let mut state = node.write();
            let level = state.level;
            if let Some(frame) = state.body.take() {
                parts.publish(node.page(), level, frame)?;
            }
        }
        let mut pages: Vec<PageNo> = some.iter().map(|node| node.page()).collect();
        parts.mapping.write_back(&mut pages)?;
        published.append(&mut pages);
    }
    parts.published.set(generation.epoch);
    Ok(published)
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
