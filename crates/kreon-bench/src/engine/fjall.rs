//! fjall.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::Engine;
use super::tuning::{self, Means};

struct Fjall {
    database: Database,
    table: Keyspace,
    is_sync: bool,
}

/// Opens a new store.
pub fn open(dir: &Path, means: &Means) -> anyhow::Result<Box<dyn Engine>> {
    let tuned = tuning::fjall(means);
    let database = Database::builder(dir.join("fjall"))
        .cache_size(tuned.cache_bytes)
        .worker_threads(tuned.background_threads)
        .open()
        .context("open fjall")?;
    let options = || KeyspaceCreateOptions::default().max_memtable_size(tuned.write_buffer_bytes);
    let table = database.keyspace("usertable", options)?;
    let is_sync = means.is_sync;
    Ok(Box::new(Fjall {
        database,
        table,
        is_sync,
    }))
}

impl Engine for Fjall {
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        self.table.insert(key, value)?;
        if self.is_sync {
            self.database.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }

    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool> {
        let found = self.table.get(key)?;
        Ok(found.map(|value| show(&value)).is_some())
    }

    fn scan(
        &self,
        start: &[u8],
        count: usize,
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> anyhow::Result<usize> {
        let mut shown = 0;
        for pair in self.table.range(start..).take(count) {
            let (key, value) = pair.into_inner()?;
            show(&key, &value);
            shown += 1;
        }
        Ok(shown)
    }

    fn persist(&self) -> anyhow::Result<()> {
        Ok(self.database.persist(PersistMode::SyncData)?)
    }

    fn settle(&self) -> anyhow::Result<()> {
        self.table.rotate_memtable_and_wait()?;
        while self.database.outstanding_flushes() > 0 || self.database.active_compactions() > 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(self.database.persist(PersistMode::SyncData)?)
    }
}
