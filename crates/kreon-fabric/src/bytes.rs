//! Received bytes that several owners share without copying.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A part of a buffer that is never written again. Cloning and slicing cost one count; the whole buffer lives as long as
/// any part of it, so keep a copy of few bytes that are to stay for long.
#[derive(Clone, Default)]
pub struct Bytes {
    buffer: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Bytes {
    /// A part of `buffer`; `None` if the range reaches behind its end or is turned round.
    pub fn part(buffer: &Arc<Vec<u8>>, range: Range<usize>) -> Option<Self> {
        buffer.get(range.clone())?;
        Some(Self {
            buffer: buffer.clone(),
            range,
        })
    }

    /// A part of these bytes, counted from their start; `None` if the range reaches behind their end or is turned round.
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        self.get(range.clone())?;
        let start = self.range.start;
        Some(Self {
            buffer: self.buffer.clone(),
            range: start + range.start..start + range.end,
        })
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // Both constructors have looked: the range lies in the buffer.
        self.buffer.get(self.range.clone()).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self {
            buffer: Arc::new(bytes),
            range,
        }
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_of_a_slice_counts_from_its_own_start() {
        let all = Bytes::from((0..10).collect::<Vec<u8>>());
        let middle = all.slice(2..8).unwrap();
        assert_eq!(&*middle.slice(1..3).unwrap(), &[3, 4]);
        assert_eq!(middle.slice(6..6).unwrap().len(), 0);
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    fn a_range_outside_is_refused() {
        let all = Bytes::from(vec![0; 10]);
        let middle = all.slice(2..8).unwrap();
        assert!(middle.slice(0..7).is_none());
        assert!(middle.slice(3..2).is_none());
        assert!(middle.slice(usize::MAX..usize::MAX).is_none());
        assert!(Bytes::part(&Arc::new(vec![0; 3]), 1..4).is_none());
    }
}
