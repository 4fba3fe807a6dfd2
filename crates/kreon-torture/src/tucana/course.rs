//! Openings of a store, each ended by a power cut, and checks of what the cut may leave.

use ::tucana::{Error, Recovery};
use kreon_judge::Version;
use kreon_sim::{Crash, Dice, Image, Keep, SimDevice};

use super::compare::{Wrong, contents};
use super::model::{Journal, Pairs};
use super::pattern::Pattern;
use super::session::{Moment, Session, excused};
use super::setting::Setting;
use super::store::Tucana;
use crate::Counts;
use crate::engines::{Cut, Engine};

/// Openings of a store.
const ROUNDS: u64 = 4;

/// Crash states of a seed.
const STATES: u64 = 48;

/// Steps after a power cut, at most.
const STEPS_AFTER_MAX: u64 = 60;

impl Cut for Tucana {
    const STATES: u64 = STATES;

    fn cuts(seed: u64) -> (Counts, Result<(), Wrong>) {
        let mut counts = Counts::default();
        let outcome = run(seed, &mut counts);
        (counts, outcome)
    }
}

/// Opens, uses and cuts a store, all from `seed`. `Err` tells what was wrong, and in which round.
fn run(seed: u64, counts: &mut Counts) -> Result<(), Wrong> {
    let mut dice = Dice::new(seed);
    let setting = Setting::new(&mut dice);
    let mut course = Course {
        image: Image::default(),
        pairs: vec![None; setting.keys.len()],
        version: 0,
        setting,
        dice,
    };
    // Each opening takes a segment, of the reserve of a full volume: after some of them it cannot be opened.
    let rounds = if course.setting.may_be_full() {
        1
    } else {
        ROUNDS
    };
    for round in 0..rounds {
        let outcome = course.round(STATES / rounds, counts);
        outcome.map_err(|what| format!("round {round}: {what}; {}", course.setting))?;
    }
    Ok(())
}

/// A store between two openings.
struct Course {
    setting: Setting,
    dice: Dice,
    /// What a power cut left, and what the store holds then.
    image: Image,
    pairs: Pairs,
    version: Version,
}

impl Course {
    fn round(&mut self, cuts: u64, counts: &mut Counts) -> Result<(), Wrong> {
        let device = self.setting.device(self.image.clone(), true);
        let store = match self.setting.open(&device) {
            Ok(store) => store,
            Err(error) => return self.not_opened(&error),
        };
        let journal = self.use_store(&device, store)?;
        self.cut(&device, &journal, (cuts, counts))
    }

    /// A volume that may be full before a store is on it is no fault of the store.
    fn not_opened(&self, error: &Error) -> Result<(), Wrong> {
        match self.image.len_bytes() {
            0 => Ok(()),
            _ => Err(format!("an opening failed: {error} ({:?})", error.kind())),
        }
    }

    fn use_store(&mut self, device: &SimDevice, store: Tucana) -> Result<Journal, Wrong> {
        let (setting, dice) = (&self.setting, &mut self.dice);
        let held = (self.pairs.clone(), self.version);
        let mut session = Session::new(&store, device, setting, held);
        session.compare_all(dice)?;
        if setting.is_filled && self.version == 0 {
            session.fill(dice)?;
        }
        let mut pattern = Pattern::new(dice, setting.keys.len());
        for _ in 0..setting.steps {
            session.step(dice, &mut pattern)?;
        }
        session.compare_all(dice)?;
        let (mut journal, _, version) = session.end(dice)?;
        self.version = version;
        if dice.below(4) == 0 {
            let begin = Moment::of(device);
            let outcome = store.close();
            begin.note(device, outcome.is_ok(), &mut journal);
            outcome.or_else(|error| excused("a close", &error, device, setting))?;
        }
        Ok(journal)
    }

    /// Tries power cuts behind some events, and goes on with what one of them left.
    fn cut(
        &mut self,
        device: &SimDevice,
        journal: &Journal,
        (cuts, counts): (u64, &mut Counts),
    ) -> Result<(), Wrong> {
        let history = device.history();
        let mut moments: Vec<usize> = (0..cuts)
            .map(|_| moment(&mut self.dice, journal, history.events.len()))
            .collect();
        moments.sort_unstable();
        let mut crash = history.crash_after(0);
        let chosen = self.dice.below(cuts);
        for (number, events) in (0..).zip(moments) {
            while crash.events() < events && crash.advance() {}
            let mut keep = keep(&mut self.dice, &crash);
            let image = crash.image(&mut keep);
            let found = self.check(image.clone(), journal, events);
            let pairs = found.map_err(|what| format!("{keep:?} after {events} events: {what}"))?;
            counts.count("crash states");
            if number == chosen {
                (self.image, self.pairs) = (image, pairs);
            }
        }
        Ok(())
    }

    /// Opens what a power cut left. What it holds, which may be.
    fn check(&mut self, image: Image, journal: &Journal, events: usize) -> Result<Pairs, Wrong> {
        let (setting, dice) = (&self.setting, &mut self.dice);
        let device = setting.device(image, false);
        let told = |error: Error| format!("{error} ({:?})", error.kind());
        let store = setting.open(&device).map_err(told)?;
        let found = contents(&store, &setting.keys).map_err(told)??;
        journal.judge(&found, events)?;
        let mut session = Session::new(&store, &device, setting, (found.clone(), self.version));
        session.verify()?;
        if dice.below(3) > 0 {
            return Ok(found);
        }
        // The store goes on.
        let mut pattern = Pattern::new(dice, setting.keys.len());
        for _ in 0..dice.below(STEPS_AFTER_MAX) {
            session.step(dice, &mut pattern)?;
        }
        session.verify()?;
        let (_, pairs, version) = session.end(dice)?;
        // A replay finds what a sync has made durable.
        let is_dropped = setting.recovery == Recovery::ReplayLog && dice.below(2) == 0;
        let ended = match is_dropped {
            true => store.sync().map(|()| drop(store)),
            false => store.close(),
        };
        if let Err(error) = ended {
            excused("an end", &error, &device, setting)?;
            return Ok(found);
        }
        let store = match setting.open(&device) {
            Ok(store) => store,
            Err(error) => {
                excused("a third opening", &error, &device, setting)?;
                return Ok(found);
            }
        };
        Session::new(&store, &device, setting, (pairs, version)).compare_all(dice)?;
        Ok(found)
    }
}

/// A moment for a power cut: any, or one in a commit.
fn moment(dice: &mut Dice, journal: &Journal, events: usize) -> usize {
    if dice.below(3) == 0 {
        return dice.below(events as u64 + 1) as usize;
    }
    let (began, ended) = journal.moments(dice.roll());
    let moment = began + dice.below((ended - began) as u64 + 2) as usize;
    moment.min(events)
}

fn keep(dice: &mut Dice, crash: &Crash<'_>) -> Keep {
    let seed = dice.roll();
    let pending = crash.pending();
    match dice.below(10) {
        0 => Keep::All,
        1 => Keep::Nothing,
        2 | 3 => Keep::SomeWrites { seed },
        4 if !pending.is_empty() => {
            let torn = &pending[dice.below(pending.len() as u64) as usize];
            Keep::Torn {
                write: torn.write,
                sectors: dice.below(16),
            }
        }
        _ => Keep::SomeSectors { seed },
    }
}
