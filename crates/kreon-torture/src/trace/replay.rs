//! The crash states of a recording.

use std::path::Path;
use std::time::Instant;

use kreon_engine::Options;
use kreon_sim::{Crash, Dice, Event, Image, Keep};

use super::events::{Flushes, Trace};
use super::judge::Judge;
use super::record::load;
use crate::check::{After, go_on, is_sound, said};
use crate::content::{self, Content};
use crate::counts::Counts;
use crate::plan::choices;
use crate::settings::options;
use crate::store::Store;
use crate::watchdog::{Watchdog, without_panic};

/// Of the states of one event at most so many are tried.
const STATES_PER_EVENT: u64 = 4;

/// A crash state of a recording, so that it can be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Events before the power cut.
    pub event: usize,
    /// Which of the states of the plan at this event.
    pub choice: usize,
}

/// Tries `states` crash states of the recording in `folder`.
///
/// # Errors
/// If the recording cannot be read.
pub fn replay(folder: &Path, states: u64, seed: u64) -> Result<Counts, String> {
    let started = Instant::now();
    let (trace, judge) = load(folder, Flushes::Work)?;
    describe(&trace, &judge);
    let mut counts = Counts::default();
    if trace.flushes_missing != 0 {
        let missing = trace.flushes_missing;
        counts.fail(format!(
            "{missing} flushes of the store never reached the device"
        ));
    }
    let watchdog = Watchdog::start();
    let mut dice = Dice::new(seed);
    // At some events there is nothing to choose: again until there were enough.
    while counts.total() < states && counts.failed == 0 {
        try_some(
            folder,
            (&trace, &judge),
            states,
            &mut dice,
            &watchdog,
            &mut counts,
        );
    }
    counts.elapsed = started.elapsed();
    Ok(counts)
}

/// Tries states at some events, until there were `states` of them.
fn try_some(
    folder: &Path,
    (trace, judge): (&Trace, &Judge),
    states: u64,
    dice: &mut Dice,
    watchdog: &Watchdog,
    counts: &mut Counts,
) {
    let mut crash = trace.history.crash_after(0);
    let events = (states - counts.total()).div_ceil(STATES_PER_EVENT);
    for event in some_events(trace, events, dice) {
        while crash.events() < event && crash.advance() {}
        let plan = choices(&crash, plan_seed(event));
        for _ in 0..STATES_PER_EVENT.min(plan.len() as u64) {
            let choice = dice.below(plan.len() as u64) as usize;
            let Some(chosen) = plan.get(choice).filter(|_| counts.total() < states) else {
                break;
            };
            counts.count(chosen.class);
            let place = format!(
                "--replay {} --event {event} --choice {choice}",
                folder.display()
            );
            watchdog.begin(place.clone());
            let image = crash.image(&mut chosen.keep.clone());
            let outcome = without_panic(|| check(image, trace, judge, State { event, choice }));
            if let Err(what) = outcome {
                counts.fail(format!("{place} ({}): {what}", chosen.class));
            }
        }
    }
}

/// Tries one state again.
///
/// # Errors
/// What is wrong with it.
pub fn replay_one(folder: &Path, state: State) -> Result<(), String> {
    let (trace, judge) = load(folder, Flushes::Work)?;
    let crash = trace.history.crash_after(state.event);
    let plan = choices(&crash, plan_seed(state.event));
    let chosen = plan.get(state.choice);
    let chosen = chosen.ok_or("there is no such choice at this event")?;
    println!("{chosen:?}\npending {:?}", crash.pending());
    check(crash.image(&mut chosen.keep.clone()), &trace, &judge, state)
}

/// Tries `states` states as if no flush had done anything, which the judge must notice.
///
/// # Errors
/// If the recording cannot be read, or if the judge finds nothing wrong.
pub fn ignore_flushes(folder: &Path, states: u64, seed: u64) -> Result<Counts, String> {
    let started = Instant::now();
    let (trace, judge) = load(folder, Flushes::AreLost)?;
    let watchdog = Watchdog::start();
    let mut dice = Dice::new(seed);
    let mut counts = Counts::default();
    // All that was written is open: the later, the larger.
    let events = trace.history.events.len().min(3000) as u64;
    for _ in 0..states {
        let event = (events / 4 + dice.below(events)).min(events) as usize;
        let crash = trace.history.crash_after(event);
        let (class, mut keep) = lossy(&crash, &mut dice);
        counts.count(class);
        watchdog.begin(format!("event {event}, {keep:?}"));
        let state = State { event, choice: 0 };
        let image = crash.image(&mut keep);
        if let Err(what) = without_panic(|| check(image, &trace, &judge, state)) {
            counts.fail(format!("event {event}, {keep:?}: {what}"));
        }
    }
    counts.elapsed = started.elapsed();
    Ok(counts)
}

/// What a device without flushes may lose.
fn lossy(crash: &Crash<'_>, dice: &mut Dice) -> (&'static str, Keep) {
    let pending = crash.pending();
    let write = pending.get(dice.below(pending.len() as u64) as usize);
    match (dice.below(3), write) {
        (0, Some(write)) => ("flushes lost, prefix", Keep::Before { write: write.write }),
        (1, _) => (
            "flushes lost, some writes",
            Keep::SomeWrites { seed: dice.roll() },
        ),
        _ => (
            "flushes lost, some sectors",
            Keep::SomeSectors { seed: dice.roll() },
        ),
    }
}

fn plan_seed(event: usize) -> u64 {
    Dice::new(event as u64 ^ 0x7_2ace).roll()
}

/// `count` events in order: half of them anywhere, half beside the begin or end of a flush.
fn some_events(trace: &Trace, count: u64, dice: &mut Dice) -> Vec<usize> {
    let all = trace.history.events.len() as u64 + 1;
    let is_flush =
        |event: &Event| matches!(event, Event::FlushBegan { .. } | Event::FlushEnded { .. });
    let events = trace.history.events.iter().enumerate();
    let flushes: Vec<_> = events
        .filter(|(_, e)| is_flush(e))
        .map(|(n, _)| n)
        .collect();
    let mut chosen: Vec<_> = (0..count)
        .map(
            |number| match flushes.get(dice.below(flushes.len() as u64) as usize) {
                // Before the flush's event, or right behind it.
                Some(&flush) if number % 2 == 0 => flush + dice.below(2) as usize,
                _ => dice.below(all) as usize,
            },
        )
        .collect();
    chosen.sort_unstable();
    chosen
}

/// Opens what a power cut left, judges it, and goes on with it.
fn check(image: Image, trace: &Trace, judge: &Judge, state: State) -> Result<(), String> {
    let after = match (state.event + state.choice) % 3 {
        0 => After::Nothing,
        1 => After::Checkpoint,
        _ => After::PowerCut,
    };
    let keeps_record = matches!(after, After::PowerCut);
    let options = Options {
        // Its creation may not have begun, on a device that is never empty.
        format: true,
        ..options()
    };
    let mut store = Store::on(image, &Content::new(), keeps_record).with(options);
    let engine = store.open().map_err(said("open"))?;
    let content = content::read(engine).map_err(said("read"))?;
    judge.judge(&content, &trace.known, state.event)?;
    is_sound(engine, &content)?;
    store.rebase(&content);
    go_on(&mut store, after)
}

fn describe(trace: &Trace, judge: &Judge) {
    println!(
        "trace: {} writes of {:.1} MiB together, {} discards, {} flushes; {} units acknowledged, {} marks of \
         what is durable",
        trace.writes,
        trace.written_bytes as f64 / f64::from(1 << 20),
        trace.discards,
        trace.flushes,
        judge.units(),
        trace.known.len(),
    );
}
