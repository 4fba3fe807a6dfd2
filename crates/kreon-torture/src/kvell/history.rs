//! Concurrent clients of whole stores of KVell. What they saw of each key must have an order; and what a recovery finds must
//! be the state of each key after some of its changes, with all that were acknowledged as durable.
//!
//! Keys are judged one by one: KVell promises nothing about two of them together.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use ::kvell::{Durability, Options, Region, Store};
use kreon_base::ErrorKind;
use kreon_device::Device;
use kreon_judge::{Call, History, Register, Seen, State, Verdict, Version, judge, value};
use kreon_sim::{Dice, Image, Keep, SimDevice, SimOptions};

use crate::Counts;
use crate::seeds::judged;
use crate::watchdog::{Watchdog, without_panic};

/// Openings in the life of a store.
const SITTINGS: u64 = 4;

/// Runs lives of stores from `seed` on for `time`. A failure does not end it.
pub fn history(time: Duration, seed: u64) -> Counts {
    let started = Instant::now();
    let watchdog = Watchdog::start();
    let mut counts = Counts::default();
    for seed in seed.. {
        if started.elapsed() >= time {
            break;
        }
        watchdog.begin(format!("kvell history --seed {seed}"));
        match without_panic(|| Ok(life(seed))) {
            Ok(tried) => counts.add(tried),
            Err(what) => counts.fail(format!("kvell history: {what} with seed {seed}")),
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
    let mut counts = judged(("kvell history", "stores"), seed, Ok(outcome));
    counts.add(beside);
    counts
}

/// A store between two openings.
struct Life {
    dice: Dice,
    image: Image,
    keys: Vec<Vec<u8>>,
    value_bytes: u64,
    /// In hundredths: changes that are buffered.
    buffered: u64,
    /// What each key holds.
    state: State,
    version: Version,
}

/// What the clients of a sitting share.
struct World {
    region: Region,
    store: Store,
    keys: Vec<Vec<u8>>,
    value_bytes: u64,
    buffered: u64,
    moments: AtomicU64,
    version: AtomicU64,
    is_over: AtomicBool,
    calls: Mutex<Vec<Call>>,
    /// When successful syncs began.
    syncs: Mutex<Vec<u64>>,
}

impl Life {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let count = 3 + dice.below(8);
        let prefix: &[u8] = [
            &b"k"[..],
            b"a long beginning that all of the keys have in common ",
        ][dice.below(2) as usize];
        let keys = (0..count).map(|number| [prefix, &[number as u8]].concat());
        Self {
            keys: keys.collect(),
            image: Image::default(),
            value_bytes: [40, 400, 1500, 9000][dice.below(4) as usize],
            buffered: [20, 60, 100][dice.below(3) as usize],
            state: State::new(),
            version: 1,
            dice,
        }
    }

    /// Opens the store, has clients use it, ends it, and judges what they saw and what is found then.
    fn sitting(&mut self, counts: &mut Counts) -> Result<(), String> {
        let device = self.device();
        let (store, region) = self.open(&device)?;
        let world = World {
            region,
            store,
            keys: self.keys.clone(),
            value_bytes: self.value_bytes,
            buffered: self.buffered,
            moments: AtomicU64::new(1),
            version: AtomicU64::new(self.version),
            is_over: AtomicBool::new(false),
            calls: Mutex::default(),
            syncs: Mutex::default(),
        };
        let has_power_cut = self.dice.below(2) == 0;
        self.run_clients(&world, has_power_cut.then_some(&*device))?;
        let World {
            store,
            calls,
            syncs,
            version,
            ..
        } = world;
        self.version = version.load(SeqCst);
        let mut calls = calls.into_inner().unwrap_or_default();
        let settled = match has_power_cut {
            true => syncs.into_inner().unwrap_or_default().into_iter().max(),
            // The close makes durable what was acknowledged.
            false => Some(u64::MAX),
        };
        for call in &mut calls {
            let is_before = call.returned.zip(settled).is_some_and(|(end, at)| end < at);
            call.is_durable |= is_before && !call.writes.is_empty();
        }
        self.end(&device, store, has_power_cut)?;
        counts.count(if has_power_cut {
            "power cuts"
        } else {
            "closes"
        });
        (0..calls.len()).for_each(|_| counts.note("calls"));
        self.judge(calls)
    }

    fn device(&mut self) -> Arc<SimDevice> {
        let options = SimOptions {
            queue_seed: self.dice.roll(),
            ..SimOptions::default()
        };
        Arc::new(SimDevice::from_image(self.image.clone(), options))
    }

    fn open(&mut self, device: &Arc<SimDevice>) -> Result<(Store, Region), String> {
        let options = Options {
            // From a cache that holds a few cells to one that holds all.
            memory_bytes: [270 << 10, 1 << 20][self.dice.below(2) as usize],
            partitions: 3,
            workers: Some(1 + self.dice.below(3) as usize),
            depth: 1 + self.dice.below(8) as usize,
            index_key_bytes: [5, 32, 100][self.dice.below(3) as usize],
            ..Options::default()
        };
        let store = options.open_on(Arc::clone(device) as Arc<dyn Device>);
        let store = store.map_err(|error| format!("an opening: {error}"))?;
        let region = store.region("r").map_err(|error| error.to_string())?;
        Ok((store, region))
    }

    fn run_clients(&mut self, world: &World, cut: Option<&SimDevice>) -> Result<(), String> {
        let clients = 2 + self.dice.below(4) as u32;
        let each = 50 + self.dice.below(250);
        let cut_at = self.dice.below(u64::from(clients) * each * 2);
        let seeds: Vec<u64> = (0..clients).map(|_| self.dice.roll()).collect();
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..)
                .zip(seeds)
                .map(|(client, seed)| scope.spawn(move || world.client(client, seed, each)))
                .collect();
            if let Some(device) = cut {
                let is_over = || running.iter().all(|client| client.is_finished());
                while world.moments.load(SeqCst) < cut_at && !is_over() {
                    std::thread::yield_now();
                }
                world.is_over.store(true, SeqCst);
                device.power_off();
            }
            let ends = running.into_iter().map(|client| {
                let end = client.join().map_err(|_| "PANIC of a client".to_owned());
                end.and_then(|it| it)
            });
            ends.collect()
        })
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
        let mut crash = history.crash();
        while crash.advance() {}
        let seed = self.dice.roll();
        self.image = match self.dice.below(4) {
            0 => crash.image(&mut Keep::All),
            1 => crash.image(&mut Keep::Nothing),
            _ => crash.image(&mut Keep::SomeWrites { seed }),
        };
        Ok(())
    }

    /// Reads all keys of the store as it comes up, and judges each.
    fn judge(&mut self, calls: Vec<Call>) -> Result<(), String> {
        let device = self.device();
        let (store, region) = self.open(&device)?;
        let mut found = State::new();
        for (key, bytes) in (0..).zip(&self.keys) {
            let seen = region.get(bytes).map_err(|error| error.to_string())?;
            if let Some(seen) = seen {
                found.insert(key, value::decode(&seen)?);
            }
        }
        let report = store.verify().map_err(|error| error.to_string())?;
        if let Some(damage) = report.damage.first() {
            return Err(format!("after the end: {damage}"));
        }
        store.close().map_err(|error| error.to_string())?;
        for key in 0..self.keys.len() as Register {
            let only = |state: &State| -> State {
                state.get(&key).map(|&it| (key, it)).into_iter().collect()
            };
            let is_of_key = |call: &&Call| {
                let reads = call.reads.iter().map(|it| it.0);
                reads
                    .chain(call.writes.iter().map(|it| it.0))
                    .any(|it| it == key)
            };
            let mut history = History {
                before: only(&self.state),
                calls: calls.iter().filter(is_of_key).cloned().collect(),
                recovered: Some(only(&found)),
            };
            history.forget_unseen();
            match judge(&history) {
                Verdict::Linearizable => {}
                Verdict::Wrong(violation) => return Err(violation.text),
                Verdict::Undecided => return Err("too many orders are possible".into()),
            }
        }
        self.state = found;
        Ok(())
    }
}

impl World {
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
            match dice.below(20) {
                0 => self.sync()?,
                1..=8 => self.change(client, &mut dice)?,
                9 => self.multi_get(client, &mut dice)?,
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
        let outcome = match value {
            Some(value) => self.region.put(bytes, value, durability),
            None => self.region.delete(bytes, durability),
        };
        if self.went_well(&outcome)? {
            call.returned = Some(self.now());
            call.is_durable = durability == Durability::Sync;
        }
        // Without a return the change may be there or not.
        self.record(call);
        Ok(())
    }

    fn get(&self, client: u32, dice: &mut Dice) -> Result<(), String> {
        let key = dice.below(self.keys.len() as u64);
        let mut call = self.begin(client, "get");
        let outcome = self.region.get(&self.keys[key as usize]);
        call.returned = Some(self.now());
        if self.went_well(&outcome)? {
            call.reads = vec![(key, seen(outcome.ok().flatten())?)];
            self.record(call);
        }
        Ok(())
    }

    /// Several gets in one call, each of them by itself.
    fn multi_get(&self, client: u32, dice: &mut Dice) -> Result<(), String> {
        let keys: Vec<Register> = (0..4).map(|_| dice.below(self.keys.len() as u64)).collect();
        let bytes: Vec<_> = keys.iter().map(|&key| &self.keys[key as usize]).collect();
        let mut call = self.begin(client, "multi_get");
        let outcome = self.region.multi_get(&bytes);
        call.returned = Some(self.now());
        if self.went_well(&outcome)? {
            for (key, found) in keys.into_iter().zip(outcome.unwrap_or_default()) {
                let reads = vec![(key, seen(found)?)];
                self.record(Call {
                    reads,
                    ..call.clone()
                });
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), String> {
        let begun = self.now();
        if self.went_well(&self.store.sync())? {
            self.syncs
                .lock()
                .unwrap_or_else(|it| it.into_inner())
                .push(begun);
        }
        Ok(())
    }

    fn record(&self, call: Call) {
        self.calls
            .lock()
            .unwrap_or_else(|it| it.into_inner())
            .push(call);
    }

    /// Whether a call succeeded. One that did not must have met the power cut.
    fn went_well<T>(&self, outcome: &kreon_base::Result<T>) -> Result<bool, String> {
        match outcome {
            Ok(_) => Ok(true),
            Err(error)
                if self.is_over.load(SeqCst)
                    && matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned) =>
            {
                Ok(false)
            }
            Err(error) => Err(format!("a call failed: {error}")),
        }
    }
}

fn seen(found: Option<Vec<u8>>) -> Result<Seen, String> {
    found.map_or(Ok(Seen::Absent), |found| {
        value::decode(&found).map(Seen::Version)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_clients_of_kvell_see_of_each_key_has_an_order() {
        for seed in 1..=6 {
            assert_eq!(super::life(seed).failures, Vec::<String>::new());
        }
    }
}
