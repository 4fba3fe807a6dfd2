//! Loads beside everything else.
//!
//! A load keeps off the keys that others write while it runs, which no order of whole calls explains. So nobody else
//! writes its keys meanwhile: it takes every second key of a region, and the others' writes go to the keys beside
//! them. What is left must happen at one moment: all keys for all readers.

use kreon_base::Result as Said;
use kreon_engine::Pairs;
use parking_lot::{Mutex, RwLock};

use super::call::Register;
use super::client::{Client, End};
use super::values;
use super::world::Handle;

/// See the module's text.
#[derive(Default)]
pub struct Reserved {
    /// One load at a time.
    loading: Mutex<()>,
    /// Keys of this region with this remainder by 2 belong to a load. Held shared by whoever writes.
    keys: RwLock<Option<(u32, usize)>>,
}

impl Reserved {
    /// Runs a write that may touch any key which `allowed` makes of the wanted one.
    pub fn beside<R>(&self, write: impl FnOnce(&dyn Fn(&Handle, usize) -> usize) -> R) -> R {
        let keys = self.keys.read();
        write(&|handle, key| match *keys {
            Some((region, rest)) if handle.region.id.0 == region && key % 2 == rest => key ^ 1,
            _ => key,
        })
    }

    /// Runs a load into these keys, unless another one is under way.
    fn load<R>(&self, region: u32, rest: usize, load: impl FnOnce() -> R) -> Option<R> {
        let _loading = self.loading.try_lock()?;
        // All writes that may have taken such a key have returned when this is theirs.
        *self.keys.write() = Some((region, rest));
        let outcome = load();
        *self.keys.write() = None;
        Some(outcome)
    }
}

/// Pairs to load, with pauses in which others go on.
struct Loaded<'a> {
    rest: &'a [(Vec<u8>, Vec<u8>)],
}

impl Pairs for Loaded<'_> {
    fn next(&mut self) -> Said<Option<(&[u8], &[u8])>> {
        std::thread::yield_now();
        let Some(((key, value), rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        self.rest = rest;
        Ok(Some((key, value)))
    }
}

impl Client<'_> {
    pub(super) fn ingest(&mut self) -> Result<(), End> {
        let (handle, rest) = (self.any_fixed_region(), self.dice.below(2) as usize);
        let mut call = self.call("load");
        let mut pairs = Vec::new();
        for key in (rest..self.world.keys.len()).step_by(2) {
            if self.dice.below(4) == 0 {
                continue;
            }
            let version = self.world.next_version();
            let len_bytes = self.world.taste.len_bytes(&mut self.dice);
            pairs.push((
                self.world.keys[key].clone(),
                values::encode(version, len_bytes),
            ));
            let register: Register = handle.register(key);
            call.writes.push((register, Some(version)));
        }
        let world = self.world;
        let loaded = world.reserved.load(handle.region.id.0, rest, || {
            call.invoked = world.now();
            let outcome = world
                .engine
                .ingest(&handle.region, &mut Loaded { rest: &pairs });
            call.returned = Some(world.now());
            outcome
        });
        match loaded {
            // Another one is under way.
            None => Ok(()),
            Some(outcome) => {
                call.is_durable = outcome.is_ok();
                self.record(call, outcome.map(drop))
            }
        }
    }
}
