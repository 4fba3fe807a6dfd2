//! Older values in place of lost ones, for [`SalvageOptions::stale_values`](super::SalvageOptions::stale_values).

use std::collections::BTreeSet;

use kreon_base::{RegionId, Result};

use super::target::Target;
use kreon_log::ReplayRecord;

/// Most bytes of remembered keys; beyond, no further keys of lost ranges get older values.
const KEYS_BYTES_MAX: usize = 16 << 20;

/// Memory of a remembered key besides its bytes.
const KEY_COST_BYTES: usize = 64;

/// The keys that got older values.
#[derive(Default)]
pub struct Stale {
    keys: BTreeSet<(RegionId, Vec<u8>)>,
    keys_bytes: usize,
}

impl Stale {
    /// Whether to take `record`, whose key is lost or in a lost range: yes if no current version of the key is known.
    pub fn takes(&mut self, target: &Target<'_>, record: &ReplayRecord<'_>) -> Result<bool> {
        let Some(region) = target.regions.get(&record.region) else {
            return Ok(false);
        };
        let place = (record.region, record.key.to_vec());
        if region.losses.has_key(record.key) {
            self.keys.insert(place);
            return Ok(true);
        }
        if self.keys.contains(&place) {
            return Ok(true);
        }
        let cost = record.key.len() + KEY_COST_BYTES;
        let is_full = self.keys_bytes + cost > KEYS_BYTES_MAX;
        if is_full || region.losses.is_deleted(record.key) || target.holds(region, record.key)? {
            return Ok(false);
        }
        self.keys_bytes += cost;
        self.keys.insert(place);
        Ok(true)
    }

    /// The keys of `region` from `start` up to, not including, `end` that got older values.
    pub fn taken(&self, region: RegionId, start: &[u8], end: Option<&[u8]>) -> Vec<Vec<u8>> {
        let from = self.keys.range((region, start.to_vec())..);
        let within = from
            .take_while(|(of, key)| *of == region && end.is_none_or(|end| key.as_slice() < end));
        within.map(|(_, key)| key.clone()).collect()
    }
}
