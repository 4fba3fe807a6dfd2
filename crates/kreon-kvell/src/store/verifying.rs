//! The store as it is verified.

use std::sync::Arc;

use kreon_base::Result;

use super::refusals::{closed, poisoned};
use super::shared::Shared;
use crate::format::ExtentNo;
use crate::opening::extents_of;
use crate::partition::Partition;
use crate::verify::{Partitions, VerifyReport, Volume, verify};

/// Extents read together: 1 MiB each.
const DEPTH: usize = 4;

impl Partitions for Shared {
    fn count(&self) -> usize {
        self.partitions.len()
    }

    fn look(&self, partition: usize, look: &mut dyn FnMut(&Partition)) -> bool {
        let shared = self.partitions.get(partition);
        shared.and_then(|it| it.look(look)).is_some()
    }
}

/// Verifies an open store.
///
/// # Errors
/// `Closed`, `Poisoned`.
pub fn verify_store(shared: &Shared) -> Result<VerifyReport> {
    let check = || match () {
        () if shared.is_stopped() => Err(closed()),
        // What was to be written is in memory only.
        () if shared.clock.has_failed() => Err(poisoned()),
        () => Ok(()),
    };
    check()?;
    let (used, free) = shared.extent_counts();
    // On a full volume the last ones that were asked for are behind its end.
    let end = (1 + used + free).min(extents_of(&*shared.device));
    let volume = Volume {
        device: Arc::clone(&shared.device),
        seal: shared.seal,
        classes: shared.classes()?,
        partitions: shared,
        sequence: &|| shared.sequence(),
        extents_end: ExtentNo(end),
        depth: DEPTH,
    };
    let report = verify(&volume)?;
    // A failure or a close meanwhile would be taken for damage.
    check()?;
    Ok(report)
}
