//! Open nodes: nodes in frames of their own, which no page has yet.
//!
//! A node is open from its first change in an epoch until the commit of that epoch publishes it. In its epoch it changes
//! in place; in later epochs it is *frozen* and never changes, except that its frame is taken from it when it becomes a
//! page. Every open node hangs in its open parent, so a descent needs no table of open nodes.
//!
//! Order of latches: a parent before its child, a left neighbour before the right one, and two neighbours only with their
//! parent latched exclusively. A child is latched while its parent is: nobody ever waits for the latch of a node that was
//! split or merged away meanwhile.

use std::sync::Arc;

use kreon_base::{Epoch, Lsn, PageBytes, PageNo, planted};
use kreon_mapping::OpenFrame;
use kreon_sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::format::{Index, IndexMut, Leaf, LeafMut, NodePointer};

/// An open node.
pub(crate) struct OpenNode {
    /// Its page, and the epoch in which it can change.
    pub pointer: NodePointer,
    latch: RwLock<NodeState>,
}

/// What the latch of an open node guards.
pub(crate) struct NodeState {
    pub body: Body,
    /// Height above the leaves; changes in the root only.
    pub level: u8,
    pub fences: Fences,
    /// Of an index node: the open node in each slot, if there is one.
    pub children: Vec<Option<Arc<OpenNode>>>,
    /// Of a leaf: the newest LSN of a deletion in it, in this epoch. A record with an older LSN may be one of a key that was
    /// deleted after it.
    pub deleted: Lsn,
}

/// Where the content of an open node is.
pub(crate) enum Body {
    /// In a frame of its own.
    Open(OpenFrame),
    /// Here, while its frame becomes a page: that may wait for the device, and its readers do not.
    Leaving(Box<PageBytes>),
    /// In its page: the node was published, and is read through the mapping.
    Published,
}

/// The range of the keys of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fences {
    /// Its keys are not below this one.
    pub low: Box<[u8]>,
    /// Its keys are below this one; `None` is above all keys.
    pub high: Option<Box<[u8]>>,
}

/// A node that cannot change: of an earlier epoch.
#[derive(Clone)]
pub(crate) struct OldNode {
    pub pointer: NodePointer,
    pub level: u8,
    /// If it was open in its epoch. It may be published meanwhile.
    pub frozen: Option<Arc<OpenNode>>,
}

impl OpenNode {
    pub(crate) fn new(pointer: NodePointer, state: NodeState) -> Arc<Self> {
        debug_assert!(state.level == 0 || !state.children.is_empty());
        Arc::new(Self {
            pointer,
            latch: RwLock::new(state),
        })
    }

    #[inline]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, NodeState> {
        self.latch.read()
    }

    #[inline]
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, NodeState> {
        self.latch.write()
    }

    pub(crate) fn page(&self) -> PageNo {
        self.pointer.page
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.pointer.epoch
    }
}

/// Why a node that can change has its frame.
const OPEN: &str = "a node is published in a later epoch than the one in which it changes";

impl Body {
    /// The bytes, unless they are in the page.
    #[inline]
    pub(crate) fn bytes(&self) -> Option<&PageBytes> {
        match self {
            Self::Open(frame) => Some(frame),
            Self::Leaving(copy) => Some(copy),
            Self::Published => None,
        }
    }

    /// The bytes, if they can change.
    #[inline]
    fn bytes_mut(&mut self) -> Option<&mut PageBytes> {
        match self {
            Self::Open(frame) => Some(frame),
            Self::Leaving(_) | Self::Published => None,
        }
    }
}

impl NodeState {
    /// The bytes of a node in the epoch in which it changes.
    #[inline]
    pub(crate) fn bytes(&self) -> &PageBytes {
        self.body.bytes().expect(OPEN)
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut PageBytes {
        self.body.bytes_mut().expect(OPEN)
    }

    pub(crate) fn leaf(&self) -> Leaf<'_> {
        Leaf::of(self.bytes())
    }

    pub(crate) fn leaf_mut(&mut self) -> LeafMut<'_> {
        LeafMut::of(self.bytes_mut())
    }

    pub(crate) fn index(&self) -> Index<'_> {
        Index::of(self.bytes())
    }

    pub(crate) fn index_mut(&mut self) -> IndexMut<'_> {
        IndexMut::of(self.bytes_mut())
    }

    /// The open node in slot `slot`.
    #[inline]
    pub(crate) fn child(&self, slot: usize) -> Option<&Arc<OpenNode>> {
        self.children.get(slot).and_then(Option::as_ref)
    }

    /// The open node in slot `slot` if it can change in `epoch`.
    ///
    /// # Errors
    /// The node as it is, if it cannot.
    #[inline]
    pub(crate) fn changeable_child(
        &self,
        slot: usize,
        epoch: Epoch,
    ) -> Result<Arc<OpenNode>, OldNode> {
        let child = self.child(slot);
        let is_current = child.is_some_and(|child| child.epoch() == epoch);
        planted!(FrozenModified => let is_current = child.is_some_and(|child| matches!(child.read().body, Body::Open(_))));
        match child {
            Some(child) if is_current => Ok(Arc::clone(child)),
            frozen => Err(OldNode {
                pointer: self.index().child(slot),
                level: self.level - 1,
                frozen: frozen.cloned(),
            }),
        }
    }

    /// The range of the keys of child `slot`.
    pub(crate) fn fences_of(&self, slot: usize) -> Fences {
        Fences::of_child(&self.fences, self.index(), slot)
    }
}

impl Fences {
    /// The range of child `slot` of a node with this range.
    pub(crate) fn of_child(&self, index: Index<'_>, slot: usize) -> Self {
        Self {
            low: match slot {
                0 => self.low.clone(),
                _ => index.pivot(slot).into(),
            },
            high: match slot + 1 < index.count() {
                true => Some(index.pivot(slot + 1).into()),
                false => self.high.clone(),
            },
        }
    }

    /// First bytes that all keys of the range have in common.
    pub(crate) fn common_bytes(&self) -> usize {
        match &self.high {
            Some(high) => crate::format::common_prefix(&self.low, high),
            None => 0,
        }
    }
}
