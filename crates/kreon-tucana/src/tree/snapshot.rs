//! The state of a tree at one moment, and values of it.

use std::sync::Arc;

use kreon_base::{Epoch, Error, Result};

use super::generation::Generation;
use super::node::Fences;
use super::parts::Parts;
use super::scan::{Cursor, Direction, Scan, ScanRange, View};
use super::verify::{Verified, verify};
use super::writing::find;
use crate::format::have_room;
use crate::log::RecordLog;

/// Longest key of a tree, in bytes: one of 1 KiB behind the number of a region. Three of them as pivots have room in an index node,
/// so each half of one that is split has room for another.
pub const TREE_KEY_BYTES_MAX: usize = 1028;

const _: () = assert!(have_room(3, TREE_KEY_BYTES_MAX));

/// The state of a tree at one moment. While it lives, no page of that state is used for something else.
pub struct Snapshot<'a, L> {
    pub(super) parts: &'a Parts<L>,
    pub(super) generation: Arc<Generation>,
}

/// A state that is kept without its tree, which [`Tree::at`](super::Tree::at) takes.
pub(crate) struct Frozen(pub(super) Arc<Generation>);

/// Something that reads the tree. While it lives, nothing that was reached when it began is used for something else.
pub(crate) struct Held {
    pub(super) _generation: Arc<Generation>,
}

impl<L: RecordLog> Snapshot<'_, L> {
    /// The epoch that ended with it.
    pub fn epoch(&self) -> Epoch {
        self.generation.epoch
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Those of the device; `Corruption`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Lends the value of a key to `use_value`.
    ///
    /// # Errors
    /// Those of the device; `Corruption`.
    pub fn get_with<R>(&self, key: &[u8], use_value: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        value_of(self.parts, &self.generation, key, use_value)
    }

    /// Reads every node of it and every record that it points at.
    ///
    /// # Errors
    /// `Corruption` that names the page; those of the device.
    pub fn verify(&self) -> Result<Verified> {
        let mut found = Verified::default();
        let (root, fences) = (self.generation.end(), Fences::default());
        verify(self.parts, &root, &fences, &mut found)?;
        Ok(found)
    }

    /// The pairs of a range.
    pub fn scan(&self, range: ScanRange, direction: Direction) -> Scan<'_, L> {
        let view = View::Frozen(&self.generation);
        Scan::new(self.parts, view, range, direction)
    }

    /// Lends the next pair of a scan of this state to `take`.
    ///
    /// # Errors
    /// As [`Scan::next_pair`].
    pub(crate) fn next<T>(
        &self,
        cursor: &mut Cursor,
        take: impl Fn(&[u8], &[u8]) -> T,
    ) -> Result<Option<T>> {
        cursor.next(self.parts, View::Frozen(&self.generation), take)
    }

    /// The state alone.
    pub(crate) fn into_frozen(self) -> Frozen {
        Frozen(self.generation)
    }
}

/// Lends the value of a key to `use_value`.
///
/// # Errors
/// `InvalidArgument` for a key that is too long; those of the device; `Corruption`.
pub(crate) fn value_of<L: RecordLog, R>(
    parts: &Parts<L>,
    generation: &Generation,
    key: &[u8],
    use_value: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>> {
    check_key(key)?;
    let found = find(parts, generation, key, |record| record.value.map(use_value))?;
    match found {
        Some(None) => Err(Error::corruption("a leaf points at a deletion")),
        found => Ok(found.flatten()),
    }
}

/// # Errors
/// `InvalidArgument` for a key that is too long.
pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    if key.len() <= TREE_KEY_BYTES_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a key has {} bytes, the most is {TREE_KEY_BYTES_MAX}",
        key.len()
    )))
}
