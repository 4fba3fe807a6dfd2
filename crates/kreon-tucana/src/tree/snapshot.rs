//! The state of a tree at one moment, and values of it.

use std::sync::Arc;

use kreon_base::{Epoch, Error, Result};

use super::generation::Generation;
use super::node::Fences;
use super::parts::Parts;
use super::scan::{Direction, Scan, ScanRange, View};
use super::verify::{Verified, verify};
use super::writing::find;
use crate::log::RecordLog;

/// Longest key, in bytes: three of them as pivots have room in an index node.
pub const KEY_BYTES_MAX: usize = 1024;

/// The state of a tree at one moment. While it lives, no page of that state is used for something else.
pub struct Snapshot<'a, L> {
    pub(super) parts: &'a Parts<L>,
    pub(super) generation: Arc<Generation>,
}

/// Something that reads the tree. While it lives, nothing that was reached when it began is used for something else.
pub(crate) struct Held {
    pub(super) _generation: Arc<Generation>,
}

impl<'a, L: RecordLog> Snapshot<'a, L> {
    /// The epoch that ended with it.
    pub fn epoch(&self) -> Epoch {
        self.generation.epoch
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Those of the device; `Corruption`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        value_of(self.parts, &self.generation, key, <[u8]>::to_vec)
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
    pub fn scan(&self, range: ScanRange, direction: Direction) -> Scan<'a, L> {
        let view = View::Frozen(Arc::clone(&self.generation));
        Scan::new(self.parts, view, range, direction)
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
    if key.len() <= KEY_BYTES_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a key has {} bytes, the most is {KEY_BYTES_MAX}",
        key.len()
    )))
}
