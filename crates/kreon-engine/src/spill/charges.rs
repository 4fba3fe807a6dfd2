//! Live bytes by log segment, from the entries that a merge adds and drops.

use std::collections::BTreeMap;

use kreon_base::{SegmentId, planted};

use crate::tree::Reference;
use kreon_log::Log;

/// Sums of live bytes that change, by segment.
pub struct Charges<'a> {
    log: &'a Log,
    /// By number of the segment: a spill adds to two sums for each entry, in no order.
    sums: Vec<i64>,
}

impl<'a> Charges<'a> {
    /// Nothing changed yet.
    pub fn new(log: &'a Log) -> Self {
        Self {
            log,
            sums: Vec::new(),
        }
    }

    /// An entry that points at a record was added.
    pub fn add(&mut self, record: &Reference) {
        self.change(record, 1);
    }

    /// An entry that points at a record is gone.
    pub fn drop(&mut self, record: &Reference) {
        self.change(record, -1);
    }

    fn change(&mut self, record: &Reference, sign: i64) {
        let Reference {
            offset,
            key_bytes,
            value_bytes,
        } = *record;
        for (segment, bytes) in self.log.charges(offset, key_bytes, value_bytes) {
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

    /// Adds the sums of another.
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
