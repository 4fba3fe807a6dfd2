//! The new store of a salvage.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{Attributes, RegionId, RegionOptions, Result};
use kreon_format::range_value;

use super::losses::Losses;
use super::report::{SalvageProgress, SalvagedRegion};
use crate::engine::Engine;
use crate::operation::{Expiry, Operation, Terms};
use crate::options::Durability;
use crate::regions::{RegionState, check_name};

/// Most changes in one batch.
const BATCH_MAX: usize = 256;

/// Bytes of keys and values that end a batch.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Changes between two progress reports.
const PROGRESS_CHANGES: u64 = 4096;

/// A region of the target, with its losses and its report.
pub struct TargetRegion {
    state: Arc<RegionState>,
    pub losses: Losses,
    pub told: SalvagedRegion,
}

/// The bytes of a value as they are stored, and what is kept beside it. One that has ended hides older ones in the new
/// store as it did in the old one.
pub type Kept<'v> = (&'v [u8], Attributes);

struct Change {
    region: RegionId,
    key: Vec<u8>,
    value: Option<Vec<u8>>,
    is_range: bool,
    attributes: Attributes,
}

/// What the new store keeps beside a value: just that.
fn terms(attributes: Attributes) -> Terms {
    Terms {
        expiry: Expiry::of(attributes.expires()),
        codec: attributes.codec(),
    }
}

/// The new store, written in batches.
pub struct Target<'a> {
    engine: &'a Engine,
    /// Known names of the old store's regions.
    pub names: BTreeMap<RegionId, (String, RegionOptions)>,
    /// The regions created so far, by number in the old store.
    pub regions: BTreeMap<RegionId, TargetRegion>,
    changes: Vec<Change>,
    bytes: usize,
    written: u64,
    told: u64,
    step: &'static str,
    progress: &'a mut dyn FnMut(SalvageProgress),
}

impl<'a> Target<'a> {
    pub fn new(
        engine: &'a Engine,
        names: BTreeMap<RegionId, (String, RegionOptions)>,
        progress: &'a mut dyn FnMut(SalvageProgress),
    ) -> Self {
        Self {
            engine,
            names,
            regions: BTreeMap::new(),
            changes: Vec::new(),
            bytes: 0,
            written: 0,
            told: 0,
            step: "",
            progress,
        }
    }

    /// Begins and reports the next step.
    pub fn step(&mut self, step: &'static str) {
        self.step = step;
        self.tell();
    }

    fn tell(&mut self) {
        self.told = self.written;
        (self.progress)(SalvageProgress {
            step: self.step,
            written: self.written,
        });
    }

    /// The target's region for `id` of the old store, created if missing; without a known name it is named by `id`.
    pub fn region(&mut self, id: RegionId) -> Result<&mut TargetRegion> {
        if !self.regions.contains_key(&id) {
            let (mut name, options) = match self.names.get(&id) {
                Some(known) => known.clone(),
                None => (format!("region-{}", id.0), RegionOptions::DEFAULT),
            };
            while self.regions.values().any(|other| other.told.name == name) {
                name = format!("region-{}-{name}", id.0);
            }
            let state = self
                .engine
                .region_with_options((&name, &options), Durability::Buffered)?;
            let told = SalvagedRegion {
                name,
                ..SalvagedRegion::default()
            };
            let losses = Losses::default();
            let region = TargetRegion {
                state,
                losses,
                told,
            };
            self.regions.insert(id, region);
        }
        self.regions
            .get_mut(&id)
            .ok_or_else(|| kreon_base::Error::invalid("a region that was just made"))
    }

    /// Notes name and options of a region from the log. Those from a catalogue take precedence.
    pub fn name(&mut self, id: RegionId, name: &[u8], options: RegionOptions) {
        let name = std::str::from_utf8(name).ok();
        if let Some(name) = name.filter(|name| check_name(name).is_ok()) {
            self.names
                .entry(id)
                .or_insert_with(|| (name.to_owned(), options));
        }
    }

    /// Puts `key`, or deletes it if `value` is none.
    pub fn change(&mut self, region: RegionId, key: &[u8], value: Option<Kept<'_>>) -> Result<()> {
        self.add(region, key, value, false)
    }

    /// Deletes the keys from `start` on, before `end`.
    pub fn delete_range(
        &mut self,
        region: RegionId,
        start: &[u8],
        end: Option<&[u8]>,
    ) -> Result<()> {
        self.add(
            region,
            start,
            Some((&range_value(end), Attributes::NONE)),
            true,
        )
    }

    fn add(
        &mut self,
        region: RegionId,
        key: &[u8],
        value: Option<Kept<'_>>,
        is_range: bool,
    ) -> Result<()> {
        self.region(region)?;
        if let Some(long) = value.filter(|(value, _)| value.len() >= BATCH_BYTES_MAX) {
            return self.put_long(region, key, long);
        }
        self.bytes += key.len() + value.map_or(0, |(value, _)| value.len());
        self.changes.push(Change {
            region,
            key: key.to_vec(),
            value: value.map(|(value, _)| value.to_vec()),
            is_range,
            attributes: value.map_or(Attributes::NONE, |(_, attributes)| attributes),
        });
        if self.changes.len() >= BATCH_MAX || self.bytes >= BATCH_BYTES_MAX {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes a long value without copying it, after the pending batch.
    fn put_long(
        &mut self,
        region: RegionId,
        key: &[u8],
        (value, attributes): Kept<'_>,
    ) -> Result<()> {
        self.flush()?;
        let Some(region) = self.regions.get(&region) else {
            return Ok(());
        };
        let operation = Operation {
            region: &region.state,
            key,
            value: Some(value),
            is_range: false,
            terms: terms(attributes),
        };
        self.engine.write(&[operation], Durability::Buffered)?;
        self.written += 1;
        Ok(())
    }

    /// Whether the key has a value; pending changes do not count.
    pub fn holds(&self, region: &TargetRegion, key: &[u8]) -> Result<bool> {
        self.engine.contains(&region.state, key, None)
    }

    /// Writes the pending batch.
    pub fn flush(&mut self) -> Result<()> {
        let operations: Vec<_> = self
            .changes
            .iter()
            .filter_map(|change| {
                Some(Operation {
                    region: &self.regions.get(&change.region)?.state,
                    key: &change.key,
                    value: change.value.as_deref(),
                    is_range: change.is_range,
                    terms: terms(change.attributes),
                })
            })
            .collect();
        self.engine.write(&operations, Durability::Buffered)?;
        self.written += self.changes.len() as u64;
        self.changes.clear();
        self.bytes = 0;
        if self.written - self.told >= PROGRESS_CHANGES {
            self.tell();
        }
        Ok(())
    }

    /// Deletes the keys within the bounds.
    pub fn clear(&mut self, id: RegionId, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<()> {
        self.flush()?;
        let state = Arc::clone(&self.region(id)?.state);
        let bounds = (bounds.0.map(<[u8]>::to_vec), bounds.1.map(<[u8]>::to_vec));
        let mut scan = self.engine.scan(&state, self.engine.snapshot(), bounds);
        scan.without_values();
        while let Some(key) = scan.next_with(|key, _| key.to_vec())? {
            self.change(id, &key, None)?;
        }
        Ok(())
    }

    /// Makes the target durable, counts its pairs and returns the report of each region.
    pub fn finish(mut self) -> Result<Vec<SalvagedRegion>> {
        self.flush()?;
        self.engine.checkpoint()?;
        self.step("counting");
        let mut told = Vec::new();
        for mut region in self.regions.into_values() {
            let all = (Bound::Unbounded, Bound::Unbounded);
            let mut scan = self.engine.scan(&region.state, self.engine.snapshot(), all);
            scan.without_values();
            while scan.next_with(|_, _| ())?.is_some() {
                region.told.pairs += 1;
            }
            region.losses.tell(&mut region.told);
            told.push(region.told);
        }
        told.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(told)
    }
}
