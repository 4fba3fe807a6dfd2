//! Block copies of entries from one node into the draft of another.
//!
//! The entries of a node are contiguous, so a run of them is one block of bytes. If the prefixes of node and draft have
//! the same length, the block is copied unchanged; otherwise each entry exchanges some key bytes with the prefix.
//! Bodies are never decoded.

use std::ops::Range;

use kreon_base::{PAGE_BYTES, Result};

use crate::entry_code::Shift;
use crate::node::NodeView;
use crate::node_draft::{NodeDraft, Plan, common_prefix_bytes, keys_room};

impl NodeDraft {
    /// Appends entries `range` of `node`, as many as keep [`used_bytes`](Self::used_bytes) at or below
    /// `used_bytes_max`, at most a page; returns their number. After an error the draft is unchanged. The node should
    /// have passed [`check_node`](crate::check_node).
    pub(crate) fn push_run(
        &mut self,
        node: &NodeView<'_>,
        range: Range<usize>,
        used_bytes_max: usize,
    ) -> Result<usize> {
        let count = self.len();
        let taken = self.take_run(node, range, used_bytes_max);
        self.truncate(match taken {
            Ok(taken) => count + taken,
            Err(_) => count,
        });
        if self.len() == 0 {
            self.clear();
        }
        taken
    }

    fn take_run(
        &mut self,
        node: &NodeView<'_>,
        range: Range<usize>,
        used_bytes_max: usize,
    ) -> Result<usize> {
        let count = self.len();
        if count == 0 {
            node.key_into(range.start, &mut self.first_key)?;
            self.prefix_bytes = self.first_key.len();
        }
        self.survey(node, &range)?;
        let plan = self.plan_run(node, &range, range.len())?;
        let (taken, plan) = if plan.used_bytes <= used_bytes_max.min(PAGE_BYTES) {
            (range.len(), plan)
        } else {
            self.cut_run(node, &range, used_bytes_max.min(PAGE_BYTES))?
        };
        if taken == 0 {
            return Ok(0);
        }
        let range = range.start..range.start + taken;
        let damaged = || node.damaged(range.start);
        let shortest = self.lengths[count..count + taken].iter().min();
        if shortest.is_none_or(|bytes| usize::from(*bytes) < plan.prefix_bytes) {
            // Only if keys are out of order.
            return Err(damaged());
        }
        self.begin_span(plan.prefix_bytes);
        self.copy_run(node, &range, plan.prefix_bytes)
            .ok_or_else(damaged)?;
        std::mem::swap(&mut self.last_key, &mut self.run_key);
        self.last_tag = node.entry(range.end - 1)?.tag;
        self.bodies_bytes += self.run_bodies[taken] as usize;
        self.prefix_bytes = plan.prefix_bytes;
        self.keys_bytes = plan.keys_bytes;
        Ok(taken)
    }

    /// Records the lengths of the keys and bodies of a run.
    fn survey(&mut self, node: &NodeView<'_>, range: &Range<usize>) -> Result<()> {
        let mut bodies_bytes = 0;
        self.run_bodies.clear();
        self.run_bodies.push(0);
        let mut end = node.entry_end(range.start);
        for index in range.clone() {
            let span = end.and_then(|end| node.entry_span(index, end));
            let span = span.ok_or_else(|| node.damaged(index))?;
            self.lengths.push((node.prefix.len() + span.length) as u16);
            bodies_bytes += span.body_bytes as u32;
            self.run_bodies.push(bodies_bytes);
            end = Some(span.start);
        }
        Ok(())
    }

    /// The draft after appending the first `taken` (at least one) entries of the run. Leaves the key of the last one in
    /// `run_key`.
    fn plan_run(
        &mut self,
        node: &NodeView<'_>,
        range: &Range<usize>,
        taken: usize,
    ) -> Result<Plan> {
        let count = self.len();
        node.key_into(range.start + taken - 1, &mut self.run_key)?;
        let prefix = &self.first_key[..self.prefix_bytes];
        let prefix_bytes = common_prefix_bytes(prefix, &self.run_key);
        let lengths = &self.lengths[count..count + taken];
        let run_bytes = keys_room(lengths, prefix_bytes);
        let keys_bytes = self.keys_bytes_behind(prefix_bytes) + run_bytes;
        let bodies_bytes = self.bodies_bytes + self.run_bodies[taken] as usize;
        Ok(Plan {
            prefix_bytes,
            keys_bytes,
            used_bytes: self.room(count + taken, prefix_bytes, keys_bytes, bodies_bytes),
        })
    }

    /// The largest number of entries of the run that fit, if not all do, and their plan.
    #[inline(never)]
    fn cut_run(
        &mut self,
        node: &NodeView<'_>,
        range: &Range<usize>,
        used_bytes_max: usize,
    ) -> Result<(usize, Plan)> {
        // Used bytes grow with the number of entries, so a binary search finds the limit.
        let (mut fits, mut too_many) = (0, range.len());
        while fits + 1 < too_many {
            let middle = fits.midpoint(too_many);
            if self.plan_run(node, range, middle)?.used_bytes <= used_bytes_max {
                fits = middle;
            } else {
                too_many = middle;
            }
        }
        let plan = self.plan_run(node, range, fits.max(1))?;
        Ok((fits, plan))
    }

    /// Encodes the entries behind `prefix_bytes` of their keys; `None` if an entry is damaged.
    fn copy_run(
        &mut self,
        node: &NodeView<'_>,
        range: &Range<usize>,
        prefix_bytes: usize,
    ) -> Option<()> {
        let heads = node.heads.get(range.clone())?;
        let mut end = node.entry_end(range.start)?;
        let old = node.prefix.len();
        let shift = if old == prefix_bytes {
            let from = node.entry_at(range.end - 1)?;
            let bytes = node.bytes(from..end)?;
            let start = self.heap_start.checked_sub(bytes.len())?;
            self.heap
                .get_mut(start..self.heap_start)?
                .copy_from_slice(bytes);
            for slot in node.slots.get(range.clone())? {
                let at = usize::from(u16::from_le_bytes(*slot));
                self.starts.push((at + start).wrapping_sub(from) as u16);
            }
            self.heads.extend_from_slice(heads);
            self.heap_start = start;
            return Some(());
        } else if old > prefix_bytes {
            Shift::Longer(node.prefix.get(prefix_bytes..)?)
        } else {
            Shift::Shorter(prefix_bytes - old)
        };
        let mut heap = self.heap_start;
        for (index, head) in range.clone().zip(heads) {
            let at = node.entry_at(index)?;
            let image = node.bytes(at..end)?;
            let (start, head) = shift.recode(head, image, &mut self.heap, heap)?;
            (heap, end) = (start, at);
            self.heads.push(head);
            self.starts.push(start as u16);
        }
        self.heap_start = heap;
        Some(())
    }
}
