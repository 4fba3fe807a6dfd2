//! Concurrent clients of stores of Tucana. What they saw must have one order, what a snapshot shows is one moment of it, and what
//! a power cut leaves is the state after a part of it, with everything that was returned before a commit began.
//!
//! Beside them writers fill leaves and empty them again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ::tucana::{Direction, ScanRange, Store};
use kreon_device::Device;
use kreon_judge::{History, State, Verdict, Version, judge, value};
use kreon_sim::{Dice, Image, Keep, SimDevice, SimOptions};

use super::clients::{Done, NEIGHBOURS, World};
use super::log_order;
use super::neighbours::{Course, Held, KEYS, Neighbour};
use super::setting::options;
use crate::Counts;
use crate::seeds::judged;
use crate::watchdog::{Watchdog, without_panic};

/// Openings in the life of a store.
const SITTINGS: u64 = 3;

/// Keys that several threads write at once.
const RACED: u64 = 150;

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

#[cfg(test)]
mod tests {
    #[test]
    fn what_clients_of_tucana_see_has_an_order() {
        for seed in 1..=4 {
            assert_eq!(super::life(seed).failures, Vec::<String>::new());
        }
    }
}
