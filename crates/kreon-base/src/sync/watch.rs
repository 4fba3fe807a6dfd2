//! Race detection for memory behind raw pointers.

/// Records each access to memory whose exclusion rests on atomics instead of the borrow checker.
///
/// Under loom it keeps a cell for each piece of that memory, and loom fails a model in which two accesses, one of them
/// a write, are unordered. In other builds it is empty and costs nothing.
#[derive(Default)]
pub struct Watch {
    #[cfg(loom)]
    cells: std::sync::Mutex<std::collections::HashMap<u64, loom::cell::UnsafeCell<()>>>,
}

#[cfg(not(loom))]
impl Watch {
    /// A watch without recorded accesses.
    #[inline]
    pub const fn new() -> Self {
        Self {}
    }

    /// The calling thread reads piece `piece`.
    #[inline]
    pub const fn read(&self, _piece: u64) {}

    /// The calling thread writes piece `piece`.
    #[inline]
    pub const fn write(&self, _piece: u64) {}
}

#[cfg(loom)]
impl Watch {
    /// A watch without recorded accesses.
    pub fn new() -> Self {
        Self::default()
    }

    /// The calling thread reads piece `piece`. A piece without a recorded write was written before it was shared, so
    /// reading it is fine.
    #[track_caller]
    pub fn read(&self, piece: u64) {
        let cells = self.cells.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(cell) = cells.get(&piece) {
            drop(cell.get());
        }
    }

    /// The calling thread writes piece `piece`.
    #[track_caller]
    pub fn write(&self, piece: u64) {
        let mut cells = self.cells.lock().unwrap_or_else(|e| e.into_inner());
        let cell = cells
            .entry(piece)
            .or_insert_with(|| loom::cell::UnsafeCell::new(()));
        drop(cell.get_mut());
    }
}
