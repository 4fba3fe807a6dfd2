//! Packs a run of children into index nodes of one level.
//!
//! A node is written only when the children fill two nodes, so that the end of a run can be split evenly.

use kreon_base::{Error, PAGE_BYTES, PageBytes, Result};
use kreon_format::{IndexBuilder, LeafFilter, Pivot};

use super::NodeSink;
use super::child::Child;
use super::fresh_pages::FreshPages;
use super::limits::Limits;

/// Fewer children are not split over two nodes, whatever the goal, if they fit in a page.
const SPLIT_CHILDREN_MIN: usize = 4;

pub(super) struct IndexPacker {
    level: u8,
    limits: Limits,
    children: Vec<Child>,
    /// With fewer children no node is due.
    check_at: usize,
    builder: IndexBuilder,
    page: Box<PageBytes>,
}

impl IndexPacker {
    pub(super) fn new(level: u8, limits: Limits) -> Self {
        Self {
            level,
            limits,
            children: Vec::new(),
            check_at: SPLIT_CHILDREN_MIN,
            builder: IndexBuilder::new(),
            page: Box::new([0; PAGE_BYTES]),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.children.is_empty()
    }

    /// The only child, if there is exactly one.
    pub(super) fn only_child(&self) -> Option<&Child> {
        match self.children.as_slice() {
            [child] => Some(child),
            _ => None,
        }
    }

    /// Appends a child; returns a written node once the children fill two nodes.
    pub(super) fn push<K: NodeSink>(
        &mut self,
        pages: &mut FreshPages<'_, K>,
        child: Child,
    ) -> Result<Option<Child>> {
        self.children.push(child);
        let count = self.children.len();
        if count < self.check_at {
            return Ok(None);
        }
        let loaded = self.load(count, self.limits.goal_bytes)?;
        if loaded == count {
            self.check_at = count * 2;
            return Ok(None);
        }
        self.check_at = loaded * 2;
        if count < self.check_at {
            return Ok(None);
        }
        self.write_loaded(pages).map(Some)
    }

    /// Whether closing the run would leave a single, small node.
    pub(super) fn is_scanty(&mut self) -> Result<bool> {
        let count = self.children.len();
        if count < 2 {
            return Ok(count == 1);
        }
        let loaded = self.load(count, self.limits.small_bytes)?;
        Ok(loaded == count && self.builder.used_bytes() < self.limits.small_bytes)
    }

    /// Ends the run; returns its last nodes.
    pub(super) fn close<K: NodeSink>(
        &mut self,
        pages: &mut FreshPages<'_, K>,
    ) -> Result<Vec<Child>> {
        let mut nodes = Vec::new();
        while !self.children.is_empty() {
            let count = self.children.len();
            let last_bytes_max = if count < SPLIT_CHILDREN_MIN {
                PAGE_BYTES
            } else {
                self.limits.last_bytes_max
            };
            if self.load(count, last_bytes_max)? < count {
                let packed = self.load(count, self.limits.goal_bytes)?;
                if count - packed < packed {
                    self.load(self.half(), PAGE_BYTES)?;
                }
            }
            nodes.push(self.write_loaded(pages)?);
        }
        self.check_at = SPLIT_CHILDREN_MIN;
        Ok(nodes)
    }

    /// Removes the last child if it is part of the old tree.
    pub(super) fn pop_old(&mut self) -> Option<Child> {
        self.children.pop_if(|child| !child.is_fresh)
    }

    /// Takes all children.
    pub(super) fn take(&mut self) -> Vec<Child> {
        self.check_at = SPLIT_CHILDREN_MIN;
        std::mem::take(&mut self.children)
    }

    /// Adds children before the others.
    pub(super) fn prepend(&mut self, children: Vec<Child>) {
        self.children.splice(0..0, children);
    }

    /// The number of children for the first of two nodes of about equal size. With four or more children both
    /// nodes get at least two.
    fn half(&self) -> usize {
        // 28: approximate bytes of a pivot and its pointer besides the key.
        let bytes_of = |child: &Child| child.pivot.bytes.len() + child.filter.as_bytes().len() + 28;
        let total: usize = self.children.iter().map(bytes_of).sum();
        let mut sum = 0;
        let is_left = |child: &&Child| {
            sum += bytes_of(child);
            sum * 2 <= total
        };
        let left = self.children.iter().take_while(is_left).count();
        left.clamp(2, self.children.len().saturating_sub(2).max(2))
    }

    /// Loads the builder with the first children, at most `count_max`, until it has `bytes_max` used bytes and at
    /// least two children. Returns their number.
    fn load(&mut self, count_max: usize, bytes_max: usize) -> Result<usize> {
        self.builder.clear();
        for child in self.children.iter().take(count_max) {
            let is_full = self.builder.len() >= 2 && self.builder.used_bytes() >= bytes_max;
            let (pivot, filter) = (&child.pivot, &child.filter);
            if is_full || !self.builder.fits(pivot, filter) {
                break;
            }
            self.builder.push(pivot, child.pointer, filter)?;
        }
        Ok(self.builder.len())
    }

    /// Writes the loaded node.
    fn write_loaded<K: NodeSink>(&mut self, pages: &mut FreshPages<'_, K>) -> Result<Child> {
        let count = self.builder.len();
        let identity = pages.place(self.level)?;
        let pointer = self.builder.finish(&identity, &mut self.page)?;
        pages.write(&identity, &self.page)?;
        let mut pivot: Option<Pivot> = None;
        for child in self.children.drain(..count) {
            pivot.get_or_insert(child.pivot);
        }
        let pivot = pivot.ok_or_else(|| Error::invalid("an index node without children"))?;
        Ok(Child {
            pivot,
            pointer,
            filter: LeafFilter::NONE,
            is_fresh: true,
        })
    }
}
