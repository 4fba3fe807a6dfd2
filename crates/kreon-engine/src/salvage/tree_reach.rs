//! The pages that the readable index nodes of a tree point to.

use std::collections::BTreeMap;

use kreon_base::{PageNo, RegionId, Result, SegmentId};
use kreon_format::{IndexNode, PagePointer, StoreId, TreeRecord, check_node};

use super::source::{ROUND_PAGES_MAX, Source};

/// A set of pages: a bitmap per segment.
#[derive(Default)]
pub struct Reached(BTreeMap<SegmentId, [u64; 8]>);

impl Reached {
    fn place(page: PageNo) -> (SegmentId, usize, u64) {
        let segment = page.segment();
        let within = page.0 - segment.first_page().0;
        (segment, within as usize / 64, 1 << (within % 64))
    }

    /// Returns whether the page is new.
    pub fn insert(&mut self, page: PageNo) -> bool {
        let (segment, word, bit) = Self::place(page);
        let words = self.0.entry(segment).or_default();
        let Some(word) = words.get_mut(word) else {
            return false;
        };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub fn contains(&self, page: PageNo) -> bool {
        let (segment, word, bit) = Self::place(page);
        let words = self.0.get(&segment);
        words.is_some_and(|words| words.get(word).is_some_and(|word| word & bit != 0))
    }
}

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
    reached: &mut Reached,
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
    for round in floor.chunks(ROUND_PAGES_MAX) {
        let pages: Vec<_> = round.iter().map(|pointer| pointer.page).collect();
        for (pointer, page) in round.iter().zip(source.pages(&pages)) {
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
    }
    Ok(children)
}
