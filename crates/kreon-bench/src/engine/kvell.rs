//! This project's other store. Its workers do the I/O, clients wait for it: as many transfers are in flight as there are
//! clients.

use std::path::Path;

use anyhow::Context;
use kvell::{Durability, Options, Region, Store};

use super::tuning::Means;
use super::{Asked, Engine};

struct Kvell {
    store: Store,
    region: Region,
    /// Of single puts: buffered ones return when the device has them.
    durability: Durability,
}

/// Opens a new store, or one whose process has ended.
pub fn open(dir: &Path, means: &Means) -> anyhow::Result<Box<dyn Engine>> {
    let options = Options {
        memory_bytes: means.own_memory_bytes(),
        ..Options::default()
    };
    let path = dir.join("store.kvell");
    let store = options.open(&path);
    let store = store.with_context(|| format!("open {}", path.display()))?;
    Ok(Box::new(Kvell {
        region: store.region("usertable")?,
        store,
        durability: match means.is_sync {
            true => Durability::Sync,
            false => Durability::Buffered,
        },
    }))
}

impl Engine for Kvell {
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        Ok(self.region.put(key, value, self.durability)?)
    }

    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool> {
        let value = self.region.get(key)?;
        Ok(value.map(|value| show(&value)).is_some())
    }

    fn get_many(
        &self,
        keys: &[Vec<u8>],
        show: &mut dyn FnMut(usize, &[u8]),
    ) -> anyhow::Result<usize> {
        let values = self.region.multi_get(keys)?;
        let found = values.iter().enumerate();
        let found = found.filter_map(|(number, value)| Some((number, value.as_deref()?)));
        Ok(found.map(|(number, value)| show(number, value)).count())
    }

    fn scan(
        &self,
        start: &[u8],
        count: usize,
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> anyhow::Result<usize> {
        let mut shown = 0;
        for pair in self.region.range(start..).limit(count) {
            let (key, value) = pair?;
            show(&key, &value);
            shown += 1;
        }
        Ok(shown)
    }

    fn settle(&self) -> anyhow::Result<()> {
        Ok(self.store.sync()?)
    }

    fn write_buffered(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> anyhow::Result<()> {
        let changes: Vec<_> = pairs
            .iter()
            .map(|(key, value)| (key, Some(value)))
            .collect();
        Ok(self.region.write_many(&changes, Durability::Buffered)?)
    }

    fn asked(&self) -> Option<Asked> {
        let device = self.store.stats().device;
        Some(Asked {
            allocations: device.allocations,
            flushes: device.flushes,
            zeroed_bytes: 0,
        })
    }
}
