//! Reading the records that a verification meets, each once, in the order of the log.
//!
//! Read in the order of keys each would be a random read by itself. So references to them are gathered, as many as a
//! share of the frames holds, 16 bytes each: where the record is, how long, and a fingerprint of what must stand there.
//! They are sorted by place, a frame at a time, merged, and read in large runs, gaps along, at queue depth, past the
//! frames. The memory of the runs is that of scans.
//!
//! What does not verify that way is a suspect: it is read again by itself, with its key, which says what is wrong.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, binary_heap::PeekMut};

use kreon_base::{LogOffset, PAGE_BYTES, Result};
use kreon_device::{AlignedBuf, Read};
use kreon_format::Fragment;
use kreon_mapping::LentFrames;

use super::Inspector;
use super::pointed::{Pointed, RUN_RECORD_BYTES_MAX, WANTED_BYTES, Wanted};
use super::verify::VerifyReport;
use crate::progress::Meter;
use crate::read::ScanShare;

/// Gaps up to this are read along: a read costs about as much.
const GAP_BYTES: u64 = 16 << 10;

/// Most bytes of one read: several are under way at once.
const READ_BYTES: usize = 128 << 10;

/// Memory of the runs of a round: so much is under way at once. At the least it holds one record.
const ROUND_BYTES_MAX: usize = 2 << 20;
const ROUND_BYTES_MIN: usize = RUN_RECORD_BYTES_MAX + 2 * PAGE_BYTES;

/// References of a round.
const ROUND_RECORDS_MAX: usize = 4096;

/// Frames that are wanted for references: enough for 4 million.
const FRAMES_WANTED: usize = 16 << 10;

const FRAME_WANTED: usize = PAGE_BYTES / WANTED_BYTES;

/// References in frames, each frame sorted.
struct Gathered<'a> {
    frames: LentFrames<'a>,
    /// How many frames are full.
    full: usize,
    /// What goes into the next frame.
    open: Vec<Wanted>,
}

impl<'a> Gathered<'a> {
    fn push(&mut self, wanted: Wanted) {
        self.open.push(wanted);
        if self.open.len() == FRAME_WANTED && self.full < self.frames.len() {
            self.open.sort_unstable();
            if let Some(frame) = self.frames.get_mut(self.full) {
                let places = frame.as_chunks_mut::<WANTED_BYTES>().0;
                for (place, wanted) in places.iter_mut().zip(self.open.drain(..)) {
                    *place = wanted.encode();
                }
            }
            self.full += 1;
        }
    }

    /// Whether they must be read before the next one is added.
    fn is_full(&self) -> bool {
        self.open.len() >= FRAME_WANTED
    }

    fn at(&self, list: usize, index: usize) -> Option<Wanted> {
        if list == self.full {
            return self.open.get(index).copied();
        }
        let places = self.frames.get(list)?.as_chunks::<WANTED_BYTES>().0;
        places.get(index).map(|place| Wanted::decode(*place))
    }

    /// All of them in the order of the log.
    fn sorted(&mut self) -> Merged<'_, 'a> {
        self.open.sort_unstable();
        let lists = 0..=self.full;
        let firsts = lists.filter_map(|list| Some(Reverse((self.at(list, 0)?, list, 0))));
        Merged {
            heads: firsts.collect(),
            gathered: self,
        }
    }

    fn clear(&mut self) {
        self.full = 0;
        self.open.clear();
    }
}

/// The sorted lists as one.
struct Merged<'g, 'a> {
    gathered: &'g Gathered<'a>,
    heads: BinaryHeap<Reverse<(Wanted, usize, usize)>>,
}

impl Merged<'_, '_> {
    fn peek(&self) -> Option<Wanted> {
        self.heads.peek().map(|Reverse((wanted, ..))| *wanted)
    }

    fn pop(&mut self) {
        let Some(mut head) = self.heads.peek_mut() else {
            return;
        };
        let Reverse((_, list, index)) = *head;
        match self.gathered.at(list, index + 1) {
            Some(next) => *head = Reverse((next, list, index + 1)),
            None => drop(PeekMut::pop(head)),
        }
    }
}

/// Bytes of the volume, from one border of a block to another, and where they stand in the buffer.
struct Run {
    start: u64,
    end: u64,
    at: usize,
}

/// Records that are read together.
#[derive(Default)]
struct Round {
    runs: Vec<Run>,
    /// Each with the place of its first byte in the buffer.
    records: Vec<(Wanted, usize)>,
    bytes: usize,
}

impl Round {
    /// Adds a record behind those before, if there is room for it.
    fn add(&mut self, wanted: Wanted, block_bytes: u64, room_bytes: usize) -> bool {
        let (offset, extent) = (wanted.offset().0, wanted.extent() as u64);
        let start = offset - offset % block_bytes;
        let end = (offset + extent).next_multiple_of(block_bytes);
        let last = self.runs.last();
        let joins = last.is_some_and(|last| start <= last.end + GAP_BYTES);
        let added = match last.filter(|_| joins) {
            Some(last) => end.saturating_sub(last.end),
            None => end - start,
        };
        if self.bytes + added as usize > room_bytes || self.records.len() == ROUND_RECORDS_MAX {
            return false;
        }
        match self.runs.last_mut().filter(|_| joins) {
            Some(last) => last.end = last.end.max(end),
            None => self.runs.push(Run {
                start,
                end,
                at: self.bytes,
            }),
        }
        self.bytes += added as usize;
        if let Some(run) = self.runs.last() {
            self.records
                .push((wanted, run.at + (offset - run.start) as usize));
        }
        true
    }

    /// Reads all runs at once.
    fn read(&self, inspector: &Inspector, buffer: &mut AlignedBuf) -> Result<()> {
        let (mut rest, mut reads) = (buffer.get_mut(..self.bytes).unwrap_or_default(), Vec::new());
        for run in &self.runs {
            let mut start = run.start;
            while start < run.end {
                let len = ((run.end - start) as usize).min(READ_BYTES);
                let (room, behind) = rest.split_at_mut_checked(len).unwrap_or_default();
                reads.push(Read::new(start, room));
                rest = behind;
                start += len as u64;
            }
        }
        inspector.storage.device.read(&mut reads)
    }
}

/// What did not verify at first.
#[derive(Default)]
pub struct Suspects {
    /// Where the records stand, sorted; the first so many.
    offsets: Vec<u64>,
    /// There are more than are listed: every record is one.
    is_every: bool,
}

/// Suspects that are listed.
const SUSPECTS_MAX: usize = 1 << 14;

impl Suspects {
    fn add(&mut self, wanted: Wanted) {
        match self.offsets.len() < SUSPECTS_MAX {
            true => self.offsets.push(wanted.offset().0),
            false => self.is_every = true,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Whether the record at `offset` is one.
    pub fn has(&self, offset: LogOffset) -> bool {
        self.is_every || self.offsets.binary_search(&offset.0).is_ok()
    }
}

/// Reads and verifies gathered records in the order of their places, in rounds.
pub struct RecordReads<'a> {
    inspector: &'a Inspector,
    gathered: Gathered<'a>,
    buffer: AlignedBuf,
    _share: ScanShare,
    suspects: Suspects,
}

impl<'a> RecordReads<'a> {
    /// Takes the memory.
    pub fn new(inspector: &'a Inspector) -> Self {
        let mut share = inspector.reader.scan_memory().take_up_to(ROUND_BYTES_MAX);
        // Of the smallest stores a little more than the share, too.
        let bytes = share.bytes().max(ROUND_BYTES_MIN);
        let bytes = bytes - bytes % PAGE_BYTES;
        share.set(bytes);
        Self {
            inspector,
            gathered: Gathered {
                frames: inspector.storage.mapping.lend_frames(FRAMES_WANTED),
                full: 0,
                open: Vec::with_capacity(FRAME_WANTED),
            },
            buffer: AlignedBuf::new(bytes),
            _share: share,
            suspects: Suspects::default(),
        }
    }

    /// Has a record read, now or later; false if it is none for here: too long, or not on the device yet.
    pub fn add(
        &mut self,
        pointed: &Pointed<'_>,
        report: &mut VerifyReport,
        meter: &mut Meter<'_>,
    ) -> bool {
        let on_device = self
            .inspector
            .storage
            .log
            .reader()
            .on_device(pointed.at.offset, pointed.payload_bytes());
        let wanted = on_device
            .filter(|bytes| bytes.len_bytes == pointed.extent())
            .and_then(|_| Wanted::new(pointed));
        let Some(wanted) = wanted else {
            return false;
        };
        if self.gathered.is_full() {
            self.read_all(report, meter);
        }
        self.gathered.push(wanted);
        true
    }

    /// Reads what is left; what did not verify, sorted.
    pub fn finish(mut self, report: &mut VerifyReport, meter: &mut Meter<'_>) -> Suspects {
        self.read_all(report, meter);
        let mut suspects = self.suspects;
        suspects.offsets.sort_unstable();
        suspects
    }

    fn read_all(&mut self, report: &mut VerifyReport, meter: &mut Meter<'_>) {
        let block_bytes = u64::from(self.inspector.storage.device.block_bytes());
        let room_bytes = self.buffer.len();
        let mut merged = self.gathered.sorted();
        let mut round = Round::default();
        loop {
            while let Some(wanted) = merged.peek()
                && round.add(wanted, block_bytes, room_bytes)
            {
                merged.pop();
            }
            if round.records.is_empty() {
                break;
            }
            let was_read = round.read(self.inspector, &mut self.buffer).is_ok();
            for (wanted, at) in &round.records {
                let bytes = self.buffer.get(*at..*at + wanted.extent());
                let value_bytes = bytes
                    .filter(|_| was_read)
                    .and_then(|bytes| value_bytes(self.inspector, *wanted, bytes));
                match value_bytes {
                    Some(value_bytes) => {
                        report.records += 1;
                        report.value_bytes += value_bytes;
                    }
                    None => self.suspects.add(*wanted),
                }
            }
            meter.add(round.records.len() as u64);
            round.runs.clear();
            round.records.clear();
            round.bytes = 0;
        }
        drop(merged);
        self.gathered.clear();
    }
}

/// The length of the value, if the bytes are the whole record that is wanted.
fn value_bytes(inspector: &Inspector, wanted: Wanted, bytes: &[u8]) -> Option<u64> {
    let fragment = inspector
        .storage
        .log
        .reader()
        .fragment(wanted.offset(), bytes);
    let Ok(Fragment::Record { header, payload }) = fragment else {
        return None;
    };
    wanted.value_bytes(&header, payload)
}

#[cfg(test)]
mod tests {
    use kreon_base::{Attributes, Payload, RegionId};

    use super::*;

    fn wanted(offset: u64, payload_bytes: u32) -> Wanted {
        let key: &[u8] = b"key";
        let payload = Payload::Logged {
            offset: LogOffset(offset),
            value_bytes: payload_bytes - 3,
            attributes: Attributes::NONE,
        };
        let pointed = Pointed::of(RegionId(3), key, payload).unwrap();
        Wanted::new(&pointed).unwrap()
    }

    #[test]
    fn neighbours_come_in_one_run_and_no_round_is_longer_than_its_room() {
        let mut round = Round::default();
        for offset in [8192, 9192, 20_000, 1 << 20] {
            assert!(round.add(wanted(offset, 900), 512, 64 << 10));
        }
        let runs: Vec<_> = round
            .runs
            .iter()
            .map(|run| (run.start, run.end, run.at))
            .collect();
        let second = 1 << 20;
        assert_eq!(runs, [(8192, 20_992, 0), (second, second + 1024, 12_800)]);
        let places: Vec<_> = round.records.iter().map(|(_, at)| *at).collect();
        assert_eq!(places, [0, 1000, 11_808, 12_800]);
        assert!(!round.add(wanted(2 << 20, 60_000), 512, 64 << 10));
        assert_eq!(round.bytes, 13_824);
    }
}
