//! Zeroes ahead of the end of a log whose records become durable a few at a time.
//!
//! In blocks that the file system has only reserved a flush must also make durable that they hold data now, which takes
//! longer than the flush itself. So whoever is the first to write there for a small flush writes zeroes behind the records in
//! the same call, and the flushes that follow overwrite. A replay reads the same as without them: nothing. The first
//! zeroes are few, each further piece is as long as all before it, and a segment behind one that was filled like this gets
//! all of its zeroes at once: each piece makes one flush slow.
//!
//! The range lies behind all that calls have taken, and nothing more is taken while such a call is under way: zeroes
//! never overwrite records. Where much becomes durable at once, or nothing, none are written: noting it for each
//! of a few large flushes costs less.

use kreon_base::Lsn;
use kreon_device::BLOCK_BYTES_MAX;

use super::buffers::Buffered;
use super::cut::SEGMENT;

/// A call writes zeroes if the log is at most this much longer than it is durable.
pub(super) const SMALL_BYTES: u64 = 16 << 10;

/// They reach up to a multiple of this, at the least.
const AHEAD_BYTES: u32 = 256 << 10;

/// After a call that was not small so many small ones write no zeroes: beside buffered records they would hold up far more
/// than they save.
const CALM_CALLS: u32 = 8;

/// How far a segment holds written blocks.
#[derive(Clone, Copy, Default)]
pub(super) struct Prepared {
    sequence: u64,
    upto: u32,
    /// So many small calls are still to come before one writes zeroes.
    restless: u32,
}

impl Prepared {
    /// How many zeroes to write behind `end` in the segment of `buffered`, up to where calls have taken it, of a log that
    /// ends at `tail`.
    pub fn extend(&mut self, buffered: &Buffered, end: u32, (durable, tail): (Lsn, Lsn)) -> u32 {
        let known = match self.sequence == buffered.sequence {
            true => self.upto,
            false if buffered.was_written => SEGMENT,
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
        let goes_on = self.upto == SEGMENT && self.sequence + 1 == buffered.sequence;
        let upto = match goes_on {
            true => SEGMENT,
            false => end.next_multiple_of(AHEAD_BYTES).max(2 * known),
        };
        *self = Self {
            sequence: buffered.sequence,
            upto: upto.min(SEGMENT),
            restless: 0,
        };
        self.upto - end
    }
}

const ZEROES_BYTES: usize = 16 << 10;

#[repr(align(4096))]
struct Zeroes([u8; ZEROES_BYTES]);

const _: () = assert!(align_of::<Zeroes>() >= BLOCK_BYTES_MAX as usize);

static ZEROES: Zeroes = Zeroes([0; ZEROES_BYTES]);

/// `count` zeroes for a write, whole blocks. In the same transfer as the records: two of them on a ring took twice as
/// long: the kernel hands writes into reserved blocks to threads of its own.
pub(super) fn zeroes<'a>(count: u32) -> impl Iterator<Item = &'a [u8]> {
    let some: &'a [u8] = &ZEROES.0;
    let count = count as usize;
    let parts = (0..count).step_by(ZEROES_BYTES);
    parts.map(move |at| some.get(..count - at).unwrap_or(some))
}
