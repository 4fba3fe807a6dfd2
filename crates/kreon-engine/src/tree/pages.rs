//! The pages of a tree.

use kreon_base::{Error, PageNo, Result};
use kreon_format::{IndexNode, PagePointer, TreeRecord};

use super::NodeSource;
use super::search::root_of;

/// All pages of `tree`. Reads only its index nodes.
///
/// # Errors
/// Those of reading; `Corruption` if there are more pages than the tree's record says.
pub fn pages<S: NodeSource>(source: &S, tree: &TreeRecord) -> Result<Vec<PageNo>> {
    let mut found = Vec::new();
    if let Some((root, level)) = root_of(tree)? {
        let pages_max = tree.leaf_pages.saturating_add(tree.index_pages);
        below(source, &root, level, pages_max, &mut found)?;
    }
    Ok(found)
}

fn below<S: NodeSource>(
    source: &S,
    node: &PagePointer,
    level: u8,
    pages_max: u64,
    found: &mut Vec<PageNo>,
) -> Result<()> {
    if found.len() as u64 >= pages_max {
        return Err(Error::corruption(
            "a tree has more pages than its record says",
        ));
    }
    found.push(node.page);
    if level == 0 {
        return Ok(());
    }
    let children = source.read_node(node, level, |page| {
        let index = IndexNode::open(page)?;
        (0..index.len())
            .map(|child| index.child(child))
            .collect::<Result<Vec<_>>>()
    })?;
    children
        .iter()
        .try_for_each(|child| below(source, child, level - 1, pages_max, found))
}
