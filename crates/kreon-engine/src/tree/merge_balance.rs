//! The end of runs in a merge: small remainders are balanced with neighbours, and the new root is found.

use kreon_base::Result;
use kreon_format::{IndexNode, Leaf, TreeRecord};

use super::child::Child;
use super::merge::{Merge, children_of};
use super::{Changes, EntryStream, NodeSink, NodeSource};

impl<S: NodeSource, K: NodeSink, I: EntryStream, C: Changes> Merge<'_, S, K, I, C> {
    /// Closes the levels 0 to `level`, so that an old node of `level` may join the output. False if that node must
    /// be rewritten to balance a small remainder.
    pub(super) fn make_way(&mut self, level: u8) -> Result<bool> {
        for open in 0..=level {
            let is_scanty = self.filter.output.is_scanty(open)?;
            if is_scanty && (open == level || !self.pull_left(open)?) {
                return Ok(false);
            }
            self.filter.output.close(open)?;
        }
        Ok(true)
    }

    /// Ends the merge: closes all levels and finds the root.
    pub(super) fn finish(mut self) -> Result<TreeRecord> {
        self.filter.close();
        let mut level = 0;
        let root = loop {
            let is_top = !self.filter.output.has_nodes_from(level);
            if !is_top && self.filter.output.is_scanty(level)? {
                self.pull_left(level)?;
            }
            self.filter.output.close(level)?;
            if !self.filter.output.has_nodes_from(level + 1) {
                let waiting = self.filter.output.waiting(level);
                match waiting.filter(|nodes| !nodes.is_empty()) {
                    None => break None,
                    Some(nodes) => {
                        if let Some(root) = nodes.only_child() {
                            break Some((root.pointer, level));
                        }
                    }
                }
            }
            level += 1;
        };
        self.record(root)
    }

    /// Balances the small remainder of `level` with the old node left of it. False without such a node.
    pub(super) fn pull_left(&mut self, level: u8) -> Result<bool> {
        let Some(left) = self.take_left(level)? else {
            return Ok(false);
        };
        if level > 0 {
            self.reopen(left, level)?;
            return Ok(true);
        }
        let page = self.read(&left.pointer, 0)?;
        let leaf = Leaf::open(&page)?;
        if self.filter.output.close_with_left(&leaf, &left.pivot)? {
            self.free(&left.pointer, 0);
        } else {
            self.filter.output.add(left, 0)?;
        }
        Ok(true)
    }

    /// Removes the last node of `level` from the output if it is an old one; reopens old nodes of higher levels to
    /// reach it.
    fn take_left(&mut self, level: u8) -> Result<Option<Child>> {
        let Some(waiting) = self.filter.output.waiting(level) else {
            return Ok(None);
        };
        if waiting.is_empty() {
            match self.take_left(level + 1)? {
                Some(parent) => self.reopen(parent, level + 1)?,
                None => return Ok(None),
            }
        }
        let waiting = self.filter.output.waiting(level);
        Ok(waiting.and_then(|waiting| waiting.pop_old()))
    }

    /// Replaces an old index node of `level` by its children, in front of the waiting nodes of `level - 1`.
    fn reopen(&mut self, node: Child, level: u8) -> Result<()> {
        let page = self.read(&node.pointer, level)?;
        let index = IndexNode::open(&page)?;
        let pointer = node.pointer;
        let children = children_of(&index, node)?;
        if let Some(waiting) = self.filter.output.waiting(level - 1) {
            waiting.prepend(children);
        }
        self.free(&pointer, level);
        Ok(())
    }
}
