//! Index nodes: children in the order of their keys, and the pivots between them (`Tucana 2.2.1`).
//!
//! An index node, behind the header: a slot of 16 bytes for each child (page, 6 bytes; epoch, 6; where its pivot is, 2;
//! its length, 2), then room, then pivots up to the end of the page. Slots are sorted; pivots are appended in the order in
//! which they come, from the end of the page on, and closed up when the room runs out. A child's keys are not below its
//! pivot. The first child has none: its keys are not below those of the node.

use kreon_base::{Epoch, PAGE_BYTES, PageBytes, PageNo};

use super::bytes::{put, put_u16, put_u48, u16_at, u48_at};
use super::node::{NODE_HEADER_BYTES, count, detail, set_count, set_detail, set_level};
use super::pointer::NodePointer;

const SLOT_BYTES: usize = 16;
const EPOCH_AT: usize = 6;
const PIVOT_AT: usize = 12;
const PIVOT_BYTES_AT: usize = 14;

/// Most children of an index node, which then all have pivots of one byte at the most.
pub const CHILDREN_MAX: usize = (PAGE_BYTES - NODE_HEADER_BYTES) / SLOT_BYTES;

/// Whether so many pivots of this length have room in an index node, and their children.
pub(crate) const fn have_room(pivots: usize, pivot_bytes: usize) -> bool {
    NODE_HEADER_BYTES + SLOT_BYTES * (pivots + 1) + pivot_bytes * pivots <= PAGE_BYTES
}

/// An index node, read.
#[derive(Clone, Copy)]
pub struct Index<'a>(&'a PageBytes);

/// An index node that is changed in place.
pub struct IndexMut<'a>(&'a mut PageBytes);

impl<'a> Index<'a> {
    /// The index node in a page that was verified, or is being made.
    pub fn of(page: &'a PageBytes) -> Self {
        Self(page)
    }

    /// Number of children.
    #[inline]
    pub fn count(&self) -> usize {
        count(self.0).min(CHILDREN_MAX)
    }

    /// Child `index`.
    #[inline]
    pub fn child(&self, index: usize) -> NodePointer {
        let slot = slot(index);
        NodePointer {
            page: PageNo(u48_at(self.0, slot)),
            epoch: Epoch(u48_at(self.0, slot + EPOCH_AT)),
        }
    }

    /// The pivot of child `index`; empty for the first.
    #[inline]
    pub fn pivot(&self, index: usize) -> &'a [u8] {
        let slot = slot(index);
        let at = usize::from(u16_at(self.0, slot + PIVOT_AT));
        let bytes = usize::from(u16_at(self.0, slot + PIVOT_BYTES_AT));
        self.0.get(at..at + bytes).unwrap_or_default()
    }

    /// The child whose keys `key` is one of.
    #[inline]
    pub fn route(&self, key: &[u8]) -> usize {
        self.last_pivot(|pivot| pivot <= key)
    }

    /// The last child with keys below `bound`; `None` is above all keys.
    pub fn route_below(&self, bound: Option<&[u8]>) -> usize {
        match bound {
            Some(bound) => self.last_pivot(|pivot| pivot < bound),
            None => self.count().saturating_sub(1),
        }
    }

    /// The last child whose pivot satisfies the condition, which holds for the first ones; the first has none.
    #[inline]
    fn last_pivot(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut first, mut end) = (1, self.count());
        while first < end {
            let middle = first.midpoint(end);
            if is_before(self.pivot(middle)) {
                first = middle + 1;
            } else {
                end = middle;
            }
        }
        first - 1
    }

    /// Whether another child with a pivot of this length has room.
    pub fn has_room(&self, pivot_bytes: usize) -> bool {
        let taken = SLOT_BYTES * (self.count() + 1) + self.pivots_bytes() + pivot_bytes;
        NODE_HEADER_BYTES + taken <= PAGE_BYTES
    }

    /// Whether another node's children have room beside these, with a pivot of this length between them.
    pub fn has_room_for(&self, other: Index<'_>, pivot_bytes: usize) -> bool {
        let pivots_bytes = self.pivots_bytes() + other.pivots_bytes() + pivot_bytes;
        let slots_bytes = SLOT_BYTES * (self.count() + other.count());
        NODE_HEADER_BYTES + slots_bytes + pivots_bytes <= PAGE_BYTES
    }

    /// Bytes of all pivots.
    fn pivots_bytes(&self) -> usize {
        (0..self.count()).map(|index| self.pivot(index).len()).sum()
    }

    fn slots_end(&self) -> usize {
        slot(self.count())
    }

    /// Whether there is a child, all pivots are in the page behind the slots and ascend, and the first is empty.
    pub fn is_sound(&self) -> bool {
        let (count, pivots_at) = (count(self.0), detail(self.0));
        let is_within = |index| {
            let at = usize::from(u16_at(self.0, slot(index) + PIVOT_AT));
            let bytes = usize::from(u16_at(self.0, slot(index) + PIVOT_BYTES_AT));
            bytes == 0 && index == 0
                || bytes > 0 && index > 0 && at >= pivots_at && at + bytes <= PAGE_BYTES
        };
        (1..=CHILDREN_MAX).contains(&count)
            && (slot(count)..=PAGE_BYTES).contains(&pivots_at)
            && (0..count).all(is_within)
            && (1..count).all(|index| self.pivot(index - 1) < self.pivot(index))
    }
}

impl<'a> IndexMut<'a> {
    /// The index node in a page that is being made.
    pub fn of(page: &'a mut PageBytes) -> Self {
        Self(page)
    }

    /// The same, to be read.
    pub fn as_index(&self) -> Index<'_> {
        Index(self.0)
    }

    /// Makes a started page an index node with one child.
    pub fn begin(page: &'a mut PageBytes, level: u8, child: NodePointer) -> Self {
        page[NODE_HEADER_BYTES..].fill(0);
        set_level(page, level);
        set_count(page, 1);
        set_detail(page, PAGE_BYTES);
        let mut index = Self(page);
        index.set_child(0, child);
        index
    }

    /// Lets slot `index` point at another node.
    pub fn set_child(&mut self, index: usize, child: NodePointer) {
        put_u48(self.0, slot(index), child.page.0);
        put_u48(self.0, slot(index) + EPOCH_AT, child.epoch.0);
    }

    /// Puts a child before child `index`, which is not the first. There [is room](Index::has_room).
    pub fn insert(&mut self, index: usize, child: NodePointer, pivot: &[u8]) {
        let count = self.as_index().count();
        assert!((1..=count).contains(&index) && !pivot.is_empty());
        let slots_end = self.as_index().slots_end();
        if detail(self.0) < slots_end + SLOT_BYTES + pivot.len() {
            self.close_up();
        }
        let at = detail(self.0) - pivot.len();
        assert!(at >= slots_end + SLOT_BYTES, "no room in the index node");
        self.0.copy_within(slot(index)..slots_end, slot(index + 1));
        put(self.0, at, pivot);
        put_u16(self.0, slot(index) + PIVOT_AT, at);
        put_u16(self.0, slot(index) + PIVOT_BYTES_AT, pivot.len());
        set_detail(self.0, at);
        set_count(self.0, count + 1);
        self.set_child(index, child);
    }

    /// Removes child `index`, which is not the first.
    pub fn remove(&mut self, index: usize) {
        let count = self.as_index().count();
        assert!((1..count).contains(&index), "child {index} of {count}");
        let slots_end = self.as_index().slots_end();
        self.0.copy_within(slot(index + 1)..slots_end, slot(index));
        self.0[slots_end - SLOT_BYTES..slots_end].fill(0);
        set_count(self.0, count - 1);
    }

    /// Moves the children from `from` on, which is not the first, to `right`: a started page of the same height. Returns
    /// the pivot between the two nodes.
    pub fn split_off(&mut self, from: usize, level: u8, right: &mut PageBytes) -> Box<[u8]> {
        let count = self.as_index().count();
        assert!((1..count).contains(&from), "split at {from} of {count}");
        let pivot = self.as_index().pivot(from).into();
        let mut right = IndexMut::begin(right, level, self.as_index().child(from));
        right.append(self.as_index(), from + 1);
        let slots_end = self.as_index().slots_end();
        self.0[slot(from)..slots_end].fill(0);
        set_count(self.0, from);
        self.close_up();
        pivot
    }

    /// Appends the children of the right neighbour, the first of which gets this pivot. There
    /// [is room](Index::has_room_for).
    pub fn merge(&mut self, right: Index<'_>, pivot: &[u8]) {
        let count = self.as_index().count();
        self.insert(count, right.child(0), pivot);
        self.append(right, 1);
    }

    /// Appends the children of another node from `from` on, with their pivots.
    fn append(&mut self, other: Index<'_>, from: usize) {
        for index in from..other.count() {
            let end = self.as_index().count();
            self.insert(end, other.child(index), other.pivot(index));
        }
    }

    /// Removes the bytes between pivots that belong to none any more.
    fn close_up(&mut self) {
        let old = *self.0;
        let old = Index(&old);
        let mut at = PAGE_BYTES;
        for index in 1..old.count() {
            let pivot = old.pivot(index);
            at -= pivot.len();
            put(self.0, at, pivot);
            put_u16(self.0, slot(index) + PIVOT_AT, at);
        }
        set_detail(self.0, at);
        let slots_end = self.as_index().slots_end();
        self.0[slots_end..at].fill(0);
    }
}

const fn slot(index: usize) -> usize {
    NODE_HEADER_BYTES + index * SLOT_BYTES
}
