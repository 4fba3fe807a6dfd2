//! Bf-Tree. It has no durability of single writes: nothing that it took is on the device when a call returns, and it loses
//! what was written since its last snapshot when its process ends.

use std::path::Path;

use anyhow::{Context, bail};
use bf_tree::{BfTree, Config, LeafInsertResult, LeafReadResult, ScanReturnField};

use super::Engine;
use super::tuning::{self, Means};

struct Bftree {
    tree: BfTree,
    record_bytes_max: usize,
}

/// Opens a new store.
pub fn open(dir: &Path, means: &Means) -> anyhow::Result<Box<dyn Engine>> {
    if means.is_sync {
        bail!("Bf-Tree has no durable writes");
    }
    let tuned = tuning::bftree(means);
    let mut config = Config::new(dir.join("bftree"), tuned.buffer_bytes);
    config
        .leaf_page_size(tuned.leaf_bytes)
        .read_promotion_rate(tuned.promotion_percent)
        .scan_promotion_rate(tuned.promotion_percent)
        .cb_max_record_size(tuned.record_bytes_max)
        .cb_min_record_size(16)
        .cb_max_key_len(tuned.key_bytes_max)
        .max_fence_len(2 * tuned.key_bytes_max);
    let tree = BfTree::with_config(config, None);
    let tree = tree.map_err(|error| anyhow::anyhow!("{error:?}"));
    Ok(Box::new(Bftree {
        tree: tree.context("open Bf-Tree")?,
        record_bytes_max: tuned.record_bytes_max,
    }))
}

impl Engine for Bftree {
    fn put(&self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        match self.tree.insert(key, value) {
            LeafInsertResult::Success => Ok(()),
            LeafInsertResult::InvalidKV(why) => bail!(why),
        }
    }

    fn get(&self, key: &[u8], show: &mut dyn FnMut(&[u8])) -> anyhow::Result<bool> {
        let mut value = vec![0; self.record_bytes_max];
        match self.tree.read(key, &mut value) {
            LeafReadResult::Found(bytes) => {
                show(value.get(..bytes as usize).unwrap_or_default());
                Ok(true)
            }
            LeafReadResult::NotFound | LeafReadResult::Deleted => Ok(false),
            LeafReadResult::InvalidKey => bail!("an invalid key"),
        }
    }

    fn scan(
        &self,
        start: &[u8],
        count: usize,
        show: &mut dyn FnMut(&[u8], &[u8]),
    ) -> anyhow::Result<usize> {
        let scan = self
            .tree
            .scan_with_count(start, count, ScanReturnField::KeyAndValue);
        let mut scan = scan.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let mut pair = vec![0; self.record_bytes_max];
        let mut shown = 0;
        while let Some((key_bytes, value_bytes)) = scan.next(&mut pair) {
            let (key, value) = pair.split_at(key_bytes);
            show(key, value.get(..value_bytes).unwrap_or_default());
            shown += 1;
        }
        Ok(shown)
    }

    fn settle(&self) -> anyhow::Result<()> {
        // It has no background work, and durable it does not become.
        Ok(())
    }
}
