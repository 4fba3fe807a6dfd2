//! Read-modify-write of one key, as one step for all other writers.
//!
//! It takes no snapshot: the get says which version it has met, and the write goes through if that is still the newest
//! when the gate is closed. If not, it reads again.

use kreon_base::{Error, ErrorKind, Result};
use kreon_log::Own;

use crate::level::View;
use crate::operation::Operation;
use crate::options::Durability;
use crate::read::{Reader, Unmoved};
use crate::regions::RegionState;
use crate::write::{Condition, Judgement, Writer};

/// What becomes of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// It stays as it is.
    Keep,
    /// It gets this value.
    Put(Vec<u8>),
    /// It is deleted.
    Delete,
}

/// Tries after which each further one first lets other threads go on.
const TRIES_AT_ONCE: u32 = 3;

struct StillNewest<'a> {
    region: &'a RegionState,
    key: &'a [u8],
    unmoved: Unmoved,
}

impl Condition for StillNewest<'_> {
    fn look(&mut self, _: &Reader) -> Result<()> {
        Ok(())
    }

    fn judge(&self, _: &Reader, view: &View) -> Judgement {
        match self.unmoved.is_newest(view, self.region, self.key) {
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
    mut change: impl FnMut(Option<&[u8]>) -> Result<Update>,
) -> Result<Option<Vec<u8>>> {
    let mut tries = 0;
    loop {
        let (before, unmoved) = reader.get_unmoved(region, key, Own)?;
        let after = match change(before.as_deref())? {
            Update::Keep => return Ok(before),
            Update::Put(value) => Some(value),
            Update::Delete => None,
        };
        let operation = Operation {
            region,
            key,
            value: after.as_deref(),
            is_range: false,
        };
        let mut condition = StillNewest {
            region,
            key,
            unmoved,
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
