//! The store of a group's primary, with members that a test moves.

mod leaving;
mod opening;
mod parted;
mod reading;
mod shipping;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use kreon_base::{ErrorKind, Incarnation};
use kreon_device::{DeviceStats, Read, ReadQueue, Write};
use kreon_log::LogMirror;
use kreon_sync::{Condvar, Mutex};

use super::*;
use crate::options::Mirroring;

/// What is called with each range before it is written.
type Look = Box<dyn Fn(&Range<u64>) + Send + Sync>;

/// One of several ways to the same bytes, which notes what goes through it.
struct Way {
    to: Arc<SimDevice>,
    writes: Mutex<Vec<Range<u64>>>,
    flushes: AtomicU64,
    look: Mutex<Option<Look>>,
    free_bytes: Mutex<Option<u64>>,
}

impl Way {
    fn new(to: &Arc<SimDevice>) -> Arc<Self> {
        Arc::new(Self {
            to: Arc::clone(to),
            writes: Mutex::default(),
            flushes: AtomicU64::new(0),
            look: Mutex::default(),
            free_bytes: Mutex::default(),
        })
    }

    fn as_device(self: &Arc<Self>) -> Arc<dyn Device> {
        Arc::clone(self) as Arc<dyn Device>
    }

    /// What was written since the last call.
    fn written(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut *self.writes.lock())
    }
}

impl Device for Way {
    fn block_bytes(&self) -> u32 {
        self.to.block_bytes()
    }
    fn len_bytes(&self) -> u64 {
        self.to.len_bytes()
    }
    fn len_bytes_max(&self) -> u64 {
        self.to.len_bytes_max()
    }
    fn free_bytes(&self) -> Option<u64> {
        *self.free_bytes.lock()
    }
    fn grow(&self, len_bytes: u64) -> Result<()> {
        self.to.grow(len_bytes)
    }
    fn allocate(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.to.allocate(offset, len_bytes)
    }
    fn discard(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.to.discard(offset, len_bytes)
    }
    fn is_blank(&self, offset: u64, len_bytes: u64) -> bool {
        self.to.is_blank(offset, len_bytes)
    }
    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        self.to.read(reads)
    }
    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        for write in writes {
            let range = write.offset..write.offset + write.len_bytes();
            if let Some(look) = &*self.look.lock() {
                look(&range);
            }
            self.writes.lock().push(range);
        }
        self.to.write(writes)
    }
    fn flush(&self) -> Result<()> {
        self.flushes.fetch_add(1, Ordering::SeqCst);
        self.to.flush()
    }
    fn stats(&self) -> DeviceStats {
        self.to.stats()
    }
    fn read_queue(&self) -> Option<Box<dyn ReadQueue>> {
        self.to.read_queue()
    }
}

/// The other members: what they have, as a test says.
struct Members {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    landed: Lsn,
    durable: Lsn,
    /// Whether a sync makes durable what it is asked for.
    obliges: bool,
    has_failed: bool,
    asked: Vec<Lsn>,
}

impl Members {
    /// They have everything at once, until they are told otherwise.
    fn new() -> Arc<Self> {
        let state = State {
            landed: Lsn::MAX,
            durable: kreon_log::LOG_START,
            obliges: true,
            has_failed: false,
            asked: Vec::new(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    fn land(&self, engine: &Engine, lsn: Lsn) {
        self.state.lock().landed = lsn;
        engine.log_tap().landed();
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }

    fn wait_until_asked(&self, count: usize) {
        let mut state = self.state.lock();
        while state.asked.len() < count {
            self.changed.wait(&mut state);
        }
    }
}

impl LogMirror for Members {
    fn grown(&self) {}

    fn landed(&self) -> Lsn {
        self.state.lock().landed
    }

    fn sync(&self, upto: Lsn) -> Result<Lsn> {
        let mut state = self.state.lock();
        state.asked.push(upto);
        self.changed.notify_all();
        loop {
            if state.has_failed {
                return Err(Error::new(ErrorKind::Io, "the members are gone"));
            }
            if state.obliges {
                state.durable = state.durable.max(upto);
            }
            if state.durable >= upto {
                return Ok(state.durable);
            }
            self.changed.wait(&mut state);
        }
    }

    fn durable(&self) -> Lsn {
        self.state.lock().durable
    }
}

/// A primary over a device in memory.
struct Primary {
    device: Arc<SimDevice>,
    /// Of pages and all else, and of the log.
    main: Arc<Way>,
    log: Arc<Way>,
    members: Arc<Members>,
    engine: Engine,
}

impl Primary {
    fn open(image: Image, term: u64, options: Options) -> Result<Self> {
        let device = Arc::new(SimDevice::from_image(image, SimOptions::default()));
        let (main, log) = (Way::new(&device), Way::new(&device));
        let members = Members::new();
        members.change(|state| state.durable = Lsn::MAX);
        let mirroring = Mirroring {
            incarnation: Some(Incarnation(term)),
            log_device: Some(log.as_device()),
            log_mirror: Some(Arc::clone(&members) as Arc<dyn LogMirror>),
        };
        let options = Options {
            mirroring,
            ..options
        };
        let engine = Engine::open(main.as_device(), options)?;
        members.change(|state| state.durable = engine.log_durable());
        Ok(Self {
            device,
            main,
            log,
            members,
            engine,
        })
    }

    fn new() -> Self {
        Self::open(Image::default(), 1, options()).unwrap()
    }

    fn put(&self, region: &RegionState, key: &[u8], value: &[u8]) -> Lsn {
        self.engine.write_ahead(&[put(region, key, value)]).unwrap()
    }

    fn get(&self, region: &RegionState, key: &[u8]) -> Option<Vec<u8>> {
        self.engine.get(region, key, None, <[u8]>::to_vec).unwrap()
    }
}

fn put<'a>(region: &'a RegionState, key: &'a [u8], value: &'a [u8]) -> Operation<'a> {
    Operation {
        region,
        key,
        value: Some(value),
        is_range: false,
        terms: Terms::default(),
    }
}
