//! A script carried out, and the power cuts in it.

use std::fmt;

use kreon_engine::Options;
use kreon_sim::{Crash, Dice, Fault, History, Image, Keep};

use crate::check::{After, Recovered, check, check_with};
use crate::content::Content;
use crate::model::Model;
use crate::plan::{self, Choice};
use crate::progress::{Progress, progress_at};
use crate::script::{Shape, Step, script};
use crate::sequences::{Sequence, sequence};
use crate::settings::{KEPT_BYTES, options, options_of_check, options_with_memory};
use crate::stale::{self, Outcome, Slots};
use crate::store::Store;

/// Steps of a script.
const STEPS: usize = 130;

/// Where a course comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The script of a seed.
    Script(u64),
    /// One of all short sequences; the seed is that of the background work and of the random states.
    Sequence {
        /// Its number.
        number: u64,
        /// The seed.
        seed: u64,
    },
}

impl Origin {
    /// The seed.
    pub fn seed(self) -> u64 {
        match self {
            Self::Script(seed) | Self::Sequence { seed, .. } => seed,
        }
    }
}

/// A crash state, so that it can be tried again; displayed as the command that does it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// What was carried out.
    pub origin: Origin,
    /// Events of the device before the power cut, and which of the states of the plan there; then the
    /// same for power cuts in the recovery from that, and so on.
    pub cuts: Vec<(usize, usize)>,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seed = self.origin.seed();
        write!(
            f,
            "cargo run --release -p kreon-torture -- replay --seed {seed}"
        )?;
        if let Origin::Sequence { number, .. } = self.origin {
            write!(f, " --sequence {number}")?;
        }
        for (event, choice) in &self.cuts {
            write!(f, " --cut {event}:{choice}")?;
        }
        Ok(())
    }
}

/// See the module's text.
pub struct Course {
    /// What counts up to so many events, before `model` does.
    chapters: Vec<(usize, Model)>,
    model: Model,
    timeline: Vec<(usize, Progress)>,
    /// What happened to the device.
    pub history: History,
    /// The contents of the superblock slots.
    slots: Slots,
    /// How often the two threads met at a lock: without that, the same seed takes the same course again.
    pub meetings: u64,
    /// Power cuts before so many events belong to another course.
    first_event: usize,
    /// Events before this are those of the open.
    pub opened: usize,
}

impl Course {
    /// What `store` has done since it was made, with an open that took `opened` events. It is closed.
    pub fn of(store: &mut Store, opened: usize) -> Self {
        let history = store.device.history();
        let meetings = store.meetings();
        store.abandon();
        Self {
            meetings,
            chapters: std::mem::take(&mut store.chapters),
            model: std::mem::take(&mut store.model),
            timeline: std::mem::take(&mut store.timeline),
            slots: Slots::of(&history),
            history,
            first_event: 0,
            opened,
        }
    }

    /// Carries out what belongs to `origin`, on a device that has a fault from the start if one is
    /// given.
    ///
    /// # Errors
    /// What went wrong without any power cut.
    pub fn run(origin: Origin, fault: Option<&Fault>) -> Result<Self, String> {
        match origin {
            Origin::Script(seed) => Self::run_script(seed, fault),
            Origin::Sequence { number, seed } => Self::run_sequence(sequence(number), seed, fault),
        }
    }

    /// A script on a new store, or on what power cuts left of earlier ones.
    fn run_script(seed: u64, fault: Option<&Fault>) -> Result<Self, String> {
        let lives = seed % 3;
        let (mut image, mut content) = (Image::default(), Content::new());
        for life in 0..lives {
            let life_seed = seed ^ (life + 1) << 32;
            let course = Self::live(life_seed, image, &content, None)?;
            let mut dice = Dice::new(life_seed);
            let event = dice.below(course.history.events.len() as u64 + 1) as usize;
            let crash = course.history.crash_after(event);
            image = crash.image(&mut Keep::SomeSectors { seed: dice.roll() });
            let context = |what| format!("life {life}, power cut at {event}: {what}");
            let (model, progress) = course.expected(event);
            let found = check(image.clone(), model, progress, After::Nothing, false);
            content = found.map_err(context)?.content;
        }
        Self::live(seed, image, &content, fault)
    }

    fn live(
        seed: u64,
        image: Image,
        content: &Content,
        fault: Option<&Fault>,
    ) -> Result<Self, String> {
        let shape = Shape {
            kills: true,
            ..Shape::of((seed >> 32) ^ (seed / 3), STEPS)
        };
        let regions: Vec<_> = content.keys().cloned().collect();
        let steps = script(seed, shape, &regions);
        let has_back = Dice::new(seed).below(2) == 0;
        let store = Store::on(image, content, true).with(options_with_memory(seed));
        let store = store.in_a_process(seed, has_back);
        Self::carry_out(store, &steps, &[], &[], fault)
    }

    fn run_sequence(sequence: Sequence, seed: u64, fault: Option<&Fault>) -> Result<Self, String> {
        let Sequence {
            ground,
            before,
            first,
            last,
        } = sequence;
        let store = Store::on(Image::default(), &Content::new(), true);
        let store = store.in_a_process(seed, ground.has_back);
        Self::carry_out(store, &before, &first, &last, fault)
    }

    fn carry_out(
        mut store: Store,
        before: &[Step],
        first: &[Step],
        last: &[Step],
        fault: Option<&Fault>,
    ) -> Result<Self, String> {
        if let Some(fault) = fault {
            store.device.inject(fault.clone());
        }
        store
            .open()
            .map_err(|error| format!("the first open: {error}"))?;
        let mut first_event = 0;
        let all = before.iter().chain(first).chain(last);
        for (number, step) in all.enumerate() {
            if number == before.len() + first.len() {
                first_event = store.device.events();
            }
            let outcome = store
                .step(step)
                .and_then(|said| said.map_err(|error| error.to_string()));
            outcome.map_err(|what| format!("step {number}, {step:?}: {what}"))?;
        }
        store.finish()?;
        Ok(Self {
            first_event,
            ..Self::of(&mut store, 0)
        })
    }

    /// What counts after `events` events: the model, and the bounds within it.
    pub fn expected(&self, events: usize) -> (&Model, Progress) {
        let chapter = self.chapters.iter().find(|(end, _)| events <= *end);
        let model = chapter.map_or(&self.model, |(_, model)| model);
        (model, progress_at(&self.timeline, events))
    }

    /// The states that are tried at a power cut.
    pub fn choices(&self, crash: &Crash<'_>, seed: u64) -> Vec<Choice> {
        let seed = Dice::new(seed.rotate_left(32) ^ crash.events() as u64).roll();
        let mut all = plan::choices(crash, seed);
        let mut dice = Dice::new(!seed);
        let is_last = crash.events() == self.history.events.len();
        if is_last || dice.below(16) == 0 {
            all.extend(stale::choices(&mut dice));
        }
        all
    }

    /// All states, as event and choice.
    pub fn states(&self, seed: u64) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        let mut crash = self.history.crash_after(self.first_event);
        let mut last = None;
        loop {
            let event = crash.events();
            // What may survive changes with few events, and what must with others.
            let now = (crash.pending(), progress_at(&self.timeline, event));
            if last.as_ref() != Some(&now) || event == self.history.events.len() {
                let count = self.choices(&crash, seed).len();
                all.extend((0..count).map(|choice| (event, choice)));
                last = Some(now);
            }
            if !crash.advance() {
                return all;
            }
        }
    }

    /// What the power cut leaves if `choice` survives: an image to be checked as any other, or why
    /// there is nothing more to check.
    ///
    /// # Errors
    /// What is wrong.
    pub fn image(&self, crash: &Crash<'_>, choice: &Choice) -> Result<Outcome, String> {
        let image = crash.image(&mut choice.keep.clone());
        let Some(stale) = choice.stale else {
            return Ok(Outcome::Newest(image));
        };
        let (model, progress) = self.expected(crash.events());
        stale::judge(&self.slots, stale, crash.events(), image, model, progress)
    }

    /// Checks what a power cut left. With `record` the further work is recorded.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(
        &self,
        cut: (usize, usize),
        image: Image,
        record: bool,
    ) -> Result<Recovered, String> {
        let after = match (cut.0 + cut.1) % 3 {
            0 if !record => After::Nothing,
            1 => After::PowerCut,
            _ => After::Checkpoint,
        };
        let options = match (cut.0 + cut.1) % 4 {
            0 => options(),
            1 => Options {
                changes_kept_bytes: KEPT_BYTES,
                ..options_of_check()
            },
            _ => options_of_check(),
        };
        let (model, progress) = self.expected(cut.0);
        check_with(options, image, model, progress, after, record)
    }
}
