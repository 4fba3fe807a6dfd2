//! An open store, and what it must hold.

use ::tucana::{Error, ErrorKind, StoreSnapshot};
use kreon_judge::Version;
use kreon_sim::{Call, Dice, SimDevice};

use super::compare::{Wrong, contents, difference, direction, range, scanned};
use super::model::{Journal, Pairs, Written};
use super::open_scan::OpenScan;
use super::pattern::Pattern;
use super::setting::Setting;
use super::store::Tucana;
use crate::engines::{Durability, Engine};

/// Most snapshots and scans at a time.
const KEPT_MAX: usize = 3;

pub(super) struct Session<'a> {
    store: &'a Tucana,
    device: &'a SimDevice,
    setting: &'a Setting,
    pairs: Pairs,
    journal: Journal,
    /// The last one that was written.
    version: Version,
    scans: Vec<OpenScan>,
    /// With what the store held then.
    snapshots: Vec<(StoreSnapshot, Pairs)>,
}

/// Events and flushes of the device.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    events: usize,
    flushes: u64,
}

impl Moment {
    pub fn of(device: &SimDevice) -> Self {
        Self {
            events: device.events(),
            flushes: device.calls(Call::Flush),
        }
    }

    fn has_flushed(self, device: &SimDevice) -> bool {
        Self::of(device).flushes > self.flushes
    }

    /// Notes what was made durable since, if the device was flushed.
    pub fn note(self, device: &SimDevice, is_done: bool, journal: &mut Journal) {
        if self.has_flushed(device) {
            let now = Self::of(device);
            journal.commit(self.events, is_done.then_some(now.events));
        }
    }
}

/// Whether a failing device or a full volume explains an error.
pub(super) fn excused(
    what: &str,
    error: &Error,
    device: &SimDevice,
    setting: &Setting,
) -> Result<(), Wrong> {
    let is_full = matches!(error.kind(), ErrorKind::OutOfSpace | ErrorKind::Poisoned);
    let has_failed = device.faults_met() > 0 && (is_full || error.kind() == ErrorKind::Io);
    match has_failed || is_full && setting.may_be_full() {
        true => Ok(()),
        false => Err(format!("{what} failed: {error} ({:?})", error.kind())),
    }
}

impl<'a> Session<'a> {
    /// A store that was just opened and must hold `pairs`.
    pub fn new(
        store: &'a Tucana,
        device: &'a SimDevice,
        setting: &'a Setting,
        (pairs, version): (Pairs, Version),
    ) -> Self {
        Self {
            store,
            device,
            setting,
            journal: Journal::new(setting.recovery, pairs.clone()),
            pairs,
            version,
            scans: Vec::new(),
            snapshots: Vec::new(),
        }
    }

    /// Does something.
    pub fn step(&mut self, dice: &mut Dice, pattern: &mut Pattern) -> Result<(), Wrong> {
        let die = dice.below(1000);
        if die < self.setting.commits {
            return match dice.below(2) {
                0 => self.commit(),
                _ => self.sync(),
            };
        }
        match dice.below(1000) {
            0 | 1 => self.verify(),
            2..30 => self.snapshot(dice),
            30..90 => self.scan_beside_changes(dice),
            90..120 => self.scan(dice),
            120..220 => {
                let key = pattern.key(dice, self.setting.keys.len());
                self.get(key)
            }
            _ => {
                let key = pattern.key(dice, self.setting.keys.len());
                let len_bytes = (!pattern.deletes(dice)).then(|| self.setting.len_bytes(dice));
                let how = match dice.below(1000) < self.setting.syncs {
                    true => Durability::Sync,
                    false => Durability::Buffered,
                };
                self.change(key, len_bytes, how)
            }
        }
    }

    /// Puts all keys, in their order or by chance.
    pub fn fill(&mut self, dice: &mut Dice) -> Result<(), Wrong> {
        let count = self.setting.keys.len();
        let is_in_order = dice.below(2) == 0;
        for number in 0..count {
            let key = match is_in_order {
                true => number,
                false => dice.below(count as u64) as usize,
            };
            let len_bytes = self.setting.len_bytes(dice).min(300);
            self.change(key, Some(len_bytes), Durability::Buffered)?;
        }
        Ok(())
    }

    /// Gives a key a value of so many bytes, or deletes it.
    fn change(
        &mut self,
        key: usize,
        len_bytes: Option<usize>,
        how: Durability,
    ) -> Result<(), Wrong> {
        self.version += 1;
        let written = len_bytes.map(|len_bytes| Written::new(self.version, len_bytes));
        let (begin, bytes) = (Moment::of(self.device), &self.setting.keys[key]);
        let value = written.map(|written| written.bytes());
        let outcome = self.store.change(bytes, value.as_deref(), how);
        // A change that finds no frames commits all those before it.
        begin.note(self.device, outcome.is_ok(), &mut self.journal);
        match outcome {
            Ok(had_one) if had_one != Some(self.pairs[key].is_some()) => {
                let known = self.pairs[key];
                Err(format!(
                    "a change of key {key} says {had_one:?}, it has {known:?}"
                ))
            }
            Ok(_) => {
                self.changed(key, written, begin);
                if how == Durability::Sync {
                    begin.note(self.device, true, &mut self.journal);
                }
                Ok(())
            }
            Err(error) => {
                self.excused("a change", &error)?;
                self.refused(key, written, (begin, how, &error))
            }
        }
    }

    fn changed(&mut self, key: usize, written: Option<Written>, begin: Moment) {
        self.pairs[key] = written;
        self.journal.change(key, written, begin.events);
        for scan in &mut self.scans {
            scan.was_changed(key);
        }
    }

    /// Nothing has changed: a get of the key tells. But a durable change may be there, and just not be durable.
    fn refused(
        &mut self,
        key: usize,
        written: Option<Written>,
        (begin, how, error): (Moment, Durability, &Error),
    ) -> Result<(), Wrong> {
        let is_full = error.kind() == ErrorKind::OutOfSpace;
        if how == Durability::Sync && !is_full {
            let found = self.store.get(&self.setting.keys[key]).ok();
            if found.is_some_and(|found| found == written.map(|written| written.bytes())) {
                self.changed(key, written, begin);
                begin.note(self.device, false, &mut self.journal);
                return Ok(());
            }
        }
        if !is_full || begin.has_flushed(self.device) {
            let known = self.pairs[key];
            self.journal.refused(key, (written, known), begin.events);
        }
        self.get(key)
    }

    pub fn commit(&mut self) -> Result<(), Wrong> {
        let begin = Moment::of(self.device);
        let outcome = self.store.store.commit();
        begin.note(self.device, outcome.is_ok(), &mut self.journal);
        outcome.or_else(|error| self.excused("a commit", &error))
    }

    fn sync(&mut self) -> Result<(), Wrong> {
        let begin = Moment::of(self.device);
        let outcome = self.store.sync();
        begin.note(self.device, outcome.is_ok(), &mut self.journal);
        outcome.or_else(|error| self.excused("a sync", &error))
    }

    pub fn verify(&mut self) -> Result<(), Wrong> {
        let begin = Moment::of(self.device);
        let outcome = self.store.store.verify();
        begin.note(self.device, outcome.is_ok(), &mut self.journal);
        let keys = self.pairs.iter().flatten().count() as u64;
        match outcome {
            Ok(found) if found.keys == keys => Ok(()),
            Ok(found) => Err(format!(
                "a verification finds {} keys, not {keys}",
                found.keys
            )),
            Err(error) => self.excused("a verification", &error),
        }
    }

    fn get(&self, key: usize) -> Result<(), Wrong> {
        let wanted = self.pairs[key];
        match self.store.get(&self.setting.keys[key]) {
            Ok(found) if found == wanted.map(|written| written.bytes()) => Ok(()),
            Ok(found) => {
                let found = found.map(|value| Written::of(&value));
                Err(format!(
                    "a get of key {key} shows {found:?}, not {wanted:?}"
                ))
            }
            Err(error) => self.excused("a get", &error),
        }
    }

    fn scan(&self, dice: &mut Dice) -> Result<(), Wrong> {
        let keys = &self.setting.keys;
        let ((range, numbers), direction) = (range(dice, keys), direction(dice));
        let found = self.store.scan(&range, direction);
        let outcome = scanned(found, keys, (&self.pairs, numbers), direction);
        self.judged("a scan", outcome)
    }

    /// Compares all that the store holds, in both orders.
    pub fn compare_all(&self, dice: &mut Dice) -> Result<(), Wrong> {
        match contents(self.store, &self.setting.keys) {
            Ok(found) => {
                let found = found?;
                if found != self.pairs {
                    return Err(difference(&found, &self.pairs));
                }
            }
            Err(error) => return self.excused("a scan of all", &error),
        }
        self.get(dice.below(self.pairs.len() as u64) as usize)?;
        self.scan(dice)
    }

    /// Begins a scan, or goes on with one by some pairs.
    fn scan_beside_changes(&mut self, dice: &mut Dice) -> Result<(), Wrong> {
        let keys = &self.setting.keys;
        if self.scans.len() < KEPT_MAX && dice.below(3) == 0 {
            let ((range, numbers), direction) = (range(dice, keys), direction(dice));
            let scan = self.store.scan(&range, direction);
            self.scans.push(OpenScan::new(scan, direction, numbers));
            return Ok(());
        }
        let Some(mut scan) = self.scans.pop() else {
            return Ok(());
        };
        for _ in 0..1 + dice.below(300) {
            match scan.step(keys, &self.pairs) {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => return Ok(()),
                Ok(Err(what)) => return Err(what),
                Err(error) => return self.excused("a scan beside changes", &error),
            }
        }
        self.scans.insert(0, scan);
        Ok(())
    }

    /// Takes a snapshot, looks at one, or drops one after a last look.
    fn snapshot(&mut self, dice: &mut Dice) -> Result<(), Wrong> {
        // Some stay for so many commits that pages which they reach would be used again.
        let die = dice.below(8);
        if self.snapshots.is_empty() || die > 4 && self.snapshots.len() < KEPT_MAX {
            let pairs = self.pairs.clone();
            return match self.store.store.snapshot() {
                Ok(snapshot) => {
                    self.snapshots.push((snapshot, pairs));
                    Ok(())
                }
                Err(error) => self.excused("a snapshot", &error),
            };
        }
        let number = dice.below(self.snapshots.len() as u64) as usize;
        self.look(number, dice)?;
        if die == 0 {
            self.snapshots.swap_remove(number);
        }
        Ok(())
    }

    fn look(&self, number: usize, dice: &mut Dice) -> Result<(), Wrong> {
        let (keys, (snapshot, pairs)) = (&self.setting.keys, &self.snapshots[number]);
        let key = dice.below(keys.len() as u64) as usize;
        match self.store.get_in(snapshot, &keys[key]) {
            Ok(found) if found == pairs[key].map(|written| written.bytes()) => {}
            Ok(found) => {
                let found = found.map(|value| Written::of(&value));
                let wanted = pairs[key];
                return Err(format!(
                    "a get of key {key} in a snapshot shows {found:?}, not {wanted:?}"
                ));
            }
            Err(error) => self.excused("a get in a snapshot", &error)?,
        }
        let ((range, numbers), direction) = (range(dice, keys), direction(dice));
        let found = self.store.scan_in(snapshot, &range, direction);
        let outcome = scanned(found, keys, (pairs, numbers), direction);
        self.judged("a scan of a snapshot", outcome)
    }

    /// Looks at the snapshots that are left, and lets go of the store. Its journal, what it holds, and the last version.
    pub fn end(self, dice: &mut Dice) -> Result<(Journal, Pairs, Version), Wrong> {
        (0..self.snapshots.len()).try_for_each(|number| self.look(number, dice))?;
        Ok((self.journal, self.pairs, self.version))
    }

    fn judged(
        &self,
        what: &str,
        outcome: ::tucana::Result<Result<(), Wrong>>,
    ) -> Result<(), Wrong> {
        outcome.unwrap_or_else(|error| self.excused(what, &error))
    }

    fn excused(&self, what: &str, error: &Error) -> Result<(), Wrong> {
        excused(what, error, self.device, self.setting)
    }
}
