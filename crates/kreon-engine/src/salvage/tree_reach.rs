//! The pages that the readable index nodes of a tree point to.

use kreon_base::{RegionId, Result};
use kreon_format::{IndexNode, PagePointer, StoreId, TreeRecord, check_node};

use super::source::Source;
use crate::inspect::PageSet;

/// Losses of a tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lost {
    /// Unreadable index nodes.
    pub index_nodes: u64,
    /// Leaves with a readable parent.
    pub leaves_reached: u64,
}

/// Adds the pages of `tree` to `reached` and counts what is lost; leaves are not read.
///
/// # Errors
/// None from damage, because checksums are verified first.
pub fn reach(
    source: &Source,
    store: StoreId,
    region: RegionId,
    tree: &TreeRecord,
    reached: &mut PageSet,
) -> Result<Lost> {
    let mut lost = Lost::default();
    let Some((root, top)) = tree.root.zip(tree.height.checked_sub(1)) else {
        return Ok(lost);
    };
    let mut floor = vec![root];
    for level in (0..=top).rev() {
        floor.retain(|pointer| {
            let is_new = reached.insert(pointer.page);
            lost.index_nodes += u64::from(!is_new && level > 0);
            is_new
        });
        if level == 0 {
            lost.leaves_reached = floor.len() as u64;
            break;
        }
        floor = beneath(source, store, region, (&floor, level), &mut lost)?;
    }
    Ok(lost)
}

fn beneath(
    source: &Source,
    store: StoreId,
    region: RegionId,
    (floor, level): (&[PagePointer], u8),
    lost: &mut Lost,
) -> Result<Vec<PagePointer>> {
    let mut children = Vec::new();
    for (pointer, page) in source.with_pages(floor, |pointer| pointer.page) {
        let page = page.filter(|page| check_node(page, store, pointer, level).is_ok());
        let index = page
            .as_ref()
            .map(|page| IndexNode::open(page))
            .transpose()?;
        match index.filter(|index| index.region() == region) {
            Some(index) => {
                for child in 0..index.len() {
                    children.push(index.child(child)?);
                }
            }
            None => lost.index_nodes += 1,
        }
    }
    Ok(children)
}
