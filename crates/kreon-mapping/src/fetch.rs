//! Bringing many records from the device at once, into memory of their reader's own: what is used once and may
//! be kept as a record needs no frames, which others would have to leave.

use kreon_base::{PAGE_BYTES, PageNo, Priority, Result, SEGMENT_BYTES};
use kreon_device::Read;

use crate::bytes::FRAMED_BYTES_MAX;
use crate::fetched::{Fetched, GAP_BYTES_MAX, Place, joins};
use crate::hot::{Generation, Hot};
use crate::mapping::Mapping;
use crate::options::{KeepRecords, PageRequest};
use crate::spare::{Spare, longest_within};

/// Most records of a call whose surroundings are read along: more are all over the log, and their neighbours
/// are as many as there are records.
const WIDENED_MAX: usize = 8;

/// Records of which more than so many come in one transfer are not kept: where they lie together, a record that is there
/// spares no read, and to keep it costs as much as its share of the read.
const KEPT_OF_RUN_MAX: usize = 3;

/// Bytes of the log that are on the device and final, as all bytes are from the start of their segment to
/// `final_end_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinalBytes {
    /// Where they start.
    pub offset_bytes: u64,
    /// How many.
    pub len_bytes: usize,
    /// In the same segment, or its end.
    pub final_end_bytes: u64,
}

/// A record that is to be read.
struct Missing {
    offset: u64,
    len: usize,
    generation: Generation,
}

/// Records that one transfer reads, from one border of a block to another.
struct Run {
    start: u64,
    end: u64,
    records: usize,
}

impl FinalBytes {
    /// The pages they touch: the first, and how many.
    pub(crate) fn pages(&self) -> (PageNo, u32) {
        let first = PageNo::containing(self.offset_bytes);
        let last = self.offset_bytes + self.len_bytes.max(1) as u64 - 1;
        let last = PageNo::containing(last);
        (first, (last.0 - first.0 + 1) as u32)
    }
}

impl Run {
    fn len_bytes(&self) -> u64 {
        self.end - self.start
    }

    /// Transfers for sorted records, for so many of them as there is room for. What is between two records is read
    /// along if there is room for all of that.
    fn within(missing: &[Missing], block_bytes: u64, room_bytes: usize) -> Vec<Self> {
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

    /// Transfers for sorted records, in whole blocks, neighbours together, with gaps up to so long.
    fn of(missing: &[Missing], block_bytes: u64, gap_bytes: u64) -> Vec<Self> {
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

impl Mapping {
    /// Has these records at hand: those that are resident stay where they are, the others come, all at once, into
    /// frames as long as those are plenty, else into `into`. What it had goes. Records that cannot
    /// be read are left to the read that needs them.
    ///
    /// # Errors
    /// `InvalidArgument` if a range reaches over the longest volume.
    pub fn fetch(
        &self,
        records: impl Iterator<Item = FinalBytes>,
        priority: Priority,
        into: &mut Fetched,
    ) -> Result<()> {
        into.clear();
        let (mut missing, mut framed) = (Vec::new(), Vec::new());
        for bytes in records {
            self.check_range(bytes.offset_bytes, bytes.len_bytes)?;
            let (first, count) = bytes.pages();
            if self.are_resident(first, count) || self.copy_record(&bytes, into) {
                continue;
            }
            match self.hot_for(&bytes) {
                Some(hot) => missing.push(Missing {
                    offset: bytes.offset_bytes,
                    len: bytes.len_bytes,
                    generation: hot.generation(bytes.offset_bytes),
                }),
                None => framed.push(bytes),
            }
        }
        if !framed.is_empty() {
            self.fetch_frames(&framed, priority);
        }
        if let Some(hot) = &self.hot
            && !missing.is_empty()
        {
            self.counters.misses.add(priority, missing.len() as u64);
            self.fetch_missing(hot, missing, into);
        }
        into.places.sort_unstable_by_key(|place| place.offset);
        Ok(())
    }

    /// [`with_bytes`](Self::with_bytes) of a record; with it comes what is around it, as long as frames are
    /// plenty.
    ///
    /// # Errors
    /// As there.
    pub fn with_final_bytes<R>(
        &self,
        bytes: FinalBytes,
        priority: Priority,
        scratch: &mut Vec<u8>,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        let (offset_bytes, len_bytes) = (bytes.offset_bytes, bytes.len_bytes);
        let (first, count) = bytes.pages();
        if !self.are_resident(first, count) && self.widens(&bytes) {
            self.check_range(offset_bytes, len_bytes)?;
            self.fetch_frames(&[bytes], priority);
        }
        self.with_bytes(offset_bytes, len_bytes, priority, scratch, use_bytes)
    }

    /// Takes a copy of a record that is kept.
    fn copy_record(&self, bytes: &FinalBytes, into: &mut Fetched) -> bool {
        let (offset, len, at) = (bytes.offset_bytes, bytes.len_bytes, into.copies.len());
        // Without room it stays where it is kept.
        let is_kept = len <= into.room_left() && self.has_kept(offset, len, &mut into.copies);
        if is_kept {
            into.places.push(Place {
                offset,
                len,
                at,
                is_copy: true,
            });
        }
        is_kept
    }

    /// Brings records into frames.
    fn fetch_frames(&self, records: &[FinalBytes], priority: Priority) {
        let is_wide = records.len() <= WIDENED_MAX;
        let pages = records.iter().flat_map(|bytes| {
            let (first, count) = match is_wide {
                true => self.widened(bytes),
                false => bytes.pages(),
            };
            first.0..first.0 + u64::from(count)
        });
        let requests: Vec<_> = pages
            .map(|page| PageRequest {
                page: PageNo(page),
                priority,
                check: &|_| Ok(()),
            })
            .collect();
        // What fails shows when it is read.
        _ = self.prefetch(&requests);
    }

    /// Brings records past the frames, and keeps them.
    fn fetch_missing(&self, hot: &Hot, mut missing: Vec<Missing>, into: &mut Fetched) {
        missing.sort_unstable_by_key(|record| record.offset);
        missing.dedup_by_key(|record| record.offset);
        let room_bytes = longest_within(into.room_left());
        let runs = Run::within(&missing, u64::from(self.device.block_bytes()), room_bytes);
        let bytes: u64 = runs.iter().map(Run::len_bytes).sum();
        into.transfers = runs.len();
        if runs.is_empty() {
            return;
        }
        let mut memory = Spare::new(bytes as usize);
        self.counters
            .pages_read
            .add(bytes.div_ceil(PAGE_BYTES as u64));
        let arrived = self.read_runs_into(&runs, &mut memory);
        let (mut records, mut base) = (missing.iter(), 0);
        for (run, has_arrived) in runs.iter().zip(arrived) {
            for record in records.by_ref().take(run.records) {
                let at = base + (record.offset - run.start) as usize;
                if let Some(bytes) = memory.get(at..at + record.len)
                    && has_arrived
                {
                    if run.records <= KEPT_OF_RUN_MAX {
                        self.keep(hot, record.offset, record.generation, bytes);
                    }
                    into.places.push(Place {
                        offset: record.offset,
                        len: record.len,
                        at,
                        is_copy: false,
                    });
                }
            }
            base += (run.end - run.start) as usize;
        }
        into.memory = Some(memory);
    }

    /// Reads the runs, one behind the other, into `memory`. Whether each arrived.
    fn read_runs_into(&self, runs: &[Run], memory: &mut [u8]) -> Vec<bool> {
        let mut rest = memory;
        let mut reads = Vec::with_capacity(runs.len());
        for run in runs {
            let (buffer, later) = rest.split_at_mut((run.end - run.start) as usize);
            reads.push(Read::new(run.start, buffer));
            rest = later;
        }
        let mut arrived = Vec::with_capacity(runs.len());
        for reads in reads.chunks_mut(self.modes.depth_max.max(1)) {
            let called = self.device.read(reads);
            let named = reads.iter().any(|read| read.outcome.is_err());
            arrived.extend(
                reads
                    .iter()
                    .map(|read| if named { &read.outcome } else { &called }.is_ok()),
            );
        }
        arrived
    }

    /// Whether what is around a record is read along with it: not if the record itself is read past the frames.
    fn widens(&self, bytes: &FinalBytes) -> bool {
        bytes.len_bytes <= FRAMED_BYTES_MAX
            && self.modes.records == KeepRecords::Scarce
            && self.mapped.is_none()
            && self.has_plenty_of_frames()
            && !self.has_record(bytes.offset_bytes, bytes.len_bytes)
    }

    /// The pages of a record, and those around it that one transfer brings along, as long as there are plenty of
    /// frames: the first, and how many.
    pub(crate) fn widened(&self, bytes: &FinalBytes) -> (PageNo, u32) {
        const WINDOW_PAGES: u64 = 16;
        const { assert!((SEGMENT_BYTES / PAGE_BYTES as u64).is_multiple_of(WINDOW_PAGES)) };
        let (first, count) = bytes.pages();
        if !self.widens(bytes) {
            return (first, count);
        }
        let end = first.0 + u64::from(count);
        // A page that is final in part only must not come into a frame, but for the record that is asked for.
        let final_end = (bytes.final_end_bytes / PAGE_BYTES as u64).max(end);
        let start = first.0 - first.0 % WINDOW_PAGES;
        let end = end.next_multiple_of(WINDOW_PAGES).min(final_end);
        (PageNo(start), (end - start) as u32)
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
        let runs = Run::within(&records, 512, usize::MAX);
        let runs: Vec<_> = runs.iter().map(|r| (r.start, r.end, r.records)).collect();
        assert_eq!(
            runs,
            [
                (512, 3072, 2),
                (99_840, 100_864, 2),
                (2 << 20, (2 << 20) + 3072, 1)
            ]
        );
        // With little room gaps are not read along, and what does not fit is left out.
        let runs = Run::within(&records[2..], 512, 1024);
        let runs: Vec<_> = runs.iter().map(|r| (r.start, r.end, r.records)).collect();
        assert_eq!(runs, [(99_840, 100_864, 2)]);
    }
}
