//! Transfers in flight on a ring, with the buffers that they own meanwhile.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};
use rustix::event::PollFlags;
use rustix::io::Errno;

use super::resume::{Resumption, conclude};
use super::ring::{cooperative, is_passing};
use super::wake_event::WakeEvent;
use crate::process::HomeProcess;
use crate::stats::DeviceCounters;
use crate::transfer_queue::{Transfer, Transferred};

/// The number of the entry that watches the wake-ups; no slot has it.
const WATCH: u64 = u64::MAX;

/// Longest sleep, so that it can be told to every kernel.
const PATIENCE_MAX: Duration = Duration::from_secs(3600);

/// Pause between looks for completions of a broken ring.
const BROKEN_PAUSE: Duration = Duration::from_micros(100);

/// Most bytes of one entry: what Linux moves in one call (`MAX_RW_COUNT`). The rest is moved afterwards.
const ENTRY_BYTES_MAX: usize = 0x7fff_f000;

/// A ring with what is in flight on it, used by one thread at a time.
///
/// A thread that submitted and ended may have its transfers cancelled by the kernel before they began; those are carried
/// out by calls that wait when they come back, and so is what is left of short ones.
pub(crate) struct RingTransfers {
    ring: IoUring,
    file: OwnedFd,
    block_bytes: u32,
    home: HomeProcess,
    counters: Arc<DeviceCounters>,
    /// A transfer's index is the number of its entry.
    slots: Vec<Option<(u64, Transfer)>>,
    free: Vec<u32>,
    /// Numbers of the entries that the kernel may not have taken, in the order of the submission queue.
    waiting: VecDeque<u64>,
    event: Arc<WakeEvent>,
    /// Whether an entry watches the event.
    is_watched: bool,
    /// Whether a wake-up was seen that nobody has heard of.
    is_woken: bool,
    /// The kernel refuses calls on the ring: entries that it has taken still end, others never do.
    is_broken: bool,
}

impl RingTransfers {
    /// A ring for up to `depth` transfers of `file`, whose blocks are of `block_bytes`.
    pub(crate) fn new(
        file: OwnedFd,
        block_bytes: u32,
        depth: u32,
        home: HomeProcess,
        counters: Arc<DeviceCounters>,
    ) -> io::Result<Self> {
        // One more for the watch.
        let ring = cooperative(depth + 1)?;
        let params = ring.params();
        // Waits with a timeout came with Linux 5.11, later than all other features used here.
        if !params.is_feature_ext_arg() || !params.is_feature_nodrop() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self {
            ring,
            file,
            block_bytes,
            home,
            counters,
            slots: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            waiting: VecDeque::new(),
            event: Arc::new(WakeEvent::new()?),
            is_watched: false,
            is_woken: false,
            is_broken: false,
        })
    }

    /// Transfers that have not landed.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether the kernel refused a call on the ring, so that it takes no more transfers.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Whether [`enter`](Self::enter) has something to submit.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether there was a wake-up since [`hear`](Self::hear), as far as [`land`](Self::land) has seen.
    pub(crate) fn is_woken(&self) -> bool {
        self.is_woken
    }

    /// The caller is about to look for what it was woken for.
    pub(crate) fn hear(&mut self) {
        self.is_woken = false;
    }

    /// Ends a sleep in [`enter`](Self::enter).
    pub(crate) fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.event))
    }

    /// Queues a transfer within the device's bounds. Gives it back if the ring is full or broken.
    pub(crate) fn push(&mut self, tag: u64, transfer: Transfer) -> Result<(), (u64, Transfer)> {
        if self.is_broken {
            return Err((tag, transfer));
        }
        let Some(number) = self.free.pop() else {
            return Err((tag, transfer));
        };
        let Some(slot) = self.slots.get_mut(number as usize) else {
            return Err((tag, transfer));
        };
        let (_, transfer) = slot.insert((tag, transfer));
        let entry = entry(&self.file, transfer).user_data(u64::from(number));
        // SAFETY: the buffer belongs to the slot, which nobody touches until `land` empties it: after the entry's
        // completion, or when the ring broke before the kernel took the entry, which it then never does. `drop` waits
        // for that, and if `self` is leaked, so is the buffer. The file belongs to `self`.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err()
            && let Some(back) = slot.take()
        {
            // Unreachable: the queue has room for all slots.
            self.free.push(number);
            return Err(back);
        }
        self.count(number);
        self.waiting.push_back(u64::from(number));
        Ok(())
    }

    /// Counts the transfer in a slot as begun.
    fn count(&self, number: u32) {
        let Some(Some((_, transfer))) = self.slots.get(number as usize) else {
            return;
        };
        match transfer {
            Transfer::Read { len_bytes, .. } => self.counters.reads.add(*len_bytes as u64),
            Transfer::Write { len_bytes, .. } => self.counters.writes.add(*len_bytes as u64),
            Transfer::Flush => {
                self.counters.flushes.fetch_add(1, Relaxed);
                return;
            }
        }
        self.counters.depart(1);
    }

    /// Submits.
    pub(crate) fn submit(&mut self) {
        self.enter(0, Duration::ZERO);
    }

    /// Submits, then sleeps until `count` of transfers and wake-ups can land, or the end of `patience`. It may return early.
    pub(crate) fn enter(&mut self, count: usize, patience: Duration) {
        if let Err(error) = self.try_enter(count, patience) {
            // A subscriber of the user, which may panic: never in `drop`, where that would free the buffers.
            tracing::warn!(%error, "io_uring failed; going on with pread and pwrite");
        }
    }

    /// As [`enter`](Self::enter); the error is what broke the ring just now.
    fn try_enter(&mut self, count: usize, patience: Duration) -> io::Result<()> {
        if self.is_broken {
            let pause = if self.len() == 0 {
                PATIENCE_MAX
            } else {
                BROKEN_PAUSE
            };
            self.event.sleep(patience.min(pause));
            self.event.clear();
            return Ok(());
        }
        let outcome = if patience.is_zero() {
            self.ring.submit()
        } else {
            self.watch();
            let time = types::Timespec::from(patience.min(PATIENCE_MAX));
            let arguments = types::SubmitArgs::new().timespec(&time);
            // More would never land.
            let count = count.clamp(1, self.len().max(1));
            self.ring.submitter().submit_with_args(count, &arguments)
        };
        let left = self.ring.submission().len();
        let taken = self.waiting.len().saturating_sub(left);
        self.waiting.drain(..taken);
        match outcome {
            Ok(_) => {}
            Err(error) if is_passing(&error) => std::thread::yield_now(),
            // The timeout expired.
            Err(error) if error.raw_os_error() == Some(Errno::TIME.raw_os_error()) => {}
            Err(error) => {
                self.is_broken = true;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Has the ring watch the wake-ups.
    fn watch(&mut self) {
        if self.is_watched {
            return;
        }
        let file = types::Fd(self.event.as_raw_fd());
        let entry = opcode::PollAdd::new(file, u32::from(PollFlags::IN.bits())).build();
        // SAFETY: the entry has no memory, and its file belongs to `self`.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(WATCH)) };
        if pushed.is_ok() {
            self.is_watched = true;
            self.waiting.push_back(WATCH);
        }
    }

    /// Hands what has ended to `take`.
    pub(crate) fn land(&mut self, mut take: impl FnMut(Transferred)) {
        let mut landed = 0;
        for completion in self.ring.completion() {
            let number = completion.user_data();
            if number == WATCH {
                (self.is_watched, self.is_woken) = (false, true);
                // Before the caller looks for what it was woken for, so that no later wake-up is forgotten.
                self.event.clear();
                continue;
            }
            let slot = self.slots.get_mut(number as usize);
            let Some((tag, transfer)) = slot.and_then(Option::take) else {
                continue;
            };
            self.free.push(number as u32);
            landed += u32::from(!matches!(transfer, Transfer::Flush));
            let rest = Resumption {
                file: self.file.as_fd(),
                block_bytes: self.block_bytes,
            };
            take(conclude(tag, transfer, completion.result(), &rest));
        }
        self.counters.arrive(landed);
        if self.is_broken {
            self.land_waiting(take);
        }
    }

    /// Carries out, without the ring, what the kernel did not take before it broke: it takes entries in our system calls
    /// only, and there will be no more.
    #[cold]
    fn land_waiting(&mut self, mut take: impl FnMut(Transferred)) {
        while let Some(number) = self.waiting.pop_front() {
            let slot = self.slots.get_mut(number as usize);
            let Some((tag, transfer)) = slot.and_then(Option::take) else {
                continue;
            };
            self.free.push(number as u32);
            self.counters
                .arrive(u32::from(!matches!(transfer, Transfer::Flush)));
            let rest = Resumption {
                file: self.file.as_fd(),
                block_bytes: self.block_bytes,
            };
            let not_begun = -Errno::CANCELED.raw_os_error();
            take(conclude(tag, transfer, not_begun, &rest));
        }
    }
}

impl Drop for RingTransfers {
    fn drop(&mut self) {
        // A forked child shares the ring with its parent, and has a copy of the buffers that nobody writes to.
        while self.home.is_this() && self.len() > 0 {
            let _ = self.try_enter(1, PATIENCE_MAX);
            self.land(drop);
        }
    }
}

/// The entry for a transfer. It points into the transfer's buffer.
fn entry(file: &OwnedFd, transfer: &Transfer) -> squeue::Entry {
    let file = types::Fd(file.as_raw_fd());
    match transfer {
        Transfer::Read {
            offset,
            buffer,
            len_bytes,
        } => {
            let len_bytes = (*len_bytes).min(ENTRY_BYTES_MAX) as u32;
            opcode::Read::new(file, buffer.start().as_ptr(), len_bytes)
                .offset(*offset)
                .build()
        }
        Transfer::Write {
            offset,
            buffer,
            len_bytes,
        } => {
            let len_bytes = (*len_bytes).min(ENTRY_BYTES_MAX) as u32;
            opcode::Write::new(file, buffer.start().as_ptr(), len_bytes)
                .offset(*offset)
                .build()
        }
        Transfer::Flush => opcode::Fsync::new(file)
            .flags(types::FsyncFlags::DATASYNC)
            .build(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::mem::ManuallyDrop;
    use std::os::fd::FromRawFd;
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::aligned_buf::AlignedBuf;
    use crate::transfer::ring::tests::Panicky;

    const PAGE: usize = 4096;

    /// Up to 8 transfers of an empty file, and the file once more.
    fn transfers(name: &str) -> Option<(RingTransfers, File)> {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true);
        let file = file.open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let other = file.try_clone().unwrap();
        match RingTransfers::new(file.into(), 512, 8, HomeProcess::this(), Arc::default()) {
            Ok(transfers) => Some((transfers, other)),
            Err(error) => {
                eprintln!("skipped: no io_uring here: {error}");
                None
            }
        }
    }

    fn write(transfers: &mut RingTransfers, page: u64) {
        let mut buffer = AlignedBuf::new(PAGE);
        buffer.fill(page as u8 + 1);
        let write = Transfer::Write {
            offset: page * PAGE as u64,
            buffer,
            len_bytes: PAGE,
        };
        transfers.push(page, write).unwrap();
    }

    fn assert_written(file: &File, pages: u64) {
        for page in 0..pages {
            let mut found = [0; PAGE];
            file.read_exact_at(&mut found, page * PAGE as u64).unwrap();
            assert_eq!(found, [page as u8 + 1; PAGE]);
        }
    }

    /// Closes the kernel's side of the ring.
    fn cut_off(transfers: &RingTransfers) {
        // SAFETY: the descriptor is open; `ManuallyDrop` leaves closing it to the ring.
        let owned = unsafe { OwnedFd::from_raw_fd(transfers.ring.as_raw_fd()) };
        let null = File::open("/dev/null").unwrap();
        rustix::io::dup2(&null, &mut ManuallyDrop::new(owned)).unwrap();
    }

    #[test]
    fn what_a_broken_ring_has_and_has_not_taken_ends() {
        let Some((mut transfers, file)) = transfers("broken-transfers") else {
            return;
        };
        (0..4).for_each(|page| write(&mut transfers, page));
        transfers.submit();
        assert!(!transfers.has_waiting());
        cut_off(&transfers);
        (4..7).for_each(|page| write(&mut transfers, page));
        transfers.push(7, Transfer::Flush).unwrap();
        transfers.enter(1, PATIENCE_MAX);
        assert!(transfers.is_broken());
        assert!(transfers.push(8, Transfer::Flush).is_err());
        let mut tags = Vec::new();
        while transfers.len() > 0 {
            transfers.land(|one| {
                one.outcome.unwrap();
                tags.push(one.tag);
            });
            transfers.enter(1, BROKEN_PAUSE);
        }
        tags.sort_unstable();
        assert_eq!(tags, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_written(&file, 7);
        assert_eq!(transfers.counters.in_flight(), 0);
        let stats = transfers.counters.read();
        assert_eq!((stats.writes.count, stats.flushes), (7, 1));
        // It sleeps until it is woken all the same.
        transfers.waker().wake();
        transfers.enter(1, PATIENCE_MAX);
    }

    #[test]
    fn transfers_on_a_broken_ring_are_dropped_when_they_have_ended() {
        let Some((mut transfers, file)) = transfers("dropped-transfers") else {
            return;
        };
        (0..3).for_each(|page| write(&mut transfers, page));
        transfers.submit();
        cut_off(&transfers);
        (3..6).for_each(|page| write(&mut transfers, page));
        // A subscriber that panics would free the buffers too early.
        let subscriber = Panicky(Arc::clone(&transfers.counters), Arc::default());
        tracing::subscriber::with_default(subscriber, || drop(transfers));
        assert_written(&file, 6);
    }
}
