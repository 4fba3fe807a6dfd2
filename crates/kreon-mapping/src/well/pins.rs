//! Pins: how a reader says which frame it is using, without writing to memory that other readers
//! write to. (These are hazard pointers: M. Michael, IEEE TPDS 2004.)
//!
//! Each thread has a slot with a few cells, alone in its cache lines. A pin is the address of a frame in one of the
//! thread's own cells. Before frames are reused, the cells of all threads are read, once for a whole batch. Unlike an epoch, a reader that takes long, or that waits for the device in
//! a nested read, holds up exactly the frames that it uses.
//!
//! Slots belong to threads, not to mappings, because addresses tell the mappings apart. A slot is never freed; when its
//! thread has ended, the next new thread takes it. A thread that ends takes no lock: in a forked child the thread that
//! holds the lock does not exist.

use std::cell::Cell;
use std::marker::PhantomData;

use kreon_base::sync::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
#[cfg(loom)]
use kreon_base::sync::{Mutex, MutexGuard, RwLock};
#[cfg(not(loom))]
use parking_lot::{Mutex, MutexGuard, RwLock};

/// Pins that one thread can hold at once: how deep reads can nest before they copy.
const CELLS: usize = if cfg!(loom) { 2 } else { 8 };

/// No pin.
const EMPTY: usize = 0;

/// The cells of one thread. Two cache lines, as processors fetch lines in pairs.
#[repr(align(128))]
struct ThreadSlot {
    /// Only the owner stores. Every store is a release: a thread that sees a cell change knows that the uses of the
    /// earlier pin are over.
    cells: [AtomicUsize; CELLS],
    number: usize,
    is_taken: AtomicBool,
}

#[cfg(not(loom))]
macro_rules! shared {
    ($($(#[$about:meta])* static $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$about])* static $name: $type = $value;)*
    };
}

/// In a model every run begins with statics of its own.
#[cfg(loom)]
macro_rules! shared {
    ($($(#[$about:meta])* static $name:ident: $type:ty = $value:expr;)*) => {
        loom::lazy_static! { $($(#[$about])* static ref $name: $type = $value;)* }
    };
}

shared! {
    /// All slots ever made.
    static SLOTS: RwLock<Vec<&'static ThreadSlot>> = RwLock::new(Vec::new());

    /// Locked by the user of the spare slot.
    static SPARE: Mutex<Option<&'static ThreadSlot>> = Mutex::new(None);
}

/// The slot of this thread.
struct OwnSlot(Cell<Option<&'static ThreadSlot>>);

#[cfg(not(loom))]
thread_local! {
    static OWN_SLOT: OwnSlot = const { OwnSlot(Cell::new(None)) };
}

#[cfg(loom)]
loom::thread_local! {
    static OWN_SLOT: OwnSlot = OwnSlot(Cell::new(None));
}

impl OwnSlot {
    #[inline]
    fn slot(&self) -> &'static ThreadSlot {
        match self.0.get() {
            Some(slot) => slot,
            None => self.acquire(),
        }
    }

    #[cold]
    fn acquire(&self) -> &'static ThreadSlot {
        let idle = SLOTS.read().iter().copied().find(|slot| slot.take());
        let slot = idle.unwrap_or_else(ThreadSlot::register);
        self.0.set(Some(slot));
        slot
    }

    fn give_back(&self) {
        if let Some(slot) = self.0.take() {
            slot.is_taken.store(false, Release);
        }
    }
}

impl Drop for OwnSlot {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// What the end of a thread does. Loom runs it after the thread was joined, too late for a model.
#[cfg(all(test, loom))]
pub(super) fn end_thread() {
    OWN_SLOT.with(OwnSlot::give_back);
}

impl ThreadSlot {
    fn register() -> &'static Self {
        // The lock orders this against `pinned`: one that read the slots before cannot have missed a pin whose
        // reader did not see the retirement.
        let mut slots = SLOTS.write();
        let slot: &'static Self = Box::leak(Box::new(Self {
            cells: std::array::from_fn(|_| AtomicUsize::new(EMPTY)),
            number: slots.len(),
            is_taken: AtomicBool::new(true),
        }));
        slots.push(slot);
        slot
    }

    /// Takes the slot if its thread has ended. Acquires all that the thread stored to it.
    fn take(&self) -> bool {
        !self.is_taken.load(Relaxed) && !self.is_taken.swap(true, Acquire)
    }
}

/// A number for this thread, small, and not shared with any other living thread.
pub(crate) fn thread_number() -> usize {
    OWN_SLOT.try_with(|hold| hold.slot().number).unwrap_or(0)
}

/// One frame's address in one cell, until dropped.
pub(super) struct Pin {
    cell: &'static AtomicUsize,
    /// Number of the slot.
    pub thread: usize,
    /// Keeps others out of the spare slot.
    _spare: Option<MutexGuard<'static, Option<&'static ThreadSlot>>>,
    /// Only the thread that owns the slot may store to its cells.
    _not_send: PhantomData<*const ()>,
}

impl Pin {
    /// Puts `address` in a cell of this thread; `None` if it has none left (too many nested reads, or
    /// the thread is ending).
    #[inline]
    pub fn new(address: usize) -> Option<Self> {
        let slot = OWN_SLOT.try_with(OwnSlot::slot).ok()?;
        let cell = slot.cells.iter().find(|cell| cell.load(Relaxed) == EMPTY)?;
        cell.store(address, SeqCst);
        Some(Self {
            cell,
            thread: slot.number,
            _spare: None,
            _not_send: PhantomData,
        })
    }

    /// Puts `address` in the spare slot, of which there is one in the process: to be held shortly.
    pub fn spare(address: usize) -> Self {
        let mut spare = SPARE.lock();
        let slot = *spare.get_or_insert_with(ThreadSlot::register);
        let [cell, ..] = &slot.cells;
        cell.store(address, SeqCst);
        Self {
            cell,
            thread: slot.number,
            _spare: Some(spare),
            _not_send: PhantomData,
        }
    }

    /// Pins another frame instead.
    pub fn change(&self, address: usize) {
        self.cell.store(address, SeqCst);
    }
}

impl Drop for Pin {
    #[inline]
    fn drop(&mut self) {
        self.cell.store(EMPTY, Release);
    }
}

/// The addresses that are pinned, sorted. A frame that was retired before the call and is not among
/// them is not in use, and will not be until it is published again.
pub(super) fn pinned() -> Vec<usize> {
    let mut pinned: Vec<usize> = SLOTS
        .read()
        .iter()
        .flat_map(|slot| slot.cells.iter())
        .map(|cell| cell.load(SeqCst))
        .filter(|&address| address != EMPTY)
        .collect();
    pinned.sort_unstable();
    pinned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_seen_while_it_is_held() {
        let pin = Pin::new(0x1111_0000).unwrap();
        assert!(pinned().contains(&0x1111_0000));
        pin.change(0x2222_0000);
        assert!(!pinned().contains(&0x1111_0000));
        assert!(pinned().contains(&0x2222_0000));
        drop(pin);
        assert!(!pinned().contains(&0x2222_0000));
    }

    #[test]
    fn a_thread_has_a_limited_number_of_cells_and_gets_them_back() {
        let mut pins: Vec<_> = (1..=CELLS).map(|i| Pin::new(i << 40).unwrap()).collect();
        assert!(Pin::new(99 << 40).is_none());
        pins.swap_remove(3);
        assert!(Pin::new(99 << 40).is_some());
        let spare = Pin::spare(98 << 40);
        assert!(pinned().contains(&(98 << 40)));
        drop(spare);
    }

    #[test]
    fn slots_of_ended_threads_are_used_again() {
        let before = SLOTS.read().len();
        for _ in 0..50 {
            std::thread::spawn(|| drop(Pin::new(7 << 40)))
                .join()
                .unwrap();
        }
        // Other tests run threads of their own meanwhile.
        assert!(SLOTS.read().len() < before + 40);
    }
}
