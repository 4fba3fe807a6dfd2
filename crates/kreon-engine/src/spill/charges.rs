//! The change of live bytes by log segment, from the entries that a merge adds and drops.

use std::collections::BTreeMap;

use kreon_base::{SegmentId, planted};

use crate::tree::Reference;
use kreon_log::Log;

/// The change of live bytes by segment.
pub struct Charges<'a> {
    log: &'a Log,
    /// Indexed by segment number: a spill changes up to two sums per entry, at random.
    sums: Vec<i64>,
}

impl<'a> Charges<'a> {
    /// No change.
    pub fn new(log: &'a Log) -> Self {
        Self {
            log,
            sums: Vec::new(),
        }
    }

    /// Counts an added entry that points at `record`.
    pub fn add(&mut self, record: &Reference) {
        self.change(record, 1);
    }

    /// Counts a dropped entry that points at `record`.
    pub fn drop(&mut self, record: &Reference) {
        self.change(record, -1);
    }

    fn change(&mut self, record: &Reference, sign: i64) {
        let Reference {
            offset,
            key_bytes,
            value_bytes,
        } = *record;
        for (segment, bytes) in self.log.reader().charges(offset, key_bytes, value_bytes) {
            let at = segment.0 as usize;
            if at >= self.sums.len() {
                self.sums.resize(at + 1, 0);
            }
            if let Some(sum) = self.sums.get_mut(at) {
                *sum += sign * i64::from(bytes);
            }
            planted!(SecondSegmentNotCounted => return);
        }
    }

    /// Adds the sums of `other`.
    pub fn add_all(&mut self, other: Self) {
        if other.sums.len() > self.sums.len() {
            self.sums.resize(other.sums.len(), 0);
        }
        for (sum, more) in self.sums.iter_mut().zip(other.sums) {
            *sum += more;
        }
    }

    /// The sums that are not 0.
    pub fn finish(self) -> BTreeMap<SegmentId, i64> {
        let numbered = (0..).map(SegmentId).zip(self.sums);
        numbered.filter(|(_, sum)| *sum != 0).collect()
    }
}
