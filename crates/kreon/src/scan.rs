//! Scans.

use std::fmt;
use std::sync::Arc;

use kreon_engine::{Engine, Fill, Own, TakePair, TakeValue};

use crate::{Error, Result, Value};

/// Pairs of a region in key order, from both ends: ascending from the front, descending from the back
/// (`rev()`, `next_back()`). It sees the store as it was when the scan was made. Values are read ahead
/// at queue depth, in steps that grow with the length of the scan; between steps the scan holds no
/// lock and no page. What is read ahead takes a share of the store's memory; a value of more than 2 MiB is read when
/// its pair is taken, and takes memory of its length once.
///
/// Deleted keys that are still in the index cost a scan some 0.1 us each the first time: where many lie together, scans
/// and deletions note it, and later scans go past them at once, until something is put there. That is not
/// persistent, and of the 32 largest such stretches of a region.
///
/// An error ends the scan.
///
/// ```
/// # fn main() -> kreon::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let region = kreon::Store::open(folder.path().join("store"))?.region("r")?;
/// region.put("a", "1")?;
/// region.put("b", "22")?;
/// // Without copies:
/// let (mut scan, mut bytes) = (region.iter(), 0);
/// while scan.next_with(|_key, value| bytes += value.len())?.is_some() {}
/// assert_eq!(bytes, 3);
/// # Ok(())
/// # }
/// ```
#[must_use = "a scan does nothing until it is iterated"]
pub struct Scan {
    state: State,
    /// Keeps the store open.
    _engine: Arc<Engine>,
}

enum State {
    Going(Box<kreon_engine::Scan>),
    /// An error that is still to be told.
    Failing(Error),
    Ended,
}

impl Scan {
    pub(crate) fn new(engine: &Arc<Engine>, scan: kreon_engine::Scan) -> Self {
        let state = State::Going(Box::new(scan));
        Self {
            state,
            _engine: Arc::clone(engine),
        }
    }

    /// A scan that tells `error` and ends.
    pub(crate) fn failing(engine: &Arc<Engine>, error: Error) -> Self {
        Self {
            state: State::Failing(error),
            _engine: Arc::clone(engine),
        }
    }

    /// Only the keys; no value is read. Before the first pair is taken.
    pub fn keys(mut self) -> Keys {
        if let State::Going(scan) = &mut self.state {
            scan.without_values();
        }
        Keys(self)
    }

    /// The same scan, ended after `pairs` pairs. Better than `take`: the scan reads all that it will show
    /// at once, and nothing else. Before the first pair is taken.
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let region = kreon::Store::open(folder.path().join("store"))?.region("r")?;
    /// for key in ["a", "b", "c"] {
    ///     region.put(key, "")?;
    /// }
    /// assert_eq!(region.range("b"..).limit(1).count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn limit(mut self, pairs: usize) -> Self {
        if let State::Going(scan) = &mut self.state {
            scan.limit(pairs);
        }
        self
    }

    /// Shows the next pair to `show` without copying it; `None` at the end.
    ///
    /// # Errors
    /// As [`Region::get`](crate::Region::get).
    pub fn next_with<R>(&mut self, show: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        self.step(|scan| scan.next_with(show))
    }

    /// Shows the next pair from the back to `show` without copying it; `None` at the end.
    ///
    /// # Errors
    /// As [`Region::get`](crate::Region::get).
    pub fn next_back_with<R>(&mut self, show: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        self.step(|scan| scan.next_back_with(show))
    }

    /// Puts the next pair into `key` and `value`, whose memory is reused; false at the end, where they stay as
    /// they are. Unlike with [`next_with`](Self::next_with) nothing is held while the caller works on them.
    ///
    /// # Errors
    /// As [`Region::get`](crate::Region::get).
    pub fn next_into(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool> {
        let pair = FillPair { key, value };
        Ok(self.step(|scan| scan.next_pair(pair))?.is_some())
    }

    /// Puts the next pair from the back into `key` and `value`, as [`next_into`](Self::next_into).
    ///
    /// # Errors
    /// As [`Region::get`](crate::Region::get).
    pub fn next_back_into(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool> {
        let pair = FillPair { key, value };
        Ok(self.step(|scan| scan.next_back_pair(pair))?.is_some())
    }

    fn step<R>(
        &mut self,
        step: impl FnOnce(&mut kreon_engine::Scan) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        if let State::Going(scan) = &mut self.state {
            let outcome = step(scan);
            if outcome.is_err() {
                self.state = State::Ended;
            }
            return outcome;
        }
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Failing(error) => Err(error),
            State::Going(_) | State::Ended => Ok(None),
        }
    }
}

/// Takes a pair as bytes of its own.
struct OwnPair;

impl TakePair for OwnPair {
    type Taken = (Value, Value);

    fn take(self, key: &[u8], value: &[u8]) -> Self::Taken {
        (Value::from(key), Value::from(value))
    }

    fn assemble(
        self,
        key: &[u8],
        fill: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<Self::Taken> {
        let value = Own.assemble(fill)?;
        Ok((Value::from(key), Value::from(value)))
    }
}

/// Puts a pair into buffers of the caller's.
struct FillPair<'a> {
    key: &'a mut Vec<u8>,
    value: &'a mut Vec<u8>,
}

impl TakePair for FillPair<'_> {
    type Taken = ();

    fn take(self, key: &[u8], value: &[u8]) {
        Fill(self.key).take(key);
        Fill(self.value).take(value);
    }

    fn assemble(
        self,
        key: &[u8],
        fill: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<Self::Taken> {
        Fill(self.key).take(key);
        fill(self.value)
    }
}

impl Iterator for Scan {
    type Item = Result<(Value, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(|scan| scan.next_pair(OwnPair)).transpose()
    }
}

impl DoubleEndedIterator for Scan {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(|scan| scan.next_back_pair(OwnPair)).transpose()
    }
}

impl std::iter::FusedIterator for Scan {}

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
    type Item = Result<Value>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_with(|key, _| Value::from(key)).transpose()
    }
}

impl DoubleEndedIterator for Keys {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back_with(|key, _| Value::from(key)).transpose()
    }
}

impl std::iter::FusedIterator for Keys {}
