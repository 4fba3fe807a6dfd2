//! Read-modify-write of one key, as one step for all other writers.
//!
//! It takes no snapshot: the get says which version it has met, and the write goes through if that is still the newest
//! when the gate is closed. If not, it reads again.

use std::time::Duration;

use kreon_base::{Attributes, Error, ErrorKind, Result, Timestamp};
use kreon_log::Own;

use crate::level::View;
use crate::operation::{Expiry, Operation, Terms};
use crate::options::Durability;
use crate::read::{Reader, Unmoved};
use crate::regions::RegionState;
use crate::write::{Condition, Judgement, Writer};

/// What becomes of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// It stays as it is.
    Keep,
    /// It gets this value, as by a put: it expires as the region says, or not by itself.
    Put(Vec<u8>),
    /// It gets this value, and does not expire, whatever the region says.
    PutPersistent(Vec<u8>),
    /// It gets this value, and keeps the expiry that it has, or that it has none; for a key without a value as `Put`.
    PutKeepingTtl(Vec<u8>),
    /// It gets this value for so long, from the write on. Zero is refused.
    PutWithTtl(Vec<u8>, Duration),
    /// It is deleted.
    Delete,
}

/// What a key has before an update.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    /// Its value.
    pub value: &'a [u8],
    /// When that ends; `None`: not by itself.
    pub expires: Option<Timestamp>,
}

/// Tries after which each further one first lets other threads go on.
const TRIES_AT_ONCE: u32 = 3;

struct StillNewest<'a> {
    region: &'a RegionState,
    key: &'a [u8],
    unmoved: Unmoved,
    /// What the get found has not ended.
    found: Attributes,
}

impl Condition for StillNewest<'_> {
    fn look(&mut self, _: &Reader) -> Result<()> {
        Ok(())
    }

    fn judge(&self, reader: &Reader, view: &View) -> Judgement {
        // Or else others may have seen that it has, and would see it come back. What ends from here to the insertion still may.
        let has_ended = reader.now().has_expired(self.found);
        match !has_ended && self.unmoved.is_newest(view, self.region, self.key) {
            true => Judgement::Holds,
            false => Judgement::Broken(Error::new(ErrorKind::Conflict, "")),
        }
    }
}

/// Does with `key` what `change` says of its value, as often as another writer comes between; returns the value before.
///
/// # Errors
/// Those of a get, a write and of `change`: nothing was changed.
pub fn update(
    (reader, writer): (&Reader, &Writer),
    (region, key): (&RegionState, &[u8]),
    durability: Durability,
    mut change: impl FnMut(Option<Current<'_>>) -> Result<Update>,
) -> Result<Option<Vec<u8>>> {
    let mut tries = 0;
    loop {
        let (before, unmoved) = reader.get_unmoved(region, key, Own)?;
        let found = before.as_ref().map(|(_, attributes)| *attributes);
        let found = found.unwrap_or_default();
        let expires = found.expires();
        let current = before.as_ref().map(|(value, _)| Current { value, expires });
        let change = change(current)?;
        let before = before.map(|(value, _)| value);
        let (after, expiry) = match change {
            Update::Keep => return Ok(before),
            Update::Put(value) => (Some(value), Expiry::OfRegion),
            Update::PutPersistent(value) => (Some(value), Expiry::Never),
            Update::PutKeepingTtl(value) if before.is_none() => (Some(value), Expiry::OfRegion),
            Update::PutKeepingTtl(value) => (Some(value), Expiry::of(expires)),
            Update::PutWithTtl(value, ttl) => (Some(value), Expiry::At(writer.expiry_after(ttl)?)),
            Update::Delete => (None, Expiry::OfRegion),
        };
        let operation = Operation {
            region,
            key,
            value: after.as_deref(),
            is_range: false,
            terms: Terms {
                expiry,
                ..Terms::default()
            },
        };
        let mut condition = StillNewest {
            region,
            key,
            unmoved,
            found,
        };
        match writer.write_if(&[operation], durability, &mut condition) {
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            outcome => return outcome.map(|()| before),
        }
        tries += 1;
        if tries > TRIES_AT_ONCE {
            kreon_sync::yield_now();
        }
    }
}
