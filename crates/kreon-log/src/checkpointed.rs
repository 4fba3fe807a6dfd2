//! What a checkpoint records of an open log.

use kreon_base::Lsn;
use kreon_format::{LogRecord, OpenSegment};

use super::history::{split_runs, told_from};
use super::log::Log;

impl Log {
    /// What a checkpoint records, with replay to start at `marker`: the border of a record, not behind
    /// the tail. Segments that it names were taken from the [`LogSpace`](super::LogSpace) before the call.
    pub fn checkpoint_record(&self, marker: Lsn) -> LogRecord {
        self.record_from(marker, marker)
    }

    /// The same of a log that is kept from `kept` on for a change feed: it also tells since when there is one, and which runs
    /// wrote the log from there on. Of the runs before the marker, no more than the last thousand.
    pub fn followed_record(&self, marker: Lsn, kept: Lsn) -> LogRecord {
        LogRecord {
            followed_from: self.followed_from(),
            ..self.record_from(marker, told_from(&self.history.resumes, marker, kept))
        }
    }

    /// Tells of the runs from `from` on, at or before the marker.
    fn record_from(&self, marker: Lsn, from: Lsn) -> LogRecord {
        let durable = self.claim();
        let history = &self.history;
        let (incarnation, resumes) = split_runs(history.incarnation, &history.resumes, from);
        let current = self.reader().buffers.current().link();
        LogRecord {
            id: self.home().log,
            marker,
            durable,
            incarnation,
            resumes: resumes.to_vec(),
            followed_from: None,
            open: Some(OpenSegment {
                segment: current.segment,
                sequence: current.sequence,
            }),
            next: Some(current.next),
            image: Vec::new(),
        }
    }
}
