//! Reads on a ring that go on while the caller does something else.

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

use super::ring::is_passing;
use super::slice::Slice;
use crate::device::{Ended, ReadQueue};
use crate::stats::Counters;

/// How long a wait on a broken ring takes.
const BROKEN_PAUSE: Duration = Duration::from_micros(100);

/// A ring that many threads use at once: each pushes, submits, waits and takes completions as it likes.
pub(crate) struct RingQueue {
    ring: IoUring,
    file: OwnedFd,
    counters: Arc<Counters>,
    /// Reads that the kernel may not have taken yet, in their order. Its lock stands before the submission
    /// queue.
    pushed: Mutex<VecDeque<u64>>,
    /// Stands before the completion queue.
    reaping: Mutex<()>,
    in_flight: AtomicUsize,
    depth: usize,
    /// The kernel refuses the ring's service: what it has taken ends, nothing else does.
    broken: AtomicBool,
    /// Threads in a system call on the ring, which may take entries.
    entering: AtomicUsize,
}

impl RingQueue {
    /// A queue of up to `depth` reads of `file`.
    pub(crate) fn new(file: OwnedFd, depth: u32, counters: Arc<Counters>) -> io::Result<Self> {
        // Completions run when the thread that submitted enters the kernel anyway, which is at the next tick
        // of the clock at the latest; asleep it is woken for them.
        let ring = IoUring::builder()
            .setup_coop_taskrun()
            .build(depth)
            .or_else(|_| IoUring::new(depth))?;
        // Waiting with a time-out came with Linux 5.11, later than all else that is used.
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

    /// Forgets those of `pushed` that the kernel has taken.
    fn settle(&self, pushed: &mut VecDeque<u64>) {
        // SAFETY: the lock of `pushed`, which the caller holds, keeps everybody else from the submission queue.
        let left = unsafe { self.ring.submission_shared() }.len();
        let taken = pushed.len().saturating_sub(left);
        pushed.drain(..taken);
    }

    /// A system call on the ring.
    fn enter(&self, call: impl FnOnce(Submitter<'_>) -> io::Result<usize>) {
        // In one order with the load: who finds the ring broken and nobody here knows that no entry will
        // ever be taken again.
        self.entering.fetch_add(1, SeqCst);
        if self.broken.load(SeqCst) {
            std::thread::sleep(BROKEN_PAUSE);
        } else {
            match call(self.ring.submitter()) {
                Ok(_) => {}
                Err(error) if is_passing(&error) => std::thread::yield_now(),
                // The patience is over.
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
        // SAFETY: the caller promises that buffers and array stay until `reap` has returned the tag; the
        // file is ours.
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
                // Another thread is at it.
                return;
            };
            // SAFETY: the lock keeps everybody else from the completion queue.
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
            // The kernel takes entries in a system call of ours only, and there will be none.
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
