//! A part of an append buffer, owned by one writer until it is committed.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};

use super::append_buffer::AppendBuffer;
use super::commit_bits::UNIT_BYTES;

/// Exclusive use of a part of an [`AppendBuffer`] until it is committed. Its initial bytes are arbitrary but
/// initialised (zeroes, or bytes from before the last reset), so the writer must fill all of it.
///
/// Dropping it without [`commit`](Self::commit) leaves a hole: bytes behind it never join the committed prefix, and
/// [`AppendBuffer::is_abandoned`] is true from then on. The hole is not filled with zeroes, because a reader of the log
/// stops at bytes that are no record, and acknowledged records behind it would be lost silently.
#[must_use = "a reservation that is dropped without `commit` leaves a hole"]
pub struct Reservation<'a> {
    buffer: &'a AppendBuffer,
    at: u32,
    len_bytes: u32,
}

impl<'a> Reservation<'a> {
    /// # Safety
    /// `at..at + len_bytes` lies within `buffer`'s capacity, is a non-empty range of whole units,
    /// and was never given to another reservation since the buffer was new or reset.
    pub(super) unsafe fn new(buffer: &'a AppendBuffer, at: u32, len_bytes: u32) -> Self {
        Self {
            buffer,
            at,
            len_bytes,
        }
    }

    /// Position of its first byte in the buffer.
    pub fn at(&self) -> u32 {
        self.at
    }

    /// Position behind its last byte in the buffer.
    pub fn end(&self) -> u32 {
        self.at + self.len_bytes
    }

    /// Splits it into its first `len_bytes` and the rest; each part is committed separately.
    ///
    /// # Panics
    /// Unless `len_bytes` is a multiple of 8 that leaves both parts non-empty.
    pub fn split_at(self, len_bytes: u32) -> (Self, Self) {
        assert!(
            len_bytes.is_multiple_of(UNIT_BYTES) && 0 < len_bytes && len_bytes < self.len_bytes,
            "cannot cut {len_bytes} bytes off a reservation of {}",
            self.len_bytes
        );
        // Skips the `drop` of the whole: the parts take its place.
        let whole = ManuallyDrop::new(self);
        let second_bytes = whole.len_bytes - len_bytes;
        // SAFETY: the range is the first part of a range that `whole` owned exclusively and that is not used again.
        let first = unsafe { Self::new(whole.buffer, whole.at, len_bytes) };
        // SAFETY: likewise for the second part, which is disjoint from the first.
        let second = unsafe { Self::new(whole.buffer, whole.at + len_bytes, second_bytes) };
        (first, second)
    }

    /// Publishes the bytes to all threads. Never waits.
    pub fn commit(self) {
        // Skips `drop`. No `&mut` to the bytes exists from here on: `self` is consumed, and the slices that it lent
        // have ended.
        let this = ManuallyDrop::new(self);
        this.buffer.publish(this.range());
    }

    fn range(&self) -> Range<u32> {
        self.at..self.end()
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.buffer.abandon();
    }
}

impl Deref for Reservation<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.buffer.touch(self.range(), false);
        let start = self.buffer.pointer_to(self.at);
        // SAFETY: the range is in bounds, initialised, alive for `'a`, and exclusively owned (contract of `new`); the
        // only writer is `deref_mut`, which needs `&mut self`.
        unsafe { std::slice::from_raw_parts(start, self.len_bytes as usize) }
    }
}

impl DerefMut for Reservation<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.buffer.touch(self.range(), true);
        let start = self.buffer.pointer_to(self.at);
        // SAFETY: as in `deref`; `&mut self` excludes readers through this reservation, and other threads read the
        // range only after `commit` has consumed `self`.
        unsafe { std::slice::from_raw_parts_mut(start, self.len_bytes as usize) }
    }
}

impl fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reservation({:?})", self.range())
    }
}
