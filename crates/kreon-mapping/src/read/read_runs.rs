//! The transfers of a fetch: records in whole blocks, neighbours together.

use super::fetched::{GAP_BYTES_MAX, joins};
use crate::record_cache::Generation;

/// A record that has to be read.
pub(super) struct Missing {
    pub offset: u64,
    pub len: usize,
    pub generation: Generation,
}

/// Records that one transfer reads, with block boundaries as its ends.
pub(super) struct ReadRun {
    pub start: u64,
    pub end: u64,
    pub records: usize,
}

impl ReadRun {
    pub(super) fn len_bytes(&self) -> u64 {
        self.end - self.start
    }

    /// Transfers for those of the sorted records that have room. Gaps between records are read along if there is room
    /// for all of them.
    pub(super) fn within(missing: &[Missing], block_bytes: u64, room_bytes: usize) -> Vec<Self> {
        let room = room_bytes as u64;
        let runs = Self::of(missing, block_bytes, GAP_BYTES_MAX);
        if runs.iter().map(Self::len_bytes).sum::<u64>() <= room {
            return runs;
        }
        let mut bytes = 0;
        let mut runs = Self::of(missing, block_bytes, 0);
        runs.retain(|run| {
            bytes += run.len_bytes();
            bytes <= room
        });
        runs
    }

    /// Transfers for sorted records, in whole blocks, joined over gaps of up to `gap_bytes`.
    fn of(missing: &[Missing], block_bytes: u64, gap_bytes: u64) -> Vec<Self> {
        debug_assert!(missing.is_sorted_by_key(|record| record.offset));
        let mut runs: Vec<Self> = Vec::with_capacity(missing.len());
        for record in missing {
            let start = record.offset - record.offset % block_bytes;
            let end = (record.offset + record.len as u64).next_multiple_of(block_bytes);
            match runs.last_mut() {
                Some(run)
                    if start <= run.end + gap_bytes && joins(run.start, run.end, start, end) =>
                {
                    run.end = run.end.max(end);
                    run.records += 1;
                }
                _ => runs.push(Self {
                    start,
                    end,
                    records: 1,
                }),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_their_records_in_whole_blocks() {
        let missing = |offset, len| Missing {
            offset,
            len,
            generation: Generation::default(),
        };
        let records = [
            missing(1000, 1030),
            missing(2030, 1030),
            missing(100_000, 100),
            missing(100_200, 400),
            missing(2 << 20, 3072),
        ];
        let runs = ReadRun::within(&records, 512, usize::MAX);
        let runs: Vec<_> = runs.iter().map(|r| (r.start, r.end, r.records)).collect();
        assert_eq!(
            runs,
            [
                (512, 3072, 2),
                (99_840, 100_864, 2),
                (2 << 20, (2 << 20) + 3072, 1)
            ]
        );
        // With little room gaps are not read along, and records that do not fit are left out.
        let runs = ReadRun::within(&records[2..], 512, 1024);
        let runs: Vec<_> = runs.iter().map(|r| (r.start, r.end, r.records)).collect();
        assert_eq!(runs, [(99_840, 100_864, 2)]);
    }
}
