//! A unit of a script: a write, or the commit of a transaction.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};
use kreon_engine::{
    Durability, Engine, Isolation, Operation, Own, RegionState, TRANSACTION_BYTES_MAX, Terms,
    Transaction,
};

use crate::script::{Change, Until};

/// The regions that are written to, by name.
type Regions<'a> = BTreeMap<&'a String, Arc<RegionState>>;

/// Of so many units one is a commit.
const EVERY: usize = 3;

/// Whether unit number `unit`, of these changes, is a commit. One of deleted ranges alone may have nothing to write, and
/// would make nothing durable then.
pub fn is_commit(unit: usize, changes: &[Change]) -> bool {
    unit.is_multiple_of(EVERY) && changes.iter().any(|change| change.until.is_none())
}

/// Writes changes, each with the value of its record.
///
/// # Errors
/// What the store said.
pub fn write<'a>(
    engine: &Engine,
    regions: &Regions<'_>,
    changes: impl Iterator<Item = (&'a Change, &'a Option<Vec<u8>>)>,
    durability: Durability,
) -> Result<()> {
    let operations: Vec<_> = changes
        .filter_map(|(change, value)| {
            let region = regions.get(&change.region)?;
            Some(Operation {
                region,
                key: &change.key,
                value: value.as_deref(),
                is_range: change.until.is_some(),
                terms: Terms::until(change.expires()),
            })
        })
        .collect();
    engine.write(&operations, durability)
}

/// Writes `changes` in a transaction. Its first key is read; then all that is done was done before, and undone.
///
/// # Errors
/// What the store said: nothing was applied, or it is poisoned. Never a conflict: nobody else writes.
pub fn commit(
    engine: &Engine,
    regions: &Regions<'_>,
    changes: &[Change],
    durability: Durability,
) -> Result<()> {
    let mut transaction = engine.transaction(Isolation::Serializable, TRANSACTION_BYTES_MAX);
    let start = transaction.set_savepoint();
    for is_undone in [true, false] {
        for (number, change) in changes.iter().enumerate() {
            let region = regions.get(&change.region);
            let region =
                region.ok_or_else(|| Error::new(ErrorKind::NotFound, change.region.as_str()))?;
            if number == 0 && !is_undone {
                transaction.get(region, &change.key, Own)?;
            }
            apply(&mut transaction, region, change)?;
        }
        if is_undone {
            transaction.roll_back_to(start)?;
        }
    }
    engine.commit(transaction, durability)
}

fn apply(transaction: &mut Transaction, region: &Arc<RegionState>, change: &Change) -> Result<()> {
    let start = Bound::Included(change.key.clone());
    match (&change.until, change.value) {
        (Some(Until::Before(end)), _) => {
            transaction.delete_range(region, (start, Bound::Excluded(end.clone())))
        }
        (Some(Until::Last), _) => transaction.delete_range(region, (start, Bound::Unbounded)),
        (None, Some(value)) => match change.expires() {
            Some(expires) => transaction.put_until(region, &change.key, &value.bytes(), expires),
            None => transaction.put(region, &change.key, &value.bytes()),
        },
        (None, None) => transaction.delete(region, &change.key),
    }
}
