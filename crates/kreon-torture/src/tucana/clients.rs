//! The clients of one opening, what they share, and what their calls saw.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use ::tucana::{Direction, ScanRange, Store};
use kreon_judge::{Call, Register, Seen, Version, value};
use kreon_sim::Dice;

use super::neighbours::has_no_power;

/// Writers beside the clients.
pub(super) const NEIGHBOURS: usize = 2;

/// What the clients of an opening share.
pub(super) struct World<'a> {
    pub store: &'a Store,
    pub keys: &'a [Vec<u8>],
    pub value_bytes: u64,
    pub moments: AtomicU64,
    pub version: AtomicU64,
    pub is_over: AtomicBool,
    pub calls: Mutex<Vec<Call>>,
    /// Changes that each writer has made.
    pub done: [AtomicU64; NEIGHBOURS],
    pub durable: Mutex<DurableMarks>,
}

/// What commits made durable.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DurableMarks {
    /// When the last successful commit began.
    pub moment: u64,
    /// Changes that each writer had made by then.
    pub done: [u64; NEIGHBOURS],
}

/// What clients and writers have done when they are over.
pub(super) struct Done {
    pub calls: Vec<Call>,
    pub version: Version,
    /// For each writer, the fewest changes that must be there, and the most that can be.
    pub neighbours: Vec<(u64, u64)>,
}

impl World<'_> {
    /// Takes everything down. What returned before the last commit is durable; all of it without a power cut.
    pub fn done(self, has_power_cut: bool) -> Done {
        let marks = *lock(&self.durable);
        let mut calls = self.calls.into_inner().unwrap_or_else(|it| it.into_inner());
        for call in &mut calls {
            let is_before = call.returned.is_some_and(|end| end < marks.moment);
            let is_kept = is_before || !has_power_cut && call.returned.is_some();
            call.is_durable = is_kept && !call.writes.is_empty();
        }
        let changes = |(done, least): (&AtomicU64, u64)| match done.load(SeqCst) {
            // One more may have been under way.
            done if has_power_cut => (least, done + 1),
            done => (done, done),
        };
        Done {
            calls,
            version: self.version.load(SeqCst),
            neighbours: self.done.iter().zip(marks.done).map(changes).collect(),
        }
    }

    fn now(&self) -> u64 {
        self.moments.fetch_add(1, SeqCst)
    }

    /// Calls of one client, until the power is gone.
    pub fn client(&self, client: u32, seed: u64, count: u64) -> Result<(), String> {
        let mut dice = Dice::new(seed);
        for _ in 0..count {
            if self.is_over.load(SeqCst) {
                break;
            }
            match dice.below(30) {
                0 => self.commit()?,
                1 => self.snapshot(client, &mut dice)?,
                2 | 3 => self.scan(client, &mut dice)?,
                4 if dice.below(8) == 0 => self.verify()?,
                5..18 => self.change(client, &mut dice)?,
                _ => self.get(client, &mut dice)?,
            }
        }
        Ok(())
    }

    fn begin(&self, client: u32, what: &'static str) -> Call {
        let mut call = Call::read(what, self.now(), 0);
        (call.client, call.returned) = (client, None);
        call
    }

    fn change(&self, client: u32, dice: &mut Dice) -> Result<(), String> {
        let key = dice.below(self.keys.len() as u64);
        let bytes = &self.keys[key as usize];
        let version = (dice.below(4) > 0).then(|| self.version.fetch_add(1, SeqCst));
        let len_bytes = value::HEAD_BYTES as u64 + dice.below(self.value_bytes);
        let value = version.map(|version| value::encode(version, len_bytes as usize));
        let what = if value.is_some() { "put" } else { "delete" };
        let mut call = self.begin(client, what);
        call.writes = vec![(key, version)];
        let outcome = match value {
            Some(value) => self.store.put(bytes, &value),
            None => self.store.delete(bytes),
        };
        if let Some(had_one) = self.well(outcome)? {
            call.returned = Some(self.now());
            // It says whether the key had a value just before.
            let before = match had_one {
                true => Seen::Present,
                false => Seen::Absent,
            };
            call.reads = vec![(key, before)];
        }
        // Without a return the change may be there or not.
        lock(&self.calls).push(call);
        Ok(())
    }

    fn get(&self, client: u32, dice: &mut Dice) -> Result<(), String> {
        let key = dice.below(self.keys.len() as u64);
        let mut call = self.begin(client, "get");
        if let Some(found) = self.well(self.store.get(&self.keys[key as usize]))? {
            call.returned = Some(self.now());
            call.reads = vec![(key, seen(found)?)];
            lock(&self.calls).push(call);
        }
        Ok(())
    }

    /// A scan shows each key at a moment of its own.
    fn scan(&self, client: u32, dice: &mut Dice) -> Result<(), String> {
        let first = dice.below(self.keys.len() as u64) as usize;
        let end = (first + 1 + dice.below(3) as usize).min(self.keys.len());
        let range = ScanRange {
            low: self.keys[first].clone(),
            high: self.keys.get(end).cloned(),
        };
        let direction = match dice.below(2) {
            0 => Direction::Forward,
            _ => Direction::Reverse,
        };
        let mut call = self.begin(client, "scan");
        let found = self
            .store
            .scan(range, direction)
            .collect::<Result<Vec<_>, _>>();
        let Some(found) = self.well(found)? else {
            return Ok(());
        };
        call.returned = Some(self.now());
        let is_next = |pair: &[(Vec<u8>, Vec<u8>)]| match direction {
            Direction::Forward => pair[0].0 < pair[1].0,
            Direction::Reverse => pair[0].0 > pair[1].0,
        };
        if !found.windows(2).all(is_next) {
            return Err(format!("a {direction:?} scan is not in order"));
        }
        let found: BTreeMap<_, _> = found.into_iter().collect();
        for key in first..end {
            let shown = seen(found.get(&self.keys[key]).cloned())?;
            let mut one = call.clone();
            one.reads = vec![(key as Register, shown)];
            lock(&self.calls).push(one);
        }
        Ok(())
    }

    /// A snapshot, which shows one moment, however late it is read.
    fn snapshot(&self, client: u32, dice: &mut Dice) -> Result<(), String> {
        let mut call = self.begin(client, "snapshot");
        let snapshot = self.store.snapshot();
        call.returned = Some(self.now());
        for _ in 0..dice.below(12) {
            match dice.below(6) {
                0 => self.commit()?,
                1 => std::thread::sleep(Duration::from_micros(dice.below(2000))),
                _ => self.change(client, dice)?,
            }
        }
        for (key, bytes) in (0..).zip(self.keys) {
            let Some(found) = self.well(snapshot.get(bytes))? else {
                return Ok(());
            };
            call.reads.push((key, seen(found)?));
        }
        let all = snapshot.scan(ScanRange::default(), Direction::Forward);
        let all: ::tucana::Result<BTreeMap<_, _>> = all.collect();
        let Some(all) = self.well(all)? else {
            return Ok(());
        };
        for (key, known) in &call.reads {
            let bytes = &self.keys[*key as usize];
            if seen(all.get(bytes).cloned())? != *known {
                return Err("a scan of a snapshot shows another value than a get".into());
            }
        }
        lock(&self.calls).push(call);
        Ok(())
    }

    fn commit(&self) -> Result<(), String> {
        self.makes_durable(|| self.store.commit())
    }

    fn verify(&self) -> Result<(), String> {
        self.makes_durable(|| self.store.verify().map(drop))
    }

    fn makes_durable(&self, commit: impl FnOnce() -> ::tucana::Result<()>) -> Result<(), String> {
        let done = self.done.each_ref().map(|done| done.load(SeqCst));
        let moment = self.now();
        if self.well(commit())?.is_some() {
            let mut marks = lock(&self.durable);
            marks.moment = marks.moment.max(moment);
            for (known, done) in marks.done.iter_mut().zip(done) {
                *known = done.max(*known);
            }
        }
        Ok(())
    }

    /// What a call returned; nothing if it met the power cut.
    fn well<T>(&self, outcome: ::tucana::Result<T>) -> Result<Option<T>, String> {
        match outcome {
            Ok(found) => Ok(Some(found)),
            Err(error) if has_no_power(&error, &self.is_over) => Ok(None),
            Err(error) => Err(format!("a call failed: {error} ({:?})", error.kind())),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|it| it.into_inner())
}

fn seen(found: Option<Vec<u8>>) -> Result<Seen, String> {
    found.map_or(Ok(Seen::Absent), |found| {
        value::decode(&found).map(Seen::Version)
    })
}
