//! Frames as plain memory: for work that needs much memory for a while, within the budget.

use kreon_base::PageBytes;

use super::frames::Frames;
use crate::table::PageTable;
use crate::well::FreeFrame;

/// At most one frame in this many is lent.
const LENT_SHARE: usize = 4;

/// Frames of a mapping that hold no page; they go back when this is dropped.
pub struct LentFrames<'a> {
    table: &'a PageTable,
    frames: Vec<FreeFrame>,
}

impl<'a> LentFrames<'a> {
    /// Up to `wanted` frames, evicted if need be.
    pub(crate) fn new(supply: &'a Frames, wanted: usize) -> Self {
        let table = supply.table();
        let wanted = wanted.min(table.frames() / LENT_SHARE);
        let mut frames = Vec::with_capacity(wanted);
        while frames.len() < wanted {
            // A batch at a time: an eviction makes other threads wait.
            let some = supply.take_many((wanted - frames.len()).min(supply.batch()));
            if some.is_empty() {
                break;
            }
            frames.extend(some);
        }
        Self { table, frames }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// A frame.
    pub fn get(&self, index: usize) -> Option<&PageBytes> {
        let frame = self.frames.get(index)?;
        Some(self.table.space().bytes(frame))
    }

    /// A frame, to be written.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut PageBytes> {
        let frame = self.frames.get_mut(index)?;
        Some(self.table.space().bytes_mut(frame))
    }
}

impl Drop for LentFrames<'_> {
    fn drop(&mut self) {
        self.table.pool().put_all(self.frames.drain(..));
    }
}
