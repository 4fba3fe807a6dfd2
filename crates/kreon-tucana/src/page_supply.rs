//! Where the pages of nodes come from.

use kreon_base::{Error, ErrorKind, PageNo, Result};
use kreon_sync::Mutex;

/// Gives pages for nodes, and takes them back.
pub trait PageSupply: Send + Sync {
    /// A page that nobody uses.
    ///
    /// # Errors
    /// `OutOfSpace`; those of the device.
    fn allocate(&self) -> Result<PageNo>;

    /// Pages that no reader reaches any more, or that were never written.
    fn release(&self, pages: &[PageNo]);
}

/// Pages counted in memory, which nothing survives: for tests of the tree.
pub struct CountedPages {
    free: Mutex<FreePages>,
    end: PageNo,
}

struct FreePages {
    /// Pages from here on were never given.
    next: PageNo,
    returned: Vec<PageNo>,
}

impl CountedPages {
    /// The pages from `first` on, up to `end`.
    pub fn new(first: PageNo, end: PageNo) -> Self {
        let returned = Vec::new();
        Self {
            free: Mutex::new(FreePages {
                next: first,
                returned,
            }),
            end,
        }
    }

    /// Pages that are not given.
    pub fn free(&self) -> u64 {
        let free = self.free.lock();
        self.end.0 - free.next.0 + free.returned.len() as u64
    }
}

impl PageSupply for CountedPages {
    fn allocate(&self) -> Result<PageNo> {
        let mut free = self.free.lock();
        if let Some(page) = free.returned.pop() {
            return Ok(page);
        }
        if free.next >= self.end {
            return Err(Error::new(ErrorKind::OutOfSpace, "no page for a node"));
        }
        let page = free.next;
        free.next.0 += 1;
        Ok(page)
    }

    fn release(&self, pages: &[PageNo]) {
        let mut free = self.free.lock();
        debug_assert!(
            pages.iter().all(|page| !free.returned.contains(page)),
            "a page is given back twice"
        );
        free.returned.extend_from_slice(pages);
    }
}
