//! Writers that share flushes, under many schedules. `cargo xtask interleavings shuttle`.

mod mirrors;

use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use kreon_base::{Attributes, Error, ErrorKind, Incarnation, LogId, RegionId, Result, SegmentId};
use kreon_device::{Device, DeviceStats, Read, Write};
use kreon_format::{RecordKind, StoreId};
use parking_lot::Mutex;
use shuttle::thread;

use crate::durable_wait::DurableWait;
use crate::history::LogHistory;
use crate::home::{LogHome, LogOptions, LogSpace, TakenSegment};
use crate::log::Log;
use crate::mirror::LogMirror;
use crate::record::{NewRecord, Place};
use kreon_sync::{Ordering, explore, yield_now};
use kreon_volume::Purpose;

/// A device that remembers what a cut of the power could not take. Others run during its calls.
#[derive(Default)]
struct Disk {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    written: Vec<Range<u64>>,
    /// How many of `written` had ended when the last flush began that has ended well.
    durable: usize,
    flushes: u32,
    fails_at: Option<u32>,
}

impl Disk {
    /// Whether all of the range would survive.
    fn keeps(&self, range: Range<u64>) -> bool {
        let state = self.state.lock();
        let mut at = range.start;
        let kept = &state.written[..state.durable];
        while at < range.end {
            match kept.iter().find(|kept| kept.contains(&at)) {
                Some(kept) => at = kept.end,
                None => return false,
            }
        }
        true
    }
}

impl Device for Disk {
    fn block_bytes(&self) -> u32 {
        512
    }
    fn len_bytes(&self) -> u64 {
        1 << 30
    }
    fn len_bytes_max(&self) -> u64 {
        1 << 30
    }
    fn grow(&self, _: u64) -> Result<()> {
        Ok(())
    }
    fn allocate(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn discard(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
    fn read(&self, _: &mut [Read<'_>]) -> Result<()> {
        Ok(())
    }
    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        yield_now();
        for write in writes {
            let end = write.offset + write.len_bytes();
            self.state.lock().written.push(write.offset..end);
        }
        yield_now();
        Ok(())
    }
    fn flush(&self) -> Result<()> {
        let covered = self.state.lock().written.len();
        // Long enough for a write of another thread.
        for _ in 0..8 {
            yield_now();
        }
        let mut state = self.state.lock();
        state.flushes += 1;
        if state.fails_at.is_some_and(|at| at <= state.flushes) {
            return Err(Error::new(ErrorKind::Io, "the flush failed"));
        }
        state.durable = state.durable.max(covered);
        Ok(())
    }
    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
}

/// Hands out segments one after the other.
struct Segments(Mutex<u32>);

impl LogSpace for Segments {
    fn allocate_segments(
        &self,
        _: LogId,
        _: u64,
        count: usize,
        _: Purpose,
    ) -> Result<Vec<TakenSegment>> {
        let mut next = self.0.lock();
        let first = *next;
        *next += count as u32;
        let taken = |id| TakenSegment {
            id: SegmentId(id),
            was_written: false,
        };
        Ok((first..*next).map(taken).collect())
    }
}

fn open(fails_at: Option<u32>) -> (Arc<Disk>, Arc<Log>) {
    open_with(fails_at, None)
}

fn open_with(fails_at: Option<u32>, mirror: Option<Arc<dyn LogMirror>>) -> (Arc<Disk>, Arc<Log>) {
    let disk = Arc::new(Disk::default());
    disk.state.lock().fails_at = fails_at;
    let home = LogHome {
        device: Arc::clone(&disk) as Arc<dyn Device>,
        log_device: None,
        mirror,
        space: Arc::new(Segments(Mutex::new(1))),
        pages: Arc::new(()),
        store: StoreId(7),
        log: LogId(0),
        incarnation: Incarnation(1),
    };
    let log = Log::open(home, LogHistory::empty(), LogOptions::default());
    (disk, Arc::new(log.expect("there is space")))
}

/// Appends a unit of two records. Others run while the second is not committed yet.
fn append(log: &Log) -> Result<(Vec<Place>, kreon_base::Lsn)> {
    let record = NewRecord {
        region: RegionId(1),
        kind: RecordKind::Put,
        key: b"key",
        value: &[7; 300],
        attributes: Attributes::NONE,
    };
    let mut places = Vec::new();
    let end = log.append(&[record, record], |place| {
        places.push(place);
        yield_now();
    })?;
    Ok((places, end))
}

/// What `sync` promises: all that was appended before the call outlives a cut of the power.
fn sync_and_check(disk: &Disk, log: &Log, places: &[Place], end: kreon_base::Lsn) -> Result<()> {
    log.sync(end)?;
    for place in places {
        let start = place.offset.0;
        assert!(disk.keeps(start..start + 303), "{place:?} is not durable");
    }
    Ok(())
}

fn join_all(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn model_a_writer_returns_from_a_sync_only_when_its_records_are_durable() {
    explore("group commit: three writers that sync", 5000, || {
        let (disk, log) = open(None);
        let writer = |_| {
            let (disk, log) = (Arc::clone(&disk), Arc::clone(&log));
            thread::spawn(move || {
                for _ in 0..2 {
                    let (places, end) = append(&log).unwrap();
                    sync_and_check(&disk, &log, &places, end).unwrap();
                }
            })
        };
        join_all((0..3).map(writer).collect());
        assert!(disk.state.lock().flushes <= 6);
    });
}

#[test]
fn model_syncs_and_the_background_writer_do_not_mislead_each_other() {
    explore("group commit: two writers, the writer-out", 5000, || {
        let (disk, log) = open(None);
        let writer = |_| {
            let (disk, log) = (Arc::clone(&disk), Arc::clone(&log));
            thread::spawn(move || {
                let (places, end) = append(&log).unwrap();
                sync_and_check(&disk, &log, &places, end).unwrap();
            })
        };
        let mut threads: Vec<_> = (0..2).map(writer).collect();
        let background = Arc::clone(&log);
        threads.push(thread::spawn(move || {
            for _ in 0..8 {
                background.write_out(background.tail()).unwrap();
                yield_now();
            }
        }));
        join_all(threads);
        assert!(log.durable() <= log.written() && log.written() >= log.tail());
    });
}

/// A task without an executor: its thread polls when it was woken.
fn poll_until_ready(log: &Log, upto: kreon_base::Lsn) -> Result<()> {
    #[derive(Default)]
    struct Called(kreon_sync::Wakeup);
    impl Wake for Called {
        fn wake(self: Arc<Self>) {
            self.0.call();
        }
    }
    let called = Arc::new(Called::default());
    let waker = Waker::from(Arc::clone(&called));
    let mut wait = DurableWait::new(upto);
    loop {
        let polled = log.poll_durable(&mut wait, &mut Context::from_waker(&waker));
        if let Poll::Ready(outcome) = polled {
            return outcome;
        }
        called.0.wait();
    }
}

/// Two tasks, a thread that syncs, the flusher, and the end of it all.
fn tasks_and_a_thread(fails_at: Option<u32>) {
    let (disk, log) = open(fails_at);
    log.begin_serving();
    let is_over = Arc::new(kreon_sync::AtomicBool::new(false));
    let flusher = {
        let (log, is_over) = (Arc::clone(&log), Arc::clone(&is_over));
        thread::spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                let _ = log.serve();
            }
            log.end_serving();
        })
    };
    let writer = |is_task: bool| {
        let (disk, log) = (Arc::clone(&disk), Arc::clone(&log));
        thread::spawn(move || {
            let outcome = append(&log).and_then(|(places, end)| {
                match is_task {
                    true => poll_until_ready(&log, end)?,
                    false => log.sync(end)?,
                }
                for place in places {
                    let start = place.offset.0;
                    assert!(disk.keeps(start..start + 303), "{place:?} is not durable");
                }
                Ok(())
            });
            match (fails_at, outcome) {
                (_, Ok(())) => {}
                (None, Err(error)) => panic!("{error}"),
                (Some(_), Err(error)) => assert_eq!(error.kind(), ErrorKind::Poisoned),
            }
        })
    };
    join_all([true, true, false].map(writer).into());
    is_over.store(true, Ordering::SeqCst);
    log.wake_flusher();
    flusher.join().unwrap();
    log.close();
    assert!(disk.state.lock().flushes <= 3);
}

#[test]
fn model_tasks_and_threads_share_flushes_and_nobody_hangs() {
    explore(
        "group commit: two tasks, a thread, the flusher",
        2000,
        || {
            tasks_and_a_thread(None);
        },
    );
}

#[test]
fn model_after_a_failed_flush_tasks_get_the_error_too() {
    explore("group commit: tasks, a flush fails", 2000, || {
        tasks_and_a_thread(Some(1));
    });
}

#[test]
fn model_a_task_ends_when_its_log_is_closed_or_served_no_more() {
    explore("group commit: a task, the flusher goes", 2000, || {
        let (disk, log) = open(None);
        log.begin_serving();
        let closer = {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                log.end_serving();
                log.close();
            })
        };
        let (places, end) = append(&log).unwrap();
        match poll_until_ready(&log, end) {
            Ok(()) => {
                let start = places[0].offset.0;
                assert!(disk.keeps(start..start + 303));
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Closed),
        }
        closer.join().unwrap();
    });
}

#[test]
fn model_after_a_failed_flush_every_waiter_gets_the_error() {
    explore("group commit: three writers, a flush fails", 5000, || {
        let (disk, log) = open(Some(2));
        let refused = Arc::new(Mutex::new(0));
        let writer = |_| {
            let (disk, log, refused) = (Arc::clone(&disk), Arc::clone(&log), Arc::clone(&refused));
            thread::spawn(move || {
                for _ in 0..2 {
                    let outcome = append(&log)
                        .and_then(|(places, end)| sync_and_check(&disk, &log, &places, end));
                    if let Err(error) = outcome {
                        assert_eq!(error.kind(), ErrorKind::Poisoned);
                        *refused.lock() += 1;
                    }
                }
            })
        };
        join_all((0..3).map(writer).collect());
        let flushes = disk.state.lock().flushes;
        // Three calls at once share a flush at most: the second one was needed, and failed.
        assert_eq!(flushes, 2, "no flush is tried again");
        assert!(*refused.lock() > 0 && log.sync(log.tail()).is_err());
    });
}
