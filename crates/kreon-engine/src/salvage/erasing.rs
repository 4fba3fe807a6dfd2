//! Range deletions in the log of a damaged store.

use kreon_base::{Lsn, RegionId, Result};
use kreon_format::{RecordKind, range_end};

use super::stale::Stale;
use super::target::Target;
use kreon_log::ReplayRecord;

/// A deleted range: start (inclusive) and end (exclusive; none: unbounded).
pub type Erased<'a> = (&'a [u8], Option<&'a [u8]>);

/// The range of `record` if it is a range deletion.
pub fn erased<'a>(record: &ReplayRecord<'a>) -> Result<Option<Erased<'a>>> {
    match record.kind {
        RecordKind::DeleteRange => {
            let end = range_end(record.value.unwrap_or_default())?;
            Ok(Some((record.key, end)))
        }
        _ => Ok(None),
    }
}

/// Applies a range deletion that is newer than all that the target holds. `lsn` is its position ([`Lsn::MAX`]: newer
/// than all lost writes).
pub fn apply(target: &mut Target<'_>, id: RegionId, range: Erased<'_>, lsn: Lsn) -> Result<()> {
    let (start, end) = range;
    let region = target.region(id)?;
    region.losses.erased(start, end, lsn);
    region.told.log_changes += 1;
    target.delete_range(id, start, end)
}

/// Applies a range deletion only to lost keys and lost ranges, because other pairs of the target may be newer.
pub fn apply_to_lost(target: &mut Target<'_>, id: RegionId, range: Erased<'_>) -> Result<()> {
    let (start, end) = range;
    let region = target.region(id)?;
    region.told.log_changes += 1;
    for key in region.losses.erased(start, end, Lsn::MAX) {
        target.change(id, &key, None)?;
    }
    for lost in target.region(id)?.losses.ranges_within(start, end) {
        target.delete_range(id, &lost.start, lost.end.as_deref())?;
    }
    Ok(())
}

/// Applies a range deletion only to older values taken in place of lost ones.
pub fn apply_to_stale(
    target: &mut Target<'_>,
    id: RegionId,
    (start, end): Erased<'_>,
    stale: &Stale,
) -> Result<()> {
    for key in stale.taken(id, start, end) {
        target.change(id, &key, None)?;
    }
    Ok(())
}
