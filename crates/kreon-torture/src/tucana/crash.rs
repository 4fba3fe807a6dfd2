//! The kill -9 loop: a process writes to a store in a file with several threads and commits, is killed at some moment, and what
//! its store holds is compared with what commits had returned by then.
//!
//! A kill takes away what the process had in its memory, not what it had given to the kernel: missing flushes are for the
//! simulated device.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use ::tucana::{Direction, ScanRange, Store};
use kreon_device::{FileDevice, FileOptions};
use kreon_judge::{Version, value};
use kreon_sim::Dice;

use super::setting::options;
use crate::Counts;

/// Threads of a writer. Each has keys of its own, and one change under way at most.
const THREADS: usize = 3;

/// Keys of each thread.
const KEYS: u64 = 800;

/// Longest life of a writer from its first commit on, in milliseconds.
const LIFE_MS_MAX: u64 = 400;

/// An opening takes nearly as long on no machine.
const OPENING_MAX: Duration = Duration::from_secs(60);

/// No writer makes more changes after its last commit that was heard of.
const CHANGES_MAX: u64 = 3_000_000;

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

/// The version of each key of a thread.
type Held = Vec<Option<Version>>;

/// Changes of each thread.
type Progress = [u64; THREADS];

/// Kills writers.
pub fn crash(arguments: &CrashArguments) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    if let Err(what) = rounds(arguments, &mut counts) {
        counts.fail(format!("tucana crash --seed {}: {what}", arguments.seed));
    }
    counts.elapsed = started.elapsed();
    counts
}

fn rounds(arguments: &CrashArguments, counts: &mut Counts) -> Result<(), String> {
    let CrashArguments { rounds, seed, .. } = *arguments;
    let parent = arguments.folder.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::tempdir_in(parent).map_err(|error| error.to_string())?;
    let mut path = folder.path().join("store-0");
    let mut held: Vec<Held> = vec![vec![None; KEYS as usize]; THREADS];
    let mut dice = Dice::new(seed);
    for round in 0..rounds {
        if round % 20 == 19 {
            // The log only grows: a new store now and then.
            std::fs::remove_file(&path).map_err(|error| error.to_string())?;
            path = folder.path().join(format!("store-{round}"));
            held = vec![vec![None; KEYS as usize]; THREADS];
        }
        let committed = killed(&path, seed, round, &mut dice)?;
        counts.count("kills");
        (0..committed.iter().sum::<u64>()).for_each(|_| counts.note("committed changes"));
        if let Err(what) = check(&path, (seed, round), committed, &mut held) {
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

/// Starts a writer and kills it. How many changes of each thread were committed, as far as that was heard.
fn killed(path: &Path, seed: u64, round: u64, dice: &mut Dice) -> Result<Progress, String> {
    let said = |error: std::io::Error| error.to_string();
    let mut writer = Command::new(std::env::current_exe().map_err(said)?)
        .args(["tucana", "crash-writer", "--path"])
        .arg(path)
        .args(["--seed", &seed.to_string(), "--round", &round.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(said)?;
    let output = writer.stdout.take().ok_or("the writer has no output")?;
    let has_begun = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&has_begun);
    let reader = std::thread::spawn(move || {
        let mut committed = Progress::default();
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let numbers: Option<Vec<u64>> = line.split(' ').map(|it| it.parse().ok()).collect();
            let numbers = numbers.filter(|it| it.len() == THREADS).ok_or(line)?;
            begins.store(true, SeqCst);
            // Lines of several committers may come in any order.
            for (known, number) in committed.iter_mut().zip(numbers) {
                *known = number.max(*known);
            }
        }
        Ok::<_, String>(committed)
    });
    // Some are killed in their openings.
    if dice.below(4) > 0 {
        let start = Instant::now();
        while !has_begun.load(SeqCst) && start.elapsed() < OPENING_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let outcome = end_after(&mut writer, Duration::from_millis(dice.below(LIFE_MS_MAX)));
    let committed = reader
        .join()
        .map_err(|_| "the reader of a writer panicked")?;
    outcome?;
    committed.map_err(|line| format!("a writer said {line:?}"))
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

/// Compares the store with what was committed, and goes on from what it holds.
fn check(
    path: &Path,
    (seed, round): (u64, u64),
    committed: Progress,
    held: &mut [Held],
) -> Result<(), String> {
    let store = open(path, round + 1)?;
    let mut found = vec![vec![None; KEYS as usize]; THREADS];
    for pair in store.scan(ScanRange::default(), Direction::Forward) {
        let (key, value) = pair.map_err(|error| error.to_string())?;
        let number = thread_and_key(&key).ok_or("a key that nobody put")?;
        found[number.0][number.1] = Some(value::decode(&value)?);
    }
    for (thread, (found, held)) in found.into_iter().zip(held).enumerate() {
        let changes = |number| Change::of(seed, round, thread, number);
        *held = state_of(&found, held, committed[thread], changes).ok_or_else(|| {
            let least = committed[thread];
            format!("thread {thread}: not the state after {least} changes or more")
        })?;
    }
    store.verify().map_err(|error| error.to_string())?;
    store.close().map_err(|error| error.to_string())
}

/// The state after some change from number `least` on, which is what was found.
fn state_of(
    found: &Held,
    held: &Held,
    least: u64,
    change_of: impl Fn(u64) -> Change,
) -> Option<Held> {
    let mut held = held.clone();
    let differs = |held: &Held, key: usize| held[key] != found[key];
    let mut different = (0..held.len()).filter(|&key| differs(&held, key)).count();
    for number in 0..=least + CHANGES_MAX {
        if number > 0 {
            let change = change_of(number);
            let key = change.key as usize;
            different -= usize::from(differs(&held, key));
            held[key] = change.len_bytes.map(|_| change.version);
            different += usize::from(differs(&held, key));
        }
        if number >= least && different == 0 {
            return Some(held);
        }
    }
    None
}

/// Writes until it is killed, and says what was committed.
///
/// # Errors
/// What the store said.
pub fn write(arguments: &WriterArguments) -> Result<(), String> {
    let WriterArguments { seed, round, .. } = *arguments;
    let store = open(&arguments.path, round)?;
    let done: [AtomicU64; THREADS] = Default::default();
    std::thread::scope(|scope| {
        let (store, done) = (&store, &done);
        let writers = (0..THREADS)
            .map(|thread| scope.spawn(move || changes(store, done, (seed, round, thread))));
        let committers = (0..2_u64).map(|number| scope.spawn(move || commits(store, done, number)));
        let threads: Vec<_> = writers.chain(committers).collect();
        let mut ends = threads.into_iter().map(|it| it.join());
        ends.try_for_each(|end| end.unwrap_or_else(|_| Err("a thread panicked".into())))
    })
}

fn changes(
    store: &Store,
    done: &[AtomicU64; THREADS],
    (seed, round, thread): (u64, u64, usize),
) -> Result<(), String> {
    for number in 1.. {
        let change = Change::of(seed, round, thread, number);
        let key = key_of(thread, change.key);
        let outcome = match change.len_bytes {
            Some(len_bytes) => store.put(&key, &value::encode(change.version, len_bytes)),
            None => store.delete(&key),
        };
        outcome.map_err(|error| error.to_string())?;
        done[thread].store(number, SeqCst);
    }
    Ok(())
}

/// Commits on and on; the second of two committers is slower.
fn commits(store: &Store, done: &[AtomicU64; THREADS], number: u64) -> Result<(), String> {
    loop {
        let progress = done.each_ref().map(|done| done.load(SeqCst).to_string());
        store.commit().map_err(|error| error.to_string())?;
        // A short line in one call is not cut by a kill.
        let line = format!("{}\n", progress.join(" "));
        let written = std::io::stdout().lock().write_all(line.as_bytes());
        written.map_err(|error| error.to_string())?;
        std::thread::sleep(Duration::from_millis(2 + number * 15));
    }
}

/// Another size of memory every time.
fn open(path: &Path, round: u64) -> Result<Store, String> {
    let file = FileOptions {
        create: true,
        ..FileOptions::default()
    };
    let memory_bytes = [512 << 10, 1 << 20, 8 << 20][round as usize % 3];
    let options = options(memory_bytes, 64 << 30);
    let opened = FileDevice::open(path, &file)
        .and_then(|(device, _)| Store::open(Arc::new(device), &options));
    opened.map_err(|error| format!("an opening: {error}"))
}

fn key_of(thread: usize, key: u64) -> Vec<u8> {
    // Keys of all threads are neighbours in each leaf.
    format!("key {key:06} {thread}").into_bytes()
}

fn thread_and_key(bytes: &[u8]) -> Option<(usize, usize)> {
    let text = std::str::from_utf8(bytes).ok()?.strip_prefix("key ")?;
    let (key, thread) = text.split_once(' ')?;
    let (thread, key) = (thread.parse().ok()?, key.parse().ok()?);
    (thread < THREADS && key < KEYS as usize).then_some((thread, key))
}

/// A change of a thread, by its number in the round.
#[derive(Clone, Copy, Debug)]
struct Change {
    key: u64,
    version: Version,
    /// `None`: a deletion.
    len_bytes: Option<usize>,
}

impl Change {
    fn of(seed: u64, round: u64, thread: usize, number: u64) -> Self {
        let version = (round + 1) << 40 | (thread as u64) << 36 | number;
        let mut dice = Dice::new(seed.rotate_left(17) ^ version);
        // Waves, so that leaves are split and merged.
        let deletes = [10, 80][(number / 2000 % 2) as usize];
        let sizes = [12, 12, 30, 100, 400, 3000];
        Self {
            key: dice.below(KEYS),
            version,
            len_bytes: (dice.below(100) >= deletes)
                .then(|| sizes[dice.below(sizes.len() as u64) as usize] + dice.below(20) as usize),
        }
    }
}
