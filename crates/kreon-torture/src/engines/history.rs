//! Concurrent clients of stores. What they saw must have an order; and what a close or a power cut leaves must be the state after
//! a part of it, with everything that was durable. Of an engine that promises nothing about two keys together, each key is
//! judged by itself.
//!
//! Beside them writers may fill leaves and empty them again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kreon_judge::{Call, History, Register, State, Verdict, Version, judge, value};
use kreon_sim::{Dice, Image, Keep, SimDevice};

use super::clients::{Done, Shared, World};
use super::neighbours::{Course, Held, KEYS, Neighbour};
use crate::Counts;
use crate::seeds::judged;
use crate::watchdog::{Watchdog, without_panic};

/// What is wrong.
type Outcome = Result<(), String>;

/// Runs lives of stores from `seed` on for `time`. A failure does not end it.
pub(crate) fn history<E: Shared>(time: Duration, seed: u64) -> Counts {
    let started = Instant::now();
    let watchdog = Watchdog::start();
    let mut counts = Counts::default();
    for seed in seed.. {
        if started.elapsed() >= time {
            break;
        }
        let engine = E::NAME;
        watchdog.begin(format!("{engine} history --seed {seed}"));
        match without_panic(|| Ok(life::<E>(seed))) {
            Ok(tried) => counts.add(tried),
            Err(what) => counts.fail(format!("{engine} history: {what} with seed {seed}")),
        }
    }
    counts.elapsed = started.elapsed();
    counts
}

/// One store, opened some times.
pub(crate) fn life<E: Shared>(seed: u64) -> Counts {
    let mut beside = Counts::default();
    let outcome = E::beside().and_then(|()| {
        let mut life = Life::<E>::new(seed);
        (0..E::SITTINGS).try_for_each(|_| life.sitting(&mut beside))
    });
    let hunt = format!("{} history", E::NAME);
    let mut counts = judged((&hunt, "stores"), seed, Ok(outcome));
    counts.add(beside);
    counts
}

/// A store between two openings.
struct Life<E: Shared> {
    dice: Dice,
    image: Image,
    manner: E::Manner,
    value_bytes: u64,
    /// In hundredths: changes that are buffered.
    buffered: u64,
    /// Those of the clients, and behind them those of each writer.
    keys: Vec<Vec<u8>>,
    /// So many are those of the clients.
    shared: usize,
    /// What they hold.
    state: State,
    version: Version,
    neighbours: Vec<Course>,
}

impl<E: Shared> Life<E> {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let shared = 3 + dice.below(8);
        let prefix = vec![b'p'; [0, 12, 500][dice.below(3) as usize]];
        // The last byte says whose key it is: all of them are neighbours.
        let key = |number: u64, owner: u8| {
            let number = (number as u32).to_be_bytes();
            [&prefix[..], &number, &[owner]].concat()
        };
        let writers = 0..E::NEIGHBOURS as u8;
        let beside = writers.flat_map(|owner| (0..KEYS).map(move |number| (number, owner)));
        let own = (0..shared).map(|it| (it * KEYS / shared, 100));
        let course = |owner: u64| Course {
            seed: seed.rotate_left(8) ^ owner,
            version: 0,
            held: vec![None; KEYS as usize],
        };
        Self {
            keys: own
                .chain(beside)
                .map(|(it, owner)| key(it, owner))
                .collect(),
            shared: shared as usize,
            neighbours: (0..E::NEIGHBOURS as u64).map(course).collect(),
            image: Image::default(),
            manner: E::manner(&mut dice),
            value_bytes: [40, 400, 1500, 9000][dice.below(4) as usize],
            buffered: E::BUFFERED[dice.below(3) as usize],
            state: State::new(),
            version: 1,
            dice,
        }
    }

    /// Opens the store, has clients use it, ends it, and judges what they saw and what is found then.
    fn sitting(&mut self, counts: &mut Counts) -> Outcome {
        let device = self.device();
        let store = self.open(&device)?;
        let has_power_cut = self.dice.below(2) == 0;
        let done = self.use_store(&store, has_power_cut.then_some(&*device))?;
        self.version = done.version;
        self.end(&device, store, has_power_cut)?;
        counts.count(if has_power_cut {
            "power cuts"
        } else {
            "closes"
        });
        (0..done.calls.len()).for_each(|_| counts.note("calls"));
        self.judge(done, counts)
    }

    fn device(&mut self) -> Arc<SimDevice> {
        let options = E::device(&self.manner, &mut self.dice);
        Arc::new(SimDevice::from_image(self.image.clone(), options))
    }

    fn open(&mut self, device: &Arc<SimDevice>) -> Result<E, String> {
        let store = E::open(&self.manner, device, &mut self.dice);
        store.map_err(|error| format!("an opening: {error}"))
    }

    fn use_store(&mut self, store: &E, cut: Option<&SimDevice>) -> Result<Done, String> {
        let (shared, of_writers) = self.keys.split_at(self.shared);
        let world = World {
            store,
            keys: shared,
            value_bytes: self.value_bytes,
            buffered: self.buffered,
            moments: AtomicU64::new(1),
            version: AtomicU64::new(self.version),
            is_over: AtomicBool::new(false),
            calls: Mutex::default(),
            done: self.neighbours.iter().map(|_| AtomicU64::new(0)).collect(),
            durable: Mutex::default(),
        };
        let clients = 2 + self.dice.below(4) as u32;
        let each = 60 + self.dice.below(250);
        let cut_at = self.dice.below(u64::from(clients) * each * 2);
        let seeds: Vec<u64> = (0..clients).map(|_| self.dice.roll()).collect();
        for course in &mut self.neighbours {
            (course.seed, course.version) = (self.dice.roll(), course.version + (1 << 32));
        }
        std::thread::scope(|scope| {
            let world = &world;
            let beside = self.neighbours.iter().zip(of_writers.chunks(KEYS as usize));
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
            let ended = |it: std::thread::ScopedJoinHandle<'_, Outcome>| {
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
    fn end(&mut self, device: &SimDevice, store: E, has_power_cut: bool) -> Outcome {
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
    fn judge(&mut self, done: Done, counts: &mut Counts) -> Outcome {
        let found = self.held()?;
        let (shared, of_writers) = found.split_at(self.shared);
        let beside = self.neighbours.iter_mut().zip(done.neighbours);
        for ((course, changes), found) in beside.zip(of_writers.chunks(KEYS as usize)) {
            course.settle(&found.to_vec(), changes)?;
        }
        let state: State = (0..)
            .zip(shared)
            .filter_map(|(register, version)| Some((register, (*version)?)))
            .collect();
        let before = std::mem::replace(&mut self.state, state.clone());
        let whole = History {
            before,
            calls: done.calls,
            recovered: Some(state),
        };
        let histories = match E::HAS_ONE_ORDER {
            true => vec![whole],
            false => (0..self.shared as Register)
                .map(|key| of_key(&whole, key))
                .collect(),
        };
        for mut history in histories {
            history.forget_unseen();
            match judge(&history) {
                Verdict::Linearizable => {}
                Verdict::Wrong(violation) => return Err(violation.text),
                Verdict::Undecided if E::HAS_ONE_ORDER => counts.note("openings without a verdict"),
                Verdict::Undecided => return Err("too many orders are possible".into()),
            }
        }
        Ok(())
    }

    /// What all keys have at the next opening, which is verified.
    fn held(&mut self) -> Result<Held, String> {
        let device = self.device();
        let store = self.open(&device)?;
        let found = store.contents(&self.keys);
        let found = found.map_err(|error| format!("a read of all: {error}"))?;
        let verified = store.verify();
        verified.map_err(|error| format!("a verification: {error}"))?;
        let closed = store.close();
        closed.map_err(|error| format!("the last close: {error}"))?;
        let version = |value: Option<Vec<u8>>| value.map(|value| value::decode(&value)).transpose();
        found.into_iter().map(version).collect()
    }
}

/// The part of a history that one key has.
fn of_key(whole: &History, key: Register) -> History {
    let only =
        |state: &State| -> State { state.get(&key).map(|&it| (key, it)).into_iter().collect() };
    let is_of_key = |call: &&Call| {
        let (reads, writes) = (call.reads.iter(), call.writes.iter());
        let mut registers = reads.map(|it| it.0).chain(writes.map(|it| it.0));
        registers.any(|it| it == key)
    };
    History {
        before: only(&whole.before),
        calls: whole.calls.iter().filter(is_of_key).cloned().collect(),
        recovered: whole.recovered.as_ref().map(only),
    }
}
