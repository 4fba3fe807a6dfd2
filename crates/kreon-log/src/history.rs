//! A log that is not open: its segments, its end, and which run of the store wrote which part.
//!
//! Invariants:
//! - a new run goes on at the next page border behind the end: no page that holds records is written again;
//! - bytes between the end and the border, and bytes of earlier runs behind the border, are never replayed. Records carry
//!   the low 16 bits of their run's incarnation, and the border is recorded before the first record behind it. (A stale
//!   record would be replayed only if it outlived 65,535 further runs that together wrote less than was stale, and
//!   a crash came right before it.)

use kreon_base::{Incarnation, Lsn, PAGE_BYTES, SegmentId};
use kreon_format::{LogRecord, LogResume, lsn_at, place_of};

use super::cut::{PAYLOAD_START, SEGMENT};

/// Sequence of the first segment of a log. Not 0: LSN 0 is no record's.
const FIRST_SEQUENCE: u64 = 1;

/// Most runs before the marker that a checkpoint tells of: they take 24 bytes each in every checkpoint, and a store that is opened
/// for one small write at a time has thousands within a segment.
const RESUMES_KEPT_MAX: usize = 1000;

/// LSN of the first record of a log.
pub const LOG_START: Lsn = lsn_at(FIRST_SEQUENCE, PAYLOAD_START);

/// A log that is not open.
#[derive(Clone, Debug)]
pub struct LogHistory {
    /// Replay starts here.
    pub marker: Lsn,
    /// Of the records before the first resume.
    pub incarnation: Incarnation,
    /// Where later runs took over, in order: behind the marker, and as far before it as log is kept.
    pub resumes: Vec<LogResume>,
    /// See [`LogRecord::followed_from`].
    pub followed_from: Option<Lsn>,
    /// Behind the last whole unit.
    pub end: Lsn,
    /// Everything before was durable when it was written: as checkpoints, headers and pads tell it. At most `end`.
    pub durable: Lsn,
    /// Segments up to the one that the next run goes on in, in the order of the log. That one is left
    /// out if it is to be begun anew.
    pub segments: Vec<(SegmentId, u64)>,
    /// Segments behind those, in order, that are taken from the volume and hold nothing yet.
    pub reserved: Vec<SegmentId>,
}

impl LogHistory {
    /// A log without any record.
    pub fn empty() -> Self {
        Self {
            marker: LOG_START,
            incarnation: Incarnation(0),
            resumes: Vec::new(),
            followed_from: None,
            end: LOG_START,
            durable: LOG_START,
            segments: Vec::new(),
            reserved: Vec::new(),
        }
    }

    /// Lets the run `incarnation` go on; returns where.
    pub(super) fn resume(&mut self, incarnation: Incarnation) -> Lsn {
        let resume = resume_behind(self.end);
        assert!(self.end <= resume, "a run goes on behind the end");
        // A run that wrote nothing leaves no trace.
        let end = match self.resumes.pop_if(|last| last.resume == self.end) {
            Some(last) => last.end,
            None => self.end,
        };
        self.resumes.push(LogResume {
            end,
            resume,
            incarnation,
        });
        resume
    }

    /// Of a log as a checkpoint recorded it, before replay.
    pub(super) fn of_record(record: &LogRecord) -> Self {
        Self {
            marker: record.marker,
            incarnation: record.incarnation,
            resumes: record.resumes.clone(),
            followed_from: record.followed_from,
            ..Self::empty()
        }
    }
}

/// Where the next run goes on if the last one ended at `end`.
pub(super) fn resume_behind(end: Lsn) -> Lsn {
    let (sequence, within) = place_of(end);
    lsn_at(
        sequence,
        within.next_multiple_of(PAGE_BYTES as u32).min(SEGMENT),
    )
}

/// The run whose records stand at `at`, and where later ones took over, of a log that begins with a record of
/// `first`.
pub(super) fn split_runs(
    first: Incarnation,
    resumes: &[LogResume],
    at: Lsn,
) -> (Incarnation, &[LogResume]) {
    let passed = resumes.partition_point(|resume| resume.resume <= at);
    let (passed, ahead) = resumes.split_at(passed);
    let incarnation = passed.last().map_or(first, |last| last.incarnation);
    (incarnation, ahead)
}

/// From where on a checkpoint tells the runs of a log that is kept from `kept` on: not behind the marker.
pub(super) fn told_from(resumes: &[LogResume], marker: Lsn, kept: Lsn) -> Lsn {
    let passed = resumes.partition_point(|resume| resume.resume <= marker);
    let forgotten = passed.checked_sub(RESUMES_KEPT_MAX + 1);
    let forgotten = forgotten.and_then(|last| resumes.get(last));
    forgotten
        .map_or(kept, |last| kept.max(last.resume))
        .min(marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_tells_at_most_a_thousand_runs_before_the_marker() {
        let run = |number: u64| LogResume {
            end: Lsn(number * 10 - 5),
            resume: Lsn(number * 10),
            incarnation: Incarnation(number),
        };
        let resumes: Vec<_> = (1..=1500).map(run).collect();
        let told = |marker, kept| {
            let from = told_from(&resumes, Lsn(marker), Lsn(kept));
            let (first, resumes) = split_runs(Incarnation(0), &resumes, from);
            (from.0, first.0, resumes.len())
        };
        assert_eq!(told(12_000, 0), (2_000, 200, 1300));
        assert_eq!(told(12_000, 5_000), (5_000, 500, 1000));
        assert_eq!(told(9_000, 0), (0, 0, 1500));
        assert_eq!(told(9_000, 20_000), (9_000, 900, 600));
    }
}
