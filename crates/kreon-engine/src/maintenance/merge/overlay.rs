//! The entries of several trees as one stream, the input of a merge into the tree beneath.

use kreon_base::{Lsn, Result};

use crate::level::MappedNodes;
use crate::spill::charges::Charges;
use crate::state::Storage;
use crate::tree::{Cursor, Entry, EntryStream, Reference};
use crate::tree_locks::TreeLock;

/// One of the trees.
pub struct Upper<'a> {
    cursor: Cursor<'a, MappedNodes<'a>>,
    /// The LSN of entries that carry none: readers up to it do not see the tree.
    hidden_up_to: Lsn,
    /// The cursor stands on an entry that was returned.
    is_done: bool,
}

impl<'a> Upper<'a> {
    /// Stands on the first entry.
    pub fn new(mut cursor: Cursor<'a, MappedNodes<'a>>, hidden_up_to: Lsn) -> Result<Self> {
        cursor.first()?;
        Ok(Self {
            cursor,
            hidden_up_to,
            is_done: false,
        })
    }

    fn lsn(&self) -> Lsn {
        match self.cursor.lsn() {
            Lsn(0) => self.hidden_up_to,
            lsn => lsn,
        }
    }

    /// Leaves the entry that was returned, if the cursor still stands on it.
    fn settle(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_done) {
            self.cursor.next()?;
        }
        Ok(())
    }
}

/// The trees, upper ones first. Of one key, the versions of an upper tree come first; what follows must be
/// older by its LSN, or no reader sees it: a load does not count for a key that was written while it ran,
/// although it ended later.
pub struct Overlay<'a> {
    storage: &'a Storage,
    hold: &'a TreeLock<'a>,
    trees: Vec<Upper<'a>>,
    /// The tree that the versions of the open key come from.
    at: usize,
    key: Vec<u8>,
    /// LSN of the version of the open key that was returned last.
    newer: Option<Lsn>,
    /// The records that the trees point at, so far.
    left: Charges<'a>,
    /// Gets the number of entries that were read.
    seen: &'a mut dyn FnMut(u64),
}

impl<'a> Overlay<'a> {
    pub fn new(
        storage: &'a Storage,
        hold: &'a TreeLock<'a>,
        trees: Vec<Upper<'a>>,
        seen: &'a mut dyn FnMut(u64),
    ) -> Self {
        Self {
            storage,
            hold,
            at: trees.len(),
            trees,
            key: Vec::new(),
            newer: None,
            left: Charges::new(&storage.log),
            seen,
        }
    }

    /// What the trees pointed at, taken away from the live bytes.
    pub fn finish(self) -> Charges<'a> {
        self.left
    }

    /// Opens the next key; false at the end.
    fn open_key(&mut self) -> Result<bool> {
        // Closing the store and dropping the region wait for merges.
        self.storage.check_open()?;
        self.hold.check()?;
        for tree in &mut self.trees {
            tree.settle()?;
        }
        let standing = self.trees.iter().filter(|tree| tree.cursor.is_valid());
        let Some(key) = standing.map(|tree| tree.cursor.key()).min() else {
            return Ok(false);
        };
        self.key.clear();
        self.key.extend_from_slice(key);
        (self.at, self.newer) = (0, None);
        Ok(true)
    }

    /// Goes to the next version that counts; its tree and LSN.
    fn advance(&mut self) -> Result<Option<(usize, Lsn)>> {
        loop {
            let Some(tree) = self.trees.get_mut(self.at) else {
                match self.open_key()? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            tree.settle()?;
            if !tree.cursor.is_valid() || tree.cursor.key() != self.key {
                self.at += 1;
                continue;
            }
            tree.is_done = true;
            (self.seen)(1);
            let payload = tree.cursor.payload()?;
            if let Some(record) = Reference::of(self.key.len() as u32, payload) {
                self.left.drop(&record);
            }
            let lsn = tree.lsn();
            if self.newer.is_none_or(|newer| lsn < newer) {
                self.newer = Some(lsn);
                return Ok(Some((self.at, lsn)));
            }
        }
    }
}

impl EntryStream for Overlay<'_> {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        let Some((at, lsn)) = self.advance()? else {
            return Ok(None);
        };
        let Some(tree) = self.trees.get(at) else {
            return Ok(None);
        };
        Ok(Some(Entry {
            key: &self.key,
            lsn,
            payload: tree.cursor.payload()?,
        }))
    }
}
