//! RocksDB, and RocksDB with values in blob files.

use std::path::Path;

use anyhow::Context;
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DEFAULT_COLUMN_FAMILY_NAME, Options,
    WaitForCompactOptions, WriteBatch, WriteOptions,
};

use super::Engine;
use super::tuning::{Means, rocksdb as tuning};

struct Rocksdb {
    db: DB,
    write_options: WriteOptions,
}

/// Opens a new store; `blobs`: values of medium length and longer go to blob files.
pub fn open(dir: &Path, means: &Means, blobs: bool) -> anyhow::Result<Box<dyn Engine>> {
    let (options, write_options) = (options(means, blobs), write_options(means));
    // By name, because batched gets ask for it by its handle.
    let family = (DEFAULT_COLUMN_FAMILY_NAME, options.clone());
    let db = DB::open_cf_with_opts(&options, dir.join("rocksdb"), [family]);
    let db = db.context("open RocksDB")?;
    Ok(Box::new(Rocksdb { db, write_options }))
}

fn options(means: &Means, blobs: bool) -> Options {
    let tuned = tuning(means);
    let mut tables = BlockBasedOptions::default();
    let cache = match tuned.has_clock_cache {
        // 0: it finds out by itself how large blocks are.
        true => Cache::new_hyper_clock_cache(tuned.cache_bytes, 0),
        false => Cache::new_lru_cache(tuned.cache_bytes),
    };
    tables.set_block_cache(&cache);
    tables.set_bloom_filter(tuned.filter_bits_per_key, false);
    tables.set_cache_index_and_filter_blocks(tuned.index_in_cache);
    tables.set_pin_l0_filter_and_index_blocks_in_cache(tuned.index_in_cache);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&tables);
    options.set_compression_type(DBCompressionType::None);
    options.set_write_buffer_size(tuned.write_buffer_bytes);
    options.set_max_write_buffer_number(tuned.write_buffers);
    options.set_max_background_jobs(tuned.background_threads);
    options.set_use_direct_reads(tuned.is_direct);
    options.set_use_direct_io_for_flush_and_compaction(tuned.is_direct);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_bytes_per_sync(1 << 20);
    options.set_max_open_files(-1);
    if blobs {
        options.set_enable_blob_files(true);
        options.set_min_blob_size(tuned.blob_bytes_min);
        options.set_enable_blob_gc(true);
    }
    options
}

fn write_options(means: &Means) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(means.is_sync);
    options
}

impl Engine for Rocksdb {
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        Ok(self.db.put_opt(key, value, &self.write_options)?)
    }

    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool> {
        let found = self.db.get_pinned(key)?;
        Ok(found.map(|value| show(&value)).is_some())
    }

    fn get_many(
        &self,
        keys: &[Vec<u8>],
        show: &mut dyn FnMut(usize, &[u8]),
    ) -> anyhow::Result<usize> {
        // The batched form sorts the keys and looks each block up once. That it reads several files at once needs
        // liburing, which its build takes from the system only.
        let families = self.db.cf_handle(DEFAULT_COLUMN_FAMILY_NAME);
        let family = families.context("no default column family")?;
        let values = self.db.batched_multi_get_cf(&family, keys, false);
        let mut found = 0;
        for (number, value) in values.into_iter().enumerate() {
            if let Some(value) = value? {
                show(number, &value);
                found += 1;
            }
        }
        Ok(found)
    }

    fn scan(
        &self,
        start: &[u8],
        count: usize,
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> anyhow::Result<usize> {
        // The raw iterator shows pairs in place; the other one copies each into two boxes. Readahead is RocksDB's
        // own, which starts when blocks are read in a row.
        let mut pairs = self.db.raw_iterator();
        pairs.seek(start);
        let mut shown = 0;
        while shown < count {
            let Some((key, value)) = pairs.item() else {
                break;
            };
            show(key, value);
            shown += 1;
            pairs.next();
        }
        Ok(pairs.status().map(|()| shown)?)
    }

    fn write_buffered(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> anyhow::Result<()> {
        let mut batch = WriteBatch::default();
        for (key, value) in pairs {
            batch.put(key, value);
        }
        Ok(self.db.write_opt(batch, &WriteOptions::default())?)
    }

    fn persist(&self) -> anyhow::Result<()> {
        Ok(self.db.flush_wal(true)?)
    }

    fn settle(&self) -> anyhow::Result<()> {
        // What is in memory goes to the device, and what that sets off ends.
        let mut wait = WaitForCompactOptions::default();
        wait.set_flush(true);
        Ok(self.db.wait_for_compact(&wait)?)
    }
}
