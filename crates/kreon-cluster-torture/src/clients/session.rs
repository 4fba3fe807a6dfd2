//! One client: its number, its dice, and what it did and saw.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kreon_judge::{Call, Register, Seen, Version, value};
use kreon_sim::Dice;
use parking_lot::Mutex;

use super::face::{Pairs, Said, Store};
use super::keys::Keys;
use crate::clock::Clock;

/// What all clients of a run share.
pub struct Shared {
    /// What they work on.
    pub keys: Keys,
    /// Everybody ends after the call under way.
    pub stop: AtomicBool,
    /// The first thing that no client should have seen.
    pub wrong: Mutex<Option<String>>,
    time: Clock,
    clock: AtomicU64,
    versions: AtomicU64,
}

impl Shared {
    /// Of a run with this clock.
    pub fn new(keys: Keys, time: Clock) -> Self {
        Self {
            keys,
            stop: AtomicBool::new(false),
            wrong: Mutex::default(),
            time,
            clock: AtomicU64::new(1),
            versions: AtomicU64::new(1),
        }
    }

    /// A moment that nobody else has.
    pub fn moment(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// A version that no write has.
    pub fn version(&self) -> Version {
        self.versions.fetch_add(1, Ordering::Relaxed)
    }

    /// Microseconds since the run began.
    pub fn now_us(&self) -> u64 {
        self.time.now_us()
    }

    /// Whether everybody ends.
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Somebody saw what is impossible: everybody ends.
    pub fn fail(&self, text: String) {
        self.wrong.lock().get_or_insert(text);
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// An acknowledged write, for the figures.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Of which range.
    pub range: usize,
    /// When it was sent.
    pub begun_us: u64,
    /// When its answer came.
    pub ended_us: u64,
}

/// What a client did and saw.
#[derive(Default)]
pub struct Log {
    /// With their ranges.
    pub calls: Vec<(usize, Call)>,
    /// Writes that were acknowledged.
    pub acks: Vec<Ack>,
    /// Calls that were refused, and whose outcome is unknown.
    pub refused: u64,
    /// Writes whose outcome is unknown.
    pub unknown: u64,
    /// Snapshots that ended with their primaries.
    pub closed: u64,
}

impl Log {
    /// Takes over what another client did.
    pub fn add(&mut self, other: Self) {
        self.calls.extend(other.calls);
        self.acks.extend(other.acks);
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.closed += other.closed;
    }
}

/// See the module's text.
pub struct Session<'a> {
    /// What all share.
    pub shared: &'a Shared,
    /// Which client it is.
    pub number: u32,
    /// Its choices.
    pub dice: Dice,
    /// What it did.
    pub log: Log,
}

impl<'a> Session<'a> {
    /// A client that did nothing yet.
    pub fn new(shared: &'a Shared, number: u32, seed: u64) -> Self {
        Self {
            shared,
            number,
            dice: Dice::new(seed),
            log: Log::default(),
        }
    }

    /// A call begins now. Comes before anything is sent.
    pub fn begin(&self, what: &'static str) -> Call {
        let mut call = Call::read(what, self.shared.moment(), 0);
        call.client = self.number;
        call.returned = None;
        call
    }

    /// It was carried out.
    pub fn done(&mut self, range: usize, mut call: Call) {
        call.returned = Some(self.shared.moment());
        self.log.calls.push((range, call));
    }

    /// It failed.
    pub fn failed(&mut self, range: usize, call: Call, said: Said) {
        match said {
            Said::Refused(_) => self.log.refused += 1,
            Said::Closed => self.log.closed += 1,
            Said::Unknown(_) if call.writes.is_empty() => self.log.refused += 1,
            Said::Unknown(_) => {
                self.log.unknown += 1;
                self.log.calls.push((range, call));
            }
            Said::Wrong(text) => self
                .shared
                .fail(format!("{} of client {}: {text}", call.what, self.number)),
        }
    }

    /// What a value says, or nothing.
    pub fn seen(&self, key: &[u8], value: Option<&[u8]>) -> Option<Seen> {
        match value.map(value::decode) {
            None => Some(Seen::Absent),
            Some(Ok(version)) => Some(Seen::Version(version)),
            Some(Err(text)) => {
                let text = format!("key {} shows {text}", key.escape_ascii());
                self.shared.fail(text);
                None
            }
        }
    }

    /// What a scan of the keys from the number `low` up to `high` says of each.
    pub fn scanned(
        &self,
        range: usize,
        (low, high): (usize, usize),
        is_reverse: bool,
        mut pairs: Pairs,
    ) -> Vec<(Register, Seen)> {
        if is_reverse {
            pairs.reverse();
        }
        if pairs.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            self.shared.fail("a scan shows keys out of order".into());
        }
        let mut reads: Vec<_> = (low..high).map(|key| (key as u64, Seen::Absent)).collect();
        for (key, value) in &pairs {
            let register = self.shared.keys.register(range, key);
            let slot = register.and_then(|register| (register as usize).checked_sub(low));
            let slot = slot.and_then(|slot| reads.get_mut(slot));
            match (slot, self.seen(key, Some(value))) {
                (Some(slot), Some(seen)) => slot.1 = seen,
                (None, _) => {
                    let text = format!("a scan shows a strange key: {}", key.escape_ascii());
                    self.shared.fail(text);
                }
                (Some(_), None) => {}
            }
        }
        reads
    }

    /// Reads a whole range, as a call of its history.
    ///
    /// # Errors
    /// See [`Said`]; nothing was recorded then.
    pub fn read_all(&mut self, store: &mut dyn Store, range: usize) -> Result<Call, Said> {
        let keys = self.shared.keys;
        let mut call = self.begin("everything at the end");
        let (start, end) = (keys.bound(range, 0), keys.bound(range, keys.each));
        let pairs = store.scan(&start, &end, false)?;
        call.reads = self.scanned(range, (0, keys.each), false, pairs);
        call.returned = Some(self.shared.moment());
        Ok(call)
    }
}
