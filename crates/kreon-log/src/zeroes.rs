//! Zeroes ahead of the end of a log whose records become durable a few at a time.
//!
//! The first write to a block that the file system has only reserved changes metadata, which the flush must make durable;
//! that takes longer than the flush itself. The first write for a small flush therefore writes zeroes behind the records in
//! the same call, and later flushes overwrite. A replay reads zeroes as blank space. The first zeroes are few, each further
//! piece is as long as all before it, and the segment after one that was filled like this gets all of its zeroes at once:
//! each piece makes one flush slow. A few large flushes cost less without zeroes.
//!
//! Invariant: zeroes never overwrite records. Their range lies behind all bytes that calls have taken, and no call takes
//! more while a call with zeroes is under way.

use kreon_base::Lsn;
use kreon_device::BLOCK_BYTES_MAX;

use super::buffered::ChainLink;
use super::cut::SEGMENT;

/// A call writes zeroes if the log is at most this much longer than it is durable.
pub(super) const SMALL_BYTES: u64 = 16 << 10;

/// Zeroes reach at least up to a multiple of this.
const AHEAD_BYTES: u32 = 256 << 10;

/// Small calls without zeroes after a large one: beside buffered records zeroes would cost more than they save.
const CALM_CALLS: u32 = 8;

/// How far a segment holds written blocks.
#[derive(Clone, Copy, Default)]
pub(super) struct Prepared {
    sequence: u64,
    upto: u32,
    /// Small calls still to come before one writes zeroes.
    restless: u32,
}

impl Prepared {
    /// How many zeroes to write behind `end`, up to which calls have taken the segment, of a log that ends at `tail`.
    pub fn extend(&mut self, segment: ChainLink, end: u32, (durable, tail): (Lsn, Lsn)) -> u32 {
        let known = match self.sequence == segment.sequence {
            true => self.upto,
            false if segment.was_written => SEGMENT,
            false => 0,
        };
        let is_small = tail.0.saturating_sub(durable.0) <= SMALL_BYTES;
        if !is_small {
            self.restless = CALM_CALLS;
            return 0;
        }
        if self.restless > 0 || end <= known {
            self.restless = self.restless.saturating_sub(1);
            return 0;
        }
        let goes_on = self.upto == SEGMENT && self.sequence + 1 == segment.sequence;
        let upto = match goes_on {
            true => SEGMENT,
            false => end.next_multiple_of(AHEAD_BYTES).max(2 * known),
        };
        *self = Self {
            sequence: segment.sequence,
            upto: upto.min(SEGMENT),
            restless: 0,
        };
        assert!(self.upto >= end, "zeroes over records");
        self.upto - end
    }
}

const ZEROES_BYTES: usize = 16 << 10;

#[repr(align(4096))]
struct Zeroes([u8; ZEROES_BYTES]);

const _: () = assert!(align_of::<Zeroes>() >= BLOCK_BYTES_MAX as usize);

static ZEROES: Zeroes = Zeroes([0; ZEROES_BYTES]);

/// `count` zeroes for a write, whole blocks. They go in the same transfer as the records: two transfers on a ring took
/// twice as long, because the kernel hands writes into reserved blocks to threads of its own.
pub(super) fn zeroes<'a>(count: u32) -> impl Iterator<Item = &'a [u8]> {
    let some: &'a [u8] = &ZEROES.0;
    let count = count as usize;
    let parts = (0..count).step_by(ZEROES_BYTES);
    parts.map(move |at| some.get(..count - at).unwrap_or(some))
}
