//! A backup on a simulated device.

use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind, Lsn, Result};
use kreon_device::Device;
use kreon_replica::follower::{Answer, Capacity, Follower};
use kreon_replica::mirror::{Carrier, Mirror};
use kreon_sim::{Dice, Image, SimDevice};
use kreon_wire::{
    Address, Frame, GrantBytes, GroupId, Kind, Member, ProcessId, Role, Room, ServerId, Term,
};
use parking_lot::Mutex;

/// The group of all tests.
pub const GROUP: GroupId = GroupId(3);

/// So much time passes from packet to packet: log is written after some of them.
const PACKET_TIME: Duration = Duration::from_millis(12);

/// What is not done yet is less than this, so that a primary always has credit.
const BACKLOG_BYTES: usize = 200 << 10;

/// The backup's memory and space.
pub fn capacity() -> Capacity {
    Capacity {
        space_bytes: 256 << 20,
        ..Capacity::default()
    }
}

/// What a primary may send before the first answer.
pub fn room() -> Room {
    room_of(capacity())
}

fn room_of(capacity: Capacity) -> Room {
    let Capacity {
        log_bytes,
        pages_bytes,
        space_bytes,
    } = capacity;
    Room {
        log: GrantBytes(log_bytes),
        pages: GrantBytes(pages_bytes),
        space: GrantBytes(space_bytes),
    }
}

/// The one member.
pub fn member() -> Member {
    Member {
        server: ServerId(2),
        process: ProcessId([7; 16]),
    }
}

/// How a backup works.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Its memory and space.
    pub capacity: Capacity,
    /// What is not done yet is less than this after each packet, in bytes.
    backlog_bytes: usize,
    /// Without a packet for so long it does the next piece of work; `None`: only packets make it work, so that everything
    /// follows from them and a seed.
    idle: Option<Duration>,
    /// When it dies, if it does.
    death: Option<Death>,
}

/// A moment in the middle of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    /// Kind of a packet.
    pub kind: Kind,
    /// It dies so many packets behind the first of that kind.
    pub behind: u64,
}

impl Pace {
    /// Of all that have no trouble.
    pub fn usual() -> Self {
        Self {
            capacity: capacity(),
            backlog_bytes: BACKLOG_BYTES,
            idle: None,
            death: None,
        }
    }

    /// With little memory, and no space for which the primary need not wait.
    pub fn slow() -> Self {
        Self {
            capacity: Capacity {
                log_bytes: 192 << 10,
                pages_bytes: 192 << 10,
                space_bytes: 0,
            },
            backlog_bytes: 96 << 10,
            idle: Some(Duration::from_millis(1)),
            death: None,
        }
    }

    /// The same until it dies.
    pub fn with(self, death: Option<Death>) -> Self {
        Self { death, ..self }
    }

    /// What a primary may send before the first answer.
    pub fn room(&self) -> Room {
        room_of(self.capacity)
    }
}

/// The backup right after it has received a packet.
#[derive(Clone)]
pub struct Moment {
    /// What it was.
    pub kind: Kind,
    /// Events of the primary's device when it was sent.
    pub sent_at: usize,
    /// The same at this moment: the primary goes on until it has to wait.
    pub primary_events: usize,
    /// Its memory.
    pub follower: Follower,
    /// What its file holds for those that read it.
    pub image: Image,
    /// Events of its device.
    pub events: usize,
}

/// A packet, and the events of the primary's device when it was sent.
type Sent = (Vec<u8>, usize);

/// The moments of a backup, or what it should not have done.
type Followed = Result<Vec<Moment>, String>;

/// A backup with a thread of its own: everything that it does follows from the packets and a seed.
pub struct Backup {
    /// Its file.
    pub device: Arc<SimDevice>,
    /// How many packets it has received.
    pub arrived: Arc<AtomicUsize>,
    /// How it works.
    pub pace: Pace,
    primary: Arc<SimDevice>,
    sender: Mutex<Option<Sender<Sent>>>,
    thread: Mutex<Option<JoinHandle<Followed>>>,
    mirror: Arc<OnceLock<Weak<Mirror>>>,
    life: Arc<Life>,
}

/// Who follows at the moment: another one, after a death.
pub type Current = Arc<Mutex<Arc<Backup>>>;

/// Whether a backup dies, or takes nothing for a while.
#[derive(Default)]
struct Life {
    is_mortal: AtomicBool,
    has_died: AtomicBool,
    is_stalled: AtomicBool,
}

impl Backup {
    /// A backup in `term` of a primary on `primary`, with durable log up to `log_durable`.
    pub fn start(
        (device, primary): (Arc<SimDevice>, Arc<SimDevice>),
        term: Term,
        log_durable: Lsn,
        seed: u64,
    ) -> Arc<Self> {
        let follower = Follower::new((GROUP, term), device.len_bytes(), log_durable, capacity());
        Self::with(follower, (device, primary), seed, Pace::usual())
    }

    /// A joiner in `term`, whose file has no superblock.
    pub fn join(
        devices: (Arc<SimDevice>, Arc<SimDevice>),
        term: Term,
        seed: u64,
        pace: Pace,
    ) -> Arc<Self> {
        let follower = Follower::joining((GROUP, term), devices.0.len_bytes(), pace.capacity);
        Self::with(follower, devices, seed, pace)
    }

    fn with(
        follower: Follower,
        (device, primary): (Arc<SimDevice>, Arc<SimDevice>),
        seed: u64,
        pace: Pace,
    ) -> Arc<Self> {
        let life = Arc::new(Life::default());
        life.is_mortal
            .store(pace.death.is_some(), Ordering::Release);
        let (sender, receiver) = channel();
        let mirror = Arc::new(OnceLock::new());
        let worker = Worker {
            follower,
            device: Arc::clone(&device),
            primary: Arc::clone(&primary),
            mirror: Arc::clone(&mirror),
            dice: Dice::new(seed ^ 0xbac0),
            now: Instant::now(),
            backlog_bytes: 0,
            moments: Vec::new(),
            arrived: Arc::default(),
            pace,
            dies_at: None,
            life: Arc::clone(&life),
        };
        let arrived = Arc::clone(&worker.arrived);
        let thread = std::thread::spawn(move || worker.run(&receiver));
        Arc::new(Self {
            device,
            arrived,
            pace,
            primary,
            sender: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
            mirror,
            life,
        })
    }

    /// It has died.
    pub fn has_died(&self) -> bool {
        self.life.has_died.load(Ordering::Acquire)
    }

    /// It does not die any more; whether it lives.
    pub fn survive(&self) -> bool {
        self.life.is_mortal.store(false, Ordering::Release);
        !self.has_died()
    }

    /// From now on it takes nothing and answers nothing, or does again.
    pub fn stall(&self, is_stalled: bool) {
        self.life.is_stalled.store(is_stalled, Ordering::Release);
    }

    /// Answers go to `mirror` from now on.
    pub fn answer_to(&self, mirror: &Arc<Mirror>) {
        let _ = self.mirror.set(Arc::downgrade(mirror));
    }

    /// Ends the stream; all moments, one for each packet.
    ///
    /// # Errors
    /// What it should not have received, or done.
    pub fn end(&self) -> Result<Vec<Moment>, String> {
        self.stall(false);
        drop(self.sender.lock().take());
        match self.thread.lock().take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => Err("the thread of a backup panicked".to_owned()),
            None => Err("a backup ended twice".to_owned()),
        }
    }
}

impl Carrier for Backup {
    fn carry(&self, parts: &[IoSlice<'_>]) -> Result<()> {
        let packet: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let sender = self.sender.lock();
        let sent = sender
            .as_ref()
            .map(|s| s.send((packet, self.primary.events())));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(Error::new(ErrorKind::Closed, "the backup is gone")),
        }
    }
}

struct Worker {
    follower: Follower,
    device: Arc<SimDevice>,
    primary: Arc<SimDevice>,
    mirror: Arc<OnceLock<Weak<Mirror>>>,
    dice: Dice,
    now: Instant,
    backlog_bytes: usize,
    moments: Vec<Moment>,
    arrived: Arc<AtomicUsize>,
    pace: Pace,
    /// How many packets it receives, once that is known.
    dies_at: Option<u64>,
    life: Arc<Life>,
}

impl Worker {
    fn run(mut self, packets: &Receiver<Sent>) -> Followed {
        loop {
            let received = match self.pace.idle {
                Some(idle) => packets.recv_timeout(idle),
                None => packets.recv().map_err(RecvTimeoutError::from),
            };
            while self.life.is_stalled.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_micros(100));
            }
            let outcome = match received {
                Ok((packet, sent_at)) => self.packet(&packet, sent_at),
                Err(RecvTimeoutError::Timeout) => self.work_on(),
                Err(RecvTimeoutError::Disconnected) => return Ok(self.moments),
            };
            if let Err(what) = outcome {
                // Calls of the primary that wait for this backup end.
                if let Some(mirror) = self.mirror.get().and_then(Weak::upgrade) {
                    mirror.close(&what);
                }
                return Err(what);
            }
            if self.dies() {
                return Ok(self.moments);
            }
        }
    }

    /// Nothing has arrived for a while.
    fn work_on(&mut self) -> Result<(), String> {
        self.now += PACKET_TIME;
        match self.step()? {
            true => self.answer(),
            false => Ok(()),
        }
    }

    /// Whether it dies now. Its primary learns so, and that the configuration does not have it.
    fn dies(&mut self) -> bool {
        let Some((death, last)) = self.pace.death.zip(self.moments.last()) else {
            return false;
        };
        let received = self.moments.len() as u64;
        if last.kind == death.kind {
            self.dies_at.get_or_insert(received + death.behind);
        }
        if self.dies_at.is_none_or(|at| received < at)
            || !self.life.is_mortal.swap(false, Ordering::AcqRel)
        {
            return false;
        }
        self.life.has_died.store(true, Ordering::Release);
        if let Some(mirror) = self.mirror.get().and_then(Weak::upgrade) {
            mirror.end(member(), Error::new(ErrorKind::Closed, "the joiner died"));
            mirror.remove(member());
        }
        true
    }

    fn packet(&mut self, packet: &[u8], sent_at: usize) -> Result<(), String> {
        let frame = Frame::open(packet, Role::PeerStream).map_err(|v| format!("frame: {v}"))?;
        let kind = frame.header().kind;
        self.now += PACKET_TIME;
        let taken = self.follower.take(&frame, self.now);
        taken.map_err(|violation| format!("a packet {kind:?}: {violation}"))?;
        self.backlog_bytes += packet.len();
        if self.dice.below(12) == 0 {
            // The primary gets ahead.
            std::thread::sleep(Duration::from_micros(300));
        }
        let steps = self.dice.below(4);
        for _ in 0..steps {
            self.step()?;
        }
        self.moments.push(Moment {
            kind,
            sent_at,
            primary_events: self.primary.events(),
            follower: self.follower.clone(),
            image: self.device.image(),
            events: self.device.events(),
        });
        self.arrived.store(self.moments.len(), Ordering::Release);
        let is_awaited = matches!(kind, Kind::Flush | Kind::Allocate);
        if is_awaited || self.backlog_bytes > self.pace.backlog_bytes || self.dice.below(6) == 0 {
            while self.step()? {}
            self.backlog_bytes = 0;
        }
        self.answer()
    }

    /// Whether there was something to do.
    fn step(&mut self) -> Result<bool, String> {
        step(&mut self.follower, &*self.device, self.now)
    }

    fn answer(&mut self) -> Result<(), String> {
        let Some(mirror) = self.mirror.get().and_then(Weak::upgrade) else {
            return Ok(());
        };
        let to = Address {
            group: GROUP,
            term: self.follower.term(),
            number: 0,
        };
        let mut answers = Vec::new();
        answers.extend(self.follower.refusal().map(Answer::NoSpace));
        answers.push(Answer::Progress(self.follower.progress()));
        for answer in answers.iter().filter_map(|answer| answer.encode(&to)) {
            let frame = Frame::open(&answer, Role::PeerStream);
            let frame = frame.map_err(|violation| format!("an answer: {violation}"))?;
            let admitted = mirror.admit(member(), &frame);
            admitted.map_err(|violation| format!("an answer: {violation}"))?;
        }
        Ok(())
    }
}

/// Does the next piece of work; whether there was one.
///
/// # Errors
/// What went wrong.
pub fn step(follower: &mut Follower, device: &dyn Device, now: Instant) -> Result<bool, String> {
    let work = follower.next(now);
    let Some(work) = work.map_err(|violation| format!("the stream: {violation}"))? else {
        return Ok(false);
    };
    let outcome = work.perform(device);
    let done = follower.done(outcome);
    done.map_err(|error| format!("the file of a backup: {error}"))?;
    Ok(true)
}
