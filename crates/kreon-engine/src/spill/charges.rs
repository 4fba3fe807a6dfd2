//! Live bytes by log segment, from the entries that a merge adds and drops.

use std::collections::BTreeMap;

use kreon_base::{Bug, SegmentId};

use crate::log::Log;
use crate::tree::Reference;

/// Sums of live bytes that change, by segment.
pub struct Charges<'a> {
    log: &'a Log,
    sums: BTreeMap<SegmentId, i64>,
}

impl<'a> Charges<'a> {
    /// Nothing changed yet.
    pub fn new(log: &'a Log) -> Self {
        Self {
            log,
            sums: BTreeMap::new(),
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
            *self.sums.entry(segment).or_insert(0) += sign * i64::from(bytes);
            if Bug::SecondSegmentNotCounted.is_planted() {
                return;
            }
        }
    }

    /// The sums.
    pub fn finish(self) -> BTreeMap<SegmentId, i64> {
        self.sums
    }
}
