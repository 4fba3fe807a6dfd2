//! Regions created by log records behind the checkpoint.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use kreon_base::{Error, REGION_NAME_BYTES_MAX, RegionId, RegionOptions, Result, planted};
use kreon_format::read_made_value;

use super::open::is_older;
use crate::state::{Ledger, RegionEntry};
use kreon_log::ReplayRecord;

/// Creates regions during a replay.
#[derive(Default)]
pub struct Made {
    /// Names of all regions; collected at the first created region.
    names: Option<BTreeSet<Arc<str>>>,
}

impl Made {
    /// Creates the region of `record`. Skipped if its number is below the ledger's next one: then the ledger has
    /// it, or it was dropped.
    ///
    /// # Errors
    /// `Corruption` if the region cannot be the next one: the catalogue is older than the log.
    pub fn replay(&mut self, ledger: &mut Ledger, record: &ReplayRecord<'_>) -> Result<()> {
        match record.region.cmp(&ledger.next_region) {
            Ordering::Less => return Ok(()),
            Ordering::Greater => return Err(is_older(record, "which makes")),
            Ordering::Equal => {}
        }
        let (dropped, options) = read_made_value(record.value.unwrap_or_default())?;
        planted!(RegionOptionsForgotten => let options = RegionOptions::DEFAULT);
        if dropped > ledger.epoch {
            return Err(is_older(
                record,
                "which knows of a drop before the making of",
            ));
        }
        let Some(next) = record.region.0.checked_add(1) else {
            return Err(is_older(record, "which makes"));
        };
        let name = std::str::from_utf8(record.key).ok();
        let name = name.filter(|name| name.len() <= REGION_NAME_BYTES_MAX);
        let name: Arc<str> = name.ok_or_else(|| nameless(record))?.into();
        let names = self.names.get_or_insert_with(|| {
            let known = ledger.regions.iter();
            known.map(|(_, known)| Arc::clone(&known.name)).collect()
        });
        // A name is reused only after the drop of its first region is durable.
        if !names.insert(Arc::clone(&name)) {
            return Err(is_older(record, "which gives a name that is taken to"));
        }
        let entry = RegionEntry { name, options };
        ledger.regions.insert(record.region, entry);
        ledger.next_region = RegionId(next);
        Ok(())
    }
}

#[cold]
fn nameless(record: &ReplayRecord<'_>) -> Error {
    Error::corruption(format!(
        "the log makes {} at {} with a name that no region has",
        record.region, record.offset
    ))
}
