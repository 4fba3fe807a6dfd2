//! This project's store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use kreon::{Durability, Region, Store, WriteBatch};
use kreon_device::{Device, FileDevice, FileOptions};

use super::tuning::Means;
use super::watched::Watched;
use super::{Asked, Engine, Inside};
use crate::randomness::Randomness;

/// Of an index page.
const PAGE_BYTES: u64 = 4096;

struct Kreon {
    store: Store,
    region: Region,
    /// Its device, where the transfers are watched.
    watched: Option<Arc<Watched<FileDevice>>>,
}

/// Opens a new store.
pub fn open(dir: &Path, means: &Means) -> anyhow::Result<Box<dyn Engine>> {
    let memory_bytes = means.own_memory_bytes();
    let mut options = Store::options()
        .memory_bytes(memory_bytes)
        .durability(match means.is_sync {
            true => Durability::Sync,
            false => Durability::Buffered,
        });
    if let Some(percent) = means.l0_percent {
        options = options.l0_bytes(memory_bytes / 100 * percent as usize);
    }
    if let Some(seconds) = means.l0_checkpoint_seconds {
        let interval = Duration::from_secs(u64::from(seconds));
        options = options.l0_checkpoint_interval((seconds > 0).then_some(interval));
    }
    if let Some(bytes) = means.inline_bytes {
        options = options.inline_value_bytes_max(bytes as usize);
    }
    if let Some(target) = means.space_amplification {
        options = options.space_amplification(target);
    }
    if let Some(most) = means.write_amplification_max {
        options = options.write_amplification_max(most);
    }
    let path = dir.join("store.kreon");
    let (store, watched) = match means.trace {
        true => open_watched(options, &path),
        false => options.open(&path).map(|store| (store, None)),
    }
    .with_context(|| format!("open {}", path.display()))?;
    let region = store.region("usertable")?;
    Ok(Box::new(Kreon {
        store,
        region,
        watched,
    }))
}

fn open_watched(
    options: kreon::Options,
    path: &Path,
) -> kreon::Result<(Store, Option<Arc<Watched<FileDevice>>>)> {
    let file = FileOptions {
        create: true,
        ..FileOptions::default()
    };
    let device = Arc::new(Watched::new(FileDevice::open(path, &file)?.0));
    let store = options.open_on(Arc::clone(&device) as Arc<dyn Device>)?;
    Ok((store, Some(device)))
}

impl Engine for Kreon {
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        Ok(self.region.put(key, value)?)
    }

    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool> {
        Ok(self.region.get_with(key, show)?.is_some())
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
        let mut scan = self.region.range(start..).limit(count);
        let mut shown = 0;
        while shown < count && scan.next_with(|key, value| show(key, value))?.is_some() {
            shown += 1;
        }
        Ok(shown)
    }

    fn settle(&self) -> anyhow::Result<()> {
        Ok(self.store.checkpoint()?)
    }

    fn persist(&self) -> anyhow::Result<()> {
        Ok(self.store.sync()?)
    }

    fn replay_bytes(&self) -> Option<u64> {
        Some(self.store.stats().replay_bytes)
    }

    fn take_randomness(&self) -> Option<Randomness> {
        let watched = self.watched.as_ref()?;
        Some(watched.take().randomness(watched.len_bytes()))
    }

    fn write_buffered(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> anyhow::Result<()> {
        let mut batch = WriteBatch::new();
        for (key, value) in pairs {
            batch.put(&self.region, key, value);
        }
        Ok(self.store.write(batch, Durability::Buffered)?)
    }

    fn asked(&self) -> Option<Asked> {
        let stats = self.store.stats();
        Some(Asked {
            allocations: stats.device.allocations,
            flushes: stats.device_flushes,
            zeroed_bytes: stats.zeroed_bytes,
        })
    }

    fn inside(&self) -> Option<Inside> {
        let stats = self.store.stats();
        let pages = stats.levels.iter().map(|l| l.leaf_pages + l.index_pages);
        Some(Inside {
            volume_bytes: stats.volume_bytes,
            free_bytes: stats.free_bytes,
            log_bytes: stats.log_bytes,
            log_live_bytes: stats.log_live_bytes,
            index_bytes: pages.sum::<u64>() * PAGE_BYTES,
            write_bytes: stats.device_write_bytes,
            page_write_bytes: (stats.mapping.pages_written + stats.mapping.pages_written_past)
                * PAGE_BYTES,
        })
    }
}
