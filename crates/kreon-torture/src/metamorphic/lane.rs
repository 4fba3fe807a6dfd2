//! What one lane does to the store, beside a map.

use kreon_engine::{Durability, KeyBounds, Operation as Write, Terms};

use super::operations::{Change, Operation, REGIONS, lane_bounds};
use super::seen::{Seen, agree, said, within};
use super::transaction;
use crate::content::{Digest, Pairs};
use crate::script::Lifetime;

/// What a lane must find, by region.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Which one.
    pub number: usize,
    /// Its pairs.
    pub pairs: [Pairs; REGIONS],
}

impl Lane {
    /// Does all `operations`.
    ///
    /// # Errors
    /// The first wrong answer.
    pub fn run(&mut self, operations: &[Operation], seen: Seen<'_>) -> Result<(), String> {
        for (number, operation) in operations.iter().enumerate() {
            let durability = match seen.settings.sync_every {
                Some(every) if number.is_multiple_of(every) => Durability::Sync,
                _ => Durability::Buffered,
            };
            let outcome = self.step(operation, durability, seen);
            outcome.map_err(|what| {
                let mut shown = format!("{operation:?}");
                shown.truncate(400);
                format!("lane {} operation {number}: {shown}: {what}", self.number)
            })?;
            if let Some(every) = seen.settings.checkpoint_every
                && (number + 1).is_multiple_of(every)
            {
                seen.engine.checkpoint().map_err(said)?;
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        operation: &Operation,
        durability: Durability,
        seen: Seen<'_>,
    ) -> Result<(), String> {
        let engine = seen.engine;
        match operation {
            Operation::Write(changes) => self.write(changes, durability, seen),
            Operation::Get(region, key) => {
                let expected = self.pairs[*region].get(key).copied();
                let region = &seen.regions[*region];
                let found = engine.get(region, key, None, Digest::of).map_err(said)?;
                agree(&found, &expected)?;
                let is_there = engine.contains(region, key, None).map_err(said)?;
                agree(&is_there, &expected.is_some())
            }
            Operation::MultiGet(region, keys) => {
                let expected: Vec<_> = keys
                    .iter()
                    .map(|key| self.pairs[*region].get(key).copied())
                    .collect();
                let mut found = vec![None; keys.len()];
                let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
                let show = |index: usize, value: Vec<u8>| found[index] = Some(Digest::of(&value));
                let region = &seen.regions[*region];
                engine.multi_get(region, &keys, show).map_err(said)?;
                agree(&found, &expected)
            }
            Operation::Scan(region, bounds, turns) => self.scan(*region, bounds, turns, seen),
            Operation::Count(region) => {
                let bounds = lane_bounds(self.number);
                let region_state = &seen.regions[*region];
                let mut scan = engine.scan(region_state, engine.snapshot(), bounds);
                scan.without_values();
                let mut count = 0;
                while scan.next_with(|_, _| ()).map_err(said)?.is_some() {
                    count += 1;
                }
                agree(&count, &self.pairs[*region].len())
            }
            Operation::Transaction(done) => {
                transaction::run(done, &mut self.pairs, durability, seen)
            }
            Operation::Update(change) => {
                transaction::update(&mut self.pairs, change, durability, seen)
            }
            Operation::Checkpoint => engine.checkpoint().map_err(said),
            Operation::Sync => engine.sync().map_err(said),
        }
    }

    fn write(
        &mut self,
        changes: &[Change],
        durability: Durability,
        seen: Seen<'_>,
    ) -> Result<(), String> {
        let values: Vec<_> = changes
            .iter()
            .map(|change| change.value.map(|value| value.bytes()))
            .collect();
        let writes: Vec<_> = changes
            .iter()
            .zip(&values)
            .map(|(change, value)| Write {
                region: &seen.regions[change.region],
                key: &change.key,
                value: value.as_deref(),
                is_range: false,
                terms: Terms::until(change.lifetime.expires().filter(|_| value.is_some())),
            })
            .collect();
        let outcome = seen.engine.write(&writes, durability);
        outcome.map_err(said)?;
        for (change, value) in changes.iter().zip(&values) {
            let pairs = &mut self.pairs[change.region];
            let is_over = change.lifetime == Lifetime::Over;
            match value.as_ref().filter(|_| !is_over) {
                Some(value) => pairs.insert(change.key.clone(), Digest::of(value)),
                None => pairs.remove(&change.key),
            };
        }
        Ok(())
    }

    fn scan(
        &self,
        region: usize,
        bounds: &KeyBounds,
        turns: &[bool],
        seen: Seen<'_>,
    ) -> Result<(), String> {
        let snapshot = seen.engine.snapshot();
        let mut scan = seen
            .engine
            .scan(&seen.regions[region], snapshot, bounds.clone());
        let expected = within(&self.pairs[region], bounds);
        let mut expected = expected.iter();
        for from_front in turns {
            let own = |key: &[u8], value: &[u8]| (key.to_vec(), Digest::of(value));
            let (found, wanted) = match from_front {
                true => (scan.next_with(own), expected.next()),
                false => (scan.next_back_with(own), expected.next_back()),
            };
            let found = found.map_err(said)?;
            agree(&found.as_ref(), &wanted)?;
            if found.is_none() {
                break;
            }
        }
        Ok(())
    }
}
