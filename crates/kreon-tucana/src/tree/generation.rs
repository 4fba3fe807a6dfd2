//! A generation: the tree from one freeze to the next.

use std::sync::{Arc, OnceLock};

use kreon_base::Epoch;
use kreon_sync::Mutex;

use super::charges::Charges;
use super::node::{OldNode, OpenNode};
use crate::format::NodePointer;

/// The tree in one epoch. Readers hold the generation in which they began; the pages that were replaced in it are not
/// reused before all of them are done, and those of earlier generations.
pub(crate) struct Generation {
    pub epoch: Epoch,
    /// The root that it began with.
    start: OldNode,
    /// The root from its first change on.
    open: OnceLock<Arc<OpenNode>>,
    /// Nodes that are part of the tree no more.
    replaced: Mutex<Vec<NodePointer>>,
    /// How the live bytes of the log change in it.
    pub charges: Charges,
}

impl Generation {
    /// A generation that begins with this root.
    pub(crate) fn new(epoch: Epoch, start: OldNode) -> Self {
        debug_assert!(start.pointer.epoch < epoch);
        Self {
            epoch,
            start,
            open: OnceLock::new(),
            replaced: Mutex::default(),
            charges: Charges::default(),
        }
    }

    /// The first generation of a tree, whose root is open.
    pub(crate) fn of_new_tree(root: Arc<OpenNode>) -> Self {
        let start = OldNode {
            pointer: root.pointer,
            level: 0,
            frozen: Some(Arc::clone(&root)),
        };
        Self {
            epoch: root.epoch(),
            start,
            open: OnceLock::from(root),
            replaced: Mutex::default(),
            charges: Charges::default(),
        }
    }

    /// The root, if it can change.
    #[inline]
    pub(crate) fn open_root(&self) -> Option<&Arc<OpenNode>> {
        self.open.get()
    }

    /// Makes this the root that can change. False if there is one.
    pub(crate) fn set_open_root(&self, root: Arc<OpenNode>) -> bool {
        debug_assert!(root.epoch() == self.epoch);
        self.open.set(root).is_ok()
    }

    /// The root that it began with.
    pub(crate) fn start(&self) -> &OldNode {
        &self.start
    }

    /// The root at its end: when it is frozen.
    pub(crate) fn end(&self) -> OldNode {
        match self.open_root() {
            Some(root) => OldNode {
                pointer: root.pointer,
                level: root.read().level,
                frozen: Some(Arc::clone(root)),
            },
            None => self.start.clone(),
        }
    }

    /// A node is part of the tree no more.
    pub(crate) fn replace(&self, node: NodePointer) {
        self.replaced.lock().push(node);
    }

    /// The nodes that were replaced in it.
    pub(crate) fn replaced(&self) -> Vec<NodePointer> {
        self.replaced.lock().clone()
    }
}
