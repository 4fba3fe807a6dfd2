//! How much went over streams, and how long flushes took: for people.

use std::time::Duration;

use kreon_sync::{AtomicU64, Ordering};
use kreon_wire::StreamPacket;

/// Bytes that a member was sent in this term, by class, without headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamTraffic {
    /// Of log.
    pub log_bytes: u64,
    /// Of pages as they were written.
    pub pages_bytes: u64,
    /// Of copies for a joiner.
    pub copies_bytes: u64,
}

impl StreamTraffic {
    /// A packet was sent.
    pub(super) fn add(&mut self, packet: &StreamPacket<'_>) {
        match packet {
            StreamPacket::Log { bytes, .. } => self.log_bytes += bytes.len() as u64,
            StreamPacket::Pages { bytes, .. } => self.pages_bytes += bytes.len() as u64,
            StreamPacket::Copy { bytes, .. } => self.copies_bytes += bytes.len() as u64,
            _ => {}
        }
    }
}

/// Flushes of a term: of the file here and of all counted members, beside each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BarrierTimes {
    /// How many.
    pub count: u64,
    /// All together, in microseconds.
    pub total_us: u64,
    /// The longest, in microseconds.
    pub max_us: u64,
    /// Of that, the wait for members when the file here was done, all together, in microseconds.
    pub waited_us: u64,
}

/// The same, while they are counted.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    count: AtomicU64,
    total_us: AtomicU64,
    max_us: AtomicU64,
    waited_us: AtomicU64,
}

impl Barriers {
    /// A flush took so long, of which it waited for members.
    pub fn add(&self, total: Duration, waited: Duration) {
        let (total_us, waited_us) = (total.as_micros() as u64, waited.as_micros() as u64);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.total_us.fetch_add(total_us, Ordering::Relaxed);
        self.max_us.fetch_max(total_us, Ordering::Relaxed);
        self.waited_us.fetch_add(waited_us, Ordering::Relaxed);
    }

    pub fn times(&self) -> BarrierTimes {
        BarrierTimes {
            count: self.count.load(Ordering::Relaxed),
            total_us: self.total_us.load(Ordering::Relaxed),
            max_us: self.max_us.load(Ordering::Relaxed),
            waited_us: self.waited_us.load(Ordering::Relaxed),
        }
    }
}
