//! Memory for direct I/O that a thread keeps for its next read: to get it from the system each time costs more than the
//! work done in it.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use kreon_device::AlignedBuf;

/// Longer buffers are not kept.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// Lengths from here on are multiples of this.
const STEP_BYTES: usize = 64 << 10;

/// Shorter lengths are multiples of this.
const SHORT_STEP_BYTES: usize = 4 << 10;

thread_local! {
    static KEPT: Cell<Option<AlignedBuf>> = const { Cell::new(None) };
}

/// A buffer that the thread that drops it keeps. Its initial content is arbitrary.
pub(crate) struct ReadBuffer(Option<AlignedBuf>);

impl ReadBuffer {
    /// A buffer of at least `len_bytes`.
    pub(crate) fn new(len_bytes: usize) -> Self {
        let kept = KEPT.take().filter(|kept| kept.len() >= len_bytes);
        let memory = kept.unwrap_or_else(|| AlignedBuf::new(rounded(len_bytes)));
        Self(Some(memory))
    }
}

/// The longest request whose buffer takes no more than `bytes`.
pub(crate) fn longest_within(bytes: usize) -> usize {
    match bytes {
        0..STEP_BYTES => bytes - bytes % SHORT_STEP_BYTES,
        _ => bytes - bytes % STEP_BYTES,
    }
}

/// The length of the buffer for a request; rounding lets it serve more of the later requests.
fn rounded(len_bytes: usize) -> usize {
    match len_bytes {
        0..STEP_BYTES => len_bytes.next_multiple_of(SHORT_STEP_BYTES),
        _ => len_bytes.next_multiple_of(STEP_BYTES),
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        if let Some(memory) = self.0.take()
            && memory.len() <= KEPT_BYTES_MAX
        {
            // A thread that is ending keeps nothing.
            _ = KEPT.try_with(|slot| {
                let kept = slot.take();
                let is_longer = kept.as_ref().is_none_or(|kept| kept.len() <= memory.len());
                slot.set(if is_longer { Some(memory) } else { kept });
            });
        }
    }
}

impl Deref for ReadBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl DerefMut for ReadBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.as_deref_mut().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_within_is_rounded_to_no_more() {
        for bytes in [0, 1, 2, 3, 4095, 40_000, 65_535, 65_536, 65_537, 1 << 20] {
            let within = longest_within(bytes);
            assert!(rounded(within) <= bytes && within >= bytes / 2 / SHORT_STEP_BYTES);
        }
    }

    #[test]
    fn memory_is_used_again_unless_it_is_too_short_or_too_long() {
        let first = ReadBuffer::new(10_000);
        let address = first.as_ptr();
        assert!(first.len() >= 10_000);
        // While it is in use there is other memory.
        assert_ne!(ReadBuffer::new(100).as_ptr(), address);
        drop(first);
        let again = ReadBuffer::new(9_000);
        assert_eq!(again.as_ptr(), address);
        drop(again);
        assert!(ReadBuffer::new(50_000).len() >= 50_000);
        let long = ReadBuffer::new(KEPT_BYTES_MAX + 1);
        assert_eq!(long.len(), KEPT_BYTES_MAX + STEP_BYTES);
        drop(long);
        assert!(ReadBuffer::new(1).len() <= KEPT_BYTES_MAX);
    }
}
