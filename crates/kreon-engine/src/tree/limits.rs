//! How full nodes get.

use kreon_base::PAGE_BYTES;

/// How full nodes get, in bytes of the page in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// A node that is followed by another one is packed up to here.
    pub(super) goal_bytes: usize,
    /// The last node of a run takes this much rather than become two.
    pub(super) last_bytes_max: usize,
    /// A node below this is balanced with a neighbour.
    pub(super) small_bytes: usize,
}

impl Limits {
    /// `fill` is the goal as a share of a page, 0 to 1. However low it is, a leaf takes one entry and
    /// an index node two children.
    pub(super) fn new(fill: f32) -> Self {
        let goal_bytes = (PAGE_BYTES as f32 * fill.clamp(0.0, 1.0)) as usize;
        Self {
            goal_bytes,
            last_bytes_max: (goal_bytes + PAGE_BYTES / 20).min(PAGE_BYTES),
            small_bytes: goal_bytes / 4,
        }
    }
}
