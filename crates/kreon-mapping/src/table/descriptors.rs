//! A descriptor for each frame: the page and priority in it, and its links in the queue for eviction.
//!
//! A frame is in a queue exactly while its page is resident, and then in the queue of the priority in its descriptor.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use kreon_base::{PageNo, Priority};

/// No frame.
const NONE: u32 = u32::MAX;

/// Page numbers have 48 bits, which leaves room for the priority in the same word.
const PRIORITY_BITS: u32 = 8;

/// One descriptor of 16 bytes for each frame. The descriptor of a resident page's frame is guarded by the
/// lock of the page's shard, so the fields are atomic only to be shared without unsafe code.
pub(super) struct Descriptors(Box<[Descriptor]>);

#[derive(Default)]
struct Descriptor {
    page_and_priority: AtomicU64,
    next: AtomicU32,
    previous: AtomicU32,
}

/// Memory of a descriptor.
pub(crate) const DESCRIPTOR_BYTES: usize = size_of::<Descriptor>();

/// A queue of frames, linked through their descriptors: first in, first out.
pub(super) struct FrameQueue {
    first: u32,
    last: u32,
}

impl Descriptors {
    pub(super) fn new(frames: u32) -> Self {
        Self((0..frames).map(|_| Descriptor::default()).collect())
    }

    pub(super) fn set(&self, frame: u32, page: PageNo, priority: Priority) {
        debug_assert!(page.0 < 1 << (u64::BITS - PRIORITY_BITS));
        let word = page.0 << PRIORITY_BITS | u64::from(priority.0);
        self.at(frame).page_and_priority.store(word, Relaxed);
    }

    /// The page that was set last.
    pub(super) fn page(&self, frame: u32) -> PageNo {
        PageNo(self.at(frame).page_and_priority.load(Relaxed) >> PRIORITY_BITS)
    }

    /// The priority that was set last.
    pub(super) fn priority(&self, frame: u32) -> Priority {
        Priority(self.at(frame).page_and_priority.load(Relaxed) as u8)
    }

    /// Frame numbers come from the page array, which only holds numbers below the count.
    fn at(&self, frame: u32) -> &Descriptor {
        &self.0[frame as usize]
    }
}

impl FrameQueue {
    pub(super) const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };

    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Appends a frame that is in no queue.
    pub(super) fn push(&mut self, descriptors: &Descriptors, frame: u32) {
        let descriptor = descriptors.at(frame);
        descriptor.next.store(NONE, Relaxed);
        descriptor.previous.store(self.last, Relaxed);
        if self.last == NONE {
            self.first = frame;
        } else {
            descriptors.at(self.last).next.store(frame, Relaxed);
        }
        self.last = frame;
    }

    /// Removes a frame of this queue.
    pub(super) fn unlink(&mut self, descriptors: &Descriptors, frame: u32) {
        let descriptor = descriptors.at(frame);
        let next = descriptor.next.load(Relaxed);
        let previous = descriptor.previous.load(Relaxed);
        if previous == NONE {
            debug_assert_eq!(
                self.first, frame,
                "a frame without predecessor is not the first of its queue"
            );
            self.first = next;
        } else {
            descriptors.at(previous).next.store(next, Relaxed);
        }
        if next == NONE {
            debug_assert_eq!(
                self.last, frame,
                "a frame without successor is not the last of its queue"
            );
            self.last = previous;
        } else {
            descriptors.at(next).previous.store(previous, Relaxed);
        }
    }

    /// Moves a frame of this queue to its end.
    pub(super) fn requeue(&mut self, descriptors: &Descriptors, frame: u32) {
        self.unlink(descriptors, frame);
        self.push(descriptors, frame);
    }
}

const _: () = assert!(DESCRIPTOR_BYTES == 16);

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queue: &mut FrameQueue, descriptors: &Descriptors) -> Vec<u32> {
        let mut order = Vec::new();
        while let Some(frame) = queue.first() {
            queue.unlink(descriptors, frame);
            order.push(frame);
        }
        order
    }

    #[test]
    fn frames_leave_a_queue_in_the_order_they_came() {
        let descriptors = Descriptors::new(5);
        let mut queue = FrameQueue::EMPTY;
        for frame in 0..5 {
            queue.push(&descriptors, frame);
        }
        queue.unlink(&descriptors, 2);
        queue.requeue(&descriptors, 0);
        queue.unlink(&descriptors, 4);
        assert_eq!(drain(&mut queue, &descriptors), [1, 3, 0]);
        queue.push(&descriptors, 4);
        assert_eq!(drain(&mut queue, &descriptors), [4]);
        assert!(queue.first().is_none());
    }

    #[test]
    fn a_descriptor_keeps_the_widest_page_number_and_priority() {
        let descriptors = Descriptors::new(2);
        descriptors.set(1, PageNo((1 << 48) - 1), Priority(255));
        assert_eq!(descriptors.page(1), PageNo((1 << 48) - 1));
        assert_eq!(descriptors.priority(1), Priority(255));
    }
}
