//! Older values in place of lost ones, where they are asked for.

use std::collections::BTreeSet;

use kreon_base::{RegionId, Result};

use super::target::Target;
use kreon_log::ReplayRecord;

/// Bytes of keys that are remembered; beyond, no more are taken into lost ranges.
const KEYS_BYTES_MAX: usize = 16 << 20;

/// A key costs more than its bytes.
const KEY_COST_BYTES: usize = 64;

/// Keys of lost ranges that older values were taken for.
#[derive(Default)]
pub struct Stale {
    keys: BTreeSet<(RegionId, Vec<u8>)>,
    keys_bytes: usize,
}

impl Stale {
    /// Whether `record`, which is of a lost key or range, may be taken: nothing current is known of its
    /// key.
    pub fn takes(&mut self, target: &Target<'_>, record: &ReplayRecord<'_>) -> Result<bool> {
        let Some(region) = target.regions().get(&record.region) else {
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

    /// The keys of `region` from `start` on, before `end`, that older values were taken for.
    pub fn taken(&self, region: RegionId, start: &[u8], end: Option<&[u8]>) -> Vec<Vec<u8>> {
        let from = self.keys.range((region, start.to_vec())..);
        let within = from
            .take_while(|(of, key)| *of == region && end.is_none_or(|end| key.as_slice() < end));
        within.map(|(_, key)| key.clone()).collect()
    }
}
