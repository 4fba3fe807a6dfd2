//! Replay: reading the log from the marker of the last checkpoint, or the end of the image of L0, to its end.
//!
//! - `walk`: from fragment to fragment and segment to segment; where the log ends, and what is
//!   damage
//! - `units`: fragments to records to whole units
//! - `damage`: proof behind the end that something before it was acknowledged
//! - `newer`: proof that the superblock is older than the log
//! - `start`: what it starts from
//! - `source`: large reads, one segment ahead
//! - `check`: whether a replay would succeed

mod check;
mod damage;
mod newer;
mod source;
mod start;
mod units;
mod walk;

use std::collections::BTreeMap;

use kreon_base::{Error, Result, SEGMENT_BYTES, SegmentId};
use kreon_format::place_of;

pub use self::check::check;
use self::source::Source;
pub use self::start::ReplayStart;
pub use self::units::ReplayRecord;
pub use self::units::{Found, Units};
use self::walk::Walk;
use super::cut::PAYLOAD_START;
use super::history::{LOG_START, LogHistory};

/// What replay found.
#[derive(Clone, Debug)]
pub struct ReplayEnd {
    /// The log, ready to be opened.
    pub history: LogHistory,
    /// Segments of it that the last checkpoint did not know, to be claimed from the volume.
    pub found: Vec<(SegmentId, u64)>,
    /// Segments that the last checkpoint knew and that the log does not need.
    pub unused: Vec<SegmentId>,
    /// Records that were handed on.
    pub record_count: u64,
}

/// Reads the log from its marker, or from the end of the image, and hands every record of a whole unit to `visit`, in order.
/// The first unit that is not whole ends the log: nothing behind it is ever replayed. Writes nothing.
///
/// # Errors
/// `Corruption` if durable bytes are damaged: those before the durable position of the checkpoint, or before one
/// that the log claims behind the damage; or if the log is newer than the superblock. `Io` if the device cannot
/// read. Whatever `visit` returns.
pub fn replay(
    start: &ReplayStart<'_>,
    mut visit: impl FnMut(ReplayRecord<'_>) -> Result<()>,
) -> Result<ReplayEnd> {
    let mut chain: BTreeMap<u64, SegmentId> = start
        .segments
        .iter()
        .map(|(segment, sequence)| (*sequence, *segment))
        .collect();
    if start.record.marker < LOG_START {
        let marker = start.record.marker;
        return Err(Error::corruption(format!(
            "the log is to be replayed from {marker}, before its start"
        )));
    }
    let Some(open) = start.record.open else {
        return Ok(settle(start, chain, LogHistory::of_record(start.record), 0));
    };
    chain.entry(open.sequence).or_insert(open.segment);
    if let Some(next) = start.record.next {
        chain.entry(open.sequence + 1).or_insert(next);
    }
    let (chain, history, record_count) = std::thread::scope(|scope| {
        let source = Source::start(scope, start.device, start.backing)?;
        let mut walk = Walk::new(start, chain, source);
        let end = walk.run(&mut visit)?;
        let history = LogHistory {
            end,
            ..LogHistory::of_record(start.record)
        };
        let record_count = walk.record_count();
        Ok((walk.into_chain(), history, record_count))
    })?;
    Ok(settle(start, chain, history, record_count))
}

/// Sorts the segments into those that hold the log, those that are reserved, and others.
fn settle(
    start: &ReplayStart<'_>,
    mut chain: BTreeMap<u64, SegmentId>,
    mut history: LogHistory,
    record_count: u64,
) -> ReplayEnd {
    let (sequence, within) = place_of(history.resume_at());
    let mut behind = chain.split_off(&(sequence + u64::from(within > PAYLOAD_START)));
    let mut expected = sequence + u64::from(within > PAYLOAD_START);
    history.segments = chain
        .iter()
        .map(|(sequence, segment)| (*segment, *sequence))
        .collect();
    let mut used: BTreeMap<SegmentId, u64> = history.segments.iter().copied().collect();
    // A crash undid the growth of the volume that a segment behind its end belonged to.
    let fits =
        |segment: &SegmentId| segment.offset_bytes() + SEGMENT_BYTES <= start.device.len_bytes();
    while let Some(segment) = behind.remove(&expected).filter(fits) {
        history.reserved.push(segment);
        used.insert(segment, expected);
        expected += 1;
    }
    let known: BTreeMap<SegmentId, u64> = start.segments.iter().copied().collect();
    let found = used
        .iter()
        .filter(|(segment, sequence)| known.get(segment) != Some(sequence));
    let found = found
        .map(|(segment, sequence)| (*segment, *sequence))
        .collect();
    let unused = known
        .keys()
        .filter(|segment| !used.contains_key(segment))
        .copied()
        .collect();
    ReplayEnd {
        history,
        found,
        unused,
        record_count,
    }
}
