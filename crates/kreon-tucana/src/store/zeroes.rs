//! Zeroes behind the records of small flushes, as in the log of `kreon-log`.
//!
//! The first write to blocks that the file system has only reserved changes metadata, which the flush must make durable: that
//! takes longer than the flush itself. So a small write takes zeroes behind its records along, and the next ones overwrite them.
//! A replay reads zeroes as blank space. Writes of a segment come one after the other, so zeroes never come over records.

use kreon_device::BLOCK_BYTES_MAX;

use super::log_buffer::SEGMENT;

/// A write of so many bytes is one of a few records for a flush.
const SMALL_BYTES: u32 = 16 << 10;

/// Zeroes reach up to a multiple of this, and each time twice as far as before.
const AHEAD_BYTES: u32 = 256 << 10;

/// Small writes without zeroes after a large one: beside buffered records zeroes hold up more than they save.
const CALM_WRITES: u32 = 8;

/// How far a segment has blocks that were written, and are overwritten.
pub(super) struct Prepared {
    upto: u32,
    /// Small writes to come before one that takes zeroes along.
    calm: u32,
}

impl Prepared {
    /// A segment whose blocks were all written before it became one of the log, or not.
    pub(super) fn new(was_written: bool) -> Self {
        Self {
            upto: if was_written { SEGMENT } else { 0 },
            calm: 0,
        }
    }

    /// How many zeroes to write behind the bytes from `start` to `end`.
    pub(super) fn extend(&mut self, start: u32, end: u32) -> u32 {
        if end - start > SMALL_BYTES {
            self.calm = CALM_WRITES;
            return 0;
        }
        if self.calm > 0 || end <= self.upto {
            self.calm = self.calm.saturating_sub(1);
            return 0;
        }
        let upto = end.next_multiple_of(AHEAD_BYTES).max(2 * self.upto);
        self.upto = upto.min(SEGMENT);
        self.upto - end
    }
}

const ZEROES_BYTES: usize = 16 << 10;

#[repr(align(4096))]
struct Zeroes([u8; ZEROES_BYTES]);

const _: () = assert!(align_of::<Zeroes>() >= BLOCK_BYTES_MAX as usize);

static ZEROES: Zeroes = Zeroes([0; ZEROES_BYTES]);

/// So many zeroes, whole blocks, in pieces.
pub(super) fn zeroes<'a>(count: u32) -> impl Iterator<Item = &'a [u8]> {
    let (count, some): (usize, &'a [u8]) = (count as usize, &ZEROES.0);
    let pieces = (0..count).step_by(ZEROES_BYTES);
    pieces.map(move |at| some.get(..count - at).unwrap_or(some))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u32 = 4096;

    #[test]
    fn small_writes_take_zeroes_along_until_the_segment_is_full() {
        let mut prepared = Prepared::new(false);
        let (mut at, mut upto, mut pieces) = (0, 0, 0);
        while at < SEGMENT {
            let count = prepared.extend(at, at + BLOCK);
            at += BLOCK;
            assert!(at + count <= SEGMENT && count.is_multiple_of(BLOCK));
            if count > 0 {
                assert!(at > upto, "zeroes over zeroes");
                (upto, pieces) = (at + count, pieces + 1);
            }
            assert!(at <= upto, "{at} was not prepared");
            let bytes: usize = zeroes(count).map(<[u8]>::len).sum();
            assert_eq!(bytes, count as usize);
        }
        assert_eq!(pieces, 4);
    }

    #[test]
    fn written_blocks_and_large_writes_get_no_zeroes_nor_do_the_next_small_ones() {
        assert_eq!(Prepared::new(true).extend(0, BLOCK), 0);
        let mut prepared = Prepared::new(false);
        let mut at = SMALL_BYTES + BLOCK;
        assert_eq!(prepared.extend(0, at), 0);
        for _ in 0..CALM_WRITES {
            assert_eq!(prepared.extend(at, at + BLOCK), 0);
            at += BLOCK;
        }
        assert!(prepared.extend(at, at + BLOCK) > 0);
    }
}
