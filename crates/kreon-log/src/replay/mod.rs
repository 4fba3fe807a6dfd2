//! Replay: reading the log from the marker of the last checkpoint, or the end of the image of L0, to its end.
//!
//! - `walk`: from fragment to fragment and segment to segment; where the log ends, and what is
//!   damage
//! - `units`: fragments to records to whole units
//! - `damage`: proof behind the end that something before it was acknowledged
//! - `newer`: proof that the superblock is older than the log
//! - `start`: what it starts from
//! - `source`: large reads, one segment ahead

mod damage;
mod newer;
mod source;
mod start;
mod units;
mod walk;

use std::collections::BTreeMap;

use kreon_base::{Error, Lsn, Result, SEGMENT_BYTES, SegmentId};
use kreon_format::place_of;

use self::source::Source;
pub use self::start::ReplayStart;
pub use self::units::{Found, ReplayRecord, Units};
use self::walk::Walk;
use super::cut::PAYLOAD_START;
use super::history::{LOG_START, LogHistory, resume_behind};

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
    let mut history = LogHistory::of_record(start.record);
    if history.marker < LOG_START {
        return Err(Error::corruption(format!(
            "the log is to be replayed from {}, before its start",
            history.marker
        )));
    }
    if start.record.open.is_none() {
        return Ok(settle(start, start.chain(), history, 0));
    }
    let (chain, record_count) = std::thread::scope(|scope| {
        let source = Source::start(scope, start.device, start.backing)?;
        let mut walk = Walk::new(start, source);
        history.end = walk.run(&mut visit)?;
        // A checkpoint makes everything before its marker durable.
        history.durable = walk.durable().max(history.marker).min(history.end);
        Ok((walk.chain, walk.units.record_count))
    })?;
    Ok(settle(start, chain, history, record_count))
}

/// Walks as [`replay`] does, up to `until`, behind which the log may be growing. Everything before `until` is known to be
/// durable, so whatever stops the walk before is damage.
///
/// # Errors
/// `Corruption` that says where the log is damaged; `Io`.
pub fn check(start: &ReplayStart<'_>, until: Lsn) -> Result<()> {
    if start.record.open.is_none() {
        return Ok(());
    }
    std::thread::scope(|scope| {
        let source = Source::start(scope, start.device, start.backing)?;
        let mut walk = Walk::new(start, source).up_to(until);
        walk.run(&mut |_| Ok(())).map(drop)
    })
}

/// Sorts the segments into those that hold the log, those that are reserved, and others.
fn settle(
    start: &ReplayStart<'_>,
    mut chain: BTreeMap<u64, SegmentId>,
    mut history: LogHistory,
    record_count: u64,
) -> ReplayEnd {
    let (sequence, within) = place_of(resume_behind(history.end));
    let mut expected = sequence + u64::from(within > PAYLOAD_START);
    let mut behind = chain.split_off(&expected);
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
