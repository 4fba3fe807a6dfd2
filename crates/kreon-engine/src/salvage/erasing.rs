//! Deleted ranges in the log of a damaged store.

use kreon_base::{Lsn, RegionId, Result};
use kreon_format::{RecordKind, range_end};

use super::stale::Stale;
use super::target::Target;
use kreon_log::ReplayRecord;

/// The range that a record deletes: from the first key on, before the second.
pub type Erased<'a> = (&'a [u8], Option<&'a [u8]>);

/// What `record` deletes, if it is the deletion of a range.
pub fn erased<'a>(record: &ReplayRecord<'a>) -> Result<Option<Erased<'a>>> {
    match record.kind {
        RecordKind::DeleteRange => {
            let end = range_end(record.value.unwrap_or_default())?;
            Ok(Some((record.key, end)))
        }
        _ => Ok(None),
    }
}

/// Deletes a range that was deleted at `lsn` ([`Lsn::MAX`]: later than all that is lost): all that the target
/// holds of it is older.
pub fn apply(target: &mut Target<'_>, id: RegionId, range: Erased<'_>, lsn: Lsn) -> Result<()> {
    let (start, end) = range;
    let region = target.region(id)?;
    region.losses.erased(start, end, lsn);
    region.told.log_changes += 1;
    target.delete_range(id, start, end)
}

/// Deletes what the target holds in place of what is lost: the rest may be newer than the deletion.
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

/// Deletes older values that were taken in place of lost ones.
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
