//! The tree over a device in memory, against a model of what it holds.

mod ahead;
mod check;
mod epochs;
mod keys;
mod latches;
mod model;
#[cfg(shuttle)]
mod models;
mod order;
mod ram;
mod refusals;
mod shapes;
mod threads;

use std::sync::Arc;

use kreon_base::{Epoch, PageNo, RegionId};
use kreon_format::StoreId;
use kreon_mapping::{Mapping, MappingOptions};

use super::{Direction, ScanRange, Tree, TreeHome, TreeRoot};
use crate::log::MemoryLog;
use crate::page_supply::CountedPages;
use ram::RamDevice;

/// A tree with what it stands on.
struct World {
    device: Arc<RamDevice>,
    mapping: Arc<Mapping>,
    log: Arc<MemoryLog>,
    pages: Arc<CountedPages>,
    tree: Tree<MemoryLog>,
}

/// Pages that the trees of the tests can have.
const PAGES: u64 = 1 << 14;

fn mapping(device: &Arc<RamDevice>, memory_kib: usize) -> Arc<Mapping> {
    let mut options = MappingOptions::new(memory_kib << 10, PAGES * 4096);
    options.shards = 4;
    options.huge_pages = false;
    Arc::new(Mapping::new(Arc::clone(device) as _, options).expect("memory"))
}

impl World {
    /// A tree in a mapping of about so much memory.
    fn new(memory_kib: usize) -> Self {
        let device = Arc::new(RamDevice::new(PAGES * 4096));
        let mapping = mapping(&device, memory_kib);
        let log = Arc::new(MemoryLog::default());
        let pages = Arc::new(CountedPages::new(PageNo(1), PageNo(PAGES)));
        let home = home(&mapping, &log, &pages);
        Self {
            device,
            mapping,
            log,
            pages,
            tree: Tree::new(home, Epoch(1)).expect("room for a leaf"),
        }
    }

    /// Ends the epoch and makes its nodes pages, as a commit does. The root.
    fn publish(&self) -> TreeRoot {
        self.tree.freeze();
        let publication = self.tree.publish_frozen().expect("a publication");
        let publication = publication.expect("of the epoch that has just ended");
        self.tree.committed(&publication);
        publication.root
    }

    /// All pairs in order, after a look at the whole structure.
    fn pairs(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        check::check(&self.tree);
        pairs(&self.tree, Direction::Forward)
    }
}

fn home(
    mapping: &Arc<Mapping>,
    log: &Arc<MemoryLog>,
    pages: &Arc<CountedPages>,
) -> TreeHome<MemoryLog> {
    TreeHome {
        mapping: Arc::clone(mapping),
        log: Arc::clone(log),
        pages: Arc::clone(pages) as _,
        store: StoreId(77),
        region: RegionId(5),
    }
}

fn pairs(tree: &Tree<MemoryLog>, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = tree.scan(ScanRange::default(), direction);
    all.map(|pair| pair.expect("a pair")).collect()
}
