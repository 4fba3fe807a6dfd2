//! Balances a small leaf with its neighbour.

use kreon_base::{PAGE_BYTES, Result};
use kreon_format::{Leaf, LeafBuilder};

use super::limits::Limits;

/// The entries of `left` and `right` in one builder if they fit in one leaf, else in two about equally full
/// ones; none if even two do not suffice (without a common prefix, keys may take more bytes together than
/// apart).
pub(super) fn rebalance(
    left: &Leaf<'_>,
    right: &Leaf<'_>,
    limits: &Limits,
) -> Result<Vec<LeafBuilder>> {
    let mut one = LeafBuilder::new();
    if push_all(&mut one, left, 0, limits.last_bytes_max)?
        && push_all(&mut one, right, 0, limits.last_bytes_max)?
    {
        return Ok(vec![one]);
    }
    in_two(left, right)
}

fn in_two(left: &Leaf<'_>, right: &Leaf<'_>) -> Result<Vec<LeafBuilder>> {
    let half_bytes = left.used_bytes().midpoint(right.used_bytes());
    let (mut first, mut second) = (LeafBuilder::new(), LeafBuilder::new());
    let left_cut = first.push_run(left, 0..left.len(), half_bytes)?;
    let right_cut = if left_cut == left.len() {
        first.push_run(right, 0..right.len(), half_bytes)?
    } else {
        0
    };
    let fits = push_all(&mut second, left, left_cut, PAGE_BYTES)?
        && push_all(&mut second, right, right_cut, PAGE_BYTES)?;
    if fits && !first.is_empty() && !second.is_empty() {
        Ok(vec![first, second])
    } else {
        Ok(Vec::new())
    }
}

/// Pushes the entries from `first` on; returns whether all fit.
fn push_all(
    builder: &mut LeafBuilder,
    leaf: &Leaf<'_>,
    first: usize,
    used_bytes_max: usize,
) -> Result<bool> {
    let range = first..leaf.len();
    let wanted = range.len();
    Ok(builder.push_run(leaf, range, used_bytes_max)? == wanted)
}
