//! Collection of dead records (`Kreon 3.2.5`): the live records of the segments with the fewest are copied to the log of moved
//! records; when that is committed, the segments hold nothing and become free.
//!
//! A segment is collected only if every record in it is in the tree since the last commit. So a record that is copied is
//! older than any that a writer is about to put into the tree, and a copy never hides a newer record.
//!
//! Nor does the segment take other records while it is collected: what the last commits found dead waits for the round as it does
//! for a reader. Else a new record, at the place of the one that is being copied, would be taken for it.

use std::collections::BTreeSet;

use kreon_base::{ErrorKind, LogOffset, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::AlignedBuf;
use kreon_format::{Fragment, FragmentSeal, LOG_HEADER_BYTES};
use kreon_sync::Mutex;

use super::home::{Home, LOG, LOG_PRIORITY, MOVED};
use super::log_buffer::SEGMENT;
use super::log_mark::LogMark;
use super::log_record::record_of;
use super::volume_log::VolumeLog;
use crate::format::Location;
use crate::log::Record;
use crate::tree::{Held, Tree};

/// Dead bytes that are left alone, in percent of the live ones...
const DEAD_PERCENT: u64 = 25;
/// ... and the most beside which writers go on.
const DEAD_PERCENT_MAX: u64 = 40;
/// As many bytes are always left alone: little stores need not be exact.
const DEAD_BYTES: u64 = 4 * SEGMENT_BYTES;

/// Live bytes that one round copies: this part of all, but at the least a few segments.
const ROUND_SHARE: u64 = 16;
const ROUND_BYTES_MIN: u64 = 4 * SEGMENT_BYTES;

/// Bytes of a segment that are read alike: the most that the mapping copies from frames.
const WINDOW_BYTES: usize = 64 << 10;

/// A segment with more live bytes, in percent, is not worth its copies.
const LIVE_PERCENT_MAX: u64 = 92;

/// Dead bytes of the log, and whether they are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Garbage {
    dead: u64,
    live: u64,
}

impl Garbage {
    /// Of so many segments, of which `live` bytes are live.
    pub(super) fn of(segments: u64, live: u64) -> Self {
        let dead = (segments * SEGMENT_BYTES).saturating_sub(live);
        Self { dead, live }
    }

    /// Whether some is to be collected.
    pub(super) fn is_due(&self) -> bool {
        self.dead > self.live * DEAD_PERCENT / 100 + DEAD_BYTES
    }

    /// Whether writers must wait for collection.
    pub(super) fn is_too_much(&self) -> bool {
        self.dead > self.live * DEAD_PERCENT_MAX / 100 + 2 * DEAD_BYTES
    }
}

/// Which segments were collected.
#[derive(Default)]
pub(super) struct Collector {
    /// Those that are not free yet, or whose records cannot all be read: they are not tried again.
    done: Mutex<BTreeSet<(SegmentId, u64)>>,
}

/// What a round works on.
#[derive(Clone, Copy)]
pub(super) struct Round<'a> {
    pub home: &'a Home,
    pub log: &'a VolumeLog,
    pub tree: &'a Tree<VolumeLog>,
    /// The last commit.
    pub mark: LogMark,
    /// Live bytes of the whole log.
    pub live: u64,
    /// Publishes changed nodes when there are no frames or pages for more.
    pub commit: &'a dyn Fn() -> Result<()>,
    /// Keeps a segment, with its number, from being used again. `None` if it holds nothing any more.
    pub hold: &'a dyn Fn(SegmentId, u64) -> Option<Held>,
}

/// A segment that is to be collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Victim {
    live: u32,
    segment: SegmentId,
    sequence: u64,
}

impl Collector {
    /// Copies the live records of some segments. Returns how many segments hold nothing after the next commit.
    ///
    /// # Errors
    /// Those of the device; `Corruption`. A lack of space ends the round.
    pub(super) fn round(&self, round: Round<'_>) -> Result<usize> {
        let mut done = self.done.lock();
        let victims = victims(&round, &mut done);
        let mut copied = 0;
        for (index, victim) in victims.iter().enumerate() {
            match collect(&round, victim) {
                Ok(bytes) => copied += bytes,
                Err(error) if error.kind() == ErrorKind::OutOfSpace => return Ok(index),
                Err(error) => {
                    // The others are collected all the same.
                    tracing::error!(%error, segment = %victim.segment, "a segment of the log was not collected");
                }
            }
            done.insert((victim.segment, victim.sequence));
        }
        tracing::debug!(segments = victims.len(), copied, "collected");
        Ok(victims.len())
    }
}

/// The segments with the fewest live bytes.
fn victims(round: &Round<'_>, done: &mut BTreeSet<(SegmentId, u64)>) -> Vec<Victim> {
    let mut all = Vec::new();
    {
        let allocator = round.home.allocator.lock();
        for (log, below) in [
            (LOG, round.mark.open.sequence),
            (MOVED, round.mark.moved_from),
        ] {
            let segments = allocator.log_segments(log).into_iter();
            all.extend(segments.filter(|(_, sequence)| *sequence < below).map(
                |(segment, sequence)| Victim {
                    live: allocator.live_bytes(segment),
                    segment,
                    sequence,
                },
            ));
        }
    }
    // Those that are free by now may come back as others.
    done.retain(|known| all.iter().any(|one| (one.segment, one.sequence) == *known));
    all.retain(|one| !done.contains(&(one.segment, one.sequence)));
    let live_max = SEGMENT_BYTES * LIVE_PERCENT_MAX / 100;
    all.retain(|one| u64::from(one.live) <= live_max);
    all.sort_unstable();
    let mut left = ROUND_BYTES_MIN.max(round.live / ROUND_SHARE);
    let is_wanted = |victim: &Victim| {
        let is_wanted = left > 0;
        left = left.saturating_sub(u64::from(victim.live));
        is_wanted
    };
    all.into_iter().take_while(is_wanted).collect()
}

/// Copies the live records of a segment. Returns their bytes.
fn collect(round: &Round<'_>, victim: &Victim) -> Result<u64> {
    let Some(_held) = (round.hold)(victim.segment, victim.sequence) else {
        return Ok(0);
    };
    let bytes = bytes_of(round.home, victim.segment)?;
    let start = victim.segment.offset_bytes();
    let seal = FragmentSeal {
        store: round.home.store,
        sequence: victim.sequence,
    };
    let (mut within, mut copied) = (LOG_HEADER_BYTES, 0);
    while within < SEGMENT {
        let offset = LogOffset(start + u64::from(within));
        let rest = bytes.get(within as usize..).unwrap_or_default();
        let fragment = match Fragment::decode(rest, &seal, offset) {
            Ok(fragment) => fragment,
            // The end of what an opening wrote, or damage: then what is behind it stays where it is.
            Err(_) => break,
        };
        let extent = fragment.extent_bytes();
        if let Some(record) = record_of(fragment).filter(|record| record.value.is_some())
            && copy(round, &record, Location::new(offset, extent))?
        {
            copied += extent as u64;
        }
        within += extent as u32;
    }
    Ok(copied)
}

/// The bytes of a segment: from frames where all pages of a window are resident, the others from the device.
fn bytes_of(home: &Home, segment: SegmentId) -> Result<AlignedBuf> {
    let mut bytes = AlignedBuf::new(SEGMENT as usize);
    let offset = |window: usize| segment.offset_bytes() + (window * WINDOW_BYTES) as u64;
    let windows: Vec<_> = (0..SEGMENT as usize / WINDOW_BYTES)
        .map(|window| {
            (
                window,
                home.mapping.are_resident(offset(window), WINDOW_BYTES),
            )
        })
        .collect();
    let mut rest: &mut [u8] = &mut bytes;
    for run in windows.chunk_by(|(_, before), (_, behind)| before == behind) {
        let (part, behind) = rest.split_at_mut(run.len() * WINDOW_BYTES);
        rest = behind;
        match run {
            [(first, false), ..] => home.device.read_at(offset(*first), part)?,
            resident => {
                for ((window, _), bytes) in resident.iter().zip(part.chunks_mut(WINDOW_BYTES)) {
                    home.mapping
                        .read_bytes(offset(*window), LOG_PRIORITY, bytes)?;
                }
            }
        }
    }
    Ok(bytes)
}

/// Copies a record if a leaf points at it. Whether one did.
fn copy(round: &Round<'_>, record: &Record<'_>, from: Location) -> Result<bool> {
    if !round.tree.points_at(record.key, from)? {
        return Ok(false);
    }
    let to = round.log.append_moved(record)?.location;
    let mut has_committed = false;
    loop {
        match round.tree.relocate(record.key, from, to) {
            // A commit publishes nodes, and gives the pages back that were replaced.
            Err(error)
                if error.kind() == ErrorKind::OutOfSpace
                    && (!has_committed || round.tree.wants_freeze()) =>
            {
                (round.commit)()?;
                has_committed = true;
            }
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_wait_only_for_more_garbage_than_is_collected() {
        for live in [0, 1 << 20, 1 << 30, 1 << 40] {
            let mut segments = live / SEGMENT_BYTES;
            while !Garbage::of(segments, live).is_due() {
                segments += 1;
            }
            assert!(!Garbage::of(segments, live).is_too_much());
            let most = live * 14 / 10 / SEGMENT_BYTES + 10;
            assert!(Garbage::of(most, live).is_too_much());
        }
    }
}
