//! The life of one store: rounds of concurrent clients, between them ends and power cuts.

use std::sync::atomic::Ordering;
use std::time::Instant;

use kreon_base::Error;
use kreon_engine::{Engine, MEMORY_BYTES_MIN, Options};
use kreon_judge::judge;
use kreon_judge::{Call, History, Seen, State, Verdict};
use kreon_sim::{Dice, Keep};

use super::crowd::{Crowd, is_commit_in_doubt};
use super::place::Place;
use super::round::{Cut, calls_of_clients, up_to_the_cut};
use super::world::{Shape, World};
use crate::counts::Counts;
use crate::settings::{with_idle_time, with_memory_min};

/// How often a store is opened in its life.
const SITTINGS: u64 = 3;

/// Counts histories that explain too much.
const NO_VERDICT: &str = "no verdict";

/// See the module's text.
pub struct Life {
    dice: Dice,
    place: Place,
    options: Options,
    shape: Shape,
    /// The first version that no write has.
    version: u64,
    /// What the fixed regions hold.
    state: State,
    /// Ends are power cuts.
    has_power_cuts: bool,
    end: Instant,
}

impl Life {
    /// A new store, whose life is cut short at `end`.
    ///
    /// # Errors
    /// There is no place for it.
    pub fn new(seed: u64, end: Instant, crowd: Crowd) -> Result<Self, String> {
        let mut dice = Dice::new(seed);
        let (place, has_power_cuts) = match dice.below(5) {
            0 | 1 if crowd.transactions.is_none() => (Place::file(&mut dice).map_err(said)?, false),
            2 if crowd.transactions.is_none() => (Place::sim(), false),
            _ => (Place::sim(), true),
        };
        let mut shape = Shape::of(&mut dice, crowd);
        if has_power_cuts {
            // A change of regions is durable even where the writes before it are not.
            shape.names = 0;
        }
        Ok(Self {
            options: options(&mut dice),
            dice,
            place,
            shape,
            version: 1,
            state: State::new(),
            has_power_cuts,
            end,
        })
    }

    /// Lives it.
    ///
    /// # Errors
    /// What is wrong.
    pub fn run(&mut self, counts: &mut Counts) -> Result<(), String> {
        for _ in 0..SITTINGS {
            let world = self.open()?;
            for _ in 0..1 + self.dice.below(3) {
                if Instant::now() >= self.end {
                    return Ok(());
                }
                self.round(&world, counts)?;
            }
            if self.has_power_cuts {
                self.round_with_power_cut(world, counts)?;
            } else {
                self.version = world.next_version();
                world.engine.close().map_err(said)?;
                drop(world);
                self.place.closed();
                counts.count("close and open");
            }
        }
        Ok(())
    }

    fn open(&mut self) -> Result<World, String> {
        let world = self.open_unchecked()?;
        let found = world.read_all()?;
        match found == self.state {
            true => Ok(world),
            false => Err(format!("after an end: {}", difference(&self.state, &found))),
        }
    }

    fn open_unchecked(&mut self) -> Result<World, String> {
        let device = self.place.device(self.dice.roll()).map_err(said)?;
        let engine = Engine::open(device, with_memory_min(self.options.clone())).map_err(said)?;
        World::new(engine, &self.shape, self.version).map_err(said)
    }

    fn round(&mut self, world: &World, counts: &mut Counts) -> Result<(), String> {
        let (mut calls, _) = calls_of_clients(world, &mut self.dice, None)?;
        note_conflicts(world, counts);
        let mut last = Call::read("everything at the end", world.now(), 0);
        let after = world.read_all()?;
        last.returned = Some(world.now());
        last.reads = everything(world, &after);
        calls.push(last);
        let before = std::mem::replace(&mut self.state, after);
        let (history, recovered) = (calls, None);
        tried(
            History {
                before,
                calls: history,
                recovered,
            },
            counts,
        )?;
        counts.count(&format!("round on a {}", self.place.name()));
        world.forget_passing_regions();
        if self.dice.below(3) == 0 {
            verify(world)?;
            counts.count("verification");
        }
        Ok(())
    }

    /// Power is cut while the clients are at work.
    fn round_with_power_cut(&mut self, world: World, counts: &mut Counts) -> Result<(), String> {
        // What rounds before this one wrote must not be lost.
        world.engine.sync().map_err(said)?;
        let device = self.place.sim_device().cloned();
        let (calls, cut) = calls_of_clients(&world, &mut self.dice, device.as_deref())?;
        note_conflicts(&world, counts);
        self.version = world.next_version();
        drop(world);
        self.place.power_cut(&mut keep(&mut self.dice));
        let world = self.open_unchecked()?;
        let found = world.read_all()?;
        verify(&world)?;
        self.version = world.next_version();
        let before = std::mem::replace(&mut self.state, found.clone());
        let surviving = History {
            before: before.clone(),
            calls: up_to_the_cut(&calls, cut.unwrap_or(Cut::NEVER)),
            recovered: Some(found),
        };
        let mut judged = Counts::default();
        let outcome = tried(surviving, &mut judged);
        outcome.map_err(|what| format!("after a power cut: {what}"))?;
        if judged.tried.contains_key(NO_VERDICT) {
            counts.count(NO_VERDICT);
        }
        let history = History {
            before,
            calls,
            recovered: None,
        };
        tried(history, counts)?;
        counts.count("round with a power cut");
        world.engine.close().map_err(said)?;
        drop(world);
        self.place.closed();
        Ok(())
    }
}

fn note_conflicts(world: &World, counts: &mut Counts) {
    let conflicts = world.conflicts.swap(0, Ordering::Relaxed);
    *counts.beside.entry("conflicts".to_owned()).or_default() += conflicts;
}

fn said(error: Error) -> String {
    error.to_string()
}

fn options(dice: &mut Dice) -> Options {
    // The largest leaves the fewest frames: pages come and go.
    let l0_bytes = [1, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1_600_000];
    // Mostly little memory. With much, segments of the log are used again while earlier uses are in memory.
    // All of it is taken at each opening: seldom, or lives are spent on that.
    let (memory_bytes, log_buffer_bytes) = match dice.below(64) {
        0 => (1 << 30, None),
        1..3 => (256 << 20, None),
        3..20 => (48 << 20, Some(32 << 20)),
        _ => (MEMORY_BYTES_MIN, None),
    };
    Options {
        memory_bytes,
        log_buffer_bytes,
        l0_bytes: Some(l0_bytes[dice.below(6) as usize]),
        growth_factor: [Some(2), Some(3), Some(10), None][dice.below(4) as usize],
        inline_value_bytes_max: [0, 20, 64, 256][dice.below(4) as usize],
        spill_threads: dice.below(4) as usize,
        ..with_idle_time(Options::default())
    }
}

fn keep(dice: &mut Dice) -> Keep {
    let seed = dice.roll();
    match dice.below(4) {
        0 => Keep::Nothing,
        1 => Keep::All,
        2 => Keep::SomeWrites { seed },
        _ => Keep::SomeSectors { seed },
    }
}

fn tried(history: History, counts: &mut Counts) -> Result<(), String> {
    match judge(&history) {
        Verdict::Linearizable => {}
        Verdict::Undecided => {
            counts.count(NO_VERDICT);
            return Ok(());
        }
        Verdict::Wrong(violation) => return Err(violation.text),
    }
    for call in &history.calls {
        match is_commit_in_doubt(call) {
            true => counts.note("commits in doubt"),
            false => counts.count(call.what),
        }
    }
    Ok(())
}

fn verify(world: &World) -> Result<(), String> {
    let report = world.engine.verify().map_err(said)?;
    match report.problems.first() {
        None => Ok(()),
        Some(first) => Err(format!(
            "verify: {} problems: {first}",
            report.problems.len()
        )),
    }
}

/// What `state` says of every key of the fixed regions.
fn everything(world: &World, state: &State) -> Vec<(u64, Seen)> {
    let registers = world.fixed.iter().flat_map(|handle| {
        let keys = 0..world.keys.len();
        keys.map(|key| handle.register(key))
    });
    registers
        .map(|register| {
            let held = state.get(&register);
            (register, held.map_or(Seen::Absent, |v| Seen::Version(*v)))
        })
        .collect()
}

fn difference(expected: &State, found: &State) -> String {
    let mut registers: Vec<_> = expected.keys().chain(found.keys()).collect();
    registers.sort_unstable();
    registers.dedup();
    registers.retain(|register| expected.get(register) != found.get(register));
    let lines = registers.iter().take(6).map(|register| {
        let (wanted, held) = (expected.get(register), found.get(register));
        format!("register {register:#x} held {wanted:?}, holds {held:?}")
    });
    lines.collect::<Vec<_>>().join("; ")
}
