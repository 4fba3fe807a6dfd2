//! Power cuts: many scripts, at every event of each the crash states that the plan names, and power
//! cuts during the recoveries and the work behind them.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kreon_sim::{Dice, Fault};

use crate::content::sums;
use crate::counts::Counts;
use crate::course::{Course, Origin, State};
use crate::sequences;
use crate::stale::Outcome;
use crate::watchdog::{Watchdog, without_panic};

/// Of this many states one gets power cuts in its recovery.
const NESTED_EVERY: u64 = 16;

/// How many power cuts one recovery gets at most, by depth.
const NESTED_MAX: [usize; 3] = [16, 4, 0];

/// Of the states of one script at most so many are tried before the next script comes.
const STATES_PER_SCRIPT: usize = 250;

/// Of the states of one short sequence at most so many are tried.
const STATES_PER_SEQUENCE: usize = 120;

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Sim {
    /// How many crash states are tried, those nested in recoveries included.
    pub states: u64,
    /// Seed of the first script.
    pub seed: u64,
    /// Threads; each takes a script of its own.
    pub threads: usize,
    /// End with the first failure.
    pub stops_at_failure: bool,
    /// End when so much time has passed, whatever was tried by then.
    pub time_max: Option<Duration>,
    /// A fault that the device has from the start.
    pub fault: Option<Fault>,
}

/// Tries `states` crash states of scripts from `seed` on, in one thread.
pub fn sim(states: u64, seed: u64) -> Counts {
    Sim::new(states, seed).run()
}

/// As [`sim`], on a device that has a fault from the start: what it does must be found out.
pub fn sim_with(states: u64, seed: u64, fault: Option<&Fault>) -> Counts {
    let fault = fault.cloned();
    Sim {
        fault,
        ..Sim::new(states, seed)
    }
    .run()
}

/// What all threads of a run share.
struct Run<'a> {
    sim: &'a Sim,
    started: Instant,
    next: AtomicU64,
    tried: AtomicU64,
    failed: AtomicU64,
}

impl Sim {
    /// The usual settings.
    pub fn new(states: u64, seed: u64) -> Self {
        Self {
            states,
            seed,
            threads: 1,
            stops_at_failure: false,
            time_max: None,
            fault: None,
        }
    }

    /// Runs.
    pub fn run(&self) -> Counts {
        let started = Instant::now();
        let run = Run {
            sim: self,
            started,
            next: AtomicU64::new(0),
            tried: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        };
        let mut counts = Counts::default();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads.max(1))
                .map(|_| scope.spawn(|| run.work()))
                .collect();
            for thread in threads {
                match thread.join() {
                    Ok(found) => counts.add(found),
                    Err(_) => counts.fail("a thread of the harness panicked".to_owned()),
                }
            }
        });
        counts.elapsed = started.elapsed();
        counts
    }
}

impl Run<'_> {
    fn is_over(&self) -> bool {
        let has_failed = self.failed.load(Ordering::Relaxed) > 0;
        self.tried.load(Ordering::Relaxed) >= self.sim.states
            || has_failed && self.sim.stops_at_failure
            || self
                .sim
                .time_max
                .is_some_and(|most| self.started.elapsed() > most)
    }

    fn work(&self) -> Counts {
        let mut worker = Worker {
            run: self,
            watchdog: Watchdog::start(),
            counts: Counts::default(),
        };
        while !self.is_over() {
            let origin = self.origin(self.next.fetch_add(1, Ordering::Relaxed));
            worker.course(origin);
        }
        worker.counts
    }

    /// Scripts and short sequences in turn, as long as there are sequences.
    fn origin(&self, item: u64) -> Origin {
        let seed = self.sim.seed;
        let number = item - item / 4;
        if item % 4 == 3 || number >= sequences::COUNT {
            let script = match number < sequences::COUNT {
                true => item / 4,
                false => item - sequences::COUNT,
            };
            return Origin::Script(seed.wrapping_add(script));
        }
        // Another order for each seed; the factor has no divisor in common with the number of them.
        let number =
            (number.wrapping_mul(2_654_435_761) + seed % sequences::COUNT) % sequences::COUNT;
        Origin::Sequence { number, seed }
    }
}

/// What one thread does.
struct Worker<'a> {
    run: &'a Run<'a>,
    watchdog: Watchdog,
    counts: Counts,
}

/// What images held, by their digests: an image that was checked is not opened again.
type Known = HashMap<u64, Vec<(String, u64)>>;

impl Worker<'_> {
    fn count(&mut self, class: &str) {
        self.counts.count(class);
        self.run.tried.fetch_add(1, Ordering::Relaxed);
    }

    fn fail(&mut self, failure: String) {
        self.counts.fail(failure);
        self.run.failed.fetch_add(1, Ordering::Relaxed);
    }

    fn course(&mut self, origin: Origin) {
        let mut state = State {
            origin,
            cuts: Vec::new(),
        };
        self.watchdog.begin(state.to_string());
        match without_panic(|| Course::run(origin, self.run.sim.fault.as_ref())) {
            Ok(course) => {
                let (quota, name) = match origin {
                    Origin::Script(_) => (STATES_PER_SCRIPT, "scripts"),
                    Origin::Sequence { .. } => (STATES_PER_SEQUENCE, "short sequences"),
                };
                self.counts.note(name);
                self.states(&mut state, &course, quota);
            }
            Err(what) => {
                self.count("carried out without a power cut");
                self.fail(format!("{state}: {what}"));
            }
        }
    }

    /// Tries up to `quota` states of a course.
    fn states(&mut self, state: &mut State, course: &Course, quota: usize) {
        let seed = state.origin.seed();
        let mut dice = Dice::new(seed ^ 0xd1ce ^ state.cuts.len() as u64);
        let mut all = course.states(seed);
        let mut chosen = BTreeSet::new();
        while chosen.len() < quota && !all.is_empty() {
            chosen.insert(all.swap_remove(dice.below(all.len() as u64) as usize));
        }
        let mut known = Known::new();
        let mut crash = course.history.crash_after(0);
        let mut last = (usize::MAX, Vec::new());
        for cut in chosen {
            while crash.events() < cut.0 && crash.advance() {}
            if self.run.is_over() {
                return;
            }
            if last.0 != cut.0 {
                last = (cut.0, course.choices(&crash, seed));
            }
            let Some(choice) = last.1.get(cut.1) else {
                continue;
            };
            state.cuts.push(cut);
            // A slot that is torn and then sealed anew by a recovery that is cut, too, would count.
            let is_torn = choice.tears_superblock(&crash);
            let is_nested = dice.below(if is_torn && state.cuts.len() == 1 {
                6
            } else {
                NESTED_EVERY
            }) == 0;
            let depth = state.cuts.len() - 1;
            let class = match depth {
                0 if is_torn => "superblock torn",
                0 => choice.class,
                1 if cut.0 <= course.opened => "nested: in the recovery",
                1 => "nested: in the work after it",
                _ => "nested twice",
            };
            self.watchdog.begin(state.to_string());
            let outcome = without_panic(|| course.image(&crash, choice));
            match outcome {
                Ok(Outcome::Newest(image)) => {
                    self.image(state, course, (class, image), is_nested, &mut known);
                }
                Ok(Outcome::Old(how)) => self.count(&format!("{}: {how}", choice.class)),
                Err(what) => {
                    self.count(class);
                    self.fail(format!("{state} ({class}): {what}"));
                }
            }
            state.cuts.pop();
        }
    }

    fn image(
        &mut self,
        state: &mut State,
        course: &Course,
        (class, image): (&str, kreon_sim::Image),
        is_nested: bool,
        known: &mut Known,
    ) {
        let Some(cut) = state.cuts.last().copied() else {
            return;
        };
        let digest = image.digest();
        let (model, progress) = course.expected(cut.0);
        if let Some(found) = known.get(&digest) {
            self.counts.note("states with the image of another one");
            let units = progress.durable_units..=progress.begun_units;
            let changes = progress.durable_region_changes..=progress.begun_region_changes;
            if model.find_sums(found, units, changes).is_none() {
                self.fail(format!(
                    "{state} ({class}): not a prefix within {progress:?}"
                ));
            }
            return;
        }
        self.count(class);
        let depth = state.cuts.len();
        let quota = NESTED_MAX.get(depth - 1).copied().unwrap_or(0);
        match without_panic(|| course.check(cut, image, is_nested && quota > 0)) {
            Ok(found) => {
                known.insert(digest, sums(&found.content));
                if let Some(course) = &found.course {
                    self.states(state, course, quota);
                }
            }
            Err(what) => self.fail(format!("{state} ({class}): {what}")),
        }
    }
}

/// Tries one state again.
///
/// # Errors
/// What is wrong with it.
pub fn replay(state: &State) -> Result<(), String> {
    let seed = state.origin.seed();
    let mut course = Course::run(state.origin, None)?;
    for (depth, cut) in state.cuts.iter().enumerate() {
        let crash = course.history.crash_after(cut.0);
        let choice = course.choices(&crash, seed).into_iter().nth(cut.1);
        let choice = choice.ok_or("there is no such choice at this event")?;
        let pending = crash.pending();
        let progress = course.expected(cut.0).1;
        println!("cut {cut:?}: {choice:?}\n{progress:?}\npending {pending:?}");
        match course.image(&crash, &choice)? {
            Outcome::Old(how) => println!("{}, {how}", choice.class),
            Outcome::Newest(image) => {
                let record = depth + 1 < state.cuts.len();
                let found = course.check(*cut, image, record)?;
                if let Some(next) = found.course {
                    course = next;
                }
            }
        }
    }
    Ok(())
}
