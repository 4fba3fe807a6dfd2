//! redb.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use redb::{Database, Durability, ReadableDatabase, TableDefinition};

use super::Engine;
use super::tuning::{self, Means};

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("usertable");

struct Redb {
    database: Database,
    is_sync: bool,
    puts: AtomicU64,
    puts_per_flush: u64,
}

/// Opens a new store.
pub fn open(dir: &Path, means: &Means) -> anyhow::Result<Box<dyn Engine>> {
    let database = Database::builder()
        .set_cache_size(tuning::redb_cache_bytes(means))
        .create(dir.join("redb"))
        .context("open redb")?;
    let transaction = database.begin_write()?;
    transaction.open_table(TABLE)?;
    transaction.commit()?;
    let is_sync = means.is_sync;
    Ok(Box::new(Redb {
        database,
        is_sync,
        puts: AtomicU64::new(0),
        puts_per_flush: tuning::redb_puts_per_flush(means),
    }))
}

impl Engine for Redb {
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        let mut transaction = self.database.begin_write()?;
        let number = self.puts.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.is_sync && !number.is_multiple_of(self.puts_per_flush) {
            transaction.set_durability(Durability::None)?;
        }
        transaction.open_table(TABLE)?.insert(key, value)?;
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        let found = table.get(key)?;
        Ok(found.map(|value| show(value.value())).is_some())
    }

    fn scan(
        &self,
        start: &[u8],
        count: usize,
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> anyhow::Result<usize> {
        let table = self.database.begin_read()?.open_table(TABLE)?;
        let mut shown = 0;
        for pair in table.range(start..)?.take(count) {
            let (key, value) = pair?;
            show(key.value(), value.value());
            shown += 1;
        }
        Ok(shown)
    }

    fn settle(&self) -> anyhow::Result<()> {
        // An empty transaction that is durable makes all before it durable.
        Ok(self.database.begin_write()?.commit()?)
    }
}
