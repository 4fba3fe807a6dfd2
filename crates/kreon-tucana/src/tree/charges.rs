//! How the live bytes of log segments change in one epoch: what the leaves point at more, and less.

use std::collections::HashMap;

use kreon_base::SegmentId;
use kreon_sync::Mutex;

use super::counters::thread_line;
use crate::format::Location;

const LINES: usize = if cfg!(shuttle) { 3 } else { 16 };

/// Two cache lines: neighbours are fetched in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Line(Mutex<HashMap<SegmentId, i64>>);

/// Changes of live bytes by segment. Threads count in lines of their own.
#[derive(Default)]
pub(crate) struct Charges([Line; LINES]);

impl Charges {
    /// An entry of a leaf points at `now`, and no longer at `before`.
    #[inline]
    pub(crate) fn change(&self, before: Option<Location>, now: Option<Location>) {
        let mut line = self.0[thread_line(LINES)].0.lock();
        if let Some(now) = now {
            *line.entry(now.offset.segment()).or_default() += now.extent_bytes() as i64;
        }
        if let Some(before) = before {
            *line.entry(before.offset.segment()).or_default() -= before.extent_bytes() as i64;
        }
    }

    /// Adds all of it to `sums`.
    pub(crate) fn add_to(&self, sums: &mut HashMap<SegmentId, i64>) {
        for line in &self.0 {
            for (segment, bytes) in &*line.0.lock() {
                *sums.entry(*segment).or_default() += bytes;
            }
        }
    }
}
