//! The clients of one opening, what they share, and what their calls saw.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

use kreon_base::ErrorKind;
use kreon_judge::{Call, Register, Seen, Version, value};
use kreon_sim::{Dice, SimDevice, SimOptions};

use super::engine::{Durability, Engine};

/// An engine that is shared by clients.
pub(crate) trait Shared: Engine {
    /// Openings in the life of a store.
    const SITTINGS: u64;

    /// All calls have one order, of which a power cut leaves a prefix. Otherwise those of each key.
    const HAS_ONE_ORDER: bool;

    /// Writers beside the clients; 0 without one order.
    const NEIGHBOURS: usize;

    /// In hundredths: changes that are buffered, by chance.
    const BUFFERED: [u64; 3];

    /// What all openings of a store have in common.
    type Manner;

    /// What a store is like.
    fn manner(dice: &mut Dice) -> Self::Manner;

    /// The device of an opening.
    fn device(manner: &Self::Manner, dice: &mut Dice) -> SimOptions;

    /// An opening; each is another.
    fn open(
        manner: &Self::Manner,
        device: &Arc<SimDevice>,
        dice: &mut Dice,
    ) -> kreon_base::Result<Self>;

    /// A call that other engines do not have.
    fn own_call(world: &World<'_, Self>, client: u32, dice: &mut Dice) -> Result<(), String>;

    /// What else is tried with each store.
    fn beside() -> Result<(), String> {
        Ok(())
    }
}

/// What the clients of an opening share.
pub(crate) struct World<'a, E> {
    /// The store.
    pub store: &'a E,
    /// Keys of the clients.
    pub keys: &'a [Vec<u8>],
    pub(super) value_bytes: u64,
    /// In hundredths: changes that are buffered.
    pub(super) buffered: u64,
    pub(super) moments: AtomicU64,
    pub(super) version: AtomicU64,
    pub(super) is_over: AtomicBool,
    pub(super) calls: Mutex<Vec<Call>>,
    /// Changes that each writer beside them has made.
    pub(super) done: Vec<AtomicU64>,
    pub(super) durable: Mutex<DurableMarks>,
}

/// What calls made durable.
#[derive(Clone, Debug, Default)]
pub(super) struct DurableMarks {
    /// When the last successful one began of those that make everything before durable.
    moment: u64,
    /// Changes that each writer had made by then.
    done: Vec<u64>,
}

/// What clients and writers have done when they are over.
pub(super) struct Done {
    pub calls: Vec<Call>,
    pub version: Version,
    /// For each writer, the fewest changes that must be there, and the most that can be.
    pub neighbours: Vec<(u64, u64)>,
}

impl<E: Shared> World<'_, E> {
    /// Takes everything down. What returned before the last sync is durable; all of it without a power cut.
    pub(super) fn done(self, has_power_cut: bool) -> Done {
        let marks = lock(&self.durable).clone();
        let mut calls = self.calls.into_inner().unwrap_or_else(|it| it.into_inner());
        for call in &mut calls {
            let is_before = call.returned.is_some_and(|end| end < marks.moment);
            let is_kept = is_before || !has_power_cut && call.returned.is_some();
            call.is_durable |= is_kept && !call.writes.is_empty();
        }
        let changes = |(number, done): (usize, &AtomicU64)| match done.load(SeqCst) {
            // One more may have been under way.
            done if has_power_cut => (marks.done.get(number).copied().unwrap_or(0), done + 1),
            done => (done, done),
        };
        Done {
            calls,
            version: self.version.load(SeqCst),
            neighbours: self.done.iter().enumerate().map(changes).collect(),
        }
    }

    fn now(&self) -> u64 {
        self.moments.fetch_add(1, SeqCst)
    }

    /// Calls of one client, until the power is gone.
    pub(super) fn client(&self, client: u32, seed: u64, count: u64) -> Result<(), String> {
        let mut dice = Dice::new(seed);
        for _ in 0..count {
            if self.is_over.load(SeqCst) {
                break;
            }
            match dice.below(30) {
                0 => self.sync()?,
                1..=3 => E::own_call(self, client, &mut dice)?,
                4..=16 => self.change(client, &mut dice)?,
                _ => self.get(client, &mut dice)?,
            }
        }
        Ok(())
    }

    /// A call that begins now.
    pub fn begin(&self, client: u32, what: &'static str) -> Call {
        let mut call = Call::read(what, self.now(), 0);
        (call.client, call.returned) = (client, None);
        call
    }

    /// The call returns now.
    pub fn end(&self, call: &mut Call) {
        call.returned = Some(self.now());
    }

    /// The call is judged.
    pub fn record(&self, call: Call) {
        lock(&self.calls).push(call);
    }

    /// A change of any key.
    pub fn change(&self, client: u32, dice: &mut Dice) -> Result<(), String> {
        let key = dice.below(self.keys.len() as u64);
        let bytes = &self.keys[key as usize];
        let durability = match dice.below(100) < self.buffered {
            true => Durability::Buffered,
            false => Durability::Sync,
        };
        let version = (dice.below(4) > 0).then(|| self.version.fetch_add(1, SeqCst));
        let len_bytes = value::HEAD_BYTES as u64 + dice.below(self.value_bytes);
        let value = version.map(|version| value::encode(version, len_bytes as usize));
        let what = if value.is_some() { "put" } else { "delete" };
        let mut call = self.begin(client, what);
        call.writes = vec![(key, version)];
        let change = || self.store.change(bytes, value.as_deref(), durability);
        let outcome = match durability {
            Durability::Sync if E::HAS_ONE_ORDER => self.makes_durable(change)?,
            _ => self.well(change())?,
        };
        if let Some(had_one) = outcome {
            self.end(&mut call);
            call.is_durable = durability == Durability::Sync;
            // It says whether the key had a value just before.
            call.reads.extend(had_one.map(|had_one| match had_one {
                true => (key, Seen::Present),
                false => (key, Seen::Absent),
            }));
        }
        // Without a return the change may be there or not.
        self.record(call);
        Ok(())
    }

    fn get(&self, client: u32, dice: &mut Dice) -> Result<(), String> {
        let key = dice.below(self.keys.len() as u64);
        let mut call = self.begin(client, "get");
        if let Some(found) = self.well(self.store.get(&self.keys[key as usize]))? {
            self.end(&mut call);
            call.reads = vec![(key, seen(found)?)];
            self.record(call);
        }
        Ok(())
    }

    /// Records that a call saw each of these by itself, at a moment of its own.
    pub fn record_each(&self, call: &Call, reads: impl IntoIterator<Item = (Register, Seen)>) {
        for read in reads {
            let mut one = call.clone();
            one.reads = vec![read];
            self.record(one);
        }
    }

    fn sync(&self) -> Result<(), String> {
        self.makes_durable(|| self.store.sync()).map(drop)
    }

    /// Does a call that makes everything durable that returned before. What it returned; nothing if it met the power cut.
    pub fn makes_durable<T>(
        &self,
        call: impl FnOnce() -> kreon_base::Result<T>,
    ) -> Result<Option<T>, String> {
        let done: Vec<u64> = self.done.iter().map(|done| done.load(SeqCst)).collect();
        let moment = self.now();
        let outcome = self.well(call())?;
        if outcome.is_some() {
            let mut marks = lock(&self.durable);
            marks.moment = marks.moment.max(moment);
            marks.done.resize(done.len(), 0);
            for (known, done) in marks.done.iter_mut().zip(done) {
                *known = done.max(*known);
            }
        }
        Ok(outcome)
    }

    /// What a call returned; nothing if it met the power cut.
    pub fn well<T>(&self, outcome: kreon_base::Result<T>) -> Result<Option<T>, String> {
        match outcome {
            Ok(found) => Ok(Some(found)),
            Err(error) if has_no_power(&error, &self.is_over) => Ok(None),
            Err(error) => Err(format!("a call failed: {error} ({:?})", error.kind())),
        }
    }
}

/// Whether the power cut explains an error.
pub(super) fn has_no_power(error: &kreon_base::Error, is_over: &AtomicBool) -> bool {
    is_over.load(SeqCst) && matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|it| it.into_inner())
}

/// What a read of a key saw.
pub(crate) fn seen(found: Option<Vec<u8>>) -> Result<Seen, String> {
    found.map_or(Ok(Seen::Absent), |found| {
        value::decode(&found).map(Seen::Version)
    })
}
