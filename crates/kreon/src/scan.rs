//! Scans.

use std::fmt;
use std::sync::Arc;

use kreon_engine::{Direction, Engine, Fill, Own, ShowPair, TakePair, TakeValue};

use crate::{Error, Expiry, Result, Value};

/// The pairs of a region in key order, from both ends: ascending from the front, descending from the back (`rev()`,
/// `next_back()`). A scan sees the store as it was when the scan was made.
///
/// Values are read ahead at queue depth, in steps that grow with the length of the scan, into a share of the store's
/// memory. A value over 2 MiB is read only when its pair is taken, into one allocation of its length. Between steps the
/// scan holds no lock and pins no page.
///
/// A deleted key that is still in the index costs the first scan over it about 0.1 us. Scans and deletions remember, in
/// memory only, the 32 largest stretches of deleted keys of each region, and later scans skip a stretch until a put
/// lands in it.
///
/// After an error the scan ends.
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
    state: ScanState,
    /// Keeps the store open.
    _engine: Arc<Engine>,
}

enum ScanState {
    Going(Box<kreon_engine::Scan>),
    /// An error that the next call returns.
    Failing(Error),
    Ended,
}

impl Scan {
    pub(crate) fn new(engine: &Arc<Engine>, scan: kreon_engine::Scan) -> Self {
        let state = ScanState::Going(Box::new(scan));
        Self {
            state,
            _engine: Arc::clone(engine),
        }
    }

    /// A scan that returns `error` once and then ends.
    pub(crate) fn failing(engine: &Arc<Engine>, error: Error) -> Self {
        Self {
            state: ScanState::Failing(error),
            _engine: Arc::clone(engine),
        }
    }

    /// Only the keys, without reading values. Call it before taking the first pair.
    pub fn keys(mut self) -> Keys {
        if let ScanState::Going(scan) = &mut self.state {
            scan.without_values();
        }
        Keys(self)
    }

    /// Ends the scan after `pairs` pairs; a seek begins to count anew. Unlike `take` it lets the scan read exactly those
    /// pairs, in one step. Call it before taking the first pair.
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
        if let ScanState::Going(scan) = &mut self.state {
            scan.limit(pairs);
        }
        self
    }

    /// Calls `show` with the next pair, without copying it; `None` at the end.
    ///
    /// # Errors
    /// As [`Region::get`](crate::Region::get).
    pub fn next_with<R>(&mut self, show: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        self.step(|scan| scan.next_with(show))
    }

    /// Calls `show` with the next pair from the back, without copying it; `None` at the end.
    ///
    /// # Errors
    /// As [`Region::get`](crate::Region::get).
    pub fn next_back_with<R>(&mut self, show: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        self.step(|scan| scan.next_back_with(show))
    }

    /// Replaces the content of `key` and `value` by the next pair, reusing their memory. Returns `false` at the end and
    /// leaves them unchanged. Unlike [`next_with`](Self::next_with) it pins nothing while the caller works on the pair.
    ///
    /// # Errors
    /// As [`Region::get`](crate::Region::get).
    pub fn next_into(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool> {
        let pair = FillPair { key, value };
        Ok(self.step(|scan| scan.next_pair(pair))?.is_some())
    }

    /// Replaces the content of `key` and `value` by the next pair from the back, like [`next_into`](Self::next_into).
    ///
    /// # Errors
    /// As [`Region::get`](crate::Region::get).
    pub fn next_back_into(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool> {
        let pair = FillPair { key, value };
        Ok(self.step(|scan| scan.next_back_pair(pair))?.is_some())
    }

    /// Lets [`next`](Iterator::next) go on at the first key that is not less than `key`, ahead or back, within the range of
    /// the scan and at its moment. What was taken from the back is not shown again: a `key` behind that leaves nothing in
    /// front.
    ///
    /// It reads nothing itself and cannot fail. If `key` is among the pairs that were read ahead, the next pair costs no
    /// lookup; else it costs one in each level, which is what a new scan costs without its snapshot and its memory. A scan
    /// that ended goes on; one that ended by an error does not.
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let region = kreon::Store::open(folder.path().join("store"))?.region("r")?;
    /// for key in ["a", "c", "e"] {
    ///     region.put(key, "")?;
    /// }
    /// let mut keys = region.iter().keys();
    /// keys.seek("b");
    /// assert_eq!(keys.peek()?.as_deref(), Some(b"c".as_slice()));
    /// keys.seek("a");
    /// assert_eq!(keys.next().unwrap()?, b"a".as_slice());
    /// keys.seek_back("d");
    /// assert_eq!(keys.next_back().unwrap()?, b"c".as_slice());
    /// # Ok(())
    /// # }
    /// ```
    pub fn seek(&mut self, key: impl AsRef<[u8]>) {
        self.seek_from(Direction::Forward, key.as_ref());
    }

    /// Lets [`next_back`](DoubleEndedIterator::next_back) go on at the last key that is not greater than `key`, like
    /// [`seek`](Self::seek) of the other end: what was taken from the front is not shown again.
    pub fn seek_back(&mut self, key: impl AsRef<[u8]>) {
        self.seek_from(Direction::Backward, key.as_ref());
    }

    fn seek_from(&mut self, way: Direction, key: &[u8]) {
        if let ScanState::Going(scan) = &mut self.state {
            scan.seek(way, key);
        }
    }

    /// The next pair, which stays the next one; `None` at the end.
    ///
    /// # Errors
    /// As [`Region::get`](crate::Region::get); the scan has ended then.
    pub fn peek(&mut self) -> Result<Option<(Value, Value)>> {
        self.step(|scan| scan.peek_pair(Direction::Forward, OwnPair))
    }

    /// The next pair from the back, which stays the next one; `None` at the end.
    ///
    /// # Errors
    /// As [`peek`](Self::peek).
    pub fn peek_back(&mut self) -> Result<Option<(Value, Value)>> {
        self.step(|scan| scan.peek_pair(Direction::Backward, OwnPair))
    }

    /// Calls `show` with the next pair, without copying or taking it; `None` at the end.
    ///
    /// # Errors
    /// As [`peek`](Self::peek).
    pub fn peek_with<R>(&mut self, show: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        self.step(|scan| scan.peek_pair(Direction::Forward, ShowPair(show)))
    }

    /// Calls `show` with the next pair from the back, without copying or taking it; `None` at the end.
    ///
    /// # Errors
    /// As [`peek`](Self::peek).
    pub fn peek_back_with<R>(&mut self, show: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        self.step(|scan| scan.peek_pair(Direction::Backward, ShowPair(show)))
    }

    /// When the value of the next pair ends, which stays the next one; `None` at the end. See
    /// [`Region::put_with_ttl`](crate::Region::put_with_ttl). Costs nothing beyond the scan.
    ///
    /// # Errors
    /// As [`peek`](Self::peek).
    pub fn peek_expiry(&mut self) -> Result<Option<Expiry>> {
        let found = self.step(|scan| scan.peek_attributes(Direction::Forward));
        Ok(found?.map(Expiry::of))
    }

    /// When the value of the next pair from the back ends; `None` at the end.
    ///
    /// # Errors
    /// As [`peek`](Self::peek).
    pub fn peek_back_expiry(&mut self) -> Result<Option<Expiry>> {
        let found = self.step(|scan| scan.peek_attributes(Direction::Backward));
        Ok(found?.map(Expiry::of))
    }

    fn step<R>(
        &mut self,
        step: impl FnOnce(&mut kreon_engine::Scan) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        if let ScanState::Going(scan) = &mut self.state {
            let outcome = step(scan);
            if outcome.is_err() {
                self.state = ScanState::Ended;
            }
            return outcome;
        }
        match std::mem::replace(&mut self.state, ScanState::Ended) {
            ScanState::Failing(error) => Err(error),
            ScanState::Going(_) | ScanState::Ended => Ok(None),
        }
    }
}

/// Copies a pair into new [`Value`]s.
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

/// Copies a pair into the caller's buffers.
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

impl Keys {
    /// Goes on at the first key that is not less than `key`. See [`Scan::seek`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) {
        self.0.seek(key);
    }

    /// Goes on from the back at the last key that is not greater than `key`. See [`Scan::seek_back`].
    pub fn seek_back(&mut self, key: impl AsRef<[u8]>) {
        self.0.seek_back(key);
    }

    /// The next key, which stays the next one; `None` at the end.
    ///
    /// # Errors
    /// As [`Scan::peek`].
    pub fn peek(&mut self) -> Result<Option<Value>> {
        self.0.peek_with(|key, _| Value::from(key))
    }

    /// The next key from the back, which stays the next one; `None` at the end.
    ///
    /// # Errors
    /// As [`Scan::peek`].
    pub fn peek_back(&mut self) -> Result<Option<Value>> {
        self.0.peek_back_with(|key, _| Value::from(key))
    }

    /// Calls `show` with the next key, without copying it; `None` at the end.
    ///
    /// # Errors
    /// As [`Scan::next_with`].
    pub fn next_with<R>(&mut self, show: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.0.next_with(|key, _| show(key))
    }

    /// Calls `show` with the next key from the back, without copying it; `None` at the end.
    ///
    /// # Errors
    /// As [`Scan::next_back_with`].
    pub fn next_back_with<R>(&mut self, show: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.0.next_back_with(|key, _| show(key))
    }
}

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
