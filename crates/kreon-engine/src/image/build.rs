//! Writes the parts of an image.

use std::sync::Arc;

use kreon_base::{LogOffset, Lsn, PageBytes, PageNo, RegionId, Result};
use kreon_format::{ImagePart, PagePointer, TreeRecord};

use super::pages::ImagePages;
use super::stretch::StretchStream;
use crate::level::Memory;
use crate::spill::stream::regions_of;
use crate::tree::{self, Changes, MergeRules, NodeSource, Reference};

/// The stretch of the log for a part, and an L0 that holds it.
pub struct Stretch {
    /// Holds all entries from `start` to `end`.
    pub l0: Arc<Memory>,
    /// First LSN.
    pub start: Lsn,
    /// End, exclusive: the log's tail at a moment without writers, or the end of a frozen L0.
    pub end: Lsn,
}

/// Writes the part of `stretch` to `pages`, without regions for which `exists` is false. An empty stretch gives a part
/// without trees. The caller sets its `needed`.
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
    // A snapshot below all entries, so that every entry keeps its LSN.
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

/// Source and changes of a merge into an empty tree.
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

/// Entries of an image do not count as live bytes: the log behind the marker is kept in any case.
impl Changes for Nothing {
    fn freed(&mut self, _page: PageNo) {}

    fn referenced(&mut self, _record: Reference) {}

    fn dropped(&mut self, _record: Reference) {}
}
