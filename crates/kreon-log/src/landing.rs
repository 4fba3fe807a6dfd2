//! Which units the mirror has landed as a whole.
//!
//! The mirror lands bytes, a replay takes units: what a reader saw of a unit whose end is missing would vanish. Where units
//! begin stands in the headers of fragments, and all that has not landed is in memory. A walk through the headers goes on
//! where the last one stopped, so each is looked at once; if buffers were used again meanwhile, it goes on in the segment
//! that holds what landed last, which tells the unit that goes on in it.

use std::sync::Arc;

use kreon_base::Lsn;
use kreon_format::{fragment_start, place_of};
use kreon_sync::{AtomicU64, Mutex, Ordering};

use super::buffered::Buffered;
use super::buffers::Buffers;
use super::cut::{PAYLOAD_START, SEGMENT};
use super::mirror::Elsewhere;

/// Where the units are that have not landed.
pub(super) struct Landing {
    elsewhere: Elsewhere,
    buffers: Arc<Buffers>,
    /// What had landed when the walk was last made, and what it found.
    landed: AtomicU64,
    found: AtomicU64,
    walk: Mutex<Walk>,
}

/// How far the walk has come.
#[derive(Clone, Copy)]
struct Walk {
    /// The border of a fragment that has landed; all before has.
    at: Lsn,
    /// Start of the unit that goes on there, or `at`.
    unit: Lsn,
}

impl Landing {
    /// Of a log that goes on at `resume`.
    pub fn new(elsewhere: Elsewhere, buffers: Arc<Buffers>, resume: Lsn) -> Self {
        Self {
            elsewhere,
            buffers,
            landed: AtomicU64::new(0),
            found: AtomicU64::new(resume.0),
            walk: Mutex::new(Walk {
                at: resume,
                unit: resume,
            }),
        }
    }

    /// See [`Log::unlanded_from`](super::Log::unlanded_from).
    pub fn unlanded_from(&self) -> Lsn {
        let landed = self.elsewhere.landed();
        let tail = self.buffers.tail();
        if landed >= tail {
            return tail;
        }
        if self.landed.load(Ordering::Acquire) >= landed.0 {
            return Lsn(self.found.load(Ordering::Acquire));
        }
        let mut walk = self.walk.lock();
        walk.go_on(&self.buffers, landed);
        self.found.fetch_max(walk.unit.0, Ordering::AcqRel);
        self.landed.fetch_max(landed.0, Ordering::AcqRel);
        walk.unit
    }
}

impl Walk {
    /// Goes through all fragments that end at `landed` or before.
    fn go_on(&mut self, buffers: &Buffers, landed: Lsn) {
        while self.at < landed {
            let (sequence, _) = place_of(self.at);
            let in_memory = buffers.find(sequence);
            let before = self.at;
            match in_memory.as_deref().and_then(Option::as_ref) {
                Some(buffered) => self.through(buffered, landed),
                None => self.jump(buffers, landed),
            }
            if self.at == before {
                return;
            }
        }
    }

    fn through(&mut self, buffered: &Buffered, landed: Lsn) {
        let committed = buffered.buffer().committed_prefix(0);
        let mut within = place_of(self.at).1;
        while let Some((ends_unit, extent)) = fragment_at(buffered, within, committed) {
            let end = within + extent;
            if buffered.lsn(end) > landed {
                return;
            }
            // A pad between units is none; one in a unit belongs to it.
            let is_between = self.unit == self.at;
            self.at = buffered.lsn(end);
            if ends_unit.unwrap_or(is_between) {
                self.unit = self.at;
            }
            within = end;
        }
    }

    /// The segment was landed and left memory: goes on at the start of the one that holds `landed`, which did not.
    fn jump(&mut self, buffers: &Buffers, landed: Lsn) {
        let (sequence, _) = place_of(landed);
        let sequence = sequence.min(buffers.current().sequence());
        if let Some(buffered) = buffers.by_sequence(sequence) {
            let start = buffered.lsn(PAYLOAD_START);
            if start > self.at {
                self.at = start;
                self.unit = buffered.goes_on().unwrap_or(start);
            }
        }
    }
}

/// Of the committed fragment at `within`: whether it ends its unit (`None`: it is a pad), and how long it is.
fn fragment_at(buffered: &Buffered, within: u32, committed: u32) -> Option<(Option<bool>, u32)> {
    let rest = buffered.buffer().committed_range(within..committed)?;
    if within >= SEGMENT {
        return None;
    }
    // The shortest pads have no room for the rest of a header.
    let mut start = [0; 16];
    let known = rest.len().min(start.len());
    start.get_mut(..known)?.copy_from_slice(rest.get(..known)?);
    let (header, extent) = fragment_start(&start)?;
    let extent = u32::try_from(extent).ok().filter(|extent| *extent > 0)?;
    Some((header.map(|header| header.ends_unit), extent))
}
