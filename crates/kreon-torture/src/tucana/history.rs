//! Concurrent clients of stores of Tucana. What they saw must have one order, what a snapshot shows is one moment of it, and what
//! a power cut leaves is the state after a part of it, with everything that was returned before a commit began.
//!
//! Beside them writers fill leaves and empty them again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use ::tucana::{Direction, ScanRange, Store};
use kreon_device::Device;
use kreon_judge::{Call, History, Register, Seen, State, Verdict, Version, judge, value};
use kreon_sim::{Dice, Image, Keep, SimDevice, SimOptions};

use super::log_order;
use super::neighbours::{Course, Held, KEYS, Neighbour, has_no_power};
use super::setting::options;
use crate::Counts;
use crate::seeds::judged;
use crate::watchdog::{Watchdog, without_panic};

/// Openings in the life of a store.
const SITTINGS: u64 = 3;

/// Keys that several threads write at once.
const RACED: u64 = 150;

/// Writers beside the clients.
const NEIGHBOURS: usize = 2;

/// Runs lives of stores from `seed` on for `time`. A failure does not end it.
pub fn history(time: Duration, seed: u64) -> Counts {
    let started = Instant::now();
    let watchdog = Watchdog::start();
    let mut counts = Counts::default();
    for seed in seed.. {
        if started.elapsed() >= time {
            break;
        }
        watchdog.begin(format!("tucana history --seed {seed}"));
        match without_panic(|| Ok(life(seed))) {
            Ok(tried) => counts.add(tried),
            Err(what) => counts.fail(format!("tucana history: {what} with seed {seed}")),
        }
    }
    counts.elapsed = started.elapsed();
    counts
}

/// One store, opened some times.
pub fn life(seed: u64) -> Counts {
    let mut life = Life::new(seed);
    let mut beside = Counts::default();
    let outcome = (0..SITTINGS).try_for_each(|_| life.sitting(&mut beside));
    let mut counts = judged(("tucana history", "stores"), seed, Ok(outcome));
    counts.add(beside);
    counts
}

/// A store between two openings.
struct Life {
    dice: Dice,
    image: Image,
    memory_bytes: usize,
    value_bytes: u64,
    /// What a write of the device takes: others come between the steps of a commit.
    write_time: Duration,
    /// Keys of the clients.
    keys: Vec<Vec<u8>>,
    /// What they hold.
    state: State,
    version: Version,
    neighbours: Vec<Course>,
    /// Keys of each writer.
    neighbour_keys: Vec<Vec<Vec<u8>>>,
    /// Keys that several threads write at once.
    raced_keys: Vec<Vec<u8>>,
    /// The power was cut once.
    had_cut: bool,
}

/// What the clients of an opening share.
struct World<'a> {
    store: &'a Store,
    keys: &'a [Vec<u8>],
    value_bytes: u64,
    moments: AtomicU64,
    version: AtomicU64,
    is_over: AtomicBool,
    calls: Mutex<Vec<Call>>,
    /// Changes that each writer has made.
    done: [AtomicU64; NEIGHBOURS],
    durable: Mutex<DurableMarks>,
}

/// What commits made durable.
#[derive(Clone, Copy, Debug, Default)]
struct DurableMarks {
    /// When the last successful commit began.
    moment: u64,
    /// Changes that each writer had made by then.
    done: [u64; NEIGHBOURS],
}

/// What clients and writers have done when they are over.
struct Done {
    calls: Vec<Call>,
    version: Version,
    /// For each writer, the fewest changes that must be there, and the most that can be.
    neighbours: Vec<(u64, u64)>,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let count = 3 + dice.below(6);
        let prefix = vec![b'p'; [0, 12, 500][dice.below(3) as usize]];
        // The last byte says whose key it is: all of them are neighbours.
        let key = |number: u64, owner: u8| {
            let number = (number as u32).to_be_bytes();
            [&prefix[..], &number, &[owner]].concat()
        };
        let of_neighbour = |owner| (0..KEYS).map(|number| key(number, owner)).collect();
        let course = |owner: u64| Course {
            seed: seed.rotate_left(8) ^ owner,
            version: 0,
            held: vec![None; KEYS as usize],
        };
        Self {
            keys: (0..count).map(|it| key(it * KEYS / count, 100)).collect(),
            raced_keys: (0..RACED).map(|it| key(it * KEYS / RACED, 101)).collect(),
            neighbour_keys: (0..NEIGHBOURS as u8).map(of_neighbour).collect(),
            neighbours: (0..NEIGHBOURS as u64).map(course).collect(),
            image: Image::default(),
            memory_bytes: [512 << 10, 512 << 10, 4 << 20][dice.below(3) as usize],
            value_bytes: [40, 400, 9000][dice.below(3) as usize],
            write_time: Duration::from_micros([0, 0, 60, 400][dice.below(4) as usize]),
            state: State::new(),
            version: 1,
            had_cut: false,
            dice,
        }
    }

    /// Opens the store, has clients use it, ends it, and judges what they saw and what is found then.
    fn sitting(&mut self, counts: &mut Counts) -> Result<(), String> {
        let device = self.device();
        let store = self.open(&device)?;
        let has_power_cut = self.dice.below(2) == 0;
        self.had_cut |= has_power_cut;
        let done = self.use_store(&store, has_power_cut.then_some(&*device))?;
        self.version = done.version;
        // It makes many commits.
        if !self.had_cut && self.write_time.is_zero() {
            self.version = log_order::race(&store, &self.raced_keys, self.version)?;
        }
        self.end(&device, store, has_power_cut)?;
        counts.count(if has_power_cut {
            "power cuts"
        } else {
            "closes"
        });
        (0..done.calls.len()).for_each(|_| counts.note("calls"));
        self.judge(done, counts)
    }

    fn device(&self) -> Arc<SimDevice> {
        let options = SimOptions {
            write_time: self.write_time,
            ..SimOptions::default()
        };
        Arc::new(SimDevice::from_image(self.image.clone(), options))
    }

    fn open(&self, device: &Arc<SimDevice>) -> Result<Store, String> {
        let options = options(self.memory_bytes, 1 << 30);
        let store = Store::open(Arc::clone(device) as Arc<dyn Device>, &options);
        store.map_err(|error| format!("an opening: {error}"))
    }

    fn use_store(&mut self, store: &Store, cut: Option<&SimDevice>) -> Result<Done, String> {
        let world = World {
            store,
            keys: &self.keys,
            value_bytes: self.value_bytes,
            moments: AtomicU64::new(1),
            version: AtomicU64::new(self.version),
            is_over: AtomicBool::new(false),
            calls: Mutex::default(),
            done: Default::default(),
            durable: Mutex::default(),
        };
        let clients = 2 + self.dice.below(3) as u32;
        let each = 60 + self.dice.below(300);
        let cut_at = self.dice.below(u64::from(clients) * each * 2);
        let seeds: Vec<u64> = (0..clients).map(|_| self.dice.roll()).collect();
        for course in &mut self.neighbours {
            (course.seed, course.version) = (self.dice.roll(), course.version + (1 << 32));
        }
        std::thread::scope(|scope| {
            let world = &world;
            let beside = self.neighbours.iter().zip(&self.neighbour_keys);
            let writers: Vec<_> = beside
                .zip(&world.done)
                .map(|((course, keys), done)| {
                    let course = course.clone();
                    let neighbour = Neighbour { course, keys, done };
                    scope.spawn(move || neighbour.run(world.store, &world.is_over))
                })
                .collect();
            let running: Vec<_> = (0..)
                .zip(seeds)
                .map(|(client, seed)| scope.spawn(move || world.client(client, seed, each)))
                .collect();
            let all_ended = || running.iter().all(|client| client.is_finished());
            while !all_ended() && (cut.is_none() || world.moments.load(SeqCst) < cut_at) {
                std::thread::sleep(Duration::from_micros(50));
            }
            if let Some(device) = cut {
                world.is_over.store(true, SeqCst);
                device.power_off();
            }
            let ended = |it: std::thread::ScopedJoinHandle<'_, Result<(), String>>| {
                it.join()
                    .unwrap_or_else(|_| Err("PANIC of a client".into()))
            };
            let clients = running.into_iter().try_for_each(ended);
            world.is_over.store(true, SeqCst);
            let writers = writers.into_iter().try_for_each(ended);
            clients.and(writers)
        })?;
        Ok(world.done(cut.is_some()))
    }

    /// Closes the store, or takes what the power cut has left.
    fn end(&mut self, device: &SimDevice, store: Store, has_power_cut: bool) -> Result<(), String> {
        let outcome = store.close();
        if !has_power_cut {
            outcome.map_err(|error| format!("a close: {error}"))?;
            self.image = device.image();
            return Ok(());
        }
        let history = device.history();
        let crash = history.crash_after(history.events.len());
        let seed = self.dice.roll();
        self.image = match self.dice.below(4) {
            0 => crash.image(&mut Keep::All),
            1 => crash.image(&mut Keep::Nothing),
            2 => crash.image(&mut Keep::SomeWrites { seed }),
            _ => crash.image(&mut Keep::SomeSectors { seed }),
        };
        Ok(())
    }

    /// Reads the store as it comes up, and judges everything.
    fn judge(&mut self, done: Done, counts: &mut Counts) -> Result<(), String> {
        let device = self.device();
        let store = self.open(&device)?;
        let pairs = store.scan(ScanRange::default(), Direction::Forward);
        let pairs: ::tucana::Result<BTreeMap<Vec<u8>, Vec<u8>>> = pairs.collect();
        let pairs = pairs.map_err(|error| format!("a scan of all: {error}"))?;
        if !self.had_cut && log_order::newest(&self.image)? != pairs {
            return Err("the newest records of the log are not what the tree has".into());
        }
        let verified = store.verify();
        verified.map_err(|error| format!("a verification: {error}"))?;
        drop(store);
        let of_key = |key: &Vec<u8>| pairs.get(key).map(|value| value::decode(value)).transpose();
        let beside = self.neighbours.iter_mut().zip(&self.neighbour_keys);
        for ((course, keys), changes) in beside.zip(done.neighbours) {
            let found = keys.iter().map(of_key).collect::<Result<Held, String>>()?;
            course.settle(&found, changes)?;
        }
        let mut found = State::new();
        for (register, key) in (0..).zip(&self.keys) {
            found.extend(of_key(key)?.map(|version| (register, version)));
        }
        let mut history = History {
            before: std::mem::replace(&mut self.state, found.clone()),
            calls: done.calls,
            recovered: Some(found),
        };
        history.forget_unseen();
        match judge(&history) {
            Verdict::Linearizable => Ok(()),
            Verdict::Wrong(violation) => Err(violation.text),
            Verdict::Undecided => {
                counts.note("openings without a verdict");
                Ok(())
            }
        }
    }
}

impl World<'_> {
    /// Takes everything down. What returned before the last commit is durable; all of it without a power cut.
    fn done(self, has_power_cut: bool) -> Done {
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
    fn client(&self, client: u32, seed: u64, count: u64) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    #[test]
    fn what_clients_of_tucana_see_has_an_order() {
        for seed in 1..=4 {
            assert_eq!(super::life(seed).failures, Vec::<String>::new());
        }
    }
}
