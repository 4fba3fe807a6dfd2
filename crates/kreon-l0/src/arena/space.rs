//! Raw space: chunks of 2 MiB behind one table, handed out by a bump of one atomic word.

use std::ptr::{self, NonNull};
use std::sync::Arc;

#[cfg(loom)]
use kreon_base::sync::Mutex;
use kreon_base::sync::{AtomicPtr, AtomicU64, Ordering};
#[cfg(not(loom))]
use parking_lot::Mutex;

use super::chunk::{CHUNK_BYTES, Chunk};
use super::pool::Pool;

/// Alignment and granularity of objects; a 32-bit reference counts these.
pub(super) const UNIT_BYTES: usize = 8;

/// Units in a chunk.
const CHUNK_UNITS: u32 = (CHUNK_BYTES / UNIT_BYTES) as u32;

/// Chunks that 32-bit references can reach: 32 GiB.
const CHUNKS_MAX: usize = if cfg!(loom) {
    4
} else {
    (1 << 32) / CHUNK_UNITS as usize
};

/// What 32-bit references in units of 8 bytes can reach.
pub(crate) const SPACE_BYTES_MAX: usize = (1 << 32) * UNIT_BYTES;

/// Largest piece that [`Space::take`] gives.
pub(super) const PIECE_BYTES_MAX: usize = CHUNK_BYTES / 4;

/// Apart from what readers touch, so that writers who take space do not slow them down.
#[repr(align(128))]
struct Next(AtomicU64);

/// Memory that only grows. Pieces never overlap and stay where they are until the space is dropped.
pub(super) struct Space {
    /// Entry i is the memory of chunk i, null beyond the last one. Fixed in size, so that a reader
    /// never sees it move; its untouched pages cost nothing.
    chunks: Box<[AtomicPtr<u8>; CHUNKS_MAX]>,
    /// Chunk in use << 32 | first free unit in it. A unit past the chunk's end means: full, and it
    /// stays so until a new chunk is installed.
    next: Next,
    /// Held while a chunk is installed.
    growth: Mutex<()>,
    /// Where chunks come from and go to.
    pool: Arc<Pool>,
}

impl Space {
    /// A space with one chunk.
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        let space = Self {
            chunks: no_chunks(),
            // Unit 0 stays free: the reference 0 means none.
            next: Next(AtomicU64::new(1)),
            growth: Mutex::new(()),
            pool,
        };
        space.install(0);
        space
    }

    /// Bytes handed out, with what was left over at the end of full chunks.
    pub(super) fn bytes(&self) -> usize {
        let (chunk, unit) = split(self.next.0.load(Ordering::Relaxed));
        chunk as usize * CHUNK_BYTES + unit.min(CHUNK_UNITS) as usize * UNIT_BYTES
    }

    /// Takes a piece of `bytes`, at most [`PIECE_BYTES_MAX`]; returns its first unit, never 0. The
    /// memory is not written yet. One atomic addition, but for one call in thousands.
    ///
    /// # Panics
    /// Where all [`SPACE_BYTES_MAX`] are used up.
    pub(super) fn take(&self, bytes: usize) -> u32 {
        assert!(bytes <= PIECE_BYTES_MAX, "a piece fits in a chunk");
        let units = bytes.div_ceil(UNIT_BYTES) as u32;
        loop {
            // Acquire: sees the chunk that the releasing store in `grow` announced; additions in
            // between continue that store's release sequence.
            let taken = self.next.0.fetch_add(u64::from(units), Ordering::Acquire);
            let (chunk, unit) = split(taken);
            if unit.saturating_add(units) <= CHUNK_UNITS {
                return chunk * CHUNK_UNITS + unit;
            }
            self.grow(chunk);
        }
    }

    /// Installs the chunk after `full`, unless another thread just did.
    fn grow(&self, full: u32) {
        let _growth = self.growth.lock();
        if split(self.next.0.load(Ordering::Relaxed)).0 != full {
            return;
        }
        let chunk = full + 1;
        assert!((chunk as usize) < CHUNKS_MAX, "an L0 ends at 32 GiB");
        self.install(chunk);
        // Nothing is lost by overwriting: additions since the chunk filled up all failed.
        // A swap and not a store: whoever checks this knows that it comes after all of them.
        self.next.0.swap(u64::from(chunk) << 32, Ordering::Release);
    }

    fn install(&self, chunk: u32) {
        let memory = self.pool.take().into_start();
        self.chunks[chunk as usize].store(memory.as_ptr(), Ordering::Relaxed);
    }

    /// Where the chunks come from and go to.
    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Address of `unit`, which is one that `take` returned.
    #[inline]
    pub(super) fn address(&self, unit: u32) -> *mut u8 {
        // Relaxed: who knows the unit comes after its `take` (directly or through the release and
        // acquire of a reference), and that came after the chunk's pointer was stored.
        let chunk = self.chunks[(unit / CHUNK_UNITS) as usize].load(Ordering::Relaxed);
        let within = (unit % CHUNK_UNITS) as usize * UNIT_BYTES;
        // `wrapping_add` needs no promise; whoever reads or writes there proves it in bounds.
        chunk.wrapping_add(within)
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // Relaxed: `&mut self`, so whatever others did came before.
        let memories = self
            .chunks
            .iter()
            .map_while(|chunk| NonNull::new(chunk.swap(ptr::null_mut(), Ordering::Relaxed)));
        let chunks = memories.map(|memory| {
            // SAFETY: `install` got it from `into_start`; the table no longer has it, and nobody else
            // refers to the space any more.
            unsafe { Chunk::from_start(memory) }
        });
        self.pool.give_back(chunks.collect());
    }
}

/// A table of null pointers.
#[cfg(not(loom))]
fn no_chunks() -> Box<[AtomicPtr<u8>; CHUNKS_MAX]> {
    // SAFETY: all-zero bytes are a valid array of null `AtomicPtr`s, which has the layout of an
    // array of pointers.
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
        // Nothing is written, so the memory is not even there: many chunks cost little.
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
