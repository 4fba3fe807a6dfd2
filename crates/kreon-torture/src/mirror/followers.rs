//! Any packets, without a store: a backup's file must be what the packets say in their order, and after a power cut have all
//! that came before the last flush that was answered.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kreon_base::SEGMENT_BYTES;
use kreon_device::Device;
use kreon_format::{LOG_HEADER_BYTES, lsn_at};
use kreon_replica::follower::{Follower, Work};
use kreon_sim::{Dice, Image, Keep};
use kreon_wire::{FlushNumber, Frame, Outlet, Role, StreamPacket, Term};

use super::backup::{GROUP, capacity, room};
use super::pair::device;
use crate::counts::Counts;

const TERM: Term = Term(9);
const BLOCK: u64 = 4096;
/// Segments of the volume: few, so that log and pages meet in the same ones.
const SEGMENTS: u64 = 5;
const PACKETS: u64 = 120;

/// Runs the packets of some seeds.
pub fn followers(seed: u64) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    for seed in seed..seed + 24 {
        counts.count("streams");
        if let Err(what) = Trial::new(seed).run() {
            counts.fail(format!("followers --seed {seed}: {what}"));
        }
    }
    counts.elapsed = started.elapsed();
    counts
}

struct Trial {
    dice: Dice,
    outlet: Outlet,
    follower: Follower,
    device: std::sync::Arc<kreon_sim::SimDevice>,
    now: Instant,
    /// Sequence and segment of the log, and the next byte in it.
    log: (u64, u64, u64),
    flush: FlushNumber,
    /// What the packets so far make of the volume.
    expected: Image,
    /// The same at each flush.
    flushed: BTreeMap<FlushNumber, Image>,
    /// Bytes that packets after the flush have changed may be old or new.
    changed: Vec<(u64, std::ops::Range<u64>)>,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let device = device(Image::new(SEGMENTS * SEGMENT_BYTES), true);
        let start = lsn_at(1, LOG_HEADER_BYTES);
        Self {
            dice: Dice::new(seed),
            outlet: Outlet::new(GROUP, TERM, start, room()),
            follower: Follower::new((GROUP, TERM), device.len_bytes(), start, capacity()),
            expected: device.image(),
            device,
            now: Instant::now(),
            log: (1, 1, 0),
            flush: FlushNumber(0),
            flushed: BTreeMap::new(),
            changed: Vec::new(),
        }
    }

    fn run(mut self) -> Result<(), String> {
        for _ in 0..PACKETS {
            self.packet()?;
            for _ in 0..self.dice.below(3) {
                self.step()?;
            }
            let progress = self.follower.progress();
            let answer = progress.encode(GROUP, TERM).to_vec();
            let frame = Frame::open(&answer, Role::PeerStream).map_err(|v| v.to_string())?;
            self.outlet.admit(&frame).map_err(|v| v.to_string())?;
            if self.dice.below(8) == 0 {
                self.power_cut()?;
            }
        }
        self.follower.seal();
        while self.step()? {}
        if !self.follower.is_sealed() {
            return Err("the seal does not end".to_owned());
        }
        // The seal writes the rest of a block of log, with zeroes behind.
        let (_, segment, within) = self.log;
        let rest = vec![0; (within.next_multiple_of(BLOCK) - within) as usize];
        self.expected.write(segment * SEGMENT_BYTES + within, &rest);
        let found = self.device.image();
        differs(&self.expected, &found, 0..SEGMENTS * SEGMENT_BYTES).map_or(Ok(()), |at| {
            Err(format!("after the seal, byte {at} is another"))
        })
    }

    fn packet(&mut self) -> Result<(), String> {
        let fill = self.dice.roll() as u8;
        match self.dice.below(10) {
            0..=4 => self.log(fill),
            5..=6 => {
                let bytes = vec![fill; ((1 + self.dice.below(4)) * BLOCK) as usize];
                let offset = self.free_block();
                let fits = SEGMENT_BYTES - offset % SEGMENT_BYTES;
                let bytes = &bytes[..bytes.len().min(fits as usize)];
                self.note(offset, bytes);
                self.send(&StreamPacket::Pages { offset, bytes })
            }
            7 => {
                let (offset, len_bytes) = (self.free_block(), BLOCK);
                self.note(offset, &[0; BLOCK as usize]);
                self.send(&StreamPacket::Discard { offset, len_bytes })
            }
            8 if self.log.2.is_multiple_of(BLOCK) => self.flush(),
            8 => {
                // Flushes come at the borders of blocks.
                self.pad(fill)?;
                self.flush()
            }
            _ => self.next_segment(fill),
        }
    }

    /// A block of a segment that is not the log's: perhaps it was, or will be.
    fn free_block(&mut self) -> u64 {
        let (_, segment, _) = self.log;
        let other = (segment + 1 + self.dice.below(SEGMENTS - 1)) % SEGMENTS;
        // Few blocks, so that many packets overlap.
        other * SEGMENT_BYTES + self.dice.below(6) * BLOCK
    }

    fn log(&mut self, fill: u8) -> Result<(), String> {
        let len_bytes = match self.log.2 {
            0 => BLOCK + 8 * self.dice.below(900),
            _ => 8 * (1 + self.dice.below(1200)),
        };
        self.append(len_bytes, fill)
    }

    fn pad(&mut self, fill: u8) -> Result<(), String> {
        let len_bytes = BLOCK - self.log.2 % BLOCK;
        self.append(len_bytes, fill)
    }

    fn append(&mut self, len_bytes: u64, fill: u8) -> Result<(), String> {
        let (sequence, segment, within) = self.log;
        let len_bytes = len_bytes.min(SEGMENT_BYTES - within);
        let bytes = vec![fill; len_bytes as usize];
        let offset = segment * SEGMENT_BYTES + within;
        self.note(offset, &bytes);
        self.log.2 += len_bytes;
        let lsn = lsn_at(sequence, (within as u32).max(LOG_HEADER_BYTES));
        self.send(&StreamPacket::Log {
            lsn,
            offset,
            bytes: &bytes,
        })
    }

    /// Fills the segment, and goes on in another one that pages may have been written to.
    fn next_segment(&mut self, fill: u8) -> Result<(), String> {
        if self.dice.below(3) != 0 {
            return self.log(fill);
        }
        while self.log.2 < SEGMENT_BYTES {
            self.append(60 << 10, fill)?;
            while self.step()? {}
            let progress = self.follower.progress();
            let answer = progress.encode(GROUP, TERM).to_vec();
            let frame = Frame::open(&answer, Role::PeerStream).map_err(|v| v.to_string())?;
            self.outlet.admit(&frame).map_err(|v| v.to_string())?;
        }
        let (sequence, segment, _) = self.log;
        self.log = (
            sequence + 1,
            (segment + 1 + self.dice.below(SEGMENTS - 1)) % SEGMENTS,
            0,
        );
        // Pages of before go where the log goes on at once.
        let offset = self.log.1 * SEGMENT_BYTES;
        let bytes = vec![!fill; (2 * BLOCK) as usize];
        self.note(offset, &bytes);
        self.send(&StreamPacket::Pages {
            offset,
            bytes: &bytes,
        })?;
        self.log(fill)
    }

    fn flush(&mut self) -> Result<(), String> {
        self.flush = self.flush.next();
        let log_upto = lsn_at(self.log.0, (self.log.2 as u32).max(LOG_HEADER_BYTES));
        self.flushed.insert(self.flush, self.expected.clone());
        self.send(&StreamPacket::Flush {
            number: self.flush,
            log_upto,
        })
    }

    fn note(&mut self, offset: u64, bytes: &[u8]) {
        self.expected.write(offset, bytes);
        let range = offset..offset + bytes.len() as u64;
        self.changed.push((self.flush.0, range));
    }

    fn send(&mut self, packet: &StreamPacket<'_>) -> Result<(), String> {
        let bytes = self.outlet.number(packet).to_vec();
        let frame = Frame::open(&bytes, Role::PeerStream).map_err(|v| v.to_string())?;
        self.now += Duration::from_millis(self.dice.below(40));
        let taken = self.follower.take(&frame, self.now);
        taken.map_err(|violation| format!("{:?}: {violation}", packet.kind()))
    }

    fn step(&mut self) -> Result<bool, String> {
        let work = self.follower.next(self.now).map_err(|v| v.to_string())?;
        let Some(work) = work else {
            return Ok(false);
        };
        disjoint(&work)?;
        let outcome = work.perform(&*self.device);
        let done = self.follower.done(outcome);
        done.map(|()| true).map_err(|error| error.to_string())
    }

    /// What was answered is there; what came later may be there or not.
    fn power_cut(&mut self) -> Result<(), String> {
        let progress = self.follower.progress();
        let Some(expected) = self.flushed.get(&progress.flushed) else {
            return Ok(());
        };
        let history = self.device.history();
        let seed = self.dice.roll();
        let found = history.crash().image(&mut Keep::SomeSectors { seed });
        let later: Vec<_> = self
            .changed
            .iter()
            .filter(|(flush, _)| *flush >= progress.flushed.0)
            .collect();
        for (_, range) in self
            .changed
            .iter()
            .filter(|(flush, _)| *flush < progress.flushed.0)
        {
            for block in (range.start / BLOCK)..range.end.div_ceil(BLOCK) {
                let block = block * BLOCK..(block + 1) * BLOCK;
                let is_open = later
                    .iter()
                    .any(|(_, other)| other.start < block.end && block.start < other.end);
                if !is_open && let Some(at) = differs(expected, &found, block) {
                    return Err(format!(
                        "byte {at} of before flush {:?} is lost",
                        progress.flushed
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The first byte in a range in which two images differ.
fn differs(one: &Image, other: &Image, range: std::ops::Range<u64>) -> Option<u64> {
    let len_bytes = (range.end - range.start) as usize;
    let (one, other) = (
        one.bytes(range.start, len_bytes),
        other.bytes(range.start, len_bytes),
    );
    let at = one
        .iter()
        .zip(&other)
        .position(|(one, other)| one != other)?;
    Some(range.start + at as u64)
}

/// No two pieces of one call overlap.
fn disjoint(work: &Work) -> Result<(), String> {
    let Work::Write(pieces) = work else {
        return Ok(());
    };
    let mut ranges: Vec<_> = pieces.iter().map(|piece| piece.range()).collect();
    ranges.sort_by_key(|range| range.start);
    match ranges.windows(2).any(|two| two[0].end > two[1].start) {
        true => Err("one call writes a byte twice".to_owned()),
        false => Ok(()),
    }
}
