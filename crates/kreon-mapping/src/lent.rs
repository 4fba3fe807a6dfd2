//! Frames as plain memory: for work that needs much memory for a while, within the budget.

use kreon_base::PageBytes;

use crate::mapping::Mapping;
use crate::well::FreeFrame;

/// No more than this share of the frames is lent.
const LENT_SHARE: usize = 4;

/// Frames of a mapping that hold no page; they go back when this is dropped.
pub struct LentFrames<'a> {
    mapping: &'a Mapping,
    frames: Vec<FreeFrame>,
}

impl Mapping {
    /// Up to `wanted` frames as memory that holds anything, and a quarter of all at the most. Pages are evicted for
    /// them. None are lent if readers hold all, or the device takes no dirty page.
    pub fn lend_frames(&self, wanted: usize) -> LentFrames<'_> {
        let wanted = wanted.min(self.plan.frames / LENT_SHARE);
        let mut frames = Vec::with_capacity(wanted);
        while frames.len() < wanted {
            // A batch at a time: an eviction keeps others waiting.
            let some = self.take_frames((wanted - frames.len()).min(self.evict_batch.max(1)));
            if some.is_empty() {
                break;
            }
            frames.extend(some);
        }
        LentFrames {
            mapping: self,
            frames,
        }
    }
}

impl LentFrames<'_> {
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
        Some(self.mapping.pages.space.bytes(frame))
    }

    /// A frame, to be written.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut PageBytes> {
        let frame = self.frames.get_mut(index)?;
        Some(self.mapping.pages.space.bytes_mut(frame))
    }
}

impl Drop for LentFrames<'_> {
    fn drop(&mut self) {
        for frame in self.frames.drain(..) {
            self.mapping.pool.put(frame);
        }
    }
}
