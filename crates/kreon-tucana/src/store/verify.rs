//! Whether what is durable of a store is whole.

use std::collections::BTreeSet;

use kreon_base::{Error, PageNo, Result, SegmentId};

use super::home::{LOG, MOVED};
use super::region_key::tree_range;
use super::regions::NAMES;
use super::shared::Shared;
use super::volume_log::VolumeLog;
use crate::tree::{Cursor, Direction, Snapshot, Verified};

/// Commits, and verifies all of it.
///
/// # Errors
/// `Corruption`; those of a commit.
pub(super) fn verify(shared: &Shared) -> Result<Verified> {
    let kept = shared.commit_and_keep()?;
    let mut found = kept.snapshot.verify()?;
    let mut reached: Vec<PageNo> = found.pages.clone();
    reached.extend(&kept.durable.catalogue_pages);
    reached.sort_unstable();
    let mut recorded: Vec<PageNo> = shared.home.allocator.lock().live_pages().collect();
    recorded.sort_unstable();
    let is_double = reached.array_windows().any(|[a, b]| a == b);
    if is_double || reached != recorded {
        return Err(Error::corruption(format!(
            "{} pages are recorded as in use, nodes and catalogue have {}",
            recorded.len(),
            reached.len()
        )));
    }
    verify_live_bytes(shared, &found)?;
    found.keys = found.keys.saturating_sub(names(&kept.snapshot)?);
    Ok(found)
}

fn verify_live_bytes(shared: &Shared, found: &Verified) -> Result<()> {
    let allocator = shared.home.allocator.lock();
    let logs = [LOG, MOVED].map(|log| allocator.log_segments(log));
    let segments: BTreeSet<SegmentId> = logs.iter().flatten().map(|(id, _)| *id).collect();
    if let Some(unknown) = found.live_bytes.keys().find(|id| !segments.contains(id)) {
        return Err(Error::corruption(format!(
            "leaves point into {unknown}, which is not of the log"
        )));
    }
    for segment in segments {
        let reached = found.live_bytes.get(&segment).copied().unwrap_or(0);
        let recorded = u64::from(allocator.live_bytes(segment));
        if reached != recorded {
            return Err(Error::corruption(format!(
                "{recorded} bytes of {segment} are recorded as live, leaves point at {reached}"
            )));
        }
    }
    Ok(())
}

/// Keys that are no user's: the names of regions, and what belongs to them.
fn names(snapshot: &Snapshot<'_, VolumeLog>) -> Result<u64> {
    let mut cursor = Cursor::new(tree_range(NAMES, ..), Direction::Forward);
    let mut count = 0;
    while snapshot.next(&mut cursor, |_, _| ())?.is_some() {
        count += 1;
    }
    Ok(count)
}
