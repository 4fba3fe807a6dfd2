//! Deleted ranges in a merge: the nodes and entries that they cover.
//!
//! A node wholly inside a range is read as well, because the log records of its entries must be counted as dead.
//! Only versions that a snapshot sees are written again.

use std::ops::Range;

use kreon_base::Result;
use kreon_format::{IndexNode, Leaf, PagePointer, Pivot};

use super::child::Bound;
use super::leaf_keys::key_of;
use super::merge::Merge;
use super::prefetch::ROUND_NODES_MAX;
use super::{Changes, EntryStream, NodeSink, NodeSource};

impl<S: NodeSource, K: NodeSink, I: EntryStream, C: Changes> Merge<'_, S, K, I, C> {
    /// Whether keys of a deleted range may be under the node that begins at `pivot` and ends at `bound`.
    pub(super) fn may_be_erased(&self, pivot: &Pivot, bound: Option<&Bound>) -> bool {
        let Some(ranges) = &self.filter.ranges else {
            return false;
        };
        let last = bound.map(|bound| bound.neighbour.pivot.bytes.as_slice());
        ranges.may_meet(&pivot.bytes, last)
    }

    /// Prefetches the children of `index` that deleted ranges may cover.
    pub(super) fn load_erased(
        &self,
        index: &IndexNode<'_>,
        pivot: &Pivot,
        level: u8,
        bound: Option<&Bound>,
    ) -> Result<()> {
        let Some(ranges) = &self.filter.ranges else {
            return Ok(());
        };
        let mut erased: Vec<PagePointer> = Vec::new();
        let mut first = pivot.bytes.clone();
        for child in 0..index.len() {
            let next = match child + 1 < index.len() {
                true => Some(index.pivot(child + 1)?.bytes),
                false => bound.map(|bound| bound.neighbour.pivot.bytes.clone()),
            };
            if ranges.may_meet(&first, next.as_deref()) {
                erased.push(index.child(child)?);
            }
            first = next.unwrap_or_default();
        }
        let rounds = erased.chunks(ROUND_NODES_MAX);
        rounds
            .filter(|round| round.len() > 1)
            .try_for_each(|round| self.source.prefetch(round, level - 1))
    }

    /// Whether the first key of `leaf` is in a deleted range. Then the previous leaf was rewritten if it holds newer
    /// versions of the key, so the versions can be judged.
    pub(super) fn is_first_erased(&mut self, leaf: &Leaf<'_>) -> Result<bool> {
        if self.filter.ranges.is_none() {
            return Ok(false);
        }
        key_of(self.source, leaf, 0, &mut self.key)?;
        Ok(self.is_erased())
    }

    /// The first entry in `range` that cannot be copied as it is: it carries an LSN, has expired, or is in a deleted range.
    pub(super) fn next_to_judge(&mut self, leaf: &Leaf<'_>, range: Range<usize>) -> Result<usize> {
        let end = leaf.next_to_judge(range.clone(), self.expired_by);
        if self.filter.ranges.is_none() {
            return Ok(end);
        }
        for at in range.start..end {
            key_of(self.source, leaf, at, &mut self.key)?;
            if self.is_erased() {
                return Ok(at);
            }
        }
        Ok(end)
    }

    /// Whether `self.key` is in a deleted range.
    fn is_erased(&self) -> bool {
        let ranges = self.filter.ranges.as_ref();
        ranges.is_some_and(|ranges| !ranges.covering(&self.key).is_empty())
    }
}
