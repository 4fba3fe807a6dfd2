//! A volume: a log with its durable prefix, the superblock that counts, and what a replica persists.

use kreon_base::{Epoch, Lsn};
use kreon_replica::machine::{Report, SlotMark, Stamp, Term};

/// Number of a write of a client.
pub type Write = u16;

/// A record of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The write.
    pub write: Write,
    /// The term in which it was appended.
    pub term: u16,
    /// It ends its unit: replay takes whole units.
    pub ends_unit: bool,
}

/// A volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// All records that are in memory here; the index is the position.
    pub log: Vec<Entry>,
    /// How many of them are durable.
    pub durable: usize,
    /// The superblock; none while everything is being copied to it.
    pub slot: Option<SlotMark>,
    /// What the replica persisted.
    pub persisted: Stamp,
}

impl Volume {
    /// An empty store that was made and closed well.
    pub fn new() -> Self {
        Self {
            slot: Some(SlotMark::default()),
            ..Self::default()
        }
    }

    /// End of the log in memory.
    pub fn end(&self) -> Lsn {
        Lsn(self.log.len() as u64)
    }

    /// End of what is durable.
    pub fn durable_end(&self) -> Lsn {
        Lsn(self.durable as u64)
    }

    /// Makes everything durable.
    pub fn flush(&mut self) {
        self.durable = self.log.len();
    }

    /// The power fails: of what is not durable, the first records survive, up to `kept` in all.
    pub fn cut(&mut self, kept: usize) {
        self.log.truncate(kept);
        self.durable = self.log.len();
    }

    /// Whole units only: what a recovery keeps of the log, and so what a seal reports.
    pub fn drop_part_of_unit(&mut self) {
        while self.log.last().is_some_and(|entry| !entry.ends_unit) {
            self.log.pop();
        }
        self.durable = self.durable.min(self.log.len());
    }

    /// What a seal reports: what is durable by now.
    pub fn report(&self) -> Report {
        Report {
            slot: self.slot.unwrap_or_default(),
            log_end: self.durable_end(),
        }
    }

    /// Takes over the log of another volume up to `end`, durably.
    pub fn take_log(&mut self, log: &[Entry], end: Lsn) {
        let end = log.len().min(end.0 as usize);
        self.log.clear();
        self.log.extend_from_slice(&log[..end]);
        self.flush();
    }

    /// The first checkpoint of a term.
    pub fn checkpoint(&mut self, term: Term) {
        let epoch = self.slot.unwrap_or_default().epoch;
        self.slot = Some(SlotMark {
            incarnation: term.incarnation(),
            epoch: Epoch(epoch.0 + 1),
        });
    }

    /// Whether it holds this write.
    pub fn has(&self, write: Write) -> bool {
        self.log.iter().any(|entry| entry.write == write)
    }
}
