//! What is known of a frame besides its bytes, and the queues that frames wait in for eviction.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use kreon_base::{PageNo, Priority};

/// No frame.
const NONE: u32 = u32::MAX;

/// Page numbers have 48 bits, which leaves room for the priority in the same word.
const PRIORITY_BITS: u32 = 8;

/// One record of 16 bytes for every frame. The record of a resident page's frame is guarded by the
/// lock of the page's shard; the fields are atomic only so that the compiler need not be told.
pub(crate) struct Records(Box<[Record]>);

#[derive(Default)]
struct Record {
    page_and_priority: AtomicU64,
    next: AtomicU32,
    previous: AtomicU32,
}

/// Bytes of a frame's record.
pub(crate) const RECORD_BYTES: usize = size_of::<Record>();

/// A queue of frames, linked through their records: first in, first evicted.
pub(crate) struct Queue {
    first: u32,
    last: u32,
}

impl Records {
    pub(crate) fn new(frames: u32) -> Self {
        Self((0..frames).map(|_| Record::default()).collect())
    }

    /// Notes what is in a frame.
    pub(crate) fn set(&self, frame: u32, page: PageNo, priority: Priority) {
        let word = page.0 << PRIORITY_BITS | u64::from(priority.0);
        self.at(frame).page_and_priority.store(word, Relaxed);
    }

    /// The page that was noted last.
    pub(crate) fn page(&self, frame: u32) -> PageNo {
        PageNo(self.at(frame).page_and_priority.load(Relaxed) >> PRIORITY_BITS)
    }

    /// The priority that was noted last.
    pub(crate) fn priority(&self, frame: u32) -> Priority {
        Priority(self.at(frame).page_and_priority.load(Relaxed) as u8)
    }

    /// Frame numbers come from the table, which only ever holds numbers below the count.
    fn at(&self, frame: u32) -> &Record {
        &self.0[frame as usize]
    }
}

impl Queue {
    pub(crate) const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };

    /// The frame that has waited longest.
    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Puts a frame that is in no queue at the end.
    pub(crate) fn push(&mut self, records: &Records, frame: u32) {
        let record = records.at(frame);
        record.next.store(NONE, Relaxed);
        record.previous.store(self.last, Relaxed);
        if self.last == NONE {
            self.first = frame;
        } else {
            records.at(self.last).next.store(frame, Relaxed);
        }
        self.last = frame;
    }

    /// Takes a frame that is in this queue out of it.
    pub(crate) fn unlink(&mut self, records: &Records, frame: u32) {
        let record = records.at(frame);
        let next = record.next.load(Relaxed);
        let previous = record.previous.load(Relaxed);
        if previous == NONE {
            self.first = next;
        } else {
            records.at(previous).next.store(next, Relaxed);
        }
        if next == NONE {
            self.last = previous;
        } else {
            records.at(next).previous.store(previous, Relaxed);
        }
    }

    /// Sends a frame that is in this queue back to its end.
    pub(crate) fn requeue(&mut self, records: &Records, frame: u32) {
        self.unlink(records, frame);
        self.push(records, frame);
    }
}

const _: () = assert!(RECORD_BYTES == 16);

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queue: &mut Queue, records: &Records) -> Vec<u32> {
        let mut order = Vec::new();
        while let Some(frame) = queue.first() {
            queue.unlink(records, frame);
            order.push(frame);
        }
        order
    }

    #[test]
    fn frames_leave_a_queue_in_the_order_they_came() {
        let records = Records::new(5);
        let mut queue = Queue::EMPTY;
        for frame in 0..5 {
            queue.push(&records, frame);
        }
        queue.unlink(&records, 2);
        queue.requeue(&records, 0);
        queue.unlink(&records, 4);
        assert_eq!(drain(&mut queue, &records), [1, 3, 0]);
        queue.push(&records, 4);
        assert_eq!(drain(&mut queue, &records), [4]);
        assert!(queue.first().is_none());
    }

    #[test]
    fn a_record_keeps_the_widest_page_number_and_priority() {
        let records = Records::new(2);
        records.set(1, PageNo((1 << 48) - 1), Priority(255));
        assert_eq!(records.page(1), PageNo((1 << 48) - 1));
        assert_eq!(records.priority(1), Priority(255));
    }
}
