//! What all work on a tree stands on.

use std::sync::Arc;

use kreon_base::{Epoch, Error, ErrorKind, PageBytes, PageNo, Priority, RegionId, Result};
use kreon_format::StoreId;
use kreon_mapping::{Mapping, OpenFrame, PageRequest};
use kreon_sync::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

use super::counters::Counters;
use super::misses::Misses;
use crate::format::{NodePointer, NodeSeal};
use crate::page_supply::PageSupply;

/// Index nodes are evicted after leaves.
const INDEX_PRIORITY: Priority = Priority(1);
const LEAF_PRIORITY: Priority = Priority(2);

/// What a tree stands on.
pub struct TreeHome<L> {
    /// Frames for its nodes.
    pub mapping: Arc<Mapping>,
    /// Keys and values.
    pub log: Arc<L>,
    /// Pages for its nodes.
    pub pages: Arc<dyn PageSupply>,
    /// The store, in every checksum.
    pub store: StoreId,
    /// The region that its nodes and records name. Its keys may be those of many, which they tell themselves.
    pub region: RegionId,
}

/// Mapping, log, pages and identity of a tree.
pub(crate) struct Parts<L> {
    pub mapping: Arc<Mapping>,
    pub log: Arc<L>,
    pub pages: Arc<dyn PageSupply>,
    pub seal: NodeSeal,
    pub counters: Counters,
    pub misses: Misses,
    /// All nodes of epochs up to this one are published.
    pub published: Published,
}

/// How far the nodes are published.
#[derive(Default)]
pub(crate) struct Published(AtomicU64);

/// A page and a frame for a new node. Dropped, both go back.
pub(crate) struct Spare {
    pages: Arc<dyn PageSupply>,
    pub pointer: NodePointer,
    frame: Option<OpenFrame>,
}

impl<L> Parts<L> {
    pub(super) fn new(home: TreeHome<L>) -> Self {
        Self {
            mapping: home.mapping,
            log: home.log,
            pages: home.pages,
            seal: NodeSeal {
                store: home.store,
                region: home.region,
            },
            counters: Counters::default(),
            misses: Misses::default(),
            published: Published::default(),
        }
    }

    /// A page and a frame for a node of `epoch`. May wait for the device, if a frame is to be had by writing a page.
    ///
    /// # Errors
    /// `OutOfSpace` if no page is left, or no frame can be opened before a commit publishes some.
    pub(crate) fn spare(&self, epoch: Epoch) -> Result<Spare> {
        let Some(frame) = self.mapping.open_frame() else {
            return Err(Error::new(
                ErrorKind::OutOfSpace,
                "no frame for a changed node before the next commit",
            ));
        };
        let page = self.pages.allocate()?;
        Ok(Spare {
            pages: Arc::clone(&self.pages),
            pointer: NodePointer { page, epoch },
            frame: Some(frame),
        })
    }

    /// Lends a node that was published to `use_node`.
    ///
    /// # Errors
    /// Those of the device; `Corruption`.
    pub(crate) fn read_node<R>(
        &self,
        pointer: NodePointer,
        level: u8,
        use_node: impl FnOnce(&PageBytes) -> R,
    ) -> Result<R> {
        let seal = self.seal;
        let request = PageRequest {
            page: pointer.page,
            priority: priority_of(level),
            check: &|bytes| seal.verify(bytes, pointer, level),
        };
        // In a model others may go on here; what the mapping does then is one step.
        #[cfg(shuttle)]
        kreon_sync::yield_now();
        if !self.mapping.is_resident(pointer.page) {
            self.misses.note();
        }
        self.mapping.read(request, use_node)
    }

    /// Makes a node a page of the mapping.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) fn publish(&self, page: PageNo, level: u8, mut frame: OpenFrame) -> Result<()> {
        self.seal.seal(&mut frame);
        self.mapping.publish(page, priority_of(level), frame)
    }
}

impl Published {
    /// Whether all nodes of `epoch` are published.
    #[inline]
    pub(crate) fn covers(&self, epoch: Epoch) -> bool {
        epoch.0 <= self.0.load(Acquire)
    }

    /// All nodes up to those of `epoch` are published.
    pub(crate) fn set(&self, epoch: Epoch) {
        self.0.store(epoch.0, Release);
    }
}

/// Why a spare that is used has its frame.
const UNUSED: &str = "a spare is used once";

impl Spare {
    /// The bytes of its frame.
    pub(crate) fn bytes(&mut self) -> &mut PageBytes {
        self.frame.as_mut().expect(UNUSED)
    }

    /// Takes its frame: its page is that of a node now.
    pub(crate) fn take(&mut self) -> OpenFrame {
        self.frame.take().expect(UNUSED)
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if self.frame.is_some() {
            self.pages.release(&[self.pointer.page]);
        }
    }
}

fn priority_of(level: u8) -> Priority {
    match level {
        0 => LEAF_PRIORITY,
        _ => INDEX_PRIORITY,
    }
}
