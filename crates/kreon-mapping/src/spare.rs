//! Memory for direct I/O that a thread uses again and again: taking it from the system each time costs more
//! than what is done in it.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use kreon_device::AlignedBuf;

/// A thread keeps no more than this for the next time.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// Long memory is a multiple of this.
const STEP_BYTES: usize = 64 << 10;

/// Short memory is a multiple of this.
const SHORT_STEP_BYTES: usize = 4 << 10;

thread_local! {
    static SPARE: Cell<Option<AlignedBuf>> = const { Cell::new(None) };
}

/// Memory that goes back to the thread that drops it. It holds anything.
pub(crate) struct Spare(Option<AlignedBuf>);

impl Spare {
    /// At least `len_bytes`.
    pub(crate) fn new(len_bytes: usize) -> Self {
        let kept = SPARE.take().filter(|kept| kept.len() >= len_bytes);
        let memory = kept.unwrap_or_else(|| AlignedBuf::new(rounded(len_bytes)));
        Self(Some(memory))
    }
}

/// The most that can be asked for if the memory is to take no more than `bytes`.
pub(crate) fn longest_within(bytes: usize) -> usize {
    match bytes {
        0..STEP_BYTES => bytes - bytes % SHORT_STEP_BYTES,
        _ => bytes - bytes % STEP_BYTES,
    }
}

/// Rounded it serves again more often.
fn rounded(len_bytes: usize) -> usize {
    match len_bytes {
        0..STEP_BYTES => len_bytes.next_multiple_of(SHORT_STEP_BYTES),
        _ => len_bytes.next_multiple_of(STEP_BYTES),
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some(memory) = self.0.take()
            && memory.len() <= KEPT_BYTES_MAX
        {
            // A thread that ends has nothing to keep it in.
            _ = SPARE.try_with(|spare| {
                let kept = spare.take();
                let is_longer = kept.as_ref().is_none_or(|kept| kept.len() <= memory.len());
                spare.set(if is_longer { Some(memory) } else { kept });
            });
        }
    }
}

impl Deref for Spare {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl DerefMut for Spare {
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
        let first = Spare::new(10_000);
        let address = first.as_ptr();
        assert!(first.len() >= 10_000);
        // While it is in use there is other memory.
        assert_ne!(Spare::new(100).as_ptr(), address);
        drop(first);
        let again = Spare::new(9_000);
        assert_eq!(again.as_ptr(), address);
        drop(again);
        assert!(Spare::new(50_000).len() >= 50_000);
        let long = Spare::new(KEPT_BYTES_MAX + 1);
        assert_eq!(long.len(), KEPT_BYTES_MAX + STEP_BYTES);
        drop(long);
        assert!(Spare::new(1).len() <= KEPT_BYTES_MAX);
    }
}
