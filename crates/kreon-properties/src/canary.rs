//! A property that does not hold. Whoever runs the others runs it too: a search for faults that cannot
//! find this one proves nothing.

use std::cmp::Ordering;

use kreon_format::{Leaf, LeafSearch};

use crate::leaf::leaf_with;

/// As the property of leaves, but with a search that compares only the first eight bytes of keys
/// behind the common prefix, as one does that takes heads for keys.
pub fn canary(bytes: &[u8]) {
    leaf_with(bytes, search_by_heads);
}

fn search_by_heads(leaf: &Leaf<'_>, key: &[u8]) -> kreon_base::Result<LeafSearch> {
    let right = leaf.search(key)?;
    let LeafSearch::Absent(at) = right else {
        return Ok(right);
    };
    if at == leaf.len() || key.len() > 1024 {
        return Ok(right);
    }
    let mut there = Vec::new();
    leaf.key_into(at, &mut there)?;
    let head_bytes = leaf.prefix().len() + 8;
    let head = |key: &[u8]| key.get(..head_bytes).map(<[u8]>::to_vec);
    match head(&there).cmp(&head(key)) {
        Ordering::Equal if head(key).is_some() => Ok(LeafSearch::Found(at)),
        _ => Ok(right),
    }
}
