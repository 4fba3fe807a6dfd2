//! Reading many records at once: into frames while those are plenty, else into memory of the reader. A record that is used
//! once and may be kept by itself needs no frames, for which other pages would be evicted.

use kreon_base::{PAGE_BYTES, PageNo, Priority, Result};
use kreon_device::Read;

use super::byte_range::{ByteRange, FinalBytes};
use super::bytes::unchecked_page;
use super::fetched::{Fetched, FetchedRecord};
use super::prefetch::prefetch;
use super::prefetch_reads::outcomes_of;
use super::read_buffer::{ReadBuffer, longest_within};
use super::read_runs::{Missing, ReadRun};
use super::reader::PageReader;
use super::records::{copy_record, is_kept_alone, widened, widens, with_bytes};

/// Most records of a call whose surroundings are read along. More records are spread over the log, and have as many
/// neighbourhoods.
const WIDENED_MAX: usize = 8;

/// Records are not kept if their transfer brings more than this many. Where records lie together, a kept one saves no
/// read, and to keep it costs as much as its share of the read.
const KEPT_OF_RUN_MAX: usize = 3;

/// Makes these records available. [`Mapping::fetch`](crate::Mapping::fetch) has the details.
pub(crate) fn fetch(
    reader: &PageReader,
    records: impl Iterator<Item = FinalBytes>,
    priority: Priority,
    into: &mut Fetched,
) -> Result<()> {
    into.clear();
    let (mut missing, mut framed) = (Vec::new(), Vec::new());
    for bytes in records {
        let (offset, len) = (bytes.offset_bytes, bytes.len_bytes);
        reader.table().check_range(offset, len)?;
        let (first, count) = bytes.pages();
        if reader.table().are_resident(first, count)
            || into.add_copy(offset, len, |copies| {
                copy_record(reader, offset, len, copies)
            })
        {
            continue;
        }
        match is_kept_alone(reader, &bytes) {
            Some(records) => missing.push(Missing {
                offset,
                len,
                generation: records.generation(offset),
            }),
            None => framed.push(bytes),
        }
    }
    if !framed.is_empty() {
        fetch_frames(reader, &framed, priority);
    }
    if !missing.is_empty() {
        let misses = &reader.counters.misses;
        misses.add(priority, missing.len() as u64);
        fetch_missing(reader, missing, into);
    }
    into.sort();
    Ok(())
}

/// [`with_bytes`] of a record, whose surroundings are read along while frames are plenty.
///
/// # Errors
/// As there.
pub(crate) fn with_final_bytes<R>(
    reader: &PageReader,
    bytes: FinalBytes,
    priority: Priority,
    scratch: &mut Vec<u8>,
    use_bytes: impl FnOnce(&[u8]) -> R,
) -> Result<R> {
    let (first, count) = bytes.pages();
    if !reader.table().are_resident(first, count) && widens(reader, &bytes) {
        let table = reader.table();
        table.check_range(bytes.offset_bytes, bytes.len_bytes)?;
        fetch_frames(reader, &[bytes], priority);
    }
    let range = ByteRange {
        offset_bytes: bytes.offset_bytes,
        len_bytes: bytes.len_bytes,
        priority,
    };
    with_bytes(reader, range, scratch, use_bytes)
}

/// Reads records into frames. Errors are left to the read that needs the record.
fn fetch_frames(reader: &PageReader, records: &[FinalBytes], priority: Priority) {
    let is_wide = records.len() <= WIDENED_MAX;
    let pages = records.iter().flat_map(|bytes| {
        let (first, count) = match is_wide {
            true => widened(reader, bytes),
            false => bytes.pages(),
        };
        first.0..first.0 + u64::from(count)
    });
    let requests: Vec<_> = pages
        .map(|page| unchecked_page(PageNo(page), priority))
        .collect();
    _ = prefetch(reader, &requests);
}

/// Reads records past the frames, and keeps them.
fn fetch_missing(reader: &PageReader, mut missing: Vec<Missing>, into: &mut Fetched) {
    missing.sort_unstable_by_key(|record| record.offset);
    missing.dedup_by_key(|record| record.offset);
    let room_bytes = longest_within(into.room_left());
    let block_bytes = u64::from(reader.device.block_bytes());
    let runs = ReadRun::within(&missing, block_bytes, room_bytes);
    let bytes: u64 = runs.iter().map(ReadRun::len_bytes).sum();
    if runs.is_empty() {
        return;
    }
    let mut memory = ReadBuffer::new(bytes as usize);
    let pages_read = &reader.counters.pages_read;
    pages_read.add(bytes.div_ceil(PAGE_BYTES as u64));
    let arrived = read_runs(reader, &runs, &mut memory);
    let (mut missing, mut base) = (missing.iter(), 0);
    let mut records = Vec::new();
    for (run, has_arrived) in runs.iter().zip(arrived) {
        for record in missing.by_ref().take(run.records) {
            let at = base + (record.offset - run.start) as usize;
            if let Some(bytes) = memory.get(at..at + record.len)
                && has_arrived
            {
                if run.records <= KEPT_OF_RUN_MAX {
                    let frames = &reader.frames;
                    frames.keep_record(record.offset, record.generation, bytes);
                }
                records.push(FetchedRecord {
                    offset: record.offset,
                    len: record.len,
                    at,
                    is_copy: false,
                });
            }
        }
        base += run.len_bytes() as usize;
    }
    into.add_read(runs.len(), memory, records);
}

/// Reads the runs, one behind the other, into `memory`. Returns whether each arrived.
fn read_runs(reader: &PageReader, runs: &[ReadRun], memory: &mut [u8]) -> Vec<bool> {
    let mut rest = memory;
    let mut reads = Vec::with_capacity(runs.len());
    for run in runs {
        let (buffer, later) = rest.split_at_mut(run.len_bytes() as usize);
        reads.push(Read::new(run.start, buffer));
        rest = later;
    }
    let mut arrived = Vec::with_capacity(runs.len());
    for reads in reads.chunks_mut(reader.modes.depth_max()) {
        let called = reader.device.read(reads);
        arrived.extend(outcomes_of(reads, &called).map(Result::is_ok));
    }
    arrived
}
