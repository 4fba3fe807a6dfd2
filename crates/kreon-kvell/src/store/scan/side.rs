//! One end of a scan.

use kreon_base::Result;

use super::ahead::{Ahead, Outcome};
use super::bounds::Bounds;
use super::known::KnownKeys;
use super::merge::Merge;
use crate::index::Direction;
use crate::store::handle::Handle;

/// Keys of the first step of reading ahead; each next one has twice as many, up to the most.
const STEP_MIN: usize = 32;
const STEP_MAX: usize = 256;

/// Bytes that a step reads, but for its first value. Two steps at most are in memory.
const STEP_BYTES: usize = 2 << 20;

/// Index keys of the first run of a partition beyond its share of the first step: keys do not lie evenly.
const RUN_SPARE: usize = 8;

/// One end of a scan: the pairs from there on.
pub struct Side {
    direction: Direction,
    known: KnownKeys,
    ahead: Ahead,
    step: usize,
}

impl Side {
    /// The end of `bounds` where `direction` begins. At most `left` pairs are wanted; `usize::MAX` if that is unknown.
    pub fn new(
        handle: &Handle,
        bounds: &Bounds,
        direction: Direction,
        left: usize,
    ) -> Result<Self> {
        let step = match left {
            usize::MAX => STEP_MIN,
            left => left.clamp(1, STEP_MAX),
        };
        let shared = handle.shared()?;
        let run_keys = step / shared.partitions.len().max(1) + RUN_SPARE;
        let merge = Merge::new(shared, bounds, direction, run_keys.min(step))?;
        Ok(Self {
            direction,
            known: KnownKeys::new(merge, direction),
            ahead: Ahead::default(),
            step,
        })
    }

    /// The next pair in `bounds`, which it leaves.
    pub fn next_pair(
        &mut self,
        handle: &Handle,
        bounds: &mut Bounds,
        left: usize,
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        loop {
            if self.ahead.is_low() && self.ahead.ready() < left {
                self.read_ahead(handle, bounds, left)?;
            }
            let Some(Outcome { key, value }) = self.ahead.next(handle)? else {
                return Ok(None);
            };
            let Some(key) = key else {
                value?;
                continue;
            };
            if self.leave(bounds, &key)
                && let Some(value) = value?
            {
                return Ok(Some((key, value)));
            }
        }
    }

    /// The next key in `bounds`, which it leaves.
    pub fn next_key(
        &mut self,
        handle: &Handle,
        bounds: &mut Bounds,
        left: usize,
    ) -> Result<Option<Vec<u8>>> {
        loop {
            let known = match self.known.pop() {
                Some(known) => known?,
                None => {
                    self.known.fill(handle, bounds, self.step.min(left))?;
                    self.step = (2 * self.step).min(STEP_MAX);
                    match self.known.pop() {
                        Some(known) => known?,
                        None => return Ok(None),
                    }
                }
            };
            if self.leave(bounds, &known.key) {
                return Ok(Some(known.key));
            }
        }
    }

    /// Has the bounds go on behind `key`; `false` if it is not in them: the other end has taken it.
    fn leave(&self, bounds: &mut Bounds, key: &[u8]) -> bool {
        let is_left = bounds.contains(key);
        if is_left {
            match self.direction {
                Direction::Forward => bounds.leave_behind(key),
                Direction::Backward => bounds.leave_before(key),
            }
        }
        is_left
    }

    fn read_ahead(&mut self, handle: &Handle, bounds: &Bounds, left: usize) -> Result<()> {
        let count = self.step.min(left - self.ahead.ready());
        self.known.fill(handle, bounds, count)?;
        let mut keys = Vec::with_capacity(count);
        let mut room = STEP_BYTES;
        while keys.len() < count {
            let next = match keys.is_empty() {
                true => self.known.pop(),
                false => self.known.pop_within(room),
            };
            let Some(next) = next else {
                break;
            };
            let read_bytes = next.as_ref().map_or(0, |known| known.read_bytes);
            room = room.saturating_sub(read_bytes);
            keys.push(next);
        }
        if !keys.is_empty() {
            self.step = (2 * self.step).min(STEP_MAX);
            self.ahead.begin(handle, keys)?;
        }
        Ok(())
    }
}
