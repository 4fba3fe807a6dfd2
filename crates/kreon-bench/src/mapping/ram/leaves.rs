//! What eviction by priority saves: trees whose leaves are many times as large as the memory, and whose index nodes fit.

use std::sync::Arc;

use kreon_base::{PAGE_BYTES, PageNo};
use kreon_mapping::{Eviction, KeepRecords, Mapping, MappingModes, MappingOptions};

use super::PAGES;
use super::device::RamDevice;
use super::pool::{Done, first_word, request};
use crate::keys::hash;
use crate::meter::Meter;

/// Leaves under an index node.
const FANOUT: u64 = 128;

/// Leaves of the tree; behind them in the volume are its index nodes, and then the root.
const LEAVES: u64 = PAGES * FANOUT / (FANOUT + 1) - 1;

/// Index nodes over the leaves.
const NODES: u64 = LEAVES.div_ceil(FANOUT);

/// Leaves that a spill reads at once.
const SPILL_LEAVES: u64 = 32;

/// Eviction priorities of root and nodes, and of leaves: those of the second level.
const NODE_PRIORITY: u8 = 3;
const LEAF_PRIORITY: u8 = 132;

/// Gets that are measured.
const GETS: u64 = 100_000;

/// Descents from the root to leaves in no order, with frames for a part of the pages. `spills`: for each get, a spill that
/// passes through all leaves in order reads one, and their parents.
///
/// # Errors
/// If there is no memory.
pub fn run(frames: u64, by_priority: bool, spills: bool) -> anyhow::Result<(Done, f64)> {
    let device = Arc::new(RamDevice::new(PAGES));
    let volume_bytes = PAGES * PAGE_BYTES as u64;
    // The tables of a mapping take a twentieth of its memory.
    let memory_bytes = frames as usize * PAGE_BYTES / 19 * 20;
    let mut options = MappingOptions::new(memory_bytes, volume_bytes);
    options.modes = MappingModes {
        records: KeepRecords::Never,
        eviction: match by_priority {
            true => Eviction::Priority,
            false => Eviction::Fifo,
        },
        ..MappingModes::default()
    };
    let tree = Tree(Mapping::new(device, options)?);
    tree.work(0, spills)?;
    let (meter, before) = (Meter::start(), tree.0.stats().pages_read);
    tree.work(GETS, spills)?;
    let taken = meter.stop();
    let read = tree.0.stats().pages_read - before;
    let done = Done { count: GETS, taken };
    Ok((done, read as f64 / GETS as f64))
}

struct Tree(Mapping);

impl Tree {
    /// Gets of leaves, other ones for each `seed`.
    fn work(&self, seed: u64, spills: bool) -> anyhow::Result<()> {
        for number in seed..seed + GETS {
            self.read(LEAVES + NODES, NODE_PRIORITY)?;
            let leaf = hash(number) % LEAVES;
            self.read(LEAVES + leaf / FANOUT, NODE_PRIORITY)?;
            self.read(leaf, LEAF_PRIORITY)?;
            if spills && number % SPILL_LEAVES == 0 {
                self.spill(number % LEAVES)?;
            }
        }
        Ok(())
    }

    /// Reads the next leaves, and the nodes over them.
    fn spill(&self, first: u64) -> anyhow::Result<()> {
        let leaves = first..(first + SPILL_LEAVES).min(LEAVES);
        let requests: Vec<_> = leaves.map(|leaf| request(leaf, LEAF_PRIORITY)).collect();
        self.0.prefetch(&requests)?;
        for request in requests {
            self.read(LEAVES + request.page.0 / FANOUT, NODE_PRIORITY)?;
            self.read(request.page.0, LEAF_PRIORITY)?;
        }
        Ok(())
    }

    fn read(&self, page: u64, priority: u8) -> anyhow::Result<()> {
        let word = self
            .0
            .read(request(page, priority), |bytes| first_word(bytes))?;
        anyhow::ensure!(word == PageNo(page).0, "{} holds {word}", PageNo(page));
        Ok(())
    }
}

const _: () = assert!(LEAVES + NODES < PAGES);
