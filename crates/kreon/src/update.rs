//! Atomic read-modify-write of one key.

use kreon_engine::{Current, Update};

use crate::{Error, Region, Result, Value};

/// Bytes of a counter.
const COUNTER_BYTES: usize = size_of::<i64>();

/// Each of these calls is one step for all other writers: no write of the key comes between its read and its write. They
/// have the durability that the store was opened with, and cost about a get and a put, while all other writers wait for
/// the time of the latter.
impl Region {
    /// Does with `key` what `change` says of its value (`None`: it has none) and returns the value before. `change` is
    /// called again if another write of the key came between, so it should have no other effects. An expired key has no
    /// value; [`Update`] says what becomes of the expiry of one that has.
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let region = kreon::Store::open(folder.path().join("store"))?.region("r")?;
    /// region.put("names", "anna")?;
    /// let append = |old: Option<&[u8]>| kreon::Update::Put([old.unwrap_or_default(), b",bert"].concat());
    /// assert_eq!(region.update("names", append)?.as_deref(), Some(b"anna".as_slice()));
    /// assert_eq!(region.get("names")?.as_deref(), Some(b"anna,bert".as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`get`](Self::get) and of [`put`](Self::put).
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<&[u8]>) -> Update,
    ) -> Result<Option<Value>> {
        let change = |current: Option<Current<'_>>| Ok(change(current.map(|it| it.value)));
        let before = self.try_update(key.as_ref(), change)?;
        Ok(before.map(Value::from))
    }

    pub(crate) fn try_update(
        &self,
        key: &[u8],
        change: impl FnMut(Option<Current<'_>>) -> Result<Update>,
    ) -> Result<Option<Vec<u8>>> {
        self.engine
            .update(&self.state, key, self.durability, change)
    }

    /// Sets `key` to `new` if its value is `expected`; `None` stands for no value. Returns whether it did. As after a put, the
    /// key does not expire then.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        let before = self.try_update(key.as_ref(), |current| {
            let value = current.map(|current| current.value);
            Ok(match (value == expected, new) {
                (false, _) => Update::Keep,
                (true, Some(new)) => Update::Put(new.to_vec()),
                (true, None) => Update::Delete,
            })
        })?;
        Ok(before.as_deref() == expected)
    }

    /// Sets `key` to `value` if it has no value. Returns whether it did.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.compare_and_swap(key, None, Some(value.as_ref()))
    }

    /// Adds `by` to the counter at `key` and returns its new value. A counter is a value of 8 bytes, an `i64` in little
    /// endian order (`i64::to_le_bytes`); a key without a value counts as 0. A counter that [expires](Self::put_with_ttl)
    /// does so at the same time as before.
    ///
    /// ```
    /// # fn main() -> kreon::Result<()> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let region = kreon::Store::open(folder.path().join("store"))?.region("r")?;
    /// assert_eq!(region.increment("visits", 2)?, 2);
    /// assert_eq!(region.increment("visits", -3)?, -1);
    /// assert_eq!(region.get("visits")?.as_deref(), Some(&(-1_i64).to_le_bytes()[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument`: the value has another length, or the sum does not fit; nothing was changed. Those of
    /// [`update`](Self::update).
    pub fn increment(&self, key: impl AsRef<[u8]>, by: i64) -> Result<i64> {
        let mut sum = 0;
        self.try_update(key.as_ref(), |current| {
            let counted = current.map_or(Ok(0), |current| counter(current.value))?;
            let too_large = || Error::invalid(format!("the counter {counted} cannot grow by {by}"));
            sum = counted.checked_add(by).ok_or_else(too_large)?;
            Ok(Update::PutKeepingTtl(sum.to_le_bytes().to_vec()))
        })?;
        Ok(sum)
    }
}

fn counter(value: &[u8]) -> Result<i64> {
    let bytes = <[u8; COUNTER_BYTES]>::try_from(value).map_err(|_| {
        Error::invalid(format!(
            "a counter has {COUNTER_BYTES} bytes, this value {}",
            value.len()
        ))
    })?;
    Ok(i64::from_le_bytes(bytes))
}
