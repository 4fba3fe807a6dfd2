//! The member: a device that takes what the primary writes, and the mirror of its log.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use kreon_base::{Error, ErrorKind, Lsn, Result};
use kreon_device::{AlignedBuf, Device, DeviceStats, Read, Write};
use kreon_engine::{Engine, LogMirror, LogTap, Work};
use kreon_sim::{Dice, Keep, SimDevice, SimOptions};
use parking_lot::Mutex;

use super::{BESIDE, Writes};

/// Bytes that the member takes of the log at once.
const RUN_BYTES_MAX: u64 = 300 << 10;

/// How often a writer that waits is looked for.
const LOOK: Duration = Duration::from_micros(500);

pub(super) struct Follower {
    primary: Arc<SimDevice>,
    member: Arc<SimDevice>,
    /// Whoever ships holds it.
    state: Mutex<State>,
    /// Positions of the log that anybody may ask for at any time.
    known: Mutex<Known>,
    writes: Mutex<Writes>,
    attached: OnceLock<(Weak<Engine>, LogTap)>,
}

struct State {
    dice: Dice,
    /// Cuts while a flush is under way that are still to come.
    cuts: u64,
}

struct Known {
    landed: Lsn,
    durable: Lsn,
    /// Writes that were told to be durable.
    told: u64,
    failure: Option<String>,
    is_over: bool,
}

impl Follower {
    pub fn new(seed: u64) -> Arc<Self> {
        let device = || Arc::new(SimDevice::new(SimOptions::default()));
        Arc::new(Self {
            primary: device(),
            member: device(),
            state: Mutex::new(State {
                dice: Dice::new(seed),
                cuts: 5,
            }),
            known: Mutex::new(Known {
                landed: LOG_START,
                durable: LOG_START,
                told: 0,
                failure: None,
                is_over: false,
            }),
            writes: Mutex::default(),
            attached: OnceLock::new(),
        })
    }

    /// Takes the log of the primary only.
    pub fn primary_device(&self) -> Arc<dyn Device> {
        Arc::clone(&self.primary) as Arc<dyn Device>
    }

    /// Takes what both are to have.
    pub fn device(self: &Arc<Self>) -> Arc<dyn Device> {
        Arc::new(Both(Arc::clone(self)))
    }

    pub fn attach(&self, engine: &Arc<Engine>) {
        _ = self
            .attached
            .set((Arc::downgrade(engine), engine.log_tap()));
    }

    pub fn failure(&self) -> Option<String> {
        self.known.lock().failure.clone()
    }

    pub fn stop(&self) {
        self.known.lock().is_over = true;
    }

    /// The value of the next write.
    pub fn next_value(&self, key: u64, bytes: usize) -> Vec<u8> {
        self.writes.lock().next(key, bytes)
    }

    /// All writes so far were told to be durable.
    pub fn told_durable(&self) {
        let count = self.writes.lock().keys.len() as u64;
        self.known.lock().told = count;
    }

    /// Takes more of the log whenever the primary stands still and lacks it, until the end.
    pub fn relieve(&self) {
        let mut before = Lsn(0);
        while !self.known.lock().is_over {
            std::thread::sleep(LOOK);
            let Some((_, tap)) = self.attached.get() else {
                continue;
            };
            let tail = tap.tail().unwrap_or_default();
            if tail == before && self.landed() < tail {
                self.fails(self.take_some(tap, RUN_BYTES_MAX).map(drop));
            }
            before = tail;
        }
    }

    /// Takes the next bytes of the log; whether there were any.
    fn take_some(&self, tap: &LogTap, most: u64) -> Result<bool> {
        let state = self.state.lock();
        let mut end = self.landed();
        let mut outcome = Ok(());
        let is_there = tap.run(end, most as u32, |run| {
            end = run.end;
            outcome = write_unaligned(&self.member, run.offset.0, run.bytes);
        })?;
        outcome?;
        self.known.lock().landed = end;
        drop(state);
        tap.landed();
        Ok(is_there)
    }

    /// Takes all that the primary has committed.
    fn take_all(&self) -> Result<()> {
        let Some((_, tap)) = self.attached.get() else {
            return Ok(());
        };
        while self.take_some(tap, RUN_BYTES_MAX)? {}
        Ok(())
    }

    /// Keeps the first failure.
    fn fails(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.finds(error.to_string());
        }
    }

    fn finds(&self, what: String) {
        let mut known = self.known.lock();
        known.failure.get_or_insert(what);
    }

    /// The primary has flushed and waits, the member has taken the log and not flushed it. Others write meanwhile; then
    /// the power is cut.
    fn worst_moment(&self, engine: &Engine) -> Result<()> {
        let durable = self.durable();
        if engine.log_durable() > durable {
            self.finds("the log counts as durable before the member has flushed it".to_owned());
        }
        let (cuts, seed) = {
            let mut state = self.state.lock();
            state.cuts = state.cuts.saturating_sub(1);
            (state.cuts, state.dice.below(u64::MAX))
        };
        if cuts == 0 {
            return Ok(());
        }
        // Not this thread: it may hold locks.
        let cut = || self.cut_beside(engine, seed);
        let outcome = std::thread::scope(|scope| scope.spawn(cut).join());
        outcome.unwrap_or_else(|_| Err(Error::invalid("a writer died")))
    }

    /// Writes, has the member take that, and cuts its power.
    fn cut_beside(&self, engine: &Engine, seed: u64) -> Result<()> {
        write_beside(engine)?;
        self.take_all()?;
        let image = self
            .member
            .history()
            .crash()
            .image(&mut Keep::SomeSectors { seed });
        let told = self.known.lock().told;
        if let Err(what) = self.writes.lock().check(image, told) {
            self.finds(what);
        }
        Ok(())
    }

    fn sync_member(&self, upto: Lsn) -> Result<Lsn> {
        self.take_all()?;
        if let Some(engine) = self.attached.get().and_then(|(engine, _)| engine.upgrade()) {
            self.worst_moment(&engine)?;
        }
        while self.landed() < upto {
            self.take_all()?;
        }
        let landed = self.landed();
        self.member.flush()?;
        let mut known = self.known.lock();
        known.durable = known.durable.max(landed);
        match &known.failure {
            None => Ok(landed),
            Some(what) => Err(Error::new(ErrorKind::Io, what.clone())),
        }
    }
}

/// Writes, and has the log padded: the pad says how far that is durable.
fn write_beside(engine: &Engine) -> Result<()> {
    if let Ok(region) = engine.existing_region(BESIDE) {
        super::write(engine, &region, 0, b"value")?;
    }
    engine.background(Work::WriteOut)
}

/// Where a new log begins.
const LOG_START: Lsn = kreon_format::lsn_at(1, kreon_format::LOG_HEADER_BYTES);

/// Writes `bytes` that neither begin nor end at the border of a sector.
fn write_unaligned(device: &SimDevice, offset: u64, bytes: &[u8]) -> Result<()> {
    let block = u64::from(device.block_bytes());
    let (start, end) = (offset - offset % block, offset + bytes.len() as u64);
    let mut whole = AlignedBuf::new((end.next_multiple_of(block) - start) as usize);
    let front = (offset - start) as usize;
    let (before, behind) = whole.split_at_mut(front);
    if front > 0 {
        let mut sector = AlignedBuf::new(block as usize);
        device.read_at(start, &mut sector)?;
        before.copy_from_slice(sector.get(..front).unwrap_or_default());
    }
    let (filled, _) = behind.split_at_mut(bytes.len());
    filled.copy_from_slice(bytes);
    device.write_at(start, &whole)
}

impl LogMirror for Follower {
    fn grown(&self) {}

    fn landed(&self) -> Lsn {
        self.known.lock().landed
    }

    fn sync(&self, upto: Lsn) -> Result<Lsn> {
        self.sync_member(upto)
            .inspect_err(|error| self.finds(error.to_string()))
    }

    fn durable(&self) -> Lsn {
        self.known.lock().durable
    }
}

/// Writes to both devices; a flush is a barrier.
struct Both(Arc<Follower>);

impl Both {
    fn each(&self, call: impl Fn(&SimDevice) -> Result<()>) -> Result<()> {
        call(&self.0.primary)?;
        call(&self.0.member)
    }
}

impl Device for Both {
    fn block_bytes(&self) -> u32 {
        self.0.primary.block_bytes()
    }
    fn len_bytes(&self) -> u64 {
        self.0.primary.len_bytes()
    }
    fn len_bytes_max(&self) -> u64 {
        self.0.primary.len_bytes_max()
    }
    fn grow(&self, len_bytes: u64) -> Result<()> {
        self.each(|device| device.grow(len_bytes))
    }
    fn allocate(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.each(|device| device.allocate(offset, len_bytes))
    }
    fn discard(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.each(|device| device.discard(offset, len_bytes))
    }
    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        self.0.primary.read(reads)
    }
    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        self.each(|device| device.write(writes))
    }
    fn flush(&self) -> Result<()> {
        self.0.take_all()?;
        self.each(SimDevice::flush)
    }
    fn stats(&self) -> DeviceStats {
        self.0.primary.stats()
    }
}
