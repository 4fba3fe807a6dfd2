//! Raw memory: chunks of 2 MiB behind one table, allocated by adding to one atomic word.

use std::ptr::{self, NonNull};
use std::sync::Arc;

#[cfg(loom)]
use kreon_base::sync::Mutex;
use kreon_base::sync::{AtomicPtr, AtomicU64, Ordering};
#[cfg(not(loom))]
use parking_lot::Mutex;

use super::chunk::{CHUNK_BYTES, Chunk};
use super::pool::Pool;

/// Alignment and granularity of objects in bytes; a 32-bit reference counts these units.
pub(super) const UNIT_BYTES: usize = 8;

/// Units in a chunk.
const CHUNK_UNITS: u32 = (CHUNK_BYTES / UNIT_BYTES) as u32;

/// Chunks that 32-bit references can address: 32 GiB.
const CHUNKS_MAX: usize = if cfg!(loom) {
    4
} else {
    (1 << 32) / CHUNK_UNITS as usize
};

/// Bytes that 32-bit references in units of 8 bytes can address.
pub(crate) const SPACE_BYTES_MAX: usize = (1 << 32) * UNIT_BYTES;

/// Largest piece that [`Space::take`] returns.
pub(super) const PIECE_BYTES_MAX: usize = CHUNK_BYTES / 4;

/// On a cache line of its own, so that allocations do not slow down readers.
#[repr(align(128))]
struct Next(AtomicU64);

/// Memory that only grows. Pieces never overlap and stay in place until the space is dropped.
pub(super) struct Space {
    /// Entry i is the memory of chunk i, null behind the last one. Fixed in size, so that it never moves under a
    /// reader; its untouched pages take no memory.
    chunks: Box<[AtomicPtr<u8>; CHUNKS_MAX]>,
    /// Current chunk << 32 | first free unit in it. A unit behind the chunk's end means that the chunk is full, until
    /// the next chunk is installed.
    next: Next,
    /// Held while a chunk is installed.
    growth: Mutex<()>,
    /// The pool that provides chunks and takes them back.
    pool: Arc<Pool>,
}

impl Space {
    /// A space with one chunk.
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        let space = Self {
            chunks: no_chunks(),
            // Unit 0 is never allocated: reference 0 means `None`.
            next: Next(AtomicU64::new(1)),
            growth: Mutex::new(()),
            pool,
        };
        space.install(0);
        space
    }

    /// Bytes allocated, including the remainders of full chunks.
    pub(super) fn bytes(&self) -> usize {
        let (chunk, unit) = split(self.next.0.load(Ordering::Relaxed));
        chunk as usize * CHUNK_BYTES + unit.min(CHUNK_UNITS) as usize * UNIT_BYTES
    }

    /// Allocates `bytes`, at most [`PIECE_BYTES_MAX`]; returns the first unit, never 0. The memory is uninitialised.
    /// Costs one atomic addition, except for one call in thousands, which adds a chunk.
    ///
    /// # Panics
    /// If all [`SPACE_BYTES_MAX`] are used up.
    pub(super) fn take(&self, bytes: usize) -> u32 {
        assert!(bytes <= PIECE_BYTES_MAX, "a piece fits in a chunk");
        let units = bytes.div_ceil(UNIT_BYTES) as u32;
        loop {
            // Acquire: sees the chunk that the releasing swap in `grow` announced; additions in between continue its
            // release sequence.
            let taken = self.next.0.fetch_add(u64::from(units), Ordering::Acquire);
            let (chunk, unit) = split(taken);
            if unit.saturating_add(units) <= CHUNK_UNITS {
                return chunk * CHUNK_UNITS + unit;
            }
            self.grow(chunk);
        }
    }

    /// Installs the chunk after `full`, unless another thread has done so.
    fn grow(&self, full: u32) {
        let _growth = self.growth.lock();
        if split(self.next.0.load(Ordering::Relaxed)).0 != full {
            return;
        }
        let chunk = full + 1;
        assert!((chunk as usize) < CHUNKS_MAX, "an L0 ends at 32 GiB");
        self.install(chunk);
        // Overwriting loses nothing, as all additions since the chunk was full have failed. A swap, not a store, so
        // that it comes after all of them in the word's modification order.
        self.next.0.swap(u64::from(chunk) << 32, Ordering::Release);
    }

    fn install(&self, chunk: u32) {
        let memory = self.pool.take().into_start();
        self.chunks[chunk as usize].store(memory.as_ptr(), Ordering::Relaxed);
    }

    /// The pool that provides chunks and takes them back.
    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Address of `unit`, which `take` must have returned.
    #[inline]
    pub(super) fn address(&self, unit: u32) -> *mut u8 {
        // Relaxed: a thread that knows the unit comes after its `take` (directly, or through the release and acquire of
        // a reference), which came after the chunk's pointer was stored.
        let chunk = self.chunks[(unit / CHUNK_UNITS) as usize].load(Ordering::Relaxed);
        let within = (unit % CHUNK_UNITS) as usize * UNIT_BYTES;
        // `wrapping_add` has no precondition; the users of the pointer prove that it is in bounds.
        chunk.wrapping_add(within)
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // Relaxed: `&mut self` implies that all accesses by other threads came before.
        let memories = self
            .chunks
            .iter()
            .map_while(|chunk| NonNull::new(chunk.swap(ptr::null_mut(), Ordering::Relaxed)));
        let chunks = memories.map(|memory| {
            // SAFETY: `install` got it from `into_start`; the swap removed it from the table, and nobody refers to the
            // space any more.
            unsafe { Chunk::from_start(memory) }
        });
        self.pool.give_back(chunks.collect());
    }
}

/// A table of null pointers.
#[cfg(not(loom))]
fn no_chunks() -> Box<[AtomicPtr<u8>; CHUNKS_MAX]> {
    // SAFETY: all-zero bytes are a valid array of null `AtomicPtr`s, which has the layout of an array of pointers.
    unsafe { Box::<[AtomicPtr<u8>; CHUNKS_MAX]>::new_zeroed().assume_init() }
}

#[cfg(loom)]
fn no_chunks() -> Box<[AtomicPtr<u8>; CHUNKS_MAX]> {
    Box::new(std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())))
}

fn split(next: u64) -> (u32, u32) {
    ((next >> 32) as u32, next as u32)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const PIECES: usize = if cfg!(miri) { 10 } else { 1000 };

    #[test]
    fn pieces_never_overlap_nor_straddle_chunks() {
        let space = Space::new(Pool::new(0));
        // Nothing is written, so the memory is never backed: many chunks cost little.
        let mut units: Vec<u32> = thread::scope(|scope| {
            let take = || (0..PIECES).map(|_| space.take(PIECE_BYTES_MAX)).collect();
            let threads = [0, 1, 2, 3].map(|_| scope.spawn::<_, Vec<u32>>(take));
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
                .collect()
        });
        units.sort_unstable();
        let piece = (PIECE_BYTES_MAX / UNIT_BYTES) as u32;
        assert!(units[0] > 0);
        assert!(units.windows(2).all(|pair| pair[1] - pair[0] >= piece));
        for unit in units {
            let last = unit + piece - 1;
            assert_eq!(unit / CHUNK_UNITS, last / CHUNK_UNITS);
            let bytes = space.address(last) as usize - space.address(unit) as usize;
            assert_eq!(bytes + UNIT_BYTES, PIECE_BYTES_MAX);
        }
    }

    #[test]
    fn who_comes_late_to_a_full_chunk_changes_nothing() {
        let space = Space::new(Pool::new(0));
        while split(space.next.0.load(Ordering::Relaxed)).0 == 0 {
            space.take(PIECE_BYTES_MAX);
        }
        let (bytes, address) = (space.bytes(), space.address(CHUNK_UNITS));
        space.grow(0);
        assert_eq!(
            (space.bytes(), space.address(CHUNK_UNITS)),
            (bytes, address)
        );
    }

    #[test]
    fn a_space_leaves_its_chunks_to_the_next() {
        let pool = Pool::new(2 * CHUNK_BYTES);
        let fill = |chunks: usize| {
            let space = Space::new(Arc::clone(&pool));
            while split(space.next.0.load(Ordering::Relaxed)).0 as usize + 1 < chunks {
                space.take(PIECE_BYTES_MAX);
            }
            space
        };
        let (one, other) = (fill(2), fill(1));
        assert_eq!(pool.counts(), (3, 0));
        let addresses = [0, 1].map(|chunk| one.address(chunk * CHUNK_UNITS));
        drop(one);
        assert_eq!(pool.counts(), (1, 1), "no more than two are kept");
        let next = fill(1);
        assert!(addresses.contains(&next.address(0)));
        drop((other, next));
        assert_eq!(pool.counts(), (0, 2));
    }
}
