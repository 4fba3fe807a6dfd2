//! LMDB.

use std::ops::Bound;
use std::path::Path;

use anyhow::Context;
use kreon_bench_lmdb::heed::types::Bytes;
use kreon_bench_lmdb::heed::{Database, Env, WithoutTls};

use super::Engine;
use super::tuning::{self, Means};

struct Lmdb {
    env: Env<WithoutTls>,
    table: Database<Bytes, Bytes>,
}

/// Opens a new store.
pub fn open(dir: &Path, means: &Means) -> anyhow::Result<Box<dyn Engine>> {
    let dir = dir.join("lmdb");
    std::fs::create_dir_all(&dir)?;
    let env = kreon_bench_lmdb::open(&dir, tuning::lmdb_map_bytes(means), means.is_sync)
        .context("open LMDB")?;
    let mut transaction = env.write_txn()?;
    let table = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok(Box::new(Lmdb { env, table }))
}

impl Engine for Lmdb {
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        let mut transaction = self.env.write_txn()?;
        self.table.put(&mut transaction, key, value)?;
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool> {
        let transaction = self.env.read_txn()?;
        let found = self.table.get(&transaction, key)?;
        Ok(found.map(show).is_some())
    }

    fn scan(
        &self,
        start: &[u8],
        count: usize,
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> anyhow::Result<usize> {
        let transaction = self.env.read_txn()?;
        let mut shown = 0;
        let from = (Bound::Included(start), Bound::Unbounded);
        for pair in self.table.range(&transaction, &from)?.take(count) {
            let (key, value) = pair?;
            show(key, value);
            shown += 1;
        }
        Ok(shown)
    }

    fn settle(&self) -> anyhow::Result<()> {
        Ok(self.env.force_sync()?)
    }
}
