//! The copy of a leaf that a cursor stands in.

use std::cell::RefCell;

use kreon_base::{Error, PAGE_BYTES, PageBytes, Result};
use kreon_format::Leaf;

/// Most copies that a thread keeps for its next cursors: a scan has one for each tree. 16 KiB.
const SPARE_MAX: usize = 4;

thread_local! {
    /// Memory of cursors that are gone. Without it each short scan would ask the allocator for a page and zero that.
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A copy of a leaf, or nothing yet.
pub(super) struct LeafCopy(Vec<u8>);

impl LeafCopy {
    /// Of no leaf yet.
    pub fn new() -> Self {
        // A thread that ends has no spare memory any more.
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
        let kept = spare.ok().flatten();
        Self(kept.unwrap_or_else(|| Vec::with_capacity(PAGE_BYTES)))
    }

    /// Becomes a copy of `page`.
    pub fn set(&mut self, page: &PageBytes) {
        self.0.clear();
        self.0.extend_from_slice(page);
    }

    /// The leaf.
    ///
    /// # Errors
    /// `InvalidArgument` before the first copy; that of a page that is no leaf.
    #[inline]
    pub fn leaf(&self) -> Result<Leaf<'_>> {
        match self.0.first_chunk() {
            Some(page) => Leaf::open(page),
            None => Err(Error::invalid("the cursor has no leaf")),
        }
    }
}

impl Drop for LeafCopy {
    fn drop(&mut self) {
        let mut memory = std::mem::take(&mut self.0);
        // The next cursor must not find this leaf.
        memory.clear();
        let keep = |spare: &RefCell<Vec<Vec<u8>>>| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_MAX {
                spare.push(memory);
            }
        };
        _ = SPARE.try_with(keep);
    }
}
