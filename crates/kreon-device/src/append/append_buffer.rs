//! The append buffer: one atomic word hands out reservations, two bitmaps record which are committed.

use std::fmt;
use std::ops::Range;

use kreon_base::PAGE_BYTES;
use kreon_base::sync::{
    AtomicBool, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    SetAlone, Watch,
};

use super::commit_bits::{CommitBits, UNIT_BYTES};
use super::reservation::Reservation;
use crate::aligned_buf::{AlignedBuf, Backing};

/// Top bit of the state word: no more reservations. The lower bits: bytes reserved so far.
const SEALED: u32 = 1 << 31;

/// The bytes of one log segment while it is filled. Many threads append without a lock, while others read the committed
/// bytes.
///
/// An append is one compare-and-swap to [reserve](Self::reserve) a part, a copy into it, and two atomic ORs to
/// [commit](Reservation::commit) it. (In the paper the lock around the log's tail took half of the insert time: `Kreon
/// 4.2.1`.)
///
/// Soundness: the state word only grows, by compare-and-swap, so reservations are disjoint, and the limit is at most
/// the capacity, so they are in bounds. Bytes are lent to readers only after an Acquire load saw the commit, which
/// followed the last write. A committed part is not written again before [`reset`](Self::reset), which has exclusive
/// access.
pub struct AppendBuffer {
    bytes: AlignedBuf,
    capacity_bytes: u32,
    /// End of the last possible reservation; at most the capacity.
    limit: AtomicU32,
    state: AtomicU32,
    commits: CommitBits,
    /// All bytes below are committed. Only raised, with Release, by threads that saw the commits with Acquire; so a
    /// thread that loads it with Acquire may read all bytes below.
    prefix: AtomicU32,
    abandoned: AtomicBool,
    /// Each piece is a unit of [`UNIT_BYTES`].
    watch: Watch,
}

/// Outcome of [`AppendBuffer::reserve`].
#[derive(Debug)]
#[must_use]
pub enum Reserve<'a> {
    /// The reserved part, to be filled and committed.
    Reserved(Reservation<'a>),
    /// Less than the requested length is left after the `used` bytes; a shorter reservation may still succeed.
    Full {
        /// Bytes reserved so far.
        used: u32,
    },
    /// The buffer was [sealed](AppendBuffer::seal).
    Sealed,
}

impl AppendBuffer {
    /// An empty, page-aligned buffer of `capacity_bytes` with memory of `backing`; its bitmaps take another 1/32 of that.
    ///
    /// # Panics
    /// Unless `capacity_bytes` is a multiple of the page size of at most 1 GiB.
    pub fn new(capacity_bytes: u32, backing: Backing) -> Self {
        assert!(
            capacity_bytes.is_multiple_of(PAGE_BYTES as u32) && capacity_bytes <= 1 << 30,
            "an append buffer cannot have {capacity_bytes} bytes"
        );
        Self {
            bytes: AlignedBuf::with_backing(capacity_bytes as usize, backing),
            capacity_bytes,
            limit: AtomicU32::new(capacity_bytes),
            state: AtomicU32::new(0),
            commits: CommitBits::new(capacity_bytes),
            prefix: AtomicU32::new(0),
            abandoned: AtomicBool::new(false),
            watch: Watch::new(),
        }
    }

    /// Position at which reservations end at the latest.
    pub fn limit_bytes(&self) -> u32 {
        self.limit.load(Relaxed)
    }

    /// Sets the limit of reservations, at most the capacity. A concurrent reservation may still use the old limit.
    pub fn set_limit(&self, limit_bytes: u32) {
        let limit = limit_bytes.min(self.capacity_bytes);
        self.limit.store(limit - limit % UNIT_BYTES, Relaxed);
    }

    /// Bytes reserved so far, committed or not.
    pub fn reserved_bytes(&self) -> u32 {
        self.state.load(Relaxed) & !SEALED
    }

    /// Whether [`seal`](Self::seal) was called.
    pub fn is_sealed(&self) -> bool {
        self.state.load(Relaxed) & SEALED != 0
    }

    /// Whether a reservation was dropped without commit, so that the committed prefix can never reach the end of the
    /// reserved bytes.
    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Acquire)
    }

    /// Reserves `len_bytes`, rounded up to a multiple of 8 and at least 8, behind the earlier reservations. Never
    /// waits. The caller sees everything that the makers of those reservations did before making them.
    pub fn reserve(&self, len_bytes: u32) -> Reserve<'_> {
        let wanted = whole_units(len_bytes);
        self.claim(0, |_, left| if left < wanted { 0 } else { wanted })
    }

    /// Reserves from the end of the reserved bytes to the next multiple of `align_bytes` (a power of two of at least
    /// 8), to pad to the device's block; `Full` if the end is such a multiple already.
    pub fn reserve_to_boundary(&self, align_bytes: u32) -> Reserve<'_> {
        let mask = whole_units(align_bytes) - 1;
        self.claim(0, |used, left| (used.wrapping_neg() & mask).min(left))
    }

    /// Reserves all bytes left below the [limit](Self::limit_bytes) and [seals](Self::seal) the buffer. If none are
    /// left it seals it and returns `Full`.
    pub fn reserve_rest(&self) -> Reserve<'_> {
        self.claim(SEALED, |_, left| left)
    }

    /// Ends all reservations. Returns the reserved bytes, which is final.
    pub fn seal(&self) -> u32 {
        self.state.fetch_or(SEALED, AcqRel) & !SEALED
    }

    /// Reserves `choose(used, left)` bytes, a multiple of the unit, and sets `flags`; 0 bytes give `Full`.
    fn claim(&self, flags: u32, choose: impl Fn(u32, u32) -> u32) -> Reserve<'_> {
        let mut state = self.state.load(Relaxed);
        loop {
            if state & SEALED != 0 {
                return Reserve::Sealed;
            }
            let used = state;
            let taken = choose(used, self.limit_bytes().saturating_sub(used));
            let next = (used + taken) | flags;
            if next == state {
                return Reserve::Full { used };
            }
            // The bytes need no ordering: `new` or `reset` made their content, and sharing the buffer published it.
            // Release and Acquire serve callers for whom the order of reservations implies the order of what was done
            // before them.
            match self
                .state
                .compare_exchange_weak(state, next, AcqRel, Relaxed)
            {
                Ok(_) if taken == 0 => return Reserve::Full { used },
                Ok(_) => {
                    // SAFETY: `used + taken` is at most the capacity and both are whole units; the
                    // word went from `used` to `used + taken`, so this range is handed out once.
                    let reservation = unsafe { Reservation::new(self, used, taken) };
                    return Reserve::Reserved(reservation);
                }
                Err(now) => state = now,
            }
        }
    }

    /// End of the gapless run of committed bytes from `from` on; `from` if nothing is committed there. `from` must be
    /// the boundary of a reservation or lie in the prefix known to be committed. Costs a few ns for each reservation
    /// not visited before.
    pub fn committed_prefix(&self, from: u32) -> u32 {
        let known = self.prefix.load(Acquire);
        if from > known {
            return self.commits.run_end(from);
        }
        let end = self.commits.run_end(known);
        if end > known {
            // Release publishes the commits just seen; being a read-modify-write, it keeps earlier releases of other
            // threads visible as well. Acquire is not needed, as only `end` is used below.
            self.prefix.fetch_max(end, Release);
        }
        end
    }

    /// The bytes of the committed reservation that starts at `at`; `None` if none starts there or it is not committed
    /// yet.
    pub fn committed(&self, at: u32) -> Option<&[u8]> {
        let end = self.commits.end_of(at)?;
        // SAFETY: `end_of` saw the commit of the reservation `at..end` with Acquire.
        Some(unsafe { self.slice(at..end) })
    }

    /// A range of the gapless committed prefix, for write-out; `None` if part of the range is not committed (yet).
    pub fn committed_range(&self, range: Range<u32>) -> Option<&[u8]> {
        let known = range.end <= self.prefix.load(Acquire);
        if range.start > range.end || !(known || range.end <= self.committed_prefix(0)) {
            return None;
        }
        // SAFETY: all of `0..range.end` was seen to be committed: either by the Acquire load of
        // `prefix` or by `committed_prefix`, which returns what this thread has seen itself.
        Some(unsafe { self.slice(range) })
    }

    /// Empties the buffer. The bytes keep their content, as each later reservation is filled in full. (Zeroing them
    /// took 4 % of the CPU time of a load.)
    pub fn reset(&mut self) {
        let used = self.reserved_bytes();
        self.commits.clear(used);
        self.limit.set_alone(self.capacity_bytes);
        self.state.set_alone(0);
        self.prefix.set_alone(0);
        self.abandoned.set_alone(false);
    }

    /// Makes a filled part visible to all threads.
    pub(super) fn publish(&self, range: Range<u32>) {
        self.commits.commit(range);
    }

    /// Records that a part will never be published.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Release);
    }

    /// Tells the model checker that the bytes of `range` are about to be read or written.
    #[inline]
    pub(super) fn touch(&self, range: Range<u32>, to_write: bool) {
        if cfg!(loom) {
            for unit in range.start / UNIT_BYTES..range.end.div_ceil(UNIT_BYTES) {
                match to_write {
                    true => self.watch.write(u64::from(unit)),
                    false => self.watch.read(u64::from(unit)),
                }
            }
        }
    }

    /// Pointer to the byte at `at`, which must be within the capacity.
    pub(super) fn pointer_to(&self, at: u32) -> *mut u8 {
        debug_assert!(at <= self.capacity_bytes);
        // `wrapping_add` has no precondition; the users of the pointer prove that it is in bounds.
        self.bytes.start().as_ptr().wrapping_add(at as usize)
    }

    /// # Safety
    /// Every byte of `range` belongs to a committed reservation, and the calling thread has
    /// synchronised with the commit.
    unsafe fn slice(&self, range: Range<u32>) -> &[u8] {
        self.touch(range.clone(), false);
        let start = self.pointer_to(range.start);
        let len_bytes = (range.end - range.start) as usize;
        // SAFETY: committed bytes are in bounds, initialised, and not written again while `&self`
        // is borrowed: the reservation is consumed and `reset` takes `&mut self`.
        unsafe { std::slice::from_raw_parts(start, len_bytes) }
    }
}

impl fmt::Debug for AppendBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppendBuffer")
            .field("capacity_bytes", &self.capacity_bytes)
            .field("reserved_bytes", &self.reserved_bytes())
            .field("sealed", &self.is_sealed())
            .finish_non_exhaustive()
    }
}

/// `len_bytes` rounded up to whole units, at least one. A length beyond every capacity stays beyond it.
fn whole_units(len_bytes: u32) -> u32 {
    len_bytes
        .max(1)
        .checked_next_multiple_of(UNIT_BYTES)
        .unwrap_or(u32::MAX - (UNIT_BYTES - 1))
}
