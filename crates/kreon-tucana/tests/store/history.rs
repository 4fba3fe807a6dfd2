//! Histories of writes, of which a crash leaves a prefix.

use std::sync::Arc;

use kreon_sim::SimDevice;
use tucana::{Durability, Options};

use crate::one_region::OneRegion;
use crate::world::{Model, Random, open_with, pairs};

/// A write.
#[derive(Clone)]
pub struct Write {
    key: Vec<u8>,
    value: Option<Vec<u8>>,
    /// Events of the device before it.
    began: usize,
}

/// Writes in their order, and which of them must survive.
#[derive(Default)]
pub struct History {
    writes: Vec<Write>,
    /// After so many events of the device, so many writes were durable.
    durable: Vec<(usize, usize)>,
}

fn apply(model: &mut Model, write: &Write) {
    match &write.value {
        Some(value) => drop(model.insert(write.key.clone(), value.clone())),
        None => drop(model.remove(&write.key)),
    }
}

impl History {
    /// All writes so far are durable.
    pub fn note_durable(&mut self, device: &SimDevice) {
        self.durable.push((device.events(), self.writes.len()));
    }

    /// The first writes, all of them before the first event of another device.
    pub fn first(&self, writes: usize) -> Self {
        let mut writes = self.writes[..writes].to_vec();
        writes.iter_mut().for_each(|write| write.began = 0);
        let durable = Vec::new();
        Self { writes, durable }
    }

    /// One write of a random key.
    pub fn write(
        &mut self,
        device: &SimDevice,
        store: &OneRegion,
        random: &mut Random,
        durability: Durability,
    ) {
        let key = format!("user/{:03}", random.below(300)).into_bytes();
        let value = match random.below(4) {
            0 => None,
            // Every value is another one; seldom so long that segments fill.
            _ => {
                let long = [900, 70_000][usize::from(random.below(30) == 0)];
                let mut value = self.writes.len().to_le_bytes().to_vec();
                value.resize(8 + random.below(long) as usize, 7);
                Some(value)
            }
        };
        let began = device.events();
        match &value {
            Some(value) => store.put_with(&key, value, durability).unwrap(),
            None => store.delete_with(&key, durability).unwrap(),
        };
        self.writes.push(Write { key, value, began });
        if durability == Durability::Sync {
            self.note_durable(device);
        }
    }

    /// Writes, some durable, with syncs and commits between them.
    pub fn write_some(
        &mut self,
        device: &SimDevice,
        store: &OneRegion,
        random: &mut Random,
        count: u64,
    ) {
        for _ in 0..count {
            let durability = match random.below(6) {
                0 => Durability::Sync,
                _ => Durability::Buffered,
            };
            self.write(device, store, random, durability);
            match random.below(100) {
                0..3 => store.sync().unwrap(),
                3..5 => store.commit().unwrap(),
                _ => continue,
            }
            self.note_durable(device);
        }
    }

    /// The number of writes in a state that a crash after so many events may leave.
    pub fn prefix(&self, found: &Model, events: usize) -> Result<usize, String> {
        let durable = self.durable.iter().filter(|(ended, _)| *ended <= events);
        let least = durable.map(|(_, writes)| *writes).max().unwrap_or(0);
        let begun = self.writes.iter().take_while(|write| write.began <= events);
        let most = begun.count().max(least);
        let mut model = Model::new();
        let (first, rest) = self.writes[..most].split_at(least);
        first.iter().for_each(|write| apply(&mut model, write));
        if model == *found {
            return Ok(least);
        }
        for (index, write) in rest.iter().enumerate() {
            apply(&mut model, write);
            if model == *found {
                return Ok(least + index + 1);
            }
        }
        Err(format!(
            "{} pairs are no state of {least} to {most} writes",
            found.len()
        ))
    }

    /// Opens the store again, whatever is lost of it.
    pub fn reopen(&mut self, device: &Arc<SimDevice>, options: &Options) -> OneRegion {
        let store = open_with(device, options).unwrap();
        let found = pairs(&store).unwrap();
        let kept = self.prefix(&found, usize::MAX).unwrap();
        self.writes.truncate(kept);
        self.note_durable(device);
        store
    }
}
