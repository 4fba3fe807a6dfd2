//! Flushes that nobody asked for, so that the one at the seal is short.
//!
//! A device takes writes into its cache, and a flush waits until all of them have left it. A primary asks for a flush at its
//! checkpoints; seconds of log and spills between two of them are a second of flushing, in which a group that lost its
//! primary would stand still.

use super::work::Work;

/// A flush is due when so many bytes were written since the last one: some tens of milliseconds of the device's time.
const EARLY_FLUSH_BYTES: u64 = 32 << 20;

/// What was written since the last flush.
#[derive(Debug, Default)]
pub(super) struct EarlyFlush {
    unflushed_bytes: u64,
}

impl EarlyFlush {
    /// Whether a flush is due now that `work` was done. If so, it is taken for done.
    pub fn is_due_behind(&mut self, work: &Work) -> bool {
        match work {
            Work::Flush => self.unflushed_bytes = 0,
            Work::Write(pieces) => {
                let bytes = pieces.iter().map(|piece| piece.bytes().len() as u64);
                self.unflushed_bytes += bytes.sum::<u64>();
            }
            Work::Grow { .. } | Work::Allocate { .. } | Work::Discard { .. } => {}
        }
        let is_due = self.unflushed_bytes >= EARLY_FLUSH_BYTES;
        if is_due {
            self.unflushed_bytes = 0;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kreon_device::AlignedBuf;

    use super::super::work::Piece;
    use super::*;

    #[test]
    fn a_flush_is_due_when_much_was_written_since_the_last_one() {
        let bytes = Arc::new(AlignedBuf::new(1 << 20));
        let write = Work::Write(vec![Piece::whole(0, bytes)]);
        let mut early = EarlyFlush::default();
        let until_due = |early: &mut EarlyFlush| (1..).find(|_| early.is_due_behind(&write));
        assert_eq!(until_due(&mut early), Some(32));
        assert_eq!(until_due(&mut early), Some(32));
        for _ in 0..20 {
            assert!(!early.is_due_behind(&write));
        }
        assert!(!early.is_due_behind(&Work::Flush));
        assert_eq!(until_due(&mut early), Some(32));
    }
}
