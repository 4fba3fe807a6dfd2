//! Numbers of collections: each is given once for ever.

use std::sync::atomic::{AtomicU64, Ordering};

use kreon::{Durability, Region, Store};
use parking_lot::Mutex;

/// Numbers that are taken from the store together.
const RUN: u64 = 1024;
/// The record of the first number that was not taken yet, big-endian.
const NEXT: &[u8] = b"next id";

/// The source of numbers.
#[derive(Debug)]
pub(crate) struct Ids {
    region: Region,
    /// The last number that was given.
    given: AtomicU64,
    /// Numbers from here on were not taken from the store.
    taken: AtomicU64,
    taking: Mutex<()>,
}

impl Ids {
    /// The source of a store. Of what an earlier opening took and did not give, nothing is given.
    ///
    /// # Errors
    /// As [`Store::region`] and [`Region::get`].
    pub(crate) fn open(store: &Store) -> kreon::Result<Self> {
        let region = store.region("redis")?;
        let next = match region.get(NEXT)? {
            None => 1,
            Some(value) => u64::from_be_bytes(<[u8; 8]>::try_from(&value[..]).map_err(|_| {
                kreon::Error::corruption("the next id of region `redis` is no number")
            })?),
        };
        Ok(Self {
            region,
            given: AtomicU64::new(next.saturating_sub(1)),
            taken: AtomicU64::new(next),
            taking: Mutex::new(()),
        })
    }

    /// A number. Once in [`RUN`] it costs a buffered write, which lies in front of all that use the number in the one log of the
    /// store: whatever a crash leaves of them, it leaves that.
    ///
    /// # Errors
    /// As [`Region::put`].
    pub(crate) fn next(&self) -> kreon::Result<u64> {
        let id = self.given.fetch_add(1, Ordering::Relaxed) + 1;
        if id >= self.taken.load(Ordering::Acquire) {
            let _taking = self.taking.lock();
            if id >= self.taken.load(Ordering::Acquire) {
                let next = id + RUN;
                let bytes = next.to_be_bytes();
                self.region.put_with(NEXT, bytes, Durability::Buffered)?;
                self.taken.store(next, Ordering::Release);
            }
        }
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_is_given_twice_across_openings() {
        let folder = tempfile::tempdir().unwrap();
        let mut last = 0;
        for opening in 0..3 {
            let store = Store::open(folder.path().join("store")).unwrap();
            let ids = Ids::open(&store).unwrap();
            for _ in 0..[1, 3000, 1][opening] {
                let id = ids.next().unwrap();
                assert!(id > last, "{id} after {last}");
                last = id;
            }
        }
    }
}
