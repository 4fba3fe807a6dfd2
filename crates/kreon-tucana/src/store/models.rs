//! Writers that wait for the log, and whole stores, under many schedules. `cargo xtask interleavings shuttle`.
//!
//! Others go on at every lock and atomic of the store and of the tree, and in the writes and flushes of the [`Disk`]. A call of
//! the mapping is one step, and so is one of an `AppendBuffer`: that has models of its own, under loom.

use std::ops::Range;
use std::sync::Arc;

use kreon_base::Result;
use kreon_device::{Device, DeviceStats, Read, Write};
use kreon_sim::{Call as DeviceCall, Effect, Fault, Keep, SimDevice, SimOptions};
use kreon_sync::{AtomicU32, Ordering::SeqCst, explore, yield_now};
use parking_lot::Mutex;
use shuttle::thread;

use super::call::Call;
use super::group_flush::GroupFlush;
use super::log_mark::REGION;
use super::opening::{self, Opened};
use super::options::{Durability, Maintenance, Options};
use super::region_key::with_tree_key;
use super::region_state::RegionState;
use super::shared::Shared;
use crate::log::{Placed, Record, RecordLog};

/// A device that remembers what a cut of the power could not take. Others run during its writes and flushes.
struct Disk {
    device: SimDevice,
    /// Its lock is no point where others go on.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    written: Vec<Range<u64>>,
    /// How many of `written` had ended when the last flush began that has ended well.
    durable: usize,
    flushes: u32,
}

impl Disk {
    /// Whether all of the range would survive.
    fn keeps(&self, range: Range<u64>) -> bool {
        let state = self.state.lock();
        let kept = &state.written[..state.durable];
        let mut at = range.start;
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
        self.device.block_bytes()
    }
    fn len_bytes(&self) -> u64 {
        self.device.len_bytes()
    }
    fn len_bytes_max(&self) -> u64 {
        self.device.len_bytes_max()
    }
    fn grow(&self, len_bytes: u64) -> Result<()> {
        self.device.grow(len_bytes)
    }
    fn allocate(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.device.allocate(offset, len_bytes)
    }
    fn discard(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.device.discard(offset, len_bytes)
    }
    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        self.device.read(reads)
    }
    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        yield_now();
        self.device.write(writes)?;
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
        self.device.flush()?;
        state.durable = state.durable.max(covered);
        Ok(())
    }
    fn stats(&self) -> DeviceStats {
        self.device.stats()
    }
}

fn options() -> Options {
    Options {
        memory_bytes: 512 << 10,
        volume_bytes_max: 32 << 20,
        maintenance: Maintenance::Callers,
        ..Options::default()
    }
}

/// The log of a new store, and the writers that wait for it.
#[derive(Clone)]
struct Bench(Arc<Parts>);

struct Parts {
    disk: Arc<Disk>,
    opened: Opened,
    flushes: GroupFlush,
    value: Vec<u8>,
}

impl Bench {
    /// Values have so many bytes.
    fn new(value_bytes: usize) -> Self {
        let disk = Arc::new(Disk {
            device: SimDevice::new(SimOptions {
                record: false,
                ..SimOptions::default()
            }),
            state: Mutex::default(),
        });
        let opened = opening::open(Arc::clone(&disk) as Arc<dyn Device>, &options());
        *disk.state.lock() = State::default();
        Self(Arc::new(Parts {
            disk,
            opened: opened.expect("a new store"),
            flushes: GroupFlush::default(),
            value: vec![7; value_bytes],
        }))
    }

    fn append(&self) -> Result<Placed> {
        let (log, value) = (&self.0.opened.log, Some(&self.0.value[..]));
        let (region, key) = (REGION, &b"key"[..]);
        let record = Record { region, key, value };
        loop {
            log.make_room(&record)?;
            if let Some(placed) = log.append(&record)? {
                return Ok(placed);
            }
        }
    }

    /// Appends a record and waits for it: whoever returns has it on the device.
    fn append_and_wait(&self) -> Result<()> {
        let Parts {
            disk,
            opened,
            flushes,
            ..
        } = &*self.0;
        let placed = self.append()?;
        flushes.wait(&opened.home, &opened.log, placed.lsn)?;
        let (start, bytes) = (placed.location.offset.0, placed.location.extent_bytes());
        assert!(
            disk.keeps(start..start + bytes as u64),
            "{placed:?} is not durable"
        );
        Ok(())
    }

    /// What a commit does with the log.
    fn commit_log(&self) -> Result<()> {
        let Opened { home, log, .. } = &self.0.opened;
        let end = log.write_out()?;
        home.flush()?;
        log.set_durable(end);
        self.0.flushes.advance(end);
        Ok(())
    }

    fn beside<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        let bench = self.clone();
        thread::spawn(move || work(&bench))
    }
}

/// Waits for threads that all run already: an iterator that begins them would begin each one after the end of the one before.
fn join<R>(threads: impl Into<Vec<thread::JoinHandle<R>>>) {
    for thread in threads.into() {
        thread.join().expect("no panic");
    }
}

#[test]
fn model_a_writer_returns_only_when_its_record_is_durable() {
    explore("tucana: three writers that share flushes", 2000, || {
        let bench = Bench::new(300);
        let writer = |_| {
            bench.beside(|bench| {
                for _ in 0..2 {
                    bench.append_and_wait().expect("no I/O fails");
                }
            })
        };
        join((0..3).map(writer).collect::<Vec<_>>());
        assert!(bench.0.disk.state.lock().flushes <= 6);
    });
}

#[test]
fn model_a_commit_beside_writers_that_wait_misleads_nobody() {
    explore("tucana: two writers that wait, commits", 2000, || {
        let bench = Bench::new(300);
        let writer = |_| bench.beside(|bench| bench.append_and_wait().expect("no I/O fails"));
        let commits = bench.beside(|bench| {
            for _ in 0..2 {
                bench.append().expect("there is room");
                bench.commit_log().expect("no I/O fails");
            }
        });
        join((0..2).map(writer).chain([commits]).collect::<Vec<_>>());
    });
}

/// Whatever fails, each writer returns, and those that are told that all is well can rely on it.
#[test]
fn model_a_flush_that_fails_leaves_nobody_waiting() {
    explore("tucana: three writers, a flush that fails", 2000, || {
        let bench = Bench::new(300);
        let fault = Fault::nth(2, DeviceCall::Flush, Effect::Io).for_ever();
        bench.0.disk.device.inject(fault);
        let writer = |_| bench.beside(|bench| bench.append_and_wait().is_ok());
        let threads: Vec<_> = (0..3).map(writer).collect();
        let told: Vec<bool> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert!(told.contains(&true), "the first flush does not fail");
    });
}

/// Records of 700 KiB: the segment is full while others wait for what is in it.
#[test]
fn model_a_segment_that_becomes_full_is_written_before_what_follows_it() {
    explore("tucana: two writers, a full segment", 600, || {
        let bench = Bench::new(700 << 10);
        let writer = |_| {
            bench.beside(|bench| {
                for _ in 0..2 {
                    bench.append_and_wait().expect("no I/O fails");
                }
            })
        };
        join((0..2).map(writer).collect::<Vec<_>>());
    });
}

#[test]
fn model_no_call_for_a_thread_is_lost() {
    explore("tucana: two that call, a thread that works", 2000, || {
        let (call, given) = (Arc::new(Call::default()), Arc::new(AtomicU32::new(0)));
        let caller = |_| {
            let (call, given) = (Arc::clone(&call), Arc::clone(&given));
            thread::spawn(move || {
                for _ in 0..2 {
                    given.fetch_add(1, SeqCst);
                    call.call();
                }
            })
        };
        let callers: Vec<_> = (0..2).map(caller).collect();
        while given.load(SeqCst) < 4 {
            call.wait();
        }
        join(callers);
    });
}

/// A whole store: what was acknowledged as durable is there after a crash at that moment.
#[test]
fn model_a_durable_write_beside_commits_survives_a_crash() {
    explore(
        "tucana: two durable writers, a commit, crashes",
        300,
        || {
            let device = Arc::new(SimDevice::new(SimOptions::default()));
            let opened = opening::open(Arc::clone(&device) as Arc<dyn Device>, &options());
            let opened = opened.expect("a new store");
            let shared = Arc::new(Shared::begin(opened, &options()).expect("a new store"));
            let writer = |key: &'static [u8]| {
                let (shared, device) = (Arc::clone(&shared), Arc::clone(&device));
                thread::spawn(move || {
                    let region = RegionState::new(1, "a region");
                    for value in [&b"1"[..], b"2"] {
                        let put = shared.write(&region, key, Some(value), Durability::Sync);
                        put.expect("there is room");
                    }
                    let image = device.history().crash().image(&mut Keep::Nothing);
                    let device = Arc::new(SimDevice::from_image(image, SimOptions::default()));
                    let opened = opening::open(device, &options()).expect("a store");
                    let again = Shared::begin(opened, &options()).expect("a store");
                    let get = |key: &[u8]| again.tree.get(key);
                    let found = with_tree_key(region.number, key, get).expect("a get");
                    assert_eq!(found.as_deref(), Some(&b"2"[..]));
                })
            };
            let commits = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.commit().expect("no I/O fails"))
            };
            join([writer(b"a"), writer(b"b"), commits]);
        },
    );
}
