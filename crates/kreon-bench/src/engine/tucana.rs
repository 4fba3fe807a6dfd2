//! This project's tree over a log.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use kreon_device::{Device, FileDevice, FileOptions};
use tucana::{Direction, Durability, Options, Region, Store};

use super::tuning::{self, Means};
use super::watched::Watched;
use super::{Asked, Engine, Searches};
use crate::randomness::Randomness;

struct Tucana {
    store: Store,
    region: Region,
    device: Opened,
}

/// Its device, and where the transfers are watched.
struct Opened {
    plain: Arc<dyn Device>,
    watched: Option<Arc<Watched<FileDevice>>>,
}

/// Opens a new store, or one whose process has ended.
pub fn open(dir: &Path, means: &Means) -> anyhow::Result<Box<dyn Engine>> {
    let path = dir.join("store.tucana");
    let device = open_device(&path, means.trace)?;
    let options = Options {
        memory_bytes: tuning::tucana(means).memory_bytes,
        durability: match means.is_sync {
            true => Durability::Sync,
            false => Durability::Buffered,
        },
        ..Options::default()
    };
    let store = Store::open(Arc::clone(&device.plain), &options);
    let store = store.with_context(|| format!("open {}", path.display()))?;
    Ok(Box::new(Tucana {
        region: store.region("default")?,
        store,
        device,
    }))
}

fn open_device(path: &Path, is_watched: bool) -> anyhow::Result<Opened> {
    let file = FileOptions {
        create: true,
        ..FileOptions::default()
    };
    let (device, _) = FileDevice::open(path, &file)?;
    Ok(match is_watched {
        true => {
            let watched = Arc::new(Watched::new(device));
            Opened {
                plain: Arc::clone(&watched) as Arc<dyn Device>,
                watched: Some(watched),
            }
        }
        false => Opened {
            plain: Arc::new(device),
            watched: None,
        },
    })
}

impl Engine for Tucana {
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        self.region.put(key, value)?;
        Ok(())
    }

    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool> {
        Ok(self.region.get_with(key, show)?.is_some())
    }

    fn scan(
        &self,
        start: &[u8],
        count: usize,
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> anyhow::Result<usize> {
        let mut shown = 0;
        let scan = self.region.scan(start.., Direction::Forward);
        for pair in scan.take(count) {
            let (key, value) = pair?;
            show(&key, &value);
            shown += 1;
        }
        Ok(shown)
    }

    fn settle(&self) -> anyhow::Result<()> {
        Ok(self.store.commit()?)
    }

    fn persist(&self) -> anyhow::Result<()> {
        Ok(self.store.sync()?)
    }

    fn write_buffered(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> anyhow::Result<()> {
        // No batches: each put stands by itself.
        for (key, value) in pairs {
            self.region.put_with(key, value, Durability::Buffered)?;
        }
        Ok(())
    }

    fn take_randomness(&self) -> Option<Randomness> {
        let watched = self.device.watched.as_ref()?;
        Some(watched.take().randomness(watched.len_bytes()))
    }

    fn asked(&self) -> Option<Asked> {
        let device = self.device.plain.stats();
        Some(Asked {
            allocations: device.allocations,
            flushes: device.flushes,
            zeroed_bytes: self.store.zeroed_bytes(),
        })
    }

    fn searches(&self) -> Option<Searches> {
        let stats = self.store.stats();
        Some(Searches {
            inserts: stats.searches,
            inserts_that_read: stats.ties,
            reads_by_hash: stats.hash_matches,
            reads_of_other_keys: stats.hash_misses,
        })
    }
}
