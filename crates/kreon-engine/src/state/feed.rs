//! How much of the log is kept for the change feed, and how far the feed may show it.
//!
//! Log that is kept stands in segments that are the log's in the durable bitmap, although nothing points at them: it
//! outlives the run. Only a checkpoint gives them up (`checkpoint/kept_log.rs`); writers that find no space ask for one.

use std::ops::Range;
use std::sync::Arc;

use kreon_base::{Lsn, SEGMENT_BYTES, planted};
use kreon_format::place_of;
use kreon_log::{Log, Poison};
use kreon_sync::{AtomicU64, Mutex, Ordering};

/// What of the log is kept for the feed.
pub struct FeedLog {
    /// Bytes behind the durable end; 0: there is no feed.
    bytes: u64,
    /// Segments before this sequence are not kept: space was scarce.
    given_up: AtomicU64,
    /// As of the last checkpoint: segments from this sequence on are kept,
    kept_from: AtomicU64,
    /// somebody else needs those from this one on,
    kept_to: AtomicU64,
    /// and so many of those between hold nothing that anybody else needs.
    idle_segments: AtomicU64,
    /// Where notices begin of changes that are not there yet.
    held: Mutex<Vec<Lsn>>,
}

/// A change of which a notice tells is on its way: the feed stops in front of the notice. For good if the store is poisoned
/// meanwhile: nobody knows whether the change is durable then.
pub struct Held<'a> {
    feed: &'a FeedLog,
    log: &'a Arc<Log>,
    poison: &'a Poison,
    from: Lsn,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.poison.check().is_err() {
            return;
        }
        let mut held = self.feed.held.lock();
        if let Some(at) = held.iter().position(|from| *from == self.from) {
            held.swap_remove(at);
        }
        drop(held);
        self.log.tell();
    }
}

impl FeedLog {
    /// Keeps `bytes` behind the durable end.
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            given_up: AtomicU64::new(0),
            kept_from: AtomicU64::new(u64::MAX),
            kept_to: AtomicU64::new(0),
            idle_segments: AtomicU64::new(0),
            held: Mutex::default(),
        }
    }

    /// Whether log is kept for a feed.
    pub fn is_on(&self) -> bool {
        self.bytes > 0
    }

    /// Stops the feed at the end of `log`: what comes next is a notice of something that is about to happen.
    pub fn hold<'a>(&'a self, log: &'a Arc<Log>, poison: &'a Poison) -> Held<'a> {
        let mut held = self.held.lock();
        let from = log.tail();
        held.push(from);
        Held {
            feed: self,
            log,
            poison,
            from,
        }
    }

    /// Everything before this may be shown: it is durable, and what it tells has happened.
    pub fn until(&self, log: &Log) -> Lsn {
        // In this order: a notice stands behind what was durable when the feed was held.
        let durable = log.durable();
        planted!(FeedShowsUndurable => let durable = log.written());
        let held = self.held.lock().iter().min().copied();
        held.map_or(durable, |from| from.min(durable))
    }

    /// The oldest segment that the feed wants, by its sequence; none if it is off.
    pub fn wanted_from(&self, log: &Log) -> u64 {
        if !self.is_on() {
            return u64::MAX;
        }
        let wanted = Lsn(log.durable().0.saturating_sub(self.bytes));
        place_of(wanted).0.max(self.given_up_before())
    }

    /// Segments before number `sequence` are not kept from the next checkpoint on.
    pub fn give_up_before(&self, sequence: u64) {
        self.given_up.fetch_max(sequence, Ordering::AcqRel);
    }

    /// See [`give_up_before`](Self::give_up_before). Never falls.
    pub fn given_up_before(&self) -> u64 {
        self.given_up.load(Ordering::Acquire)
    }

    /// A checkpoint keeps segments with these numbers, `idle` of which hold nothing that anybody else needs.
    pub fn set_kept(&self, numbers: Range<u64>, idle: u64) {
        self.kept_from.store(numbers.start, Ordering::Release);
        self.kept_to.store(numbers.end, Ordering::Release);
        self.idle_segments.store(idle, Ordering::Release);
    }

    /// Numbers of segments that are kept if nobody else needs them. Only a checkpoint changes them.
    pub fn kept(&self) -> Range<u64> {
        self.kept_from()..self.kept_to.load(Ordering::Acquire)
    }

    /// Segments of the main log from this sequence on are kept, even if nobody else needs them.
    pub fn kept_from(&self) -> u64 {
        self.kept_from.load(Ordering::Acquire)
    }

    /// Bytes of segments that are kept for the feed alone.
    pub fn idle_bytes(&self) -> u64 {
        self.idle_segments.load(Ordering::Acquire) * SEGMENT_BYTES
    }
}
