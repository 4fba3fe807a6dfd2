//! Pages and log keys in memory, with reads counted and faults on demand.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use kreon_base::{Epoch, Error, ErrorKind, LogOffset, PageBytes, PageNo, RegionId, Result};
use kreon_format::{PagePointer, StoreId, check_node};

use crate::tree::{Filtering, NodeSink, NodeSource};

pub const STORE: StoreId = StoreId(0x5eed);
pub const REGION: RegionId = RegionId(3);

/// A volume and a log.
#[derive(Default)]
pub struct Memory {
    pages: RefCell<BTreeMap<PageNo, Box<PageBytes>>>,
    keys: RefCell<HashMap<LogOffset, Vec<u8>>>,
    log_end: Cell<u64>,
    next_page: Cell<u64>,
    pub epoch: Cell<u64>,
    /// Nodes read one by one, with their levels.
    pub reads: RefCell<BTreeSet<(u8, PageNo)>>,
    /// Nodes per call of `prefetch`, with their level.
    pub prefetches: RefCell<Vec<(u8, usize)>>,
    /// Outcomes of filter lookups.
    pub filtering: RefCell<Vec<Filtering>>,
    /// Keys read from the log.
    pub key_reads: Cell<u64>,
    /// Operations until one fails; none: no fault.
    pub fail_in: Cell<Option<u64>>,
}

impl Memory {
    /// A record with this key; its place in the log.
    pub fn log_record(&self, key: &[u8]) -> LogOffset {
        let offset = LogOffset(self.log_end.get() + 8);
        self.log_end.set(offset.0 + key.len() as u64);
        self.keys.borrow_mut().insert(offset, key.to_vec());
        offset
    }

    pub fn sink(&self) -> Sink<'_> {
        Sink {
            memory: self,
            allocated: Vec::new(),
        }
    }

    pub fn discard(&self, page: PageNo) {
        let page = self.pages.borrow_mut().remove(&page);
        assert!(page.is_some(), "a page that was not there is freed");
    }

    /// Removes a page of a failed merge.
    pub fn remove_if_there(&self, page: PageNo) {
        self.pages.borrow_mut().remove(&page);
    }

    pub fn page_count(&self) -> usize {
        self.pages.borrow().len()
    }

    pub fn page(&self, page: PageNo) -> Box<PageBytes> {
        self.pages.borrow()[&page].clone()
    }

    /// Changes a page where it stands.
    pub fn overwrite(&self, page: PageNo, bytes: &PageBytes) {
        self.pages.borrow_mut().insert(page, Box::new(*bytes));
    }

    pub fn forget_reads(&self) {
        self.reads.borrow_mut().clear();
        self.prefetches.borrow_mut().clear();
        self.filtering.borrow_mut().clear();
        self.key_reads.set(0);
    }

    pub fn reads_of_level(&self, level: u8) -> usize {
        let reads = self.reads.borrow();
        reads.iter().filter(|(of, _)| *of == level).count()
    }

    fn step(&self) -> Result<()> {
        match self.fail_in.get() {
            Some(0) => Err(Error::new(ErrorKind::Io, "a planned fault")),
            Some(n) => {
                self.fail_in.set(Some(n - 1));
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl NodeSource for Memory {
    fn read_node<R>(
        &self,
        pointer: &PagePointer,
        level: u8,
        use_node: impl FnOnce(&PageBytes) -> Result<R>,
    ) -> Result<R> {
        self.step()?;
        self.reads.borrow_mut().insert((level, pointer.page));
        let pages = self.pages.borrow();
        let page = pages
            .get(&pointer.page)
            .ok_or_else(|| Error::corruption(format!("{} is not there", pointer.page)))?;
        check_node(page, STORE, pointer, level)?;
        use_node(page)
    }

    fn prefetch(&self, pointers: &[PagePointer], level: u8) -> Result<()> {
        self.step()?;
        self.prefetches.borrow_mut().push((level, pointers.len()));
        Ok(())
    }

    fn is_resident(&self, _: &PagePointer) -> bool {
        false
    }

    fn filtered(&self, _: &PagePointer, filtering: Filtering) {
        self.filtering.borrow_mut().push(filtering);
    }

    fn read_key(&self, offset: LogOffset, key_bytes: u32, key: &mut Vec<u8>) -> Result<()> {
        self.step()?;
        self.key_reads.set(self.key_reads.get() + 1);
        let keys = self.keys.borrow();
        let found = keys
            .get(&offset)
            .ok_or_else(|| Error::corruption(format!("no record at {offset}")))?;
        if found.len() != key_bytes as usize {
            return Err(Error::corruption(format!("another key at {offset}")));
        }
        key.clone_from(found);
        Ok(())
    }
}

/// Takes the fresh pages of one merge.
pub struct Sink<'m> {
    memory: &'m Memory,
    pub allocated: Vec<PageNo>,
}

impl NodeSink for Sink<'_> {
    fn allocate(&mut self) -> Result<PageNo> {
        self.memory.step()?;
        let page = PageNo(self.memory.next_page.get());
        self.memory.next_page.set(page.0 + 1);
        self.allocated.push(page);
        Ok(page)
    }

    fn write(&mut self, page: PageNo, level: u8, bytes: &PageBytes) -> Result<()> {
        self.memory.step()?;
        assert!(self.allocated.contains(&page) && bytes[7] == level);
        let old = self
            .memory
            .pages
            .borrow_mut()
            .insert(page, Box::new(*bytes));
        assert!(old.is_none(), "{page} is written twice");
        Ok(())
    }

    fn store(&self) -> StoreId {
        STORE
    }

    fn epoch(&self) -> Epoch {
        Epoch(self.memory.epoch.get())
    }

    fn region(&self) -> RegionId {
        REGION
    }
}
