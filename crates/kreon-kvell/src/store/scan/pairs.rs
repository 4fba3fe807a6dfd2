//! The handles of scans.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

use kreon_base::{ErrorKind, Result};

use super::bounds::Bounds;
use super::side::Side;
use crate::index::Direction;
use crate::store::handle::{Handle, REGION_BYTES};

/// The pairs of a region in key order, from both ends: ascending from the front, descending from the back (`rev()`,
/// `next_back()`).
///
/// **No snapshot.** A key that has a value all the time shows once, with the newest value at the time of its reading, which
/// may be before [`next`](Iterator::next) returns it. A key that is put or deleted during the scan may show or not.
///
/// Keys come from the indexes in memory, a few at a time; no lock is held between calls. Values are read ahead at the depth
/// of all workers, in steps of 32 that grow to 256 pairs or 2 MiB (or one value that is longer): of these, two are in memory,
/// for each end that is used.
/// What is cached costs no I/O. Without a cache each pair costs one read of the device: items are not sorted there
/// (KVell 6.3.2).
///
/// **Long keys.** Keys that do not stand whole in the index (longer than
/// [`index_key_bytes`](crate::Options::index_key_bytes)) and begin alike are ordered by reading their items: each costs one more read if it is not cached, all keys with this beginning are in memory together,
/// and changes of these keys wait for that reading.
///
/// **Errors.** `Corruption` or `Io` of one item, and the scan goes on behind it. It stands in front of all keys that begin as
/// the item's if that does not tell its key. After any other error, such as `Closed`, the scan ends. After a failed write
/// of the volume scans go on, as gets do.
///
/// ```
/// # fn main() -> kvell::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let region = kvell::Store::open(folder.path().join("store"))?.region("r")?;
/// for key in ["a", "b", "c"] {
///     region.put(key, "value", kvell::Durability::Buffered)?;
/// }
/// let mut scan = region.range("a".."c");
/// assert_eq!(scan.next_back().unwrap()?.0, b"b");
/// assert_eq!(scan.next().unwrap()?.0, b"a");
/// assert!(scan.next().is_none());
/// # Ok(())
/// # }
/// ```
#[must_use = "a scan does nothing until it is iterated"]
pub struct Scan {
    handle: Arc<Handle>,
    /// What is left.
    bounds: Bounds,
    front: Option<Side>,
    back: Option<Side>,
    /// Pairs that are wanted at most.
    left: usize,
    is_ended: bool,
}

impl Scan {
    pub(in crate::store) fn new(handle: &Arc<Handle>, bounds: Bounds) -> Self {
        Self {
            handle: Arc::clone(handle),
            bounds,
            front: None,
            back: None,
            left: usize::MAX,
            is_ended: false,
        }
    }

    /// Only the keys, without reading values: nothing is read for keys that stand whole in the index. Call it before taking
    /// the first pair.
    pub fn keys(self) -> Keys {
        Keys(self)
    }

    /// Ends the scan after `pairs` pairs. Unlike `take` it lets the scan read exactly those pairs, up to 256 in one step.
    /// Call it before taking the first pair.
    pub fn limit(mut self, pairs: usize) -> Self {
        self.left = pairs;
        self
    }

    /// The next of one end. After an error that is not of one item the scan ends.
    fn step<T>(
        &mut self,
        direction: Direction,
        next: impl FnOnce(&mut Side, &Handle, &mut Bounds, usize) -> Result<Option<T>>,
    ) -> Option<Result<T>> {
        if self.is_ended || self.left == 0 {
            return None;
        }
        let side = match direction {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        };
        if side.is_none() {
            match Side::new(&self.handle, &self.bounds, direction, self.left) {
                Ok(new) => *side = Some(new),
                Err(error) => {
                    self.is_ended = true;
                    return Some(Err(error));
                }
            }
        }
        let outcome = next(side.as_mut()?, &self.handle, &mut self.bounds, self.left);
        match &outcome {
            Ok(Some(_)) => self.left -= usize::from(self.left < usize::MAX),
            Ok(None) => self.is_ended = true,
            Err(error) => {
                let is_of_item = matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Io);
                self.is_ended = !is_of_item;
            }
        }
        outcome.transpose()
    }
}

impl Iterator for Scan {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Direction::Forward, Side::next_pair)
            .map(|pair| pair.map(own))
    }
}

impl DoubleEndedIterator for Scan {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Direction::Backward, Side::next_pair)
            .map(|pair| pair.map(own))
    }
}

impl FusedIterator for Scan {}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").finish_non_exhaustive()
    }
}

/// The keys of a [`Scan`].
#[derive(Debug)]
#[must_use = "a scan does nothing until it is iterated"]
pub struct Keys(Scan);

impl Iterator for Keys {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.0.step(Direction::Forward, Side::next_key);
        next.map(|key| key.map(without_region))
    }
}

impl DoubleEndedIterator for Keys {
    fn next_back(&mut self) -> Option<Self::Item> {
        let next = self.0.step(Direction::Backward, Side::next_key);
        next.map(|key| key.map(without_region))
    }
}

impl FusedIterator for Keys {}

fn own((key, value): (Vec<u8>, Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
    (without_region(key), value)
}

/// The key as its user knows it.
fn without_region(mut key: Vec<u8>) -> Vec<u8> {
    key.drain(..REGION_BYTES.min(key.len()));
    key
}
