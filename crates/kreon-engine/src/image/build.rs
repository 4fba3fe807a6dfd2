//! Writes the parts of an image.

use std::sync::Arc;

use kreon_base::{Error, LogOffset, Lsn, PageBytes, PageNo, RegionId, Result};
use kreon_format::{ImagePart, PagePointer, TreeRecord};
use kreon_l0::{Cursor, Version};

use super::pages::ImagePages;
use crate::keys::{L0Key, split};
use crate::level::Memory;
use crate::spill::stream::regions_of;
use crate::tree::{self, Changes, Entry, EntryStream, MergeRules, NodeSource, Reference};

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
        expired_by: None,
        last_level: false,
        rewrites_all: false,
        fill: 1.0,
        filter_bits_per_key: 0,
    };
    for region in regions_of(l0.cursor()).into_iter().filter(|id| exists(*id)) {
        let mut input = StretchStream {
            stretch,
            cursor: l0.cursor(),
            region,
            is_begun: false,
        };
        pages.region = region;
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

/// The entries of one region in the stretch: for every key the newest version before its end, if it is not before its
/// start. Writers may insert behind the end meanwhile.
struct StretchStream<'a> {
    stretch: &'a Stretch,
    cursor: Cursor<'a>,
    region: RegionId,
    is_begun: bool,
}

impl<'a> StretchStream<'a> {
    fn step(&mut self) -> bool {
        if std::mem::replace(&mut self.is_begun, true) {
            return self.cursor.next();
        }
        self.cursor.seek(L0Key::new(self.region, b"").as_slice())
    }

    /// The version of the current key that belongs to the stretch.
    fn version(&self) -> Option<Version<'a>> {
        let newest = self
            .cursor
            .versions()
            .find(|found| found.lsn < self.stretch.end);
        newest.filter(|found| found.lsn >= self.stretch.start)
    }
}

impl EntryStream for StretchStream<'_> {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        while self.step() {
            let Some((region, key)) = split(self.cursor.key()) else {
                continue;
            };
            if region != self.region {
                break;
            }
            if let Some(Version { lsn, payload, .. }) = self.version() {
                return Ok(Some(Entry { key, lsn, payload }));
            }
        }
        Ok(None)
    }
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
        Err(Error::invalid(text))
    }

    fn prefetch(&self, _pointers: &[PagePointer], _level: u8) -> Result<()> {
        Ok(())
    }

    fn read_key(&self, offset: LogOffset, _key_bytes: u32, _key: &mut Vec<u8>) -> Result<()> {
        let text = format!("the key at {offset} of a tree without entries");
        Err(Error::invalid(text))
    }
}

/// Entries of an image do not count as live bytes: the log behind the marker is kept in any case.
impl Changes for Nothing {
    fn freed(&mut self, _page: PageNo) {}

    fn referenced(&mut self, _record: Reference) {}

    fn dropped(&mut self, _record: Reference) {}
}
