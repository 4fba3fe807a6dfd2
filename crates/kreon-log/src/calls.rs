//! Which calls write the log: what each takes from the buffers, and in which order they land.
//!
//! Invariants:
//! - only whole blocks of the gapless committed prefix are taken: nothing in them changes any more. No block is taken
//!   twice, and none that holds acknowledged bytes can be torn by a later write ([`zeroes`](super::zeroes) go before it);
//! - a segment's header goes with its first records;
//! - calls take blocks in the order of the log, and land in that order, one at a time, so what has landed is a prefix.

use std::collections::VecDeque;
use std::sync::Arc;

use kreon_base::{Error, Lsn, PAGE_BYTES, Result};
use kreon_device::Write;

use super::buffered::Buffered;
use super::buffers::Buffers;
use super::cut::{PAYLOAD_START, SEGMENT};
use super::pages::WrittenPages;
use super::positions::Positions;
use super::zeroes::Prepared;

/// Most bytes of one call, unless more is wanted at the least. Writers wait for calls to land when the device falls
/// behind: short calls make short waits.
const CALL_BYTES_MAX: u32 = 256 << 10;

/// Most calls under way: how much of the log may wait for the next flush behind them.
const CALLS_MAX: usize = 3;

/// How far calls have taken the log, and the calls under way.
pub(super) struct Calls {
    /// Sequence of the segment to go on in.
    sequence: u64,
    /// Bytes of it that calls have taken.
    taken: u32,
    /// How far blocks behind that were written before.
    prepared: Prepared,
    /// Calls under way, and those that ended before an earlier one did.
    calls: VecDeque<Call>,
    /// Number of the first of `calls`.
    first_call: u64,
    /// A thread is landing the first of `calls`.
    is_landing: bool,
    /// Zeroes of all calls so far, written ahead of records.
    pub zeroed_bytes: u64,
}

struct Call {
    runs: Arc<[Run]>,
    /// Writes zeroes behind its runs, where the next call writes.
    is_ahead: bool,
    has_ended: bool,
}

/// A call to be made.
pub(super) struct NextCall {
    pub number: u64,
    pub runs: Arc<[Run]>,
    /// Zeroes to write behind the runs.
    pub zeroes: u32,
}

/// A range of a segment that can be written.
pub(super) struct Run {
    buffered: Arc<Buffered>,
    start: u32,
    end: u32,
}

impl Run {
    /// Its bytes, to be written.
    #[inline]
    pub fn write(&self) -> Result<Write<'_>> {
        let bytes = self.buffered.buffer().committed_range(self.start..self.end);
        let bytes = bytes.ok_or_else(|| Error::invalid("a write of uncommitted bytes"))?;
        Ok(Write::new(self.buffered.offset(self.start).0, bytes))
    }

    /// The pages that are wholly written with this run and those before it, and the offset of the first. A page that
    /// an earlier run of the store wrote in part is none of them: the buffer does not have all of it.
    pub fn whole_pages(&self) -> Option<(u64, &[u8])> {
        let page = PAGE_BYTES as u32;
        let readable_from = match self.buffered.readable_from() {
            PAYLOAD_START => 0,
            from => from.next_multiple_of(page),
        };
        let start = (self.start - self.start % page).max(readable_from);
        let end = self.end - self.end % page;
        let bytes = (start < end).then(|| self.buffered.buffer().committed_range(start..end))?;
        Some((self.buffered.offset(start).0, bytes?))
    }

    /// For the planted bug `HalfPageAdmitted`: has the page in which it ends kept, with zeroes where a later call writes.
    pub fn keep_half(&self, pages: &dyn WrittenPages) {
        let start = self.end - self.end % PAGE_BYTES as u32;
        let half = self.buffered.buffer().committed_range(start..self.end);
        if let Some(half) = half.filter(|half| !half.is_empty()) {
            let mut page = half.to_vec();
            page.resize(PAGE_BYTES, 0);
            pages.written(self.buffered.offset(start).0, &page);
        }
    }
}

/// How much a call takes.
#[derive(Clone, Copy)]
pub(super) struct CallLimits {
    /// A shorter run waits, unless it ends its segment.
    pub least_bytes: u32,
    /// The border of a block; nothing behind it is taken.
    pub upto: Lsn,
    pub block_bytes: u32,
}

impl Calls {
    /// All before `written` bytes of the segment `sequence` is on the device.
    pub fn new(sequence: u64, written: u32) -> Self {
        Self {
            sequence,
            taken: written,
            prepared: Prepared::default(),
            calls: VecDeque::new(),
            first_call: 0,
            is_landing: false,
            zeroed_bytes: 0,
        }
    }

    /// Takes what can be written now for a call.
    pub fn take(
        &mut self,
        buffers: &Buffers,
        positions: &Positions,
        limits: CallLimits,
    ) -> Option<NextCall> {
        let is_ahead = |call: &Call| call.is_ahead && !call.has_ended;
        if self.calls.len() >= CALLS_MAX || self.calls.iter().any(is_ahead) {
            return None;
        }
        let runs: Arc<[Run]> = self.ready(buffers, limits).into();
        let last = runs.last()?;
        let (segment, end) = (last.buffered.link(), last.end);
        let ends = (positions.durable(), buffers.tail());
        let zeroes = self.prepared.extend(segment, end, ends);
        (self.sequence, self.taken) = match end {
            SEGMENT => (segment.sequence + 1, 0),
            end => (segment.sequence, end),
        };
        self.zeroed_bytes += u64::from(zeroes);
        self.calls.push_back(Call {
            runs: Arc::clone(&runs),
            is_ahead: zeroes > 0,
            has_ended: false,
        });
        Some(NextCall {
            number: self.first_call + self.calls.len() as u64 - 1,
            runs,
            zeroes,
        })
    }

    /// The call with this number has ended well. It lands when all before it have.
    pub fn ended(&mut self, number: u64) {
        let index = number.checked_sub(self.first_call);
        let index = index.and_then(|index| usize::try_from(index).ok());
        let call = index.and_then(|index| self.calls.get_mut(index));
        debug_assert!(
            call.as_ref().is_some_and(|call| !call.has_ended),
            "a call ends once"
        );
        if let Some(call) = call {
            call.has_ended = true;
        }
    }

    /// The runs of the next call to land, if it has ended and no other thread lands it. The caller
    /// [lands](Self::land) it.
    pub fn next_landing(&mut self) -> Option<Arc<[Run]>> {
        let first = self.calls.front().filter(|call| call.has_ended)?;
        let runs = (!self.is_landing).then(|| Arc::clone(&first.runs))?;
        self.is_landing = true;
        Some(runs)
    }

    /// The call of [`next_landing`](Self::next_landing) lands: its bytes are on the device, as are all before them.
    pub fn land(&mut self, positions: &Positions) {
        debug_assert!(self.is_landing, "a call lands once");
        self.is_landing = false;
        self.first_call += 1;
        let landed = self.calls.pop_front();
        for run in landed.iter().flat_map(|call| &*call.runs) {
            positions.landed(run.buffered.lsn(run.end));
            if run.end == SEGMENT {
                run.buffered.set_complete();
            }
        }
    }

    /// Whether a call is under way.
    pub fn is_any_under_way(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Whether a thread died while it copied the next bytes: nothing behind them can be written.
    pub fn is_at_hole(&self, buffers: &Buffers) -> bool {
        let buffered = buffers.by_sequence(self.sequence);
        buffered.is_some_and(|buffered| buffered.buffer().is_abandoned())
    }

    /// The runs that can be written now, in order.
    fn ready(&self, buffers: &Buffers, limits: CallLimits) -> Vec<Run> {
        let (mut sequence, mut start, mut bytes) = (self.sequence, self.taken, 0);
        let mut runs = Vec::new();
        let bytes_max = CALL_BYTES_MAX.max(2 * limits.least_bytes);
        while bytes < bytes_max
            && let Some(buffered) = buffers.by_sequence(sequence)
        {
            let committed = buffered.buffer().committed_prefix(0);
            let fits = start + (bytes_max - bytes);
            let end = (committed - committed % limits.block_bytes).min(fits);
            let end = end.min(buffered.within(limits.upto));
            let is_too_short = end < SEGMENT && end.saturating_sub(start) < limits.least_bytes;
            if end <= start.max(PAYLOAD_START) || is_too_short {
                break;
            }
            debug_assert!(
                end % limits.block_bytes == 0 && start % limits.block_bytes == 0,
                "a block is written once, as a whole"
            );
            bytes += end - start;
            runs.push(Run {
                buffered,
                start,
                end,
            });
            if end < SEGMENT {
                break;
            }
            (sequence, start) = (sequence + 1, 0);
        }
        runs
    }
}
