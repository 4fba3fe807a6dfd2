//! Copies records into the stream of moved ones.
//!
//! Those that stand in frames are taken from there. The others are read in rounds: what stands close together in one read,
//! and all reads of a round at once. So records of one segment come in large sequential reads, and scattered ones at queue
//! depth.

use kreon_base::{Error, LogOffset, PAGE_BYTES, Payload, Result};
use kreon_device::{AlignedBuf, Read};
use kreon_format::{Fragment, fragment_bytes};

use super::candidates::Candidates;
use super::judge::Live;
use crate::level::MappedLog;
use crate::state::Storage;
use kreon_log::{Log, MovedRecord, MovedStream};

/// Gaps up to this are read along: a read costs about as much.
const GAP_BYTES: u64 = 16 << 10;

/// Most bytes of one read: several are under way at once.
const READ_BYTES: u64 = 256 << 10;

/// A record that has a copy on the device.
#[derive(Clone, Copy, Debug)]
pub struct Copied {
    /// What was copied.
    pub live: Live,
    /// Where the copy is.
    pub offset: LogOffset,
    /// Bytes that it takes, about.
    pub bytes: u64,
}

impl Copied {
    /// The entry that points at the copy.
    pub fn payload(&self) -> Payload<'static> {
        let (offset, live) = (self.offset, &self.live);
        match live.value_bytes.filter(|_| !live.has_expired) {
            None => Payload::Tombstone { offset },
            Some(value_bytes) => Payload::Logged {
                offset,
                value_bytes,
                attributes: live.attributes,
            },
        }
    }
}

/// A record of a round.
struct Wanted<'a> {
    live: Live,
    offset: LogOffset,
    record: MovedRecord<'a>,
}

/// Bytes of the volume, in page borders, and where they stand in the buffer.
struct Range {
    start: u64,
    end: u64,
    at: usize,
}

/// Copies `live` in their order. When it returns all copies are written. Stops early without an error when there is
/// no room for more.
///
/// # Errors
/// `Corruption` of a record, `Io`.
pub fn copy(
    storage: &Storage,
    stream: &mut MovedStream,
    candidates: &Candidates,
    live: &[Live],
    buffer: &mut AlignedBuf,
) -> Result<Vec<Copied>> {
    let mut copier = Copier {
        log: &storage.log,
        pages: MappedLog {
            mapping: &storage.mapping,
        },
        stream,
        copied: Vec::with_capacity(live.len()),
        scratch: Vec::new(),
    };
    let wanted: Vec<_> = live
        .iter()
        .filter_map(|live| Wanted::new(candidates, live))
        .collect();
    let mut rest = wanted.as_slice();
    let mut outcome = Ok(());
    while !rest.is_empty() && outcome.is_ok() {
        let count = round_of(rest, buffer.len());
        let (round, behind) = rest.split_at(count.max(1));
        outcome = match count {
            0 => round.iter().try_for_each(|wanted| copier.long(wanted)),
            _ => copier.round(round, storage, buffer),
        };
        rest = behind;
    }
    copier.stream.flush(&storage.log, &copier.pages)?;
    match outcome {
        Err(error) if error.kind() != kreon_base::ErrorKind::OutOfSpace => Err(error),
        _ => Ok(copier.copied),
    }
}

impl<'a> Wanted<'a> {
    fn new(candidates: &'a Candidates, live: &Live) -> Option<Self> {
        let candidate = candidates.get(live.index)?;
        let key = candidates.key(candidate);
        Some(Self {
            live: *live,
            offset: candidate.offset,
            record: MovedRecord {
                region: candidate.region,
                is_deletion: live.value_bytes.is_none(),
                has_attributes: !live.attributes.is_none(),
                key,
                payload_bytes: key.len() + live.value_bytes.unwrap_or(0) as usize,
            },
        })
    }

    /// Bytes that it takes in the log in one piece.
    fn extent(&self) -> usize {
        fragment_bytes(self.record.payload_bytes)
    }

    /// Whether it stands in one piece.
    fn is_whole(&self) -> bool {
        let end = self.offset.within_segment() as usize + self.extent();
        end <= kreon_base::SEGMENT_BYTES as usize
    }

    fn pages(&self) -> (u64, u64) {
        let page = PAGE_BYTES as u64;
        let end = self.offset.0 + self.extent() as u64;
        (
            self.offset.0 - self.offset.0 % page,
            end.next_multiple_of(page),
        )
    }
}

/// How many of `wanted` can be read into a buffer of `len` bytes at once, at the worst each by itself.
fn round_of(wanted: &[Wanted<'_>], len: usize) -> usize {
    let (mut sum, mut end_before) = (0, 0);
    let fits = |wanted: &&Wanted<'_>| {
        let (start, end) = wanted.pages();
        // Behind its neighbour it adds what is between them at the most.
        let follows = start <= end_before + GAP_BYTES && start + PAGE_BYTES as u64 >= end_before;
        sum += match follows {
            true => end.saturating_sub(end_before),
            false => end - start,
        };
        end_before = end;
        wanted.is_whole() && sum <= len as u64
    };
    wanted.iter().take_while(fits).count()
}

/// The ranges to read for `round`, in the order of the volume.
fn ranges_of(round: &[&Wanted<'_>]) -> Vec<Range> {
    let mut pages: Vec<_> = round.iter().map(|wanted| wanted.pages()).collect();
    pages.sort_unstable();
    let mut ranges: Vec<Range> = Vec::new();
    for (start, end) in pages {
        match ranges.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => ranges.push(Range { start, end, at: 0 }),
        }
    }
    ranges
}

struct Copier<'a> {
    log: &'a Log,
    pages: MappedLog<'a>,
    stream: &'a mut MovedStream,
    copied: Vec<Copied>,
    scratch: Vec<u8>,
}

impl Copier<'_> {
    fn round(
        &mut self,
        round: &[Wanted<'_>],
        storage: &Storage,
        buffer: &mut AlignedBuf,
    ) -> Result<()> {
        let is_absent = |wanted: &&Wanted<'_>| {
            if wanted.live.has_expired {
                return false;
            }
            let has = storage.mapping.has_bytes(wanted.offset.0, wanted.extent());
            !has
        };
        let absent: Vec<_> = round.iter().filter(is_absent).collect();
        let ranges = load(storage, ranges_of(&absent), buffer)?;
        for wanted in round {
            if wanted.live.has_expired {
                self.deletion(wanted)?;
                continue;
            }
            let behind = ranges.partition_point(|range| range.start <= wanted.offset.0);
            let range = behind.checked_sub(1).and_then(|index| ranges.get(index));
            let end = wanted.offset.0 + wanted.extent() as u64;
            match range.filter(|range| end <= range.end) {
                Some(range) => {
                    let at = range.at + (wanted.offset.0 - range.start) as usize;
                    let bytes = buffer.get(at..).unwrap_or_default();
                    let fragment = self.log.reader().fragment(wanted.offset, bytes)?;
                    self.append_whole(wanted, &fragment)?;
                }
                None => self.resident(wanted)?,
            }
        }
        Ok(())
    }

    /// A record in frames; if it has left them since, from the device.
    fn resident(&mut self, wanted: &Wanted<'_>) -> Result<()> {
        let (log, pages) = (self.log.reader(), self.pages);
        let (offset, extent) = (wanted.offset, wanted.extent());
        let mut scratch = std::mem::take(&mut self.scratch);
        let appended =
            log.with_verified_fragment(&pages, offset, extent, &mut scratch, |fragment| {
                self.append_whole(wanted, &fragment)
            });
        self.scratch = scratch;
        appended
    }

    /// Appends a record that stands in one piece. Its copy may be cut.
    fn append_whole(&mut self, wanted: &Wanted<'_>, fragment: &Fragment<'_>) -> Result<()> {
        let mut rest = wanted.record.whole(fragment)?;
        self.append(wanted, |room| {
            let part = rest.split_off(..room.len());
            let part = part.ok_or_else(|| Error::invalid("a copy longer than its record"))?;
            room.copy_from_slice(part);
            Ok(())
        })
    }

    /// In place of a value that has ended: its key is known.
    fn deletion(&mut self, wanted: &Wanted<'_>) -> Result<()> {
        let key = wanted.record.key;
        let deletion = Wanted {
            record: MovedRecord {
                is_deletion: true,
                has_attributes: false,
                payload_bytes: key.len(),
                ..wanted.record
            },
            ..*wanted
        };
        let mut rest = key;
        self.append(&deletion, |room| {
            let part = rest.split_off(..room.len());
            let part = part.ok_or_else(|| Error::invalid("a copy longer than its key"))?;
            room.copy_from_slice(part);
            Ok(())
        })
    }

    /// A record of several pieces, or longer than the buffer.
    fn long(&mut self, wanted: &Wanted<'_>) -> Result<()> {
        if wanted.live.has_expired {
            return self.deletion(wanted);
        }
        let mut record = self.log.reader().record_at(wanted.offset, wanted.record);
        self.append(wanted, |room| record.read(room))
    }

    fn append(
        &mut self,
        wanted: &Wanted<'_>,
        read: impl FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let record = &wanted.record;
        let offset = self.stream.append(self.log, &self.pages, record, read)?;
        self.copied.push(Copied {
            live: wanted.live,
            offset,
            bytes: wanted.extent() as u64,
        });
        Ok(())
    }
}

/// Reads `ranges` into `buffer`, neighbours with what is between them, as far as there is room for that.
fn load(storage: &Storage, ranges: Vec<Range>, buffer: &mut AlignedBuf) -> Result<Vec<Range>> {
    let mut needed: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    let mut joined: Vec<Range> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last)
                if range.start - last.end <= GAP_BYTES
                    && needed + (range.start - last.end) <= buffer.len() as u64 =>
            {
                needed += range.start - last.end;
                last.end = range.end;
            }
            _ => joined.push(range),
        }
    }
    let (mut at, mut rest) = (0, &mut buffer[..]);
    let mut reads = Vec::new();
    for range in &mut joined {
        range.at = at;
        at += (range.end - range.start) as usize;
        let mut start = range.start;
        while start < range.end {
            let len = (range.end - start).min(READ_BYTES);
            let (room, behind) = rest
                .split_at_mut_checked(len as usize)
                .ok_or_else(|| Error::invalid("a round longer than its buffer"))?;
            reads.push(Read::new(start, room));
            rest = behind;
            start += len;
        }
    }
    storage.device.read(&mut reads)?;
    Ok(joined)
}
