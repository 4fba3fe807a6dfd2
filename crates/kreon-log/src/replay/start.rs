//! What replay starts from: the last checkpoint.

use std::collections::BTreeMap;

use kreon_base::{Incarnation, Lsn, SegmentId};
use kreon_device::{Backing, Device};
use kreon_format::{LogRecord, StoreId};

/// What replay starts from.
#[derive(Clone, Copy)]
pub struct ReplayStart<'a> {
    /// The device under the volume.
    pub device: &'a dyn Device,
    /// The store.
    pub store: StoreId,
    /// What the last checkpoint says of the log.
    pub record: &'a LogRecord,
    /// The run that wrote the superblock: no later one has written to the log.
    pub newest: Incarnation,
    /// The log's segments with their sequences, as the last checkpoint knows them, in any order; those
    /// that are only reserved too.
    pub segments: &'a [(SegmentId, u64)],
    /// All segments that the last checkpoint says hold something, ascending: the log has gone on in none of them.
    pub taken: &'a [SegmentId],
    /// Values up to this length are handed on.
    pub value_bytes_max: usize,
    /// When segments in memory become real. With [`Backing::Sparse`] the calling thread reads them.
    pub backing: Backing,
    /// The image of L0 is there: nothing before its end is read.
    pub has_image: bool,
}

impl ReplayStart<'_> {
    /// The first record that is read.
    pub fn from(&self) -> Lsn {
        match self.has_image {
            true => self.record.replay_start(),
            false => self.record.marker,
        }
    }

    /// The segments that the checkpoint knew, by sequence.
    pub(super) fn chain(&self) -> BTreeMap<u64, SegmentId> {
        let known = self.segments.iter();
        let mut chain: BTreeMap<_, _> = known.map(|(id, sequence)| (*sequence, *id)).collect();
        if let Some(open) = self.record.open {
            chain.entry(open.sequence).or_insert(open.segment);
            if let Some(next) = self.record.next {
                chain.entry(open.sequence + 1).or_insert(next);
            }
        }
        chain
    }
}
