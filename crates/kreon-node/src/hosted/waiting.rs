//! Answers that wait: those of writes for the log, those of reads for their confirmation.

use std::collections::HashMap;

use kreon_base::Lsn;
use kreon_replica::drive::Replies;
use kreon_replica::machine::Term;
use kreon_replica::machine::primary::ReadId;

use crate::client::Due;

/// What the answer of a write waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The write is in the memory of all counted members.
    Acknowledged,
    /// It is durable on all of them, too.
    Durable,
}

/// Answers that wait in one office.
#[derive(Debug, Default)]
pub struct Waiting {
    /// The term of the office; none without one.
    term: Option<Term>,
    acknowledged: Lsn,
    durable: Lsn,
    replies: Replies<Due>,
    syncs: Replies<Due>,
    reads: HashMap<ReadId, (Due, Vec<u8>)>,
}

/// An answer that comes back at once.
pub enum At {
    /// It may leave.
    Once(Due),
    /// The office is over, and nobody knows what becomes of the write.
    Over(Due),
}

impl Waiting {
    /// An office begins.
    pub fn begin(&mut self, term: Term) {
        self.term = Some(term);
        (self.acknowledged, self.durable) = (Lsn(0), Lsn(0));
    }

    /// The answer to a write of the office of `term` that ends at `end`; it comes back if it does not wait.
    pub fn put(&mut self, term: Term, (end, wait): (Lsn, Wait), due: Due) -> Option<At> {
        if self.term != Some(term) {
            return Some(At::Over(due));
        }
        let replies = match wait {
            Wait::Acknowledged => &mut self.replies,
            Wait::Durable => &mut self.syncs,
        };
        replies.put(end, due).map(At::Once)
    }

    /// A read whose answer is this; it comes back if the office is over.
    pub fn put_read(&mut self, term: Term, read: ReadId, due: Due, body: Vec<u8>) -> Option<Due> {
        if self.term != Some(term) {
            return Some(due);
        }
        self.reads.insert(read, (due, body));
        None
    }

    pub fn take_read(&mut self, read: ReadId) -> Option<(Due, Vec<u8>)> {
        self.reads.remove(&read)
    }

    /// All counted members have the log up to here.
    pub fn acknowledge(&mut self, upto: Lsn, out: &mut Vec<Due>) {
        self.acknowledged = self.acknowledged.max(upto);
        self.replies.release(upto, out);
        self.syncs.release(self.acknowledged.min(self.durable), out);
    }

    /// And durably up to here. Not enough by itself: too few members may be left.
    pub fn durable(&mut self, upto: Lsn, out: &mut Vec<Due>) {
        self.durable = self.durable.max(upto);
        self.syncs.release(self.acknowledged.min(self.durable), out);
    }

    /// The office is over: writes whose outcome nobody knows, and reads.
    pub fn end(&mut self) -> (Vec<Due>, Vec<Due>) {
        self.term = None;
        let mut writes = self.replies.end();
        writes.append(&mut self.syncs.end());
        let reads = self.reads.drain().map(|(_, (due, _))| due);
        (writes, reads.collect())
    }

    /// How many writes and reads wait.
    pub fn counts(&self) -> (usize, usize) {
        (self.replies.len() + self.syncs.len(), self.reads.len())
    }
}
