//! Asynchronous reads on a ring.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
};
use std::time::Duration;

use io_uring::{IoUring, Submitter, types};
use parking_lot::Mutex;
use rustix::io::Errno;

use super::ring::{cooperative, is_passing};
use super::slice::Slice;
use crate::device::{Ended, ReadQueue};
use crate::stats::DeviceCounters;

/// Duration of a wait on a broken ring.
const BROKEN_PAUSE: Duration = Duration::from_micros(100);

/// A ring shared by many threads: each may push, submit, wait and reap at any time.
pub(crate) struct RingQueue {
    ring: IoUring,
    file: OwnedFd,
    counters: Arc<DeviceCounters>,
    /// Tags of reads that the kernel may not have taken yet, in their order. The lock also guards the submission queue.
    pushed: Mutex<VecDeque<u64>>,
    /// Guards the completion queue.
    reaping: Mutex<()>,
    in_flight: AtomicUsize,
    depth: usize,
    /// The kernel refuses calls on the ring: entries that it has taken still end, others never do.
    broken: AtomicBool,
    /// Threads inside a system call on the ring, in which the kernel may take entries.
    entering: AtomicUsize,
}

impl RingQueue {
    /// A queue of up to `depth` reads of `file`.
    pub(crate) fn new(
        file: OwnedFd,
        depth: u32,
        counters: Arc<DeviceCounters>,
    ) -> io::Result<Self> {
        let ring = cooperative(depth)?;
        // Waits with a timeout came with Linux 5.11, later than all other features used here.
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self {
            ring,
            file,
            counters,
            pushed: Mutex::default(),
            reaping: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            depth: depth as usize,
            broken: AtomicBool::new(false),
            entering: AtomicUsize::new(0),
        })
    }

    /// Removes the tags of `pushed` whose entries the kernel has taken.
    fn settle(&self, pushed: &mut VecDeque<u64>) {
        // SAFETY: the caller holds the lock of `pushed`, which excludes all other users of the submission queue.
        let left = unsafe { self.ring.submission_shared() }.len();
        let taken = pushed.len().saturating_sub(left);
        pushed.drain(..taken);
    }

    /// Makes a system call on the ring, unless it is broken.
    fn enter(&self, call: impl FnOnce(Submitter<'_>) -> io::Result<usize>) {
        // SeqCst orders this with the load in `reap`: a thread that finds the ring broken and `entering` at 0 knows
        // that the kernel will never take another entry.
        self.entering.fetch_add(1, SeqCst);
        if self.broken.load(SeqCst) {
            std::thread::sleep(BROKEN_PAUSE);
        } else {
            match call(self.ring.submitter()) {
                Ok(_) => {}
                Err(error) if is_passing(&error) => std::thread::yield_now(),
                // The timeout expired.
                Err(error) if error.raw_os_error() == Some(Errno::TIME.raw_os_error()) => {}
                Err(_) => self.broken.store(true, SeqCst),
            }
        }
        self.entering.fetch_sub(1, SeqCst);
    }
}

impl ReadQueue for RingQueue {
    unsafe fn push(&self, tag: u64, offset: u64, buffers: &mut [IoSliceMut<'_>]) -> bool {
        let mut pushed = self.pushed.lock();
        if self.in_flight.load(Acquire) >= self.depth || self.broken.load(SeqCst) {
            return false;
        }
        let len_bytes = buffers.iter().map(|buffer| buffer.len() as u64).sum();
        let entry = IoSliceMut::entry(self.file.as_fd(), buffers, offset).user_data(tag);
        // SAFETY: as in `settle`.
        let mut queue = unsafe { self.ring.submission_shared() };
        // SAFETY: the caller promises that buffers and array stay in place until `reap` has returned the tag; the file
        // belongs to `self`.
        if unsafe { queue.push(&entry) }.is_err() {
            return false;
        }
        drop(queue);
        self.settle(&mut pushed);
        pushed.push_back(tag);
        self.in_flight.fetch_add(1, AcqRel);
        self.counters.reads.add(len_bytes);
        self.counters.depart(1);
        true
    }

    fn waiting(&self) -> usize {
        let mut pushed = self.pushed.lock();
        self.settle(&mut pushed);
        pushed.len()
    }

    fn in_flight(&self) -> usize {
        self.in_flight.load(Acquire)
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn submit(&self) {
        self.enter(|submitter| submitter.submit());
    }

    fn wait(&self, count: usize, patience: Duration) {
        let time = types::Timespec::from(patience);
        let arguments = types::SubmitArgs::new().timespec(&time);
        self.enter(|submitter| submitter.submit_with_args(count.max(1), &arguments));
    }

    fn reap(&self, ended: &mut Vec<Ended>) {
        let before = ended.len();
        {
            let Some(_reaping) = self.reaping.try_lock() else {
                // Another thread reaps.
                return;
            };
            // SAFETY: the lock excludes all other users of the completion queue.
            for completion in unsafe { self.ring.completion_shared() } {
                ended.push(Ended {
                    tag: completion.user_data(),
                    moved_bytes: usize::try_from(completion.result()).unwrap_or(0),
                });
            }
        }
        if self.broken.load(SeqCst) && self.entering.load(SeqCst) == 0 {
            let mut pushed = self.pushed.lock();
            self.settle(&mut pushed);
            // The kernel takes entries only inside our system calls, and there will be no more.
            ended.extend(pushed.drain(..).map(|tag| Ended {
                tag,
                moved_bytes: 0,
            }));
        }
        let count = ended.len() - before;
        self.counters.arrive(count as u32);
        self.in_flight.fetch_sub(count, AcqRel);
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::mem::ManuallyDrop;
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::bounds::BLOCK_BYTES_MIN;

    const BLOCK: usize = BLOCK_BYTES_MIN as usize;
    const BLOCKS: usize = 100;

    /// A queue of `depth` over a file whose block n is made of n.
    fn queue(name: &str, depth: u32) -> Option<RingQueue> {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true);
        let file = file.open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        for block in 0..BLOCKS {
            file.write_all_at(&[block as u8; BLOCK], (block * BLOCK) as u64)
                .unwrap();
        }
        match RingQueue::new(file.into(), depth, Arc::default()) {
            Ok(queue) => Some(queue),
            Err(error) => {
                eprintln!("skipped: no io_uring here: {error}");
                None
            }
        }
    }

    /// Reads every second block from `first` on, each into two buffers, and checks them.
    fn read_blocks(queue: &RingQueue, blocks: &[usize]) {
        let mut memory = vec![[0; 2 * BLOCK]; blocks.len()];
        let mut slices: Vec<_> = memory
            .iter_mut()
            .map(|bytes| {
                let (one, two) = bytes.split_at_mut(BLOCK);
                [IoSliceMut::new(one), IoSliceMut::new(two)]
            })
            .collect();
        let (mut ended, mut next) = (Vec::new(), 0);
        while ended.len() < blocks.len() {
            while next < blocks.len() {
                let offset = (blocks[next] * BLOCK) as u64;
                // SAFETY: buffers and arrays live until the loop has seen all tags.
                if !unsafe { queue.push(next as u64, offset, &mut slices[next]) } {
                    break;
                }
                next += 1;
            }
            assert!(queue.in_flight() <= queue.depth());
            queue.wait(1, Duration::from_secs(1));
            queue.reap(&mut ended);
        }
        for Ended { tag, moved_bytes } in ended {
            let (block, bytes) = (blocks[tag as usize], memory[tag as usize]);
            // The last block is alone.
            let there = (2 * BLOCK).min((BLOCKS - block) * BLOCK);
            assert_eq!(moved_bytes, there);
            for (at, byte) in bytes[..there].iter().enumerate() {
                assert_eq!(usize::from(*byte), block + at / BLOCK);
            }
        }
        assert_eq!((queue.in_flight(), queue.waiting()), (0, 0));
    }

    #[test]
    fn reads_come_back_whole_or_say_how_short_they_are() {
        let Some(queue) = queue("read-queue", 8) else {
            return;
        };
        let blocks: Vec<_> = (0..BLOCKS).rev().collect();
        read_blocks(&queue, &blocks);
        read_blocks(&queue, &blocks[..1]);
        assert_eq!(queue.counters.read().reads.count, BLOCKS as u64 + 1);
        assert_eq!(queue.counters.in_flight(), 0);
    }

    #[test]
    fn what_a_broken_ring_has_not_taken_ends_with_nothing() {
        let Some(queue) = queue("broken-queue", 8) else {
            return;
        };
        // SAFETY: the descriptor is open; `ManuallyDrop` leaves closing it to the ring.
        let owned = unsafe { OwnedFd::from_raw_fd(queue.ring.as_raw_fd()) };
        let null = File::open("/dev/null").unwrap();
        rustix::io::dup2(&null, &mut ManuallyDrop::new(owned)).unwrap();
        let mut memory = [0; BLOCK];
        let mut slices = [IoSliceMut::new(&mut memory)];
        // SAFETY: buffer and array live until the tag has come back.
        assert!(unsafe { queue.push(7, 0, &mut slices) });
        queue.submit();
        assert!(queue.is_broken());
        let mut ended = Vec::new();
        queue.reap(&mut ended);
        let nothing = Ended {
            tag: 7,
            moved_bytes: 0,
        };
        assert_eq!(ended, [nothing]);
        // SAFETY: as above; it is refused.
        assert!(!unsafe { queue.push(8, 0, &mut slices) });
        assert_eq!(queue.in_flight(), 0);
    }
}
