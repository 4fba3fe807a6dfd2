//! The runs (openings for writing) that may have written a place of the log.

use kreon_base::{Incarnation, Lsn};
use kreon_format::{Fragment, FragmentClaim, LogRecord, incarnation_mark};

use super::log_map::LogMap;

/// The bits of its run's mark that a pad carries.
const PAD_MARK_MASK: u16 = (1 << 9) - 1;

/// The knowledge about runs.
#[derive(Clone, Copy)]
pub enum Runs<'a> {
    /// From the marker on: the checkpoint records the runs.
    Recorded(&'a LogRecord),
    /// Segment headers name the runs that began them; later runs, up to the given one, may have continued in them.
    Guessed(&'a LogMap, Incarnation),
}

/// The runs that may have written a place, from `lowest` to `highest` inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The lowest run that is still possible.
    pub lowest: u64,
    highest: u64,
}

/// The record of a checkpoint about a place of the log.
pub enum Recorded {
    /// Written by this run, which ended before the LSN.
    By(Expected, Lsn),
    /// Not part of the log: the next run begins at the LSN.
    Nobody(Lsn),
}

impl Runs<'_> {
    /// The checkpoint's record about `at`; none if runs are guessed.
    pub fn recorded(&self, at: Lsn) -> Option<Recorded> {
        let Self::Recorded(record) = self else {
            return None;
        };
        let mut incarnation = record.incarnation;
        for resume in &record.resumes {
            if at < resume.end {
                return Some(Recorded::By(Expected::one(incarnation), resume.end));
            }
            if at < resume.resume {
                return Some(Recorded::Nobody(resume.resume));
            }
            incarnation = resume.incarnation;
        }
        Some(Recorded::By(Expected::one(incarnation), Lsn::MAX))
    }

    /// The possible runs in the segment `sequence`, by its header; `lowest` are those before it.
    ///
    /// The next segment's header is no upper bound: a run may have continued in this segment after an earlier run had
    /// begun the next one.
    pub fn guessed(map: &LogMap, newest: Incarnation, sequence: u64, lowest: Expected) -> Expected {
        let own = map.get(sequence).and_then(|placed| placed.header);
        let own = own.map_or(lowest.lowest, |header| header.incarnation.0);
        let lowest = lowest.lowest.max(own);
        Expected {
            lowest,
            highest: newest.0.max(lowest),
        }
    }
}

impl Expected {
    /// The state before the first segment: no run is ruled out yet.
    pub const FIRST: Self = Self {
        lowest: 0,
        highest: 0,
    };

    fn one(incarnation: Incarnation) -> Self {
        Self {
            lowest: incarnation.0,
            highest: incarnation.0,
        }
    }

    /// Whether run `incarnation` may have begun a segment in which these runs wrote.
    pub fn allows_header(&self, incarnation: Incarnation) -> bool {
        incarnation.0 <= self.highest
    }

    /// Whether one of the runs may have written the fragment with header `claim`.
    pub fn allows(&self, claim: &FragmentClaim) -> bool {
        match claim {
            FragmentClaim::Record(header) => self.run_of(header.incarnation).is_some(),
            FragmentClaim::Pad(low) => self.is_low_mark(*low),
        }
    }

    /// Whether one of the runs wrote `fragment`. A record rules out earlier runs from here on.
    pub fn accept(&mut self, fragment: &Fragment<'_>) -> bool {
        match fragment {
            Fragment::Record { header, .. } => {
                let run = self.run_of(header.incarnation);
                self.lowest = run.unwrap_or(self.lowest);
                run.is_some()
            }
            Fragment::Pad { incarnation, .. } => self.is_low_mark(*incarnation),
        }
    }

    fn run_of(&self, mark: u16) -> Option<u64> {
        let ahead = mark.wrapping_sub(incarnation_mark(Incarnation(self.lowest)));
        let run = self.lowest + u64::from(ahead);
        (run <= self.highest).then_some(run)
    }

    fn is_low_mark(&self, low: u16) -> bool {
        let lowest = incarnation_mark(Incarnation(self.lowest));
        let ahead = low.wrapping_sub(lowest) & PAD_MARK_MASK;
        self.lowest + u64::from(ahead) <= self.highest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kreon_base::LogId;
    use kreon_format::LogResume;

    #[test]
    fn a_record_of_a_run_that_was_ruled_out_is_not_accepted() {
        let mut expected = Expected {
            lowest: 65_534,
            highest: 65_537,
        };
        assert_eq!(expected.run_of(0), Some(65_536));
        assert_eq!(expected.run_of(2), None);
        expected.lowest = 65_536;
        assert_eq!(expected.run_of(65_535), None);
        assert!(expected.is_low_mark(1) && !expected.is_low_mark(511));
    }

    #[test]
    fn what_lies_between_two_runs_is_nobodys() {
        let record = LogRecord {
            image: Vec::new(),
            id: LogId(0),
            marker: Lsn(100),
            incarnation: Incarnation(1),
            resumes: vec![LogResume {
                end: Lsn(200),
                resume: Lsn(300),
                incarnation: Incarnation(2),
            }],
            followed_from: None,
            durable: Lsn(0),
            open: None,
            next: None,
        };
        let runs = Runs::Recorded(&record);
        let by = |at| match runs.recorded(Lsn(at)) {
            Some(Recorded::By(expected, end)) => Some((expected.lowest, end)),
            _ => None,
        };
        assert_eq!(by(199), Some((1, Lsn(200))));
        assert_eq!(by(200), None);
        assert_eq!(by(300), Some((2, Lsn::MAX)));
    }
}
