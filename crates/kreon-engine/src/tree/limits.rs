//! Fill limits of nodes.

use kreon_base::PAGE_BYTES;

/// Fill limits of nodes, in used bytes of the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Target for every node of a run but the last.
    pub(super) goal_bytes: usize,
    /// The last node of a run may grow to this before it is split in two.
    pub(super) last_bytes_max: usize,
    /// A node with less is balanced with a neighbour.
    pub(super) small_bytes: usize,
}

impl Limits {
    /// `fill`: the goal as a share of a page, 0 to 1. Even at 0 a leaf gets one entry and an index node two
    /// children.
    pub(super) fn new(fill: f32) -> Self {
        let goal_bytes = (PAGE_BYTES as f32 * fill.clamp(0.0, 1.0)) as usize;
        Self {
            goal_bytes,
            last_bytes_max: (goal_bytes + PAGE_BYTES / 20).min(PAGE_BYTES),
            small_bytes: goal_bytes / 4,
        }
    }
}
