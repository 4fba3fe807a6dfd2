//! What a write reads before it takes the latches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use kreon_base::{Epoch, Lsn, PageNo, RegionId, Result};
use kreon_format::StoreId;
use kreon_mapping::Fetched;
use kreon_sync::Mutex;

use super::ram::RamDevice;
use super::{PAGES, mapping};
use crate::format::Location;
use crate::log::{MemoryLog, Placed, Record, RecordLog};
use crate::page_supply::CountedPages;
use crate::tree::{Tree, TreeHome};

type Step = Box<dyn FnOnce() + Send>;

/// A log that takes a step in the midst of a read.
#[derive(Default)]
struct SteppingLog {
    log: MemoryLog,
    step: Mutex<Option<Step>>,
}

impl RecordLog for SteppingLog {
    fn make_room(&self, record: &Record<'_>) -> Result<()> {
        self.log.make_room(record)
    }

    fn append(&self, record: &Record<'_>) -> Result<Option<Placed>> {
        self.log.append(record)
    }

    fn read<R>(&self, location: Location, use_record: impl FnOnce(Record<'_>) -> R) -> Result<R> {
        let step = self.step.lock().take();
        step.into_iter().for_each(|step| step());
        self.log.read(location, use_record)
    }

    /// Nothing is in memory before the step.
    fn read_resident<R>(
        &self,
        location: Location,
        use_record: impl FnOnce(Record<'_>) -> R,
    ) -> Option<R> {
        match self.step.lock().is_some() {
            true => None,
            false => self.log.read_resident(location, use_record),
        }
    }

    fn fetch(&self, locations: impl Iterator<Item = Location>, into: &mut Fetched) {
        self.log.fetch(locations, into);
    }

    fn read_fetched<R>(
        &self,
        location: Location,
        from: &Fetched,
        use_record: impl FnOnce(Record<'_>) -> R,
    ) -> Option<R> {
        self.log.read_fetched(location, from, use_record)
    }

    fn lsn(&self, location: Location) -> Lsn {
        self.log.lsn(location)
    }
}

fn tree() -> Arc<Tree<SteppingLog>> {
    let device = Arc::new(RamDevice::new(PAGES * 4096));
    let home = TreeHome {
        mapping: mapping(&device, 1 << 10),
        log: Arc::default(),
        pages: Arc::new(CountedPages::new(PageNo(1), PageNo(PAGES))) as _,
        store: StoreId(77),
        region: RegionId(5),
    };
    Arc::new(Tree::new(home, Epoch(1)).expect("room for a leaf"))
}

/// A place in the log is free for another record when all generations that saw the one before are gone. A write that knows
/// a key by its place must not let go of them.
#[test]
fn no_place_whose_key_a_write_has_read_ahead_is_used_again_before_its_end() {
    let tree = tree();
    tree.put(b"key", b"old").unwrap();
    tree.inside().0.misses.note();
    let committing = Arc::clone(&tree);
    *tree.inside().0.log.step.lock() = Some(Box::new(move || {
        let last = committing.freeze().epoch();
        let publication = committing.publish_up_to(last).unwrap().unwrap();
        committing.committed(&publication);
    }));
    let is_asked = AtomicBool::new(false);
    let record = Record {
        region: RegionId(5),
        key: b"key",
        value: Some(b"new"),
    };
    let admit = || {
        is_asked.store(true, SeqCst);
        let (passed, _) = tree.release_passed();
        assert!(passed < Epoch(1), "{passed} has passed");
        Ok(())
    };
    let written = tree.write(&record, &mut None, admit).unwrap();
    assert!(written.existed && is_asked.load(SeqCst));
    let (passed, _) = tree.release_passed();
    assert_eq!(passed, Epoch(1));
}
