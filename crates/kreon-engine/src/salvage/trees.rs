//! The readable leaves of a tree, along its pointers.

use std::ops::Bound;

use kreon_base::{Error, LogOffset, Lsn, PageBytes, Payload, RegionId, Result};
use kreon_format::{
    IndexNode, LONG_KEY_STORED_BYTES, Leaf, LeafEntry, PagePointer, Pivot, TreeRecord, check_node,
    lsn_at,
};

use super::log_walk::LogAt;
use super::records::Wanted;
use super::report::{PageRole, SalvageReport};
use super::target::{Kept, Target};
use crate::inspect::PageSet;

/// Most bytes of keys and values in one round of log reads.
const ROUND_BYTES_MAX: usize = 4 << 20;

/// Copies the entries of leaves into the target.
pub struct LeafTaker<'a, 't> {
    pub at: LogAt<'a>,
    pub target: &'a mut Target<'t>,
    /// Entries of the taken leaves, including older versions.
    pub entries: u64,
    /// The LSN behind the last readable record that an entry points at.
    pub spilled: Lsn,
    wanted: Vec<Wanted>,
    wanted_bytes: usize,
    /// The key of the previous entry.
    last: Option<Vec<u8>>,
    /// The stored part of a long key with an unreadable newer version.
    unreadable: Option<Vec<u8>>,
    /// Place of the record with the long key that an `Erased` entry is for.
    erased: Option<LogOffset>,
    /// Lower trees of the region were taken before this one.
    is_above: bool,
}

impl<'a, 't> LeafTaker<'a, 't> {
    pub fn new(at: LogAt<'a>, target: &'a mut Target<'t>, is_above: bool) -> Self {
        Self {
            at,
            target,
            entries: 0,
            spilled: Lsn(0),
            wanted: Vec::new(),
            wanted_bytes: 0,
            last: None,
            unreadable: None,
            erased: None,
            is_above,
        }
    }

    /// Takes the newest version of every key. `is_cut`: the previous leaf is lost and may have held newer versions of
    /// the first key.
    pub fn take(&mut self, leaf: &Leaf<'_>, is_cut: bool) -> Result<()> {
        let region = leaf.region();
        let mut key = Vec::new();
        let mut first = Vec::new();
        for index in 0..leaf.len() {
            let entry = leaf.entry(index)?;
            self.entries += 1;
            leaf.key_into(index, &mut key)?;
            if index == 0 {
                first.clone_from(&key);
            }
            let is_long = entry.key_bytes as usize > LONG_KEY_STORED_BYTES;
            if is_cut && key == first {
                self.last = Some(key.clone());
                self.lost(region, &key, Lsn::MAX)?;
            } else if is_long {
                self.want(region, &key, &entry)?;
            } else if self.last.as_ref() != Some(&key) {
                self.last = Some(key.clone());
                match entry.payload {
                    Payload::Inline { value, attributes } => {
                        self.found(region, &key, (value, attributes))?;
                    }
                    Payload::Logged { .. } => self.want(region, &key, &entry)?,
                    Payload::Tombstone { .. } | Payload::Erased { .. } => {
                        self.deleted(region, &key)?;
                    }
                }
            }
        }
        self.read()
    }

    /// Forgets the previous leaf, because the next one does not follow it in the tree.
    pub fn forget(&mut self) {
        self.last = None;
        self.unreadable = None;
        self.erased = None;
    }

    /// Takes a value. It replaces losses of the key in lower trees.
    fn found(&mut self, region: RegionId, key: &[u8], value: Kept<'_>) -> Result<()> {
        if self.is_above {
            let losses = &mut self.target.region(region)?.losses;
            losses.overwritten(key, Lsn::MAX);
        }
        if value.1.expires().is_some() {
            // It may have ended, or end before the log is read: then a get of it tells no more than of a deleted key.
            self.target.region(region)?.losses.deleted(key);
        }
        self.target.change(region, key, Some(value))
    }

    /// Takes a tombstone. It deletes a value of the key from a lower tree.
    fn deleted(&mut self, region: RegionId, key: &[u8]) -> Result<()> {
        let losses = &mut self.target.region(region)?.losses;
        losses.deleted(key);
        if !self.is_above {
            return Ok(());
        }
        losses.overwritten(key, Lsn::MAX);
        self.target.change(region, key, None)
    }

    /// Notes the loss of the newest version of a key, and deletes an older one from a lower tree.
    fn lost(&mut self, region: RegionId, key: &[u8], at: Lsn) -> Result<()> {
        self.target.region(region)?.losses.key(key, at);
        match self.is_above {
            true => self.target.change(region, key, None),
            false => Ok(()),
        }
    }

    fn want(&mut self, region: RegionId, key: &[u8], entry: &LeafEntry<'_>) -> Result<()> {
        let (offset, value_bytes, is_deletion) = match entry.payload {
            Payload::Logged {
                offset,
                value_bytes,
                ..
            } => (offset, value_bytes, false),
            Payload::Tombstone { offset } => (offset, 0, true),
            Payload::Erased { key_at } => {
                // The whole key is in the record of the next older version, which is the next entry.
                self.erased = Some(key_at);
                return Ok(());
            }
            Payload::Inline { .. } => {
                return Err(Error::corruption("a long key with an inline value"));
            }
        };
        let bytes = entry.key_bytes as usize + value_bytes as usize;
        if self.wanted_bytes + bytes > ROUND_BYTES_MAX {
            self.read()?;
        }
        self.wanted_bytes += bytes;
        self.wanted.push(Wanted {
            offset,
            region,
            lsn: entry.lsn,
            stored: key.to_vec(),
            key_bytes: entry.key_bytes,
            value_bytes,
            attributes: entry.payload.attributes(),
            is_deletion,
            is_erased: self.erased.take() == Some(offset),
        });
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        let wanted = std::mem::take(&mut self.wanted);
        self.wanted_bytes = 0;
        for (wanted, read) in wanted.iter().zip(self.at.records(&wanted)) {
            let is_long = wanted.key_bytes as usize > LONG_KEY_STORED_BYTES;
            if is_long && self.unreadable.as_ref() == Some(&wanted.stored) {
                // This may be an older version of the key with the unreadable version.
                continue;
            }
            let sequence = self.at.map.sequence(wanted.offset.segment());
            let within = wanted.offset.within_segment();
            let at = sequence.map_or(Lsn::MAX, |sequence| lsn_at(sequence, within));
            match read {
                Ok(pair) => {
                    self.spilled = self.spilled.max(Lsn(at.0.saturating_add(1)));
                    if is_long && self.last.as_ref() == Some(&pair.key) {
                        continue;
                    }
                    if is_long {
                        self.last = Some(pair.key.clone());
                    }
                    if wanted.is_deletion || wanted.is_erased {
                        self.deleted(wanted.region, &pair.key)?;
                    } else {
                        let value = (pair.value.as_slice(), wanted.attributes);
                        self.found(wanted.region, &pair.key, value)?;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "a value cannot be read");
                    self.lost(wanted.region, &wanted.stored, at)?;
                    // A version without LSN has no older versions behind it.
                    if is_long && wanted.lsn != Lsn(0) {
                        self.unreadable = Some(wanted.stored.clone());
                    }
                }
            }
        }
        Ok(())
    }
}

/// A walk through one tree.
pub struct TreeWalk<'w, 'a, 't> {
    pub region: RegionId,
    pub taker: &'w mut LeafTaker<'a, 't>,
    pub reached: &'w mut PageSet,
    pub report: &'w mut SalvageReport,
    /// All leaves of the tree were found, also those below unreadable index nodes.
    pub has_all_leaves: bool,
    /// The previous leaf is unreadable, and no exact pivot has followed since.
    pub is_cut: bool,
}

/// The keys under a node: start (inclusive) and end (exclusive; none: unbounded).
type Bounds<'k> = (&'k [u8], Option<&'k [u8]>);

impl TreeWalk<'_, '_, '_> {
    /// Takes all reachable leaves.
    pub fn run(&mut self, tree: &TreeRecord) -> Result<()> {
        let Some((root, level)) = tree.root.zip(tree.height.checked_sub(1)) else {
            return Ok(());
        };
        let page = self.taker.at.source.page(root.page);
        self.node(page, &root, level, (b"", None))
    }

    fn node(
        &mut self,
        page: Option<Box<PageBytes>>,
        pointer: &PagePointer,
        level: u8,
        bounds: Bounds<'_>,
    ) -> Result<()> {
        let page =
            page.filter(|page| check_node(page, self.taker.at.store, pointer, level).is_ok());
        let is_new = self.reached.insert(pointer.page);
        let Some(page) = page.filter(|_| is_new) else {
            return self.lose(pointer, level, bounds);
        };
        if level > 0 {
            let index = IndexNode::open(&page)?;
            match index.region() == self.region {
                true => self.index(&index, level, bounds),
                false => self.lose(pointer, level, bounds),
            }
        } else {
            let leaf = Leaf::open(&page)?;
            if leaf.region() != self.region {
                return self.lose(pointer, level, bounds);
            }
            let is_cut = std::mem::take(&mut self.is_cut);
            self.taker.take(&leaf, is_cut)
        }
    }

    fn lose(&mut self, pointer: &PagePointer, level: u8, (start, end): Bounds<'_>) -> Result<()> {
        let role = match level {
            0 => PageRole::Leaf,
            _ => PageRole::Index,
        };
        self.report.damaged(pointer.page, role);
        self.is_cut = true;
        if level > 0 && self.has_all_leaves {
            return Ok(());
        }
        let region = self.taker.target.region(self.region)?;
        region.losses.range(start, end);
        match self.taker.is_above {
            true => {
                let end = end.map_or(Bound::Unbounded, Bound::Excluded);
                let bounds = (Bound::Included(start), end);
                self.taker.target.clear(self.region, bounds)
            }
            false => Ok(()),
        }
    }

    fn index(&mut self, index: &IndexNode<'_>, level: u8, (start, end): Bounds<'_>) -> Result<()> {
        let children = (0..index.len())
            .map(|child| index.child(child))
            .collect::<Result<Vec<_>>>()?;
        let pivots = (1..index.len())
            .map(|child| index.pivot(child))
            .collect::<Result<Vec<_>>>()?;
        let source = self.taker.at.source;
        let pages = source.with_pages(&children, |child| child.page);
        for (at, (child, page)) in pages.enumerate() {
            let left = at.checked_sub(1).and_then(|left| pivots.get(left));
            let from = left.map_or(start, |pivot| pivot.bytes.as_slice());
            let upto = pivots.get(at).map(behind);
            if left.is_some_and(|pivot| !pivot.ambiguous) {
                self.is_cut = false;
            }
            let upto = match &upto {
                Some(behind) => behind.as_deref(),
                None => end,
            };
            self.node(page, child, level - 1, (from, upto))?;
        }
        Ok(())
    }
}

/// An upper bound (exclusive) of the keys left of a pivot; none: unbounded.
fn behind(pivot: &Pivot) -> Option<Vec<u8>> {
    if !pivot.ambiguous {
        return Some(pivot.bytes.clone());
    }
    let mut bytes = pivot.bytes.clone();
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}
