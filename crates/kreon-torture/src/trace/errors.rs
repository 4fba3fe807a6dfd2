//! Failures that the block layer reports: `EIO` and `ENOSPC` as completions of real requests, made by
//! QEMU's `blkdebug`.
//!
//! The store works until a request fails; then it must say so, take no more writes unless it was for
//! lack of space, and still answer reads. On the healed device it must open, with nothing lost.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind};
use kreon_device::Device;
use kreon_engine::Engine;
use kreon_sim::Dice;

use super::daemon::Daemon;
use super::judge::Judge;
use super::mark::MARKS_BYTES;
use super::marking::Marking;
use super::record::{Over, THREADS, all_work, device, some_options, volume_bytes, work_of};
use super::work::Worker;
use crate::check::{is_sound, said};
use crate::content;
use crate::counts::Counts;
use crate::model::Prefix;
use crate::watchdog::{Watchdog, without_panic};

/// How long a store may work before it meets its failure.
const LIFE: Duration = Duration::from_secs(6);

/// Requests that a new store makes before its first unit: a failure among these is tried, too.
const WRITES_MAX: u64 = 150;

/// What the block layer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// It could not be read or written.
    Eio,
    /// There is no space.
    Enospc,
}

/// One failure.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// What fails: `write` or `flush`.
    request: &'static str,
    errno: i32,
    /// After so many writes.
    after_writes: u64,
    /// Once, or always from then on.
    is_once: bool,
}

impl Case {
    fn of(kind: Kind, number: u64, dice: &mut Dice) -> Self {
        let (request, errno) = match kind {
            Kind::Eio if number.is_multiple_of(2) => ("flush", 5),
            Kind::Eio => ("write", 5),
            Kind::Enospc => ("write", 28),
        };
        Self {
            request,
            errno,
            after_writes: 1 + dice.below(WRITES_MAX),
            is_once: (number / 2).is_multiple_of(2),
        }
    }

    fn class(&self) -> String {
        let Self { request, errno, .. } = self;
        let often = if self.is_once { "once" } else { "from then on" };
        format!("errno {errno} of a {request}, {often}")
    }

    /// The block node that fails: its state counts the writes.
    fn node(&self) -> String {
        let steps = (1..=self.after_writes).map(|state| {
            let next = state + 1;
            format!(r#"{{"event":"pwritev","state":{state},"new_state":{next}}}"#)
        });
        let Self {
            request,
            errno,
            is_once,
            after_writes,
        } = self;
        let state = after_writes + 1;
        let steps = steps.collect::<Vec<_>>().join(",");
        format!(
            r#"{{"driver":"blkdebug","node-name":"export","image":"data","discard":"unmap",
            "set-state":[{steps}],"inject-error":[{{"event":"pwritev","state":{state},
            "iotype":"{request}","errno":{errno},"once":{is_once}}}]}}"#
        )
    }
}

const DATA: &str = "driver=file,node-name=data,filename=data,discard=unmap,locking=off";

const HEALED: &str = "driver=raw,node-name=export,file=data,discard=unmap";

/// Tries `runs` failures of `kind`.
pub fn errors(folder: &Path, kind: Kind, runs: u64, seed: u64) -> Counts {
    let started = Instant::now();
    let watchdog = Watchdog::start();
    let mut counts = Counts::default();
    for number in 0..runs {
        let mut dice = Dice::new(seed ^ number << 32);
        let case = Case::of(kind, number, &mut dice);
        watchdog.begin(format!("{case:?}"));
        match without_panic(|| run(folder, &case, dice.roll())) {
            Ok(()) => counts.count(&case.class()),
            Err(what) => {
                counts.count(&case.class());
                counts.fail(format!("run {number} of --seed {seed}, {case:?}: {what}"));
            }
        }
    }
    counts.elapsed = started.elapsed();
    counts
}

/// One store and one failure.
fn run(folder: &Path, case: &Case, seed: u64) -> Result<(), String> {
    let len_bytes = volume_bytes() + MARKS_BYTES;
    let made = File::create(folder.join("data")).and_then(|file| file.set_len(len_bytes));
    made.map_err(|error| format!("making a volume: {error}"))?;
    let node = case.node();
    let daemon = Daemon::start(folder, &[DATA, &node], "volume", len_bytes)?;
    let mut workers: Vec<_> = (0..THREADS)
        .map(|thread| Worker::new(seed, thread))
        .collect();
    meet(&device(daemon.export())?, case, seed, &mut workers)?;
    daemon.stop()?;
    let daemon = Daemon::start(folder, &[DATA, HEALED], "volume", len_bytes)?;
    heal(&device(daemon.export())?, seed, &workers)?;
    daemon.stop()
}

/// Works until something fails, and looks at the store that met it.
fn meet(
    device: &Arc<Marking>,
    case: &Case,
    seed: u64,
    workers: &mut [Worker],
) -> Result<(), String> {
    let sensible = |error: &Error| match error.kind() {
        ErrorKind::Io | ErrorKind::Poisoned => Ok(()),
        ErrorKind::OutOfSpace if case.errno == 28 => Ok(()),
        _ => Err(format!("not what a failed request leads to: {error}")),
    };
    let mut dice = Dice::new(seed);
    let on = Arc::clone(device) as Arc<dyn Device>;
    let engine = match Engine::open(on, some_options(&mut dice)) {
        Ok(engine) => engine,
        Err(error) => return sensible(&error),
    };
    let over = Over::after(LIFE, device);
    let outcomes = all_work(workers, &engine, device, &AtomicU64::new(0), &over);
    let failures: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    failures.iter().try_for_each(sensible)?;
    if failures.is_empty() && workers.iter().all(|worker| !worker.is_refused()) {
        return Err("no call failed, but a request did".to_owned());
    }
    let found = content::read(&engine).map_err(said("a read after the failure"))?;
    let least: Vec<_> = workers.iter().map(Worker::acknowledged).collect();
    Judge::new(&work_of(seed, workers))
        .judge_least(&found, &least)
        .map_err(|what| format!("readers after the failure: {what}"))?;
    let is_of_store = |error: &Error| !error.to_string().contains("a mark");
    if case.errno == 5 && failures.iter().any(is_of_store) {
        match engine.region("one more") {
            Err(error) if error.kind() == ErrorKind::Poisoned => {}
            outcome => {
                let outcome = outcome.map(|_| "it was made");
                return Err(format!("a change after the failure: {outcome:?}"));
            }
        }
    }
    // A poisoned store says so; all that counts is that it ends.
    drop(engine.close());
    Ok(())
}

/// Opens the store on the healed device: nothing that was durable is lost, and it works.
fn heal(device: &Arc<Marking>, seed: u64, workers: &[Worker]) -> Result<(), String> {
    let open = || {
        let on = Arc::clone(device) as Arc<dyn Device>;
        Engine::open(on, some_options(&mut Dice::new(seed))).map_err(said("open, healed"))
    };
    let engine = open()?;
    let mut found = content::read(&engine).map_err(said("read, healed"))?;
    let least: Vec<Prefix> = workers.iter().map(Worker::durable).collect();
    let judge = Judge::new(&work_of(seed, workers));
    judge.judge_least(&found, &least)?;
    is_sound(&engine, &found)?;
    engine.region("healed").map_err(said("a region, healed"))?;
    found.insert("healed".to_owned(), content::Pairs::new());
    engine.checkpoint().map_err(said("a checkpoint, healed"))?;
    engine.close().map_err(said("close, healed"))?;
    drop(engine);
    let engine = open()?;
    match content::read(&engine).map_err(said("read, healed twice"))? == found {
        true => is_sound(&engine, &found),
        false => Err("it changed from one open to the next".to_owned()),
    }
}
