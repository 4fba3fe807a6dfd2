//! Marks: blocks behind the volume, on the same device, that say what the store knew when they were
//! written. What the log holds before a mark was completed before it.

/// First bytes of a mark.
const MAGIC: [u8; 8] = *b"KREONMRK";

/// Bytes of a mark: a block of any device.
pub const MARK_BYTES: usize = 4096;

/// Room for marks behind the volume.
pub const MARKS_BYTES: u64 = 1 << 20;

/// What was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A flush is about to be called: it speaks for what stands in the log before.
    FlushBegan(u64),
    /// It returned.
    FlushEnded(u64),
    /// This much of what a thread did was acknowledged as durable.
    Durable {
        /// The thread.
        thread: u64,
        /// Units.
        units: u64,
        /// Changes of regions.
        region_changes: u64,
    },
}

impl Mark {
    /// Writes it into a block.
    pub fn encode(self, block: &mut [u8]) {
        let numbers = match self {
            Self::FlushBegan(flush) => [1, flush, 0, 0],
            Self::FlushEnded(flush) => [2, flush, 0, 0],
            Self::Durable {
                thread,
                units,
                region_changes,
            } => [3, thread, units, region_changes],
        };
        let bytes = MAGIC
            .into_iter()
            .chain(numbers.into_iter().flat_map(u64::to_le_bytes));
        for (to, from) in block.iter_mut().zip(bytes) {
            *to = from;
        }
    }

    /// Reads it back; `None` if it is none.
    pub fn decode(block: &[u8]) -> Option<Self> {
        let (words, _) = block.get(..40)?.as_chunks::<8>();
        let [magic, kind, a, b, c] = *words.as_array::<5>()?;
        let [kind, a, b, c] = [kind, a, b, c].map(u64::from_le_bytes);
        match (magic == MAGIC, kind) {
            (true, 1) => Some(Self::FlushBegan(a)),
            (true, 2) => Some(Self::FlushEnded(a)),
            (true, 3) => Some(Self::Durable {
                thread: a,
                units: b,
                region_changes: c,
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_read_back_and_nothing_else_does() {
        let durable = Mark::Durable {
            thread: 2,
            units: 77,
            region_changes: 5,
        };
        for mark in [Mark::FlushBegan(9), Mark::FlushEnded(u64::MAX), durable] {
            let mut block = vec![0; MARK_BYTES];
            mark.encode(&mut block);
            assert_eq!(Mark::decode(&block), Some(mark));
            block[0] ^= 1;
            assert_eq!(Mark::decode(&block), None);
        }
        assert_eq!(Mark::decode(b"KREONMRK"), None);
    }
}
