//! Writing the parts of an image.

use std::sync::Arc;

use kreon_base::{LogOffset, Lsn, PageBytes, PageNo, RegionId, Result};
use kreon_format::{ImagePart, PagePointer, TreeRecord};

use super::pages::ImagePages;
use super::stretch::StretchStream;
use crate::level::Memory;
use crate::spill::stream::regions_of;
use crate::tree::{self, Changes, MergeRules, NodeSource, Reference};

/// What a part is to be of.
pub struct Stretch {
    /// Has everything from `start` to `end`.
    pub l0: Arc<Memory>,
    /// From here on.
    pub start: Lsn,
    /// Up to here: the log's tail at a moment without writers, or the end of a frozen L0.
    pub end: Lsn,
}

/// Writes the part of `stretch` to `pages`, of the regions that `exist`. Its `needed` is for the caller to set.
/// None: the stretch is empty.
///
/// # Errors
/// `OutOfSpace`, `Io`.
pub fn build(
    stretch: &Stretch,
    exists: &dyn Fn(RegionId) -> bool,
    pages: &mut ImagePages<'_>,
) -> Result<ImagePart> {
    let Stretch { l0, start, end } = stretch;
    let mut trees = Vec::new();
    // Every entry keeps its LSN: a snapshot before all of them sees none.
    let rules = MergeRules {
        snapshots: &[Lsn(1)],
        last_level: false,
        rewrites_all: false,
        fill: 1.0,
        filter_bits_per_key: 0,
    };
    for region in regions_of(l0.cursor()).into_iter().filter(|id| exists(*id)) {
        let mut input = StretchStream::new(l0.cursor(), region, *start, *end);
        pages.begin_region(region);
        let empty = TreeRecord::default();
        let tree = tree::merge(&Nothing, pages, &empty, &mut input, &rules, &mut Nothing)?;
        if tree.root.is_some() {
            trees.push((region, tree));
        }
    }
    Ok(ImagePart {
        start: *start,
        end: *end,
        needed: *end,
        trees,
        pages: pages.take()?,
    })
}

/// The tree that an image is merged into has no node.
struct Nothing;

impl NodeSource for Nothing {
    fn read_node<R>(
        &self,
        pointer: &PagePointer,
        _level: u8,
        _use_node: impl FnOnce(&PageBytes) -> Result<R>,
    ) -> Result<R> {
        let text = format!("{} of a tree without nodes", pointer.page);
        Err(kreon_base::Error::invalid(text))
    }

    fn prefetch(&self, _pointers: &[PagePointer], _level: u8) -> Result<()> {
        Ok(())
    }

    fn read_key(&self, offset: LogOffset, _key_bytes: u32, _key: &mut Vec<u8>) -> Result<()> {
        let text = format!("the key at {offset} of a tree without entries");
        Err(kreon_base::Error::invalid(text))
    }
}

/// Entries of an image do not count as live bytes: the log behind the marker stays anyway.
impl Changes for Nothing {
    fn freed(&mut self, _page: PageNo) {}

    fn referenced(&mut self, _record: Reference) {}

    fn dropped(&mut self, _record: Reference) {}
}
