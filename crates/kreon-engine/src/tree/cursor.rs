//! Walking through a tree in both directions.

use kreon_base::{Attributes, Error, Lsn, PageNo, Payload, Result};
use kreon_format::{Leaf, PagePointer, TreeRecord};

use super::leaf_copy::LeafCopy;
use super::leaf_keys::{entry_of, key_of, lower_bound};
use super::path::{Path, Side, Target};
use super::{NodeSource, Version};

/// An iterator over the entries of a tree. It shows every version of a key, newest first; the caller picks.
///
/// It holds a copy of one leaf and pins nothing of its source between calls. A long key is read whole from
/// the log when the cursor moves to its entry. A walk in one direction reads ahead, more leaves each time.
pub struct Cursor<'a, S> {
    source: &'a S,
    tree: TreeRecord,
    path: Path,
    readahead: Readahead,
    leaf: LeafCopy,
    /// The page of that leaf; none before the first move.
    leaf_page: Option<PageNo>,
    /// Entries in the leaf.
    entries: usize,
    at: usize,
    is_valid: bool,
    key: Vec<u8>,
    lsn: Lsn,
    /// What the entry says; an inline value stands in the leaf.
    payload: Payload<'static>,
}

/// Most leaves of one readahead; enough queue depth for the device.
const READAHEAD_LEAVES_MAX: usize = 32;

/// The number of leaves to load together. It doubles from round to round, so that a short scan loads few
/// leaves in vain.
#[derive(Default)]
struct Readahead {
    side: Option<Side>,
    /// Leaves of the last round.
    leaves: usize,
    /// Leaves of the last round that the walk has not reached.
    left: usize,
}

impl Readahead {
    /// Notes a step to the next leaf on `side`. Returns whether to load `leaves` leaves from that one on.
    fn step(&mut self, side: Side) -> bool {
        if self.side != Some(side) {
            *self = Self {
                side: Some(side),
                leaves: 1,
                left: 0,
            };
            return false;
        }
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        self.leaves = (self.leaves * 2).min(READAHEAD_LEAVES_MAX);
        self.left = self.leaves - 1;
        true
    }
}

impl<'a, S: NodeSource> Cursor<'a, S> {
    /// A cursor without a position. Takes the memory of a page.
    pub fn new(source: &'a S, tree: &TreeRecord) -> Self {
        Self {
            source,
            tree: *tree,
            path: Path::default(),
            readahead: Readahead::default(),
            leaf: LeafCopy::new(),
            leaf_page: None,
            entries: 0,
            at: 0,
            is_valid: false,
            key: Vec::new(),
            lsn: Lsn(0),
            payload: Payload::Inline {
                value: &[],
                attributes: Attributes::NONE,
            },
        }
    }

    /// Moves to the first entry. Like all moves it returns whether the cursor is on an entry; after a failed
    /// move it is not.
    pub fn first(&mut self) -> Result<bool> {
        self.go_down(Target::First)?;
        self.settle_right(0)
    }

    /// Moves to the last entry.
    pub fn last(&mut self) -> Result<bool> {
        self.go_down(Target::Last)?;
        self.settle_left(self.entries)
    }

    /// Moves to the newest version of the first key that is not below `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let at = self.go_to(key)?;
        self.settle_right(at)
    }

    /// Moves to the oldest version of the last key below `key`.
    pub fn seek_before(&mut self, key: &[u8]) -> Result<bool> {
        let at = self.go_to(key)?;
        self.settle_left(at)
    }

    /// Moves to the next entry. Past the end the cursor is invalid until `first`, `last` or a seek.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool> {
        if !self.take_standing() {
            return Ok(false);
        }
        self.settle_right(self.at + 1)
    }

    /// Moves to the previous entry; ends like [`next`](Self::next).
    pub fn prev(&mut self) -> Result<bool> {
        if !self.take_standing() {
            return Ok(false);
        }
        self.settle_left(self.at)
    }

    /// Whether the cursor is on an entry.
    pub fn is_valid(&self) -> bool {
        self.is_valid
    }

    /// The whole key of the entry. Without an entry, key and LSN are those of an earlier one.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The LSN of the entry; 0: visible to every snapshot.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The payload of the entry; `InvalidArgument` without one.
    #[inline]
    pub fn payload(&self) -> Result<Payload<'_>> {
        if !self.is_valid {
            return Err(Error::invalid("the cursor stands on no entry"));
        }
        match self.payload {
            Payload::Inline { .. } => Ok(self.leaf.leaf()?.entry(self.at)?.payload),
            payload => Ok(payload),
        }
    }

    /// The page of the current leaf; none without an entry.
    pub fn leaf_page(&self) -> Option<PageNo> {
        self.leaf_page.filter(|_| self.is_valid)
    }

    /// The first and the last key of the current leaf.
    ///
    /// # Errors
    /// `InvalidArgument` without an entry; those of reading a long key.
    pub fn leaf_ends(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        if !self.is_valid {
            return Err(Error::invalid("the cursor stands on no entry"));
        }
        let leaf = self.leaf.leaf()?;
        let (mut first, mut last) = (Vec::new(), Vec::new());
        key_of(self.source, &leaf, 0, &mut first)?;
        key_of(self.source, &leaf, self.entries - 1, &mut last)?;
        Ok((first, last))
    }

    /// Moves to the neighbouring leaf; false at the end of the tree.
    fn go_beside(&mut self, side: Side) -> Result<bool> {
        let Some(leaf) = self.path.go_beside(self.source, side)? else {
            return Ok(false);
        };
        if self.readahead.step(side) {
            self.prefetch(leaf, side)?;
        }
        self.load(&leaf)?;
        Ok(true)
    }

    /// Loads `leaf`, the next one of the walk, and those behind it.
    #[cold]
    fn prefetch(&mut self, leaf: PagePointer, side: Side) -> Result<()> {
        let mut path = self.path.clone();
        let mut leaves = vec![leaf];
        while leaves.len() < self.readahead.leaves
            && let Some(leaf) = path.go_beside(self.source, side)?
        {
            leaves.push(leaf);
        }
        self.source.prefetch(&leaves, 0)
    }

    /// Makes the cursor invalid until a move succeeds; returns whether it was valid.
    fn take_standing(&mut self) -> bool {
        std::mem::take(&mut self.is_valid)
    }

    fn go_down(&mut self, target: Target<'_>) -> Result<()> {
        self.take_standing();
        self.readahead = Readahead::default();
        self.entries = 0;
        match self.path.go_down(self.source, &self.tree, target)? {
            Some(leaf) => self.load(&leaf),
            None => Ok(()),
        }
    }

    /// Moves to the leaf for `key`; returns the index of its first entry not below `key`.
    fn go_to(&mut self, key: &[u8]) -> Result<usize> {
        self.go_down(Target::Key(key))?;
        if self.entries == 0 {
            return Ok(0);
        }
        Ok(lower_bound(self.source, &self.leaf.leaf()?, key)?.0)
    }

    fn load(&mut self, leaf: &PagePointer) -> Result<()> {
        let (copy, entries) = (&mut self.leaf, &mut self.entries);
        self.leaf_page = Some(leaf.page);
        self.source.read_node(leaf, 0, |page| {
            copy.set(page);
            *entries = Leaf::open(page)?.len();
            Ok(())
        })
    }

    /// Moves to entry `at`, or to the first entry of the next leaf.
    fn settle_right(&mut self, mut at: usize) -> Result<bool> {
        while at >= self.entries {
            if !self.go_beside(Side::Right)? {
                return Ok(false);
            }
            at = 0;
        }
        self.stand(at)
    }

    /// Moves to the entry before `end`, or to the last entry of the previous leaf.
    fn settle_left(&mut self, mut end: usize) -> Result<bool> {
        while end == 0 {
            if !self.go_beside(Side::Left)? {
                return Ok(false);
            }
            end = self.entries;
        }
        self.stand(end - 1)
    }

    fn stand(&mut self, at: usize) -> Result<bool> {
        let leaf = self.leaf.leaf()?;
        let entry = entry_of(self.source, &leaf, at, &mut self.key)?;
        self.lsn = entry.lsn;
        self.payload = Version::of(&entry).without_value().payload;
        self.at = at;
        self.is_valid = true;
        Ok(true)
    }
}
