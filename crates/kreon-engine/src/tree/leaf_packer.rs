//! Packs a run of entries into leaves.
//!
//! A run is the output between two unchanged leaves. Its last full leaf is held back, so that a small
//! remainder can be balanced with it.

use std::ops::Range;

use kreon_base::{Lsn, PAGE_BYTES, PageBytes, PageNo, Payload, Result};
use kreon_format::{
    FilterBuilder, Leaf, LeafBuilder, LeafFilter, NodeIdentity, PagePointer, Pivot,
};

use super::NodeSink;
use super::child::{Child, pivot_between, pivot_kept};
use super::fresh_pages::FreshPages;
use super::leaf_balance::rebalance;
use super::limits::Limits;

pub(super) struct LeafPacker {
    limits: Limits,
    builder: LeafBuilder,
    filters: FilterBuilder,
    filter_bits_per_key: usize,
    /// Pivot of the run's first leaf, until that leaf is sealed.
    pivot: Pivot,
    held: Option<SealedLeaf>,
    /// A page that is not in use.
    spare: Option<Box<PageBytes>>,
    key: Vec<u8>,
    /// Written leaves, for the index.
    pub(super) ready: Vec<Child>,
}

/// A sealed leaf that is not written yet.
struct SealedLeaf {
    page: Box<PageBytes>,
    identity: NodeIdentity,
    pointer: PagePointer,
    filter: LeafFilter,
    pivot: Pivot,
    /// Stored part of its last key.
    last_key: Vec<u8>,
}

impl LeafPacker {
    pub(super) fn new(limits: Limits, filter_bits_per_key: usize) -> Self {
        Self {
            limits,
            builder: LeafBuilder::new(),
            filters: FilterBuilder::new(),
            filter_bits_per_key,
            pivot: Pivot::default(),
            held: None,
            spare: None,
            key: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// The next entries are not left of `pivot`. Starts a run unless one is open.
    pub(super) fn begin(&mut self, pivot: Pivot) {
        if self.builder.is_empty() && self.held.is_none() {
            self.pivot = pivot;
        }
    }

    /// Adds an entry. `key` is whole.
    pub(super) fn push<K: NodeSink>(
        &mut self,
        pages: &mut FreshPages<'_, K>,
        key: &[u8],
        lsn: Lsn,
        payload: Payload<'_>,
    ) -> Result<()> {
        if self.builder.is_empty() {
            return self.builder.push(key, lsn, payload);
        }
        // A failed push changes nothing: the entry starts the next leaf, or fails there as well.
        let has_room = self.builder.used_bytes() < self.limits.goal_bytes;
        if has_room && self.builder.push(key, lsn, payload).is_ok() {
            return Ok(());
        }
        self.seal(pages)?;
        self.builder.push(key, lsn, payload)
    }

    /// Copies entries of a leaf of the old tree.
    pub(super) fn push_run<K: NodeSink>(
        &mut self,
        pages: &mut FreshPages<'_, K>,
        leaf: &Leaf<'_>,
        mut range: Range<usize>,
    ) -> Result<()> {
        while !range.is_empty() {
            let goal_bytes = self.limits.goal_bytes;
            let pushed = self.builder.push_run(leaf, range.clone(), goal_bytes)?;
            range.start += pushed;
            if range.is_empty() {
                break;
            }
            if self.builder.is_empty() {
                // A single entry exceeds the goal.
                let entry = leaf.entry(range.start)?;
                leaf.key_into(range.start, &mut self.key)?;
                self.builder
                    .push_stored(&self.key, entry.key_bytes, entry.lsn, entry.payload)?;
                range.start += 1;
            } else {
                self.seal(pages)?;
            }
        }
        Ok(())
    }

    /// Whether closing the run would leave a single, small leaf.
    pub(super) fn is_scanty(&self) -> bool {
        !self.builder.is_empty() && self.held.is_none() && self.is_small()
    }

    /// Ends the run: everything goes to `ready`.
    pub(super) fn close<K: NodeSink>(&mut self, pages: &mut FreshPages<'_, K>) -> Result<()> {
        if !self.builder.is_empty()
            && self.is_small()
            && let Some(held) = self.held.take()
        {
            return self.close_balanced(pages, held);
        }
        if !self.builder.is_empty() {
            self.seal(pages)?;
        }
        self.write_held(pages)
    }

    /// Ends a run of one small leaf by balancing it with its left neighbour from the old tree. False, with
    /// nothing changed, if the two cannot be balanced.
    pub(super) fn close_with_left<K: NodeSink>(
        &mut self,
        pages: &mut FreshPages<'_, K>,
        left: &Leaf<'_>,
        left_pivot: &Pivot,
    ) -> Result<bool> {
        let remainder = self.take_remainder()?;
        let builders = rebalance(left, &Leaf::open(&remainder)?, &self.limits)?;
        if builders.is_empty() {
            self.put_back(&remainder)?;
            return Ok(false);
        }
        self.pivot = left_pivot.clone();
        for builder in builders {
            self.builder = builder;
            self.seal(pages)?;
        }
        self.write_held(pages)?;
        Ok(true)
    }

    fn close_balanced<K: NodeSink>(
        &mut self,
        pages: &mut FreshPages<'_, K>,
        held: SealedLeaf,
    ) -> Result<()> {
        let remainder = self.take_remainder()?;
        let left = Leaf::open(&held.page)?;
        let builders = rebalance(&left, &Leaf::open(&remainder)?, &self.limits)?;
        if builders.is_empty() {
            self.put_back(&remainder)?;
            self.held = Some(held);
            self.seal(pages)?;
            return self.write_held(pages);
        }
        // The first leaf gets the page of the held leaf.
        self.pivot = held.pivot;
        let mut place = Some(held.identity);
        for builder in builders {
            self.builder = builder;
            match place.take() {
                Some(identity) => self.seal_at(identity, pages)?,
                None => self.seal(pages)?,
            }
        }
        self.write_held(pages)
    }

    fn is_small(&self) -> bool {
        self.builder.used_bytes() < self.limits.small_bytes
    }

    /// Finishes the open leaf as a page without an address, and empties the builder.
    fn take_remainder(&mut self) -> Result<Box<PageBytes>> {
        let nowhere = NodeIdentity {
            store: Default::default(),
            page: PageNo(0),
            epoch: Default::default(),
            region: Default::default(),
            level: 0,
        };
        let mut page = Box::new([0; PAGE_BYTES]);
        self.builder.finish(&nowhere, &mut page)?;
        Ok(page)
    }

    fn put_back(&mut self, remainder: &PageBytes) -> Result<()> {
        let leaf = Leaf::open(remainder)?;
        self.builder.push_run(&leaf, 0..leaf.len(), PAGE_BYTES)?;
        Ok(())
    }

    /// Seals the open leaf into a fresh page and holds it back; the previously held leaf is written.
    fn seal<K: NodeSink>(&mut self, pages: &mut FreshPages<'_, K>) -> Result<()> {
        let identity = pages.place(0)?;
        self.seal_at(identity, pages)
    }

    fn seal_at<K: NodeSink>(
        &mut self,
        identity: NodeIdentity,
        pages: &mut FreshPages<'_, K>,
    ) -> Result<()> {
        let first_key = self.builder.first_key().unwrap_or_default();
        let pivot = match &self.held {
            Some(held) => pivot_between(&held.last_key, first_key),
            None => pivot_kept(std::mem::take(&mut self.pivot), first_key),
        };
        let last_key = self.builder.last_key().unwrap_or_default().to_vec();
        let spare = self.spare.take();
        let mut page = spare.unwrap_or_else(|| Box::new([0; PAGE_BYTES]));
        let pointer = self.builder.finish(&identity, &mut page)?;
        let leaf = Leaf::open(&page)?;
        let filter = self.filters.build(&leaf, self.filter_bits_per_key)?;
        self.write_held(pages)?;
        self.held = Some(SealedLeaf {
            page,
            identity,
            pointer,
            filter,
            pivot,
            last_key,
        });
        Ok(())
    }

    fn write_held<K: NodeSink>(&mut self, pages: &mut FreshPages<'_, K>) -> Result<()> {
        let Some(held) = self.held.take() else {
            return Ok(());
        };
        pages.write(&held.identity, &held.page)?;
        self.spare = Some(held.page);
        self.ready.push(Child {
            pivot: held.pivot,
            pointer: held.pointer,
            filter: held.filter,
            is_fresh: true,
        });
        Ok(())
    }
}
