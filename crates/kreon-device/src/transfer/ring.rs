//! The engine on `io_uring`: the transfers of a batch in flight together, up to the depth.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use io_uring::IoUring;

use super::batch::{PieceProgress, TransferBatch};
use super::slice::Slice;
use crate::stats::DeviceCounters;

/// Pause between polls for completions of a broken ring.
const DRAIN_PAUSE: Duration = Duration::from_micros(100);

/// A ring, used by one caller at a time. Nothing is in flight between calls of [`run`](Self::run).
pub(super) struct Ring {
    ring: IoUring,
    depth: usize,
    broken: bool,
}

/// Progress of one call of [`Ring::run`].
struct RingProgress {
    /// First piece that was not begun.
    next: usize,
    /// Pieces to be submitted again.
    again: Vec<usize>,
    /// Entries in the submission queue or in the kernel.
    in_flight: usize,
}

impl Ring {
    /// A ring that keeps up to `depth` transfers in flight.
    pub(super) fn new(depth: u32) -> io::Result<Self> {
        let ring = cooperative(depth)?;
        let params = ring.params();
        // The plain read and write entries came with `rw_cur_pos`, Linux 5.6. With `submit_stable` the kernel copies
        // the arrays of buffers when it takes an entry, not later.
        if !params.is_feature_rw_cur_pos()
            || !params.is_feature_submit_stable()
            || !params.is_feature_nodrop()
        {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel's io_uring is older than Linux 5.6",
            ));
        }
        Ok(Self {
            ring,
            depth: depth as usize,
            broken: false,
        })
    }

    /// Whether the kernel refused a call on the ring, so that it must not be used again.
    pub(super) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Executes `batch`. When this returns, the kernel holds none of its buffers. Pieces are left open only if the ring
    /// broke.
    pub(super) fn run<S: Slice>(
        &mut self,
        file: BorrowedFd<'_>,
        batch: &mut TransferBatch<S>,
        counters: &DeviceCounters,
    ) {
        // Nothing between the first push and the last completion may return or panic: the buffers are borrowed only
        // during this call.
        let mut run = RingProgress {
            next: 0,
            again: Vec::new(),
            in_flight: 0,
        };
        loop {
            self.fill(file, batch, counters, &mut run);
            if run.in_flight == 0 {
                return;
            }
            let more = run.next < batch.len() && !batch.is_given_up();
            // If pieces are left to begin, wake up when half of the entries have ended: the device stays busy, and a
            // system call serves many transfers.
            let wanted = if more {
                run.in_flight.div_ceil(2)
            } else {
                run.in_flight
            };
            match self.ring.submit_and_wait(wanted) {
                Ok(_) => {}
                Err(error) if is_passing(&error) => std::thread::yield_now(),
                Err(error) => return self.drain(batch, counters, &mut run, &error),
            }
            self.reap(batch, counters, &mut run);
        }
    }

    /// Queues entries up to the depth.
    fn fill<S: Slice>(
        &mut self,
        file: BorrowedFd<'_>,
        batch: &mut TransferBatch<S>,
        counters: &DeviceCounters,
        run: &mut RingProgress,
    ) {
        let mut departed = 0;
        while run.in_flight < self.depth && !batch.is_given_up() {
            let (piece, is_first) = match run.again.pop() {
                Some(piece) => (piece, false),
                None if run.next < batch.len() => (run.next, true),
                None => break,
            };
            if let Some((slices, offset, len_bytes)) = batch.rest_of(piece) {
                let entry = S::entry(file, slices, offset).user_data(piece as u64);
                // SAFETY: the entry's file, buffers and array of buffers belong to `file` and `batch`, which are
                // borrowed until `run` returns. That is after the entry's completion, or after the ring broke before
                // the kernel took the entry, which it then never does. The memory of a read is exclusively borrowed by
                // the batch, which does not access it meanwhile.
                if unsafe { self.ring.submission().push(&entry) }.is_err() {
                    // Unreachable, as `in_flight` is below the size of the queue; if it happens, the piece is tried
                    // again later.
                    run.again.push(piece);
                    run.next += usize::from(is_first);
                    break;
                }
                if is_first {
                    S::counters(counters).add(len_bytes);
                }
                run.in_flight += 1;
                departed += 1;
            }
            run.next += usize::from(is_first);
        }
        counters.depart(departed);
    }

    /// Processes the available completions.
    fn reap<S: Slice>(
        &mut self,
        batch: &mut TransferBatch<S>,
        counters: &DeviceCounters,
        run: &mut RingProgress,
    ) {
        let mut arrived = 0;
        for completion in self.ring.completion() {
            let piece = completion.user_data() as usize;
            let outcome = match usize::try_from(completion.result()) {
                Ok(moved) => Ok(moved),
                Err(_) => Err(io::Error::from_raw_os_error(-completion.result())),
            };
            run.in_flight -= 1;
            arrived += 1;
            if batch.progress(piece, outcome) == PieceProgress::Again {
                run.again.push(piece);
            }
        }
        counters.arrive(arrived);
    }

    /// Waits until the kernel has finished all entries that it took, without system calls on the ring.
    fn drain<S: Slice>(
        &mut self,
        batch: &mut TransferBatch<S>,
        counters: &DeviceCounters,
        run: &mut RingProgress,
        error: &io::Error,
    ) {
        self.broken = true;
        // Entries that the kernel has not taken are never executed: it takes entries only in a system call.
        let not_taken = self.ring.submission().len();
        while run.in_flight > not_taken {
            std::thread::sleep(DRAIN_PAUSE);
            self.reap(batch, counters, run);
        }
        counters.arrive(not_taken as u32);
        run.in_flight = 0;
        // Last, because this calls a subscriber of the user, which may panic and so end the borrow of the buffers.
        tracing::warn!(%error, "io_uring failed; going on with preadv and pwritev");
    }
}

/// A ring whose completions the kernel runs when the thread that submitted next enters it, at the next clock tick at the
/// latest (since Linux 5.19); a thread that sleeps there is woken for them.
pub(super) fn cooperative(depth: u32) -> io::Result<IoUring> {
    let cooperative = IoUring::builder().setup_coop_taskrun().build(depth);
    cooperative.or_else(|_| IoUring::new(depth))
}

/// Whether `io_uring_enter` should be tried again: a signal, a temporary lack of memory, or completions to be taken
/// first.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy
    )
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs::File;
    use std::mem::ManuallyDrop;
    use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::device::{Read, Write};
    use crate::transfer::{RingPool, run_open};

    /// A ring and an empty file.
    fn ring_and_file(name: &str) -> Option<(Ring, File)> {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true);
        let file = file.open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        match Ring::new(4) {
            Ok(ring) => Some((ring, file)),
            Err(error) => {
                eprintln!("skipped: no io_uring here: {error}");
                None
            }
        }
    }

    #[test]
    fn writes_after_a_failed_one_are_not_begun() {
        let Some((mut ring, file)) = ring_and_file("failed-write") else {
            return;
        };
        let page = [7; 4096];
        // The kernel refuses a negative offset. More writes than the depth follow.
        let bad = Write::new(u64::MAX - 8191, &page);
        let good = (0..20).map(|n| Write::new(n * 4096, &page));
        let writes: Vec<_> = std::iter::once(bad).chain(good).collect();
        let mut batch = TransferBatch::of_writes(&writes, 512);
        let counters = DeviceCounters::default();
        ring.run(file.as_fd(), &mut batch, &counters);
        assert!(!ring.is_broken());
        let failures = batch.into_failures();
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].0, 0);
        assert!(counters.read().writes.count < 21);
    }

    /// Closes the kernel's side of a ring.
    fn cut_off(ring: &Ring) {
        // SAFETY: the descriptor is open; `ManuallyDrop` leaves closing it to the ring.
        let owned = unsafe { OwnedFd::from_raw_fd(ring.ring.as_raw_fd()) };
        let null = File::open("/dev/null").unwrap();
        rustix::io::dup2(&null, &mut ManuallyDrop::new(owned)).unwrap();
    }

    /// A subscriber that panics, as a user's may, and records how many transfers were in flight.
    pub(crate) struct Panicky(pub(crate) Arc<DeviceCounters>, pub(crate) Arc<AtomicU32>);

    impl tracing::Subscriber for Panicky {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, _: &tracing::Event<'_>) {
            self.1.store(self.0.in_flight(), Ordering::Relaxed);
            panic!("a subscriber's own fault");
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[test]
    fn a_subscriber_that_panics_at_a_broken_ring_finds_nothing_in_flight() {
        let Some((mut ring, file)) = ring_and_file("panicky") else {
            return;
        };
        cut_off(&ring);
        let page = [7; 4096];
        let writes: Vec<_> = (0..9).map(|n| Write::new(n * 4096, &page)).collect();
        let mut batch = TransferBatch::of_writes(&writes, 512);
        let counters = Arc::new(DeviceCounters::default());
        let seen = Arc::new(AtomicU32::new(u32::MAX));
        let subscriber = Panicky(Arc::clone(&counters), Arc::clone(&seen));
        let run = || ring.run(file.as_fd(), &mut batch, &counters);
        let outcome =
            tracing::subscriber::with_default(subscriber, || catch_unwind(AssertUnwindSafe(run)));
        assert!(outcome.is_err(), "the subscriber was called");
        assert_eq!(seen.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_a_broken_ring_left_is_done_without_it() {
        let Some((mut ring, file)) = ring_and_file("broken-ring") else {
            return;
        };
        cut_off(&ring);

        let page = [7; 4096];
        let writes: Vec<_> = (0..9).map(|n| Write::new(n * 4096, &page)).collect();
        let mut batch = TransferBatch::of_writes(&writes, 512);
        let counters = DeviceCounters::default();
        ring.run(file.as_fd(), &mut batch, &counters);
        assert!(ring.is_broken());
        run_open(file.as_fd(), &mut batch, &counters);
        assert!(batch.into_failures().is_empty());
        // The cause would break the next ring as well.
        let pool = RingPool::new(4);
        drop(pool.take());
        pool.put(ring);
        assert!(pool.take().is_none());

        let mut found = vec![0; 9 * 4096];
        let mut reads = [Read::new(0, &mut found)];
        let mut batch = TransferBatch::of_reads(&mut reads, 512, |_| Ok(()));
        run_open(file.as_fd(), &mut batch, &counters);
        assert!(batch.into_failures().is_empty());
        assert!(found.iter().all(|&byte| byte == 7));
    }
}
