//! The kill -9 loop: a process writes to a store in a file with several threads, is killed at some moment, and what its
//! store holds is compared with what it was told to be durable. Each opening has another number of workers.
//!
//! A kill takes away what the process had in its memory, not what it had given to the kernel: missing flushes are for the
//! simulated device.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use ::kvell::{Durability, Options, Region, Store};
use kreon_judge::value;
use kreon_sim::Dice;

use crate::Counts;

/// Threads of a writer. Each has keys of its own, and one change under way at most.
const THREADS: u8 = 4;

/// Keys of each thread.
const KEYS: u64 = 150;

/// Longest life of a writer from its first change on, in milliseconds.
const LIFE_MS_MAX: u64 = 300;

/// An opening takes nearly as long on no machine.
const OPENING_MAX: Duration = Duration::from_secs(60);

/// The loop.
#[derive(clap::Args, Clone, Debug)]
pub struct CrashArguments {
    /// How often a writer is killed.
    #[arg(long, default_value_t = 100)]
    rounds: u64,
    /// Seed of the changes; the moments of the kills stay chance.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the store is made; the folder for temporary files by default.
    #[arg(long)]
    folder: Option<PathBuf>,
}

/// The process that is killed.
#[derive(clap::Args, Clone, Debug)]
pub struct WriterArguments {
    #[arg(long)]
    path: PathBuf,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    round: u64,
}

/// What a key must have: the version of its last change, and whether that was a deletion.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    version: u64,
    is_there: bool,
}

/// Keys by thread.
type Model = Vec<Vec<Last>>;

/// Kills writers.
pub fn crash(arguments: &CrashArguments) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    if let Err(what) = rounds(arguments, &mut counts) {
        counts.fail(format!("kvell crash --seed {}: {what}", arguments.seed));
    }
    counts.elapsed = started.elapsed();
    counts
}

fn rounds(arguments: &CrashArguments, counts: &mut Counts) -> Result<(), String> {
    let CrashArguments { rounds, seed, .. } = *arguments;
    let parent = arguments.folder.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::tempdir_in(parent).map_err(|error| error.to_string())?;
    let path = folder.path().join("store");
    let mut model: Model = vec![vec![Last::default(); KEYS as usize]; THREADS.into()];
    let mut dice = Dice::new(seed);
    for round in 0..rounds {
        let acknowledged = killed(&path, seed, round, &mut dice)?;
        let total: u64 = acknowledged.iter().sum();
        counts.count("kills");
        (0..total).for_each(|_| counts.note("acknowledged changes"));
        let outcome = check(&path, (seed, round), &acknowledged, &mut model);
        if let Err(what) = outcome {
            // The store stays for those who want to look at it.
            let kept = folder.keep();
            return Err(format!(
                "round {round}: {what}; the store is in {}",
                kept.display()
            ));
        }
    }
    Ok(())
}

/// Starts a writer and kills it. How many changes of each thread were acknowledged.
fn killed(path: &Path, seed: u64, round: u64, dice: &mut Dice) -> Result<Vec<u64>, String> {
    let said = |error: std::io::Error| error.to_string();
    let mut writer = Command::new(std::env::current_exe().map_err(said)?)
        .args(["kvell", "crash-writer", "--path"])
        .arg(path)
        .args(["--seed", &seed.to_string(), "--round", &round.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(said)?;
    let output = writer.stdout.take().ok_or("the writer has no output")?;
    let has_begun = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&has_begun);
    let reader = std::thread::spawn(move || {
        let mut acknowledged = vec![0; THREADS.into()];
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let (thread, number) = line.split_once(' ').ok_or(line.clone())?;
            let thread: usize = thread.parse().map_err(|_| line.clone())?;
            let number: u64 = number.parse().map_err(|_| line.clone())?;
            begins.store(true, SeqCst);
            *acknowledged.get_mut(thread).ok_or(line)? = number;
        }
        Ok::<_, String>(acknowledged)
    });
    // Some are killed in their openings.
    if dice.below(4) > 0 {
        let start = Instant::now();
        while !has_begun.load(SeqCst) && start.elapsed() < OPENING_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let outcome = end_after(&mut writer, Duration::from_millis(dice.below(LIFE_MS_MAX)));
    let acknowledged = reader
        .join()
        .map_err(|_| "the reader of a writer panicked")?;
    outcome?;
    acknowledged.map_err(|line| format!("a writer said {line:?}"))
}

fn end_after(writer: &mut Child, life: Duration) -> Result<(), String> {
    std::thread::sleep(life);
    let early = writer.try_wait().map_err(|error| error.to_string())?;
    writer
        .kill()
        .and_then(|()| writer.wait())
        .map_err(|error| error.to_string())?;
    match early {
        None => Ok(()),
        Some(status) => Err(format!("the writer ended by itself: {status}")),
    }
}

/// Compares the store with what was acknowledged.
fn check(
    path: &Path,
    (seed, round): (u64, u64),
    acknowledged: &[u64],
    model: &mut Model,
) -> Result<(), String> {
    let store = open(path, round + 1)?;
    let region = region(&store)?;
    for (thread, (&count, keys)) in (0..).zip(acknowledged.iter().zip(model)) {
        for number in 1..=count {
            let change = Change::of(seed, round, thread, number);
            keys[change.key as usize] = change.last();
        }
        // The next one had perhaps begun.
        let begun = Change::of(seed, round, thread, count + 1);
        for (key, known) in (0..).zip(keys.iter_mut()) {
            let found = found(&region, thread, key)?;
            let is_begun = begun.key == key && begun.last().is_seen_as(found);
            if is_begun {
                *known = begun.last();
            } else if !known.is_seen_as(found) {
                return Err(format!(
                    "thread {thread}, key {key}: {found:?} after {count} changes, not {known:?} or {begun:?}"
                ));
            }
        }
    }
    let report = store.verify().map_err(|error| error.to_string())?;
    match report.damage.first() {
        Some(damage) => Err(damage.to_string()),
        // Dropped, it is closed.
        None => Ok(()),
    }
}

fn found(region: &Region, thread: u8, key: u64) -> Result<Option<u64>, String> {
    let found = region
        .get(key_of(thread, key))
        .map_err(|error| error.to_string())?;
    found.map(|value| value::decode(&value)).transpose()
}

/// Writes until it is killed, and says what was acknowledged.
///
/// # Errors
/// What the store said.
pub fn write(arguments: &WriterArguments) -> Result<(), String> {
    let WriterArguments { seed, round, .. } = *arguments;
    let store = open(&arguments.path, round)?;
    let region = region(&store)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let region = &region;
                scope.spawn(move || changes(region, seed, round, thread))
            })
            .collect();
        let mut ends = threads.into_iter().map(|it| it.join());
        ends.try_for_each(|end| end.unwrap_or_else(|_| Err("a thread panicked".into())))
    })
}

fn changes(region: &Region, seed: u64, round: u64, thread: u8) -> Result<(), String> {
    for number in 1.. {
        let change = Change::of(seed, round, thread, number);
        let key = key_of(thread, change.key);
        let outcome = match change.len_bytes {
            Some(len_bytes) => {
                let value = value::encode(change.version, len_bytes);
                region.put(key, value, Durability::Sync)
            }
            None => region.delete(key, Durability::Sync),
        };
        outcome.map_err(|error| error.to_string())?;
        // A short line in one call is not cut by a kill.
        let line = format!("{thread} {number}\n");
        let written = std::io::stdout().lock().write_all(line.as_bytes());
        written.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Another number of workers every time.
fn open(path: &Path, round: u64) -> Result<Store, String> {
    let options = Options {
        memory_bytes: 4 << 20,
        partitions: 6,
        workers: Some(1 + round as usize % 5),
        ..Options::default()
    };
    options
        .open(path)
        .map_err(|error| format!("an opening: {error}"))
}

fn region(store: &Store) -> Result<Region, String> {
    store.region("r").map_err(|error| error.to_string())
}

fn key_of(thread: u8, key: u64) -> Vec<u8> {
    format!("thread {thread} key {key}").into_bytes()
}

/// A change of a thread, by its number in the round.
#[derive(Clone, Copy, Debug)]
struct Change {
    key: u64,
    version: u64,
    /// `None`: a deletion.
    len_bytes: Option<usize>,
}

impl Change {
    fn of(seed: u64, round: u64, thread: u8, number: u64) -> Self {
        let version = round << 40 | u64::from(thread) << 32 | number;
        let mut dice = Dice::new(seed.rotate_left(17) ^ version);
        let sizes = [20, 100, 450, 1000, 4000, 30_000];
        Self {
            key: dice.below(KEYS),
            version,
            len_bytes: (dice.below(5) > 0)
                .then(|| sizes[dice.below(sizes.len() as u64) as usize] + dice.below(20) as usize),
        }
    }

    fn last(&self) -> Last {
        Last {
            version: self.version,
            is_there: self.len_bytes.is_some(),
        }
    }
}

impl Last {
    fn is_seen_as(&self, found: Option<u64>) -> bool {
        found == self.is_there.then_some(self.version)
    }
}
