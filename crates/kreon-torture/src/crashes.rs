//! Power cuts: many scripts, at every event of each the crash states that the plan names, and power
//! cuts during the recoveries.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use kreon_sim::{Dice, Fault, History, Image, Keep};

use crate::check::{After, Recovered, check, check_same};
use crate::content::Content;
use crate::counts::Counts;
use crate::model::Model;
use crate::plan::{Choice, choices};
use crate::script::{Shape, script};
use crate::store::{Progress, Store, progress_at};
use crate::watchdog::{Watchdog, without_panic};

/// Of this many states one gets power cuts in its recovery.
const NESTED_EVERY: u64 = 12;

/// How many power cuts one recovery gets at most.
const NESTED_MAX: usize = 24;

/// Of the states of one script at most so many are tried before the next script comes.
const STATES_PER_SCRIPT_MIN: u64 = 60;

/// Steps of a script.
const STEPS: usize = 130;

/// A crash state, so that it can be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Seed of the script, and of everything else.
    pub seed: u64,
    /// Events of the device before the power cut.
    pub event: usize,
    /// Which of the states of the plan at this event.
    pub choice: usize,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "--seed {} --event {} --choice {}",
            self.seed, self.event, self.choice
        )
    }
}

/// Tries `states` crash states, those nested in recoveries included, of scripts from `seed` on.
pub fn sim(states: u64, seed: u64) -> Counts {
    sim_with(states, seed, None)
}

/// As [`sim`], on a device that has a fault from the start: what it does must be found out.
pub fn sim_with(states: u64, seed: u64, fault: Option<&Fault>) -> Counts {
    let started = Instant::now();
    let watchdog = Watchdog::start();
    let mut counts = Counts::default();
    let mut script_seed = seed;
    while counts.total() < states {
        watchdog.begin(format!("script {script_seed}"));
        let quota = (states / 8)
            .max(STATES_PER_SCRIPT_MIN)
            .min(states - counts.total());
        match without_panic(|| Course::run(script_seed, fault)) {
            Ok(course) => course.try_states(quota, &watchdog, &mut counts),
            Err(what) => {
                counts.count("script");
                counts.fail(format!("script --seed {script_seed}: {what}"));
            }
        }
        script_seed = script_seed.wrapping_add(1);
    }
    counts.elapsed = started.elapsed();
    counts
}

/// Tries one state again, with all power cuts in its recovery if `nested`.
///
/// # Errors
/// What is wrong with it.
pub fn replay(state: State, nested: bool) -> Result<(), String> {
    let course = Course::run(state.seed, None)?;
    let crash = course.history.crash_after(state.event);
    let choice = choices(&crash, course.seed_at(state.event))
        .into_iter()
        .nth(state.choice);
    let choice = choice.ok_or("there is no such choice at this event")?;
    let progress = progress_at(&course.timeline, state.event);
    println!("{choice:?}\n{progress:?}\npending {:?}", crash.pending());
    let image = crash.image(&mut choice.keep.clone());
    let found = course.check(&state, image, progress, nested)?;
    match nested {
        true => nested_states(&found, course.seed, usize::MAX).try_for_each(|(label, image)| {
            check_same(image, &found.content).map_err(|e| format!("{label}: {e}"))
        }),
        false => Ok(()),
    }
}

/// One script, carried out.
struct Course {
    seed: u64,
    model: Model,
    timeline: Vec<(usize, Progress)>,
    history: History,
}

impl Course {
    /// Carries out the script of `seed`, on a new store or on what power cuts left of earlier ones.
    fn run(seed: u64, fault: Option<&Fault>) -> Result<Self, String> {
        let lives = seed % 3;
        let (mut image, mut content) = (Image::default(), Content::new());
        for life in 0..lives {
            let life_seed = seed ^ (life + 1) << 32;
            let course = Self::on(life_seed, image, &content, None)?;
            let mut dice = Dice::new(life_seed);
            let event = dice.below(course.history.events.len() as u64 + 1) as usize;
            let crash = course.history.crash_after(event);
            image = crash.image(&mut Keep::SomeSectors { seed: dice.roll() });
            let progress = progress_at(&course.timeline, event);
            let context = |what| format!("life {life}, power cut at {event}: {what}");
            let found = check(
                image.clone(),
                &course.model,
                progress,
                After::Nothing,
                false,
            );
            content = found.map_err(context)?.content;
        }
        Self::on(seed, image, &content, fault)
    }

    fn on(
        seed: u64,
        image: Image,
        content: &Content,
        fault: Option<&Fault>,
    ) -> Result<Self, String> {
        let mut store = Store::on(image, content, true);
        if let Some(fault) = fault {
            store.device.inject(fault.clone());
        }
        let shape = Shape::of((seed >> 32) ^ (seed / 3), STEPS);
        let regions: Vec<_> = content.keys().cloned().collect();
        store
            .open()
            .map_err(|error| format!("the first open: {error}"))?;
        for (number, step) in script(seed, shape, &regions).iter().enumerate() {
            let outcome = store
                .step(step)
                .and_then(|said| said.map_err(|error| error.to_string()));
            outcome.map_err(|what| format!("step {number}: {what}"))?;
        }
        let history = store.device.history();
        store.abandon();
        Ok(Self {
            seed,
            history,
            model: store.model,
            timeline: store.timeline,
        })
    }

    fn seed_at(&self, event: usize) -> u64 {
        Dice::new(self.seed.rotate_left(32) ^ event as u64).roll()
    }

    /// All states of all events.
    fn states(&self) -> Vec<State> {
        let mut all = Vec::new();
        let mut crash = self.history.crash_after(0);
        let mut last = None;
        loop {
            let event = crash.events();
            // What may survive changes with few events, and what must with others.
            let now = (crash.pending(), progress_at(&self.timeline, event));
            if last.as_ref() != Some(&now) {
                let count = choices(&crash, self.seed_at(event)).len();
                all.extend((0..count).map(|choice| State {
                    seed: self.seed,
                    event,
                    choice,
                }));
                last = Some(now);
            }
            if !crash.advance() {
                return all;
            }
        }
    }

    fn try_states(&self, quota: u64, watchdog: &Watchdog, counts: &mut Counts) {
        let mut states: BTreeMap<(usize, usize), State> = BTreeMap::new();
        let mut dice = Dice::new(self.seed ^ 0xd1ce);
        let mut all = self.states();
        while (states.len() as u64) < quota && !all.is_empty() {
            let index = dice.below(all.len() as u64) as usize;
            let state = all.swap_remove(index);
            states.insert((state.event, state.choice), state);
        }
        let (mut crash, enough) = (self.history.crash_after(0), counts.total() + quota);
        for state in states.into_values() {
            while crash.events() < state.event && crash.advance() {}
            if counts.total() >= enough {
                return;
            }
            let planned = choices(&crash, self.seed_at(state.event))
                .into_iter()
                .nth(state.choice);
            let Some(Choice { class, mut keep }) = planned else {
                continue;
            };
            watchdog.begin(state.to_string());
            counts.count(class);
            let nested = dice.below(NESTED_EVERY) == 0;
            let progress = progress_at(&self.timeline, state.event);
            let image = crash.image(&mut keep);
            match without_panic(|| self.check(&state, image, progress, nested)) {
                Ok(found) if nested => self.try_nested(&state, &found, watchdog, counts),
                Ok(_) => {}
                Err(what) => counts.fail(format!("{state} ({class}): {what}")),
            }
        }
    }

    fn check(
        &self,
        state: &State,
        image: Image,
        progress: Progress,
        nested: bool,
    ) -> Result<Recovered, String> {
        let after = match (state.event + state.choice) % 3 {
            0 => After::Nothing,
            1 => After::Checkpoint,
            _ => After::PowerCut,
        };
        check(image, &self.model, progress, after, nested)
    }

    fn try_nested(
        &self,
        state: &State,
        found: &Recovered,
        watchdog: &Watchdog,
        counts: &mut Counts,
    ) {
        for (label, image) in nested_states(found, self.seed_at(state.event), NESTED_MAX) {
            watchdog.begin(format!("{state}, {label}"));
            counts.count("nested");
            if let Err(what) = without_panic(|| check_same(image, &found.content)) {
                counts.fail(format!("{state} --nested, {label}: {what}"));
            }
        }
    }
}

/// Power cuts during a recovery: at every event of it three states, or `states_max` of them.
fn nested_states(
    found: &Recovered,
    seed: u64,
    states_max: usize,
) -> impl Iterator<Item = (String, Image)> {
    let mut dice = Dice::new(seed);
    let events = found.history.events.len();
    let count = ((events + 1) * 3).min(states_max);
    (0..count).map(move |number| {
        let place = match count < states_max || states_max == usize::MAX {
            true => number,
            false => dice.below(events as u64 * 3 + 3) as usize,
        };
        let (event, kind) = (place / 3, place % 3);
        let mut keep = match kind {
            0 => Keep::Nothing,
            1 => Keep::All,
            _ => Keep::SomeSectors { seed: dice.roll() },
        };
        let label = format!("power cut after event {event} of the recovery, {keep:?}");
        (label, found.history.crash_after(event).image(&mut keep))
    })
}
