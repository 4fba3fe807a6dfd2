//! A verification of partitions that no worker drives.

use std::sync::Arc;

use ::kvell::format::{Classes, ExtentNo, ItemSeal};
use ::kvell::opening::Opened;
use ::kvell::partition::Partition;
use ::kvell::verify::{Partitions, Volume, verify};

use super::setting::Setting;

/// Partitions that are verified.
struct Seen<'a>(&'a [Partition]);

impl Partitions for Seen<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn look(&self, partition: usize, look: &mut dyn FnMut(&Partition)) -> bool {
        self.0.get(partition).map(look).is_some()
    }
}

/// Compares all that is on the device with what the partitions know of it. Nothing may be under way.
pub(super) fn verified(opened: &Opened, seal: ItemSeal, setting: &Setting) -> Result<(), String> {
    let classes = Classes::new(setting.atomic_bytes).map_err(|error| error.to_string())?;
    let volume = Volume {
        device: Arc::clone(&opened.device),
        seal,
        classes: Arc::new(classes),
        partitions: &Seen(&opened.partitions),
        sequence: &|| opened.superblocks.newest().sequence,
        extents_end: ExtentNo(opened.extents.end().0),
        depth: 4,
    };
    let report = verify(&volume).map_err(|error| error.to_string())?;
    match report.damage.first() {
        Some(damage) => Err(format!("a verification: {damage}")),
        None => Ok(()),
    }
}
