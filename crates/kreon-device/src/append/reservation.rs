//! A part of an append buffer that one writer holds.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};

use super::append_buffer::AppendBuffer;
use super::commit_bits::UNIT_BYTES;

/// Exclusive use of a part of an [`AppendBuffer`] until it is committed. It starts with any bytes
/// (initialised ones: zeroes, or what the buffer held before its last reset), so all of it must be filled.
///
/// Dropping it without [`commit`](Self::commit) leaves a hole: what stands behind it in the buffer
/// never becomes part of the committed prefix, and [`AppendBuffer::is_abandoned`] says so from then
/// on. Filling the hole with zeroes instead would be a lie with a worse end: a reader of the log
/// stops at bytes that are no record, so acknowledged records behind it would be lost in silence.
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

    /// Where it starts in the buffer, in bytes.
    pub fn at(&self) -> u32 {
        self.at
    }

    /// Where it ends in the buffer, in bytes.
    pub fn end(&self) -> u32 {
        self.at + self.len_bytes
    }

    /// Cuts it into its first `len_bytes` and the rest; each is committed by itself.
    ///
    /// # Panics
    /// Unless `len_bytes` is a multiple of 8 that leaves both parts non-empty.
    pub fn split_at(self, len_bytes: u32) -> (Self, Self) {
        assert!(
            len_bytes.is_multiple_of(UNIT_BYTES) && 0 < len_bytes && len_bytes < self.len_bytes,
            "cannot cut {len_bytes} bytes off a reservation of {}",
            self.len_bytes
        );
        // Without its `drop`: the parts take over.
        let whole = ManuallyDrop::new(self);
        let second_bytes = whole.len_bytes - len_bytes;
        // SAFETY: the range is the first part of one that is exclusively ours and not used again.
        let first = unsafe { Self::new(whole.buffer, whole.at, len_bytes) };
        // SAFETY: likewise the second part, disjoint from the first.
        let second = unsafe { Self::new(whole.buffer, whole.at + len_bytes, second_bytes) };
        (first, second)
    }

    /// Publishes the bytes to all threads. Never waits.
    pub fn commit(self) {
        // Without its `drop`. No `&mut` to the bytes exists from here on: `self` is consumed and
        // the slices that it lent have ended.
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
        // SAFETY: the range is in bounds, initialised, alive for `'a`, and ours alone (`new`); the
        // only writer is `deref_mut`, which needs `&mut self`.
        unsafe { std::slice::from_raw_parts(start, self.len_bytes as usize) }
    }
}

impl DerefMut for Reservation<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.buffer.touch(self.range(), true);
        let start = self.buffer.pointer_to(self.at);
        // SAFETY: as in `deref`; `&mut self` excludes our own readers, and others read the range
        // only after `commit` has consumed `self`.
        unsafe { std::slice::from_raw_parts_mut(start, self.len_bytes as usize) }
    }
}

impl fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reservation({:?})", self.range())
    }
}
