//! The kill -9 loop: a process writes to a store in a file with several threads, is killed at some moment, and what its store
//! holds is compared with what it was told to be durable.
//!
//! A kill takes away what the process had in its memory, not what it had given to the kernel: missing flushes are for the
//! simulated device.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use kreon_base::Result;
use kreon_judge::{Version, value};
use kreon_sim::Dice;

use super::engine::{Durability, Engine};
use super::prefix::changes_kept;
use crate::Counts;

/// An opening takes nearly as long on no machine.
const OPENING_MAX: Duration = Duration::from_secs(60);

/// No thread makes more changes after those that it was told to be durable.
const UNTOLD_MAX: u64 = 3_000_000;

/// An engine whose processes are killed.
pub(crate) trait Killed: Engine {
    /// Threads of a writer. Each has keys of its own, and one change under way at most.
    const THREADS: usize;

    /// Keys of each thread.
    const KEYS: u64;

    /// Longest life of a writer from the first change on that is durable, in milliseconds.
    const LIFE_MS_MAX: u64;

    /// Rounds of a store; then there is a new one.
    const STORE_ROUNDS: u64;

    /// What lengths values have, about.
    const VALUE_BYTES: &'static [usize];

    /// A change that was acknowledged outlives its process, whatever its durability.
    const KEEPS_BUFFERED: bool;

    /// What changes are called that must be there.
    const DURABLE: &'static str;

    /// How writers of the store number `store` write.
    fn manner(seed: u64, store: u64) -> Manner;

    /// Of hundred changes around number `number` so many are deletions.
    fn deletes(number: u64) -> u64;

    /// Opens the store number `store`, at `path`; in each round with other options.
    fn open_file(path: &Path, seed: u64, store: u64, round: u64) -> Result<Self>;
}

/// How a process writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// In hundredths: changes that are durable when they return.
    pub syncs: u64,
    /// Threads that make everything durable, on and on.
    pub committers: u64,
}

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

/// Kills writers.
pub(crate) fn crash<E: Killed>(arguments: &CrashArguments) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    if let Err(what) = rounds::<E>(arguments, &mut counts) {
        let (engine, seed) = (E::NAME, arguments.seed);
        counts.fail(format!("{engine} crash --seed {seed}: {what}"));
    }
    counts.elapsed = started.elapsed();
    counts
}

fn rounds<E: Killed>(arguments: &CrashArguments, counts: &mut Counts) -> Outcome {
    let CrashArguments { rounds, seed, .. } = *arguments;
    let parent = arguments.folder.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::tempdir_in(parent).map_err(|error| error.to_string())?;
    let path = folder.path().join("store");
    let mut held: Vec<Held> = Vec::new();
    let mut dice = Dice::new(seed);
    for round in 0..rounds {
        if round % E::STORE_ROUNDS == 0 {
            if round > 0 {
                std::fs::remove_file(&path).map_err(|error| error.to_string())?;
            }
            held = vec![vec![None; E::KEYS as usize]; E::THREADS];
        }
        let durable = killed::<E>(&path, (seed, round), &mut dice)?;
        counts.count("kills");
        (0..durable.iter().sum::<u64>()).for_each(|_| counts.note(E::DURABLE));
        if let Err(what) = check::<E>(&path, (seed, round), &durable, &mut held) {
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

/// What is wrong.
type Outcome = std::result::Result<(), String>;

/// Starts a writer and kills it. How many changes of each thread it was told to be durable, as far as that was heard.
fn killed<E: Killed>(
    path: &Path,
    (seed, round): (u64, u64),
    dice: &mut Dice,
) -> std::result::Result<Vec<u64>, String> {
    let said = |error: std::io::Error| error.to_string();
    let mut writer = Command::new(std::env::current_exe().map_err(said)?)
        .args([E::NAME, "crash-writer", "--path"])
        .arg(path)
        .args(["--seed", &seed.to_string(), "--round", &round.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(said)?;
    let output = writer.stdout.take().ok_or("the writer has no output")?;
    let has_begun = Arc::new(AtomicBool::new(false));
    let begins = Arc::clone(&has_begun);
    let reader = std::thread::spawn(move || {
        let mut durable = vec![0; E::THREADS];
        for line in BufReader::new(output).lines().map_while(|line| line.ok()) {
            let numbers: Option<Vec<u64>> = line.split(' ').map(|it| it.parse().ok()).collect();
            let numbers = numbers.filter(|it| it.len() == E::THREADS).ok_or(line)?;
            begins.store(true, SeqCst);
            // Lines of several threads may come in any order.
            for (known, number) in durable.iter_mut().zip(numbers) {
                *known = number.max(*known);
            }
        }
        Ok::<_, String>(durable)
    });
    // Some are killed in their openings.
    if dice.below(4) > 0 {
        let start = Instant::now();
        while !has_begun.load(SeqCst) && start.elapsed() < OPENING_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let outcome = end_after(
        &mut writer,
        Duration::from_millis(dice.below(E::LIFE_MS_MAX)),
    );
    let durable = reader
        .join()
        .map_err(|_| "the reader of a writer panicked")?;
    outcome?;
    durable.map_err(|line| format!("a writer said {line:?}"))
}

fn end_after(writer: &mut Child, life: Duration) -> Outcome {
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

/// Compares the store with what was durable, and goes on from what it holds.
fn check<E: Killed>(
    path: &Path,
    (seed, round): (u64, u64),
    durable: &[u64],
    held: &mut [Held],
) -> Outcome {
    let said = |error: kreon_base::Error| error.to_string();
    let number = round / E::STORE_ROUNDS;
    let manner = E::manner(seed, number);
    let store = opened::<E>(path, seed, (number, round + 1))?;
    let threads = 0..E::THREADS;
    let all = threads.flat_map(|thread| (0..E::KEYS).map(move |key| key_of(thread, key)));
    let found = store.contents(&all.collect::<Vec<_>>()).map_err(said)?;
    let versions = found
        .into_iter()
        .map(|value| value.map(|value| value::decode(&value)).transpose());
    let versions = versions.collect::<std::result::Result<Held, String>>()?;
    let of_threads = versions.chunks(E::KEYS as usize);
    for (thread, (found, held)) in of_threads.zip(held).enumerate() {
        let least = durable[thread];
        // The next one has perhaps begun.
        let more = match E::KEEPS_BUFFERED || manner.syncs == 100 {
            true => 1,
            false => UNTOLD_MAX,
        };
        let kept = changes_kept(found, held, (least, least + more), |number| {
            let change = Change::of::<E>((seed, round), &manner, thread, number);
            (change.key as usize, change.held())
        });
        kept.map_err(|different| {
            format!(
                "thread {thread}: not the state after {least} changes or more; {different} keys differ from the last"
            )
        })?;
        *held = found.to_vec();
    }
    store.verify().map_err(said)?;
    store.close().map_err(said)
}

/// Writes until it is killed, and says what is durable.
pub(crate) fn write<E: Killed>(arguments: &WriterArguments) -> Outcome {
    let WriterArguments { seed, round, .. } = *arguments;
    let number = round / E::STORE_ROUNDS;
    let manner = E::manner(seed, number);
    let store = opened::<E>(&arguments.path, seed, (number, round))?;
    let done: Vec<AtomicU64> = (0..E::THREADS).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        let (store, done, manner) = (&store, &done, &manner);
        let writers = (0..E::THREADS)
            .map(|thread| scope.spawn(move || changes(store, done, manner, (seed, round, thread))));
        let committers =
            (0..manner.committers).map(|number| scope.spawn(move || commits(store, done, number)));
        let threads: Vec<_> = writers.chain(committers).collect();
        let mut ends = threads.into_iter().map(|it| it.join());
        ends.try_for_each(|end| end.unwrap_or_else(|_| Err("a thread panicked".into())))
    })
}

fn changes<E: Killed>(
    store: &E,
    done: &[AtomicU64],
    manner: &Manner,
    (seed, round, thread): (u64, u64, usize),
) -> Outcome {
    let mut durable = vec![0; E::THREADS];
    for number in 1.. {
        let change = Change::of::<E>((seed, round), manner, thread, number);
        let value = change
            .len_bytes
            .map(|len_bytes| value::encode(change.version, len_bytes));
        let key = key_of(thread, change.key);
        let outcome = store.change(&key, value.as_deref(), change.durability);
        outcome.map_err(|error| error.to_string())?;
        done[thread].store(number, SeqCst);
        if E::KEEPS_BUFFERED || change.durability == Durability::Sync {
            durable[thread] = number;
            say(&durable)?;
        }
    }
    Ok(())
}

/// Makes all changes durable, on and on; the second of two committers is slower.
fn commits<E: Killed>(store: &E, done: &[AtomicU64], number: u64) -> Outcome {
    loop {
        let progress: Vec<u64> = done.iter().map(|done| done.load(SeqCst)).collect();
        store.sync().map_err(|error| error.to_string())?;
        say(&progress)?;
        std::thread::sleep(Duration::from_millis(2 + number * 15));
    }
}

/// Says how many changes of each thread are durable.
fn say(durable: &[u64]) -> Outcome {
    let numbers: Vec<String> = durable.iter().map(u64::to_string).collect();
    // A short line in one call is not cut by a kill.
    let line = format!("{}\n", numbers.join(" "));
    let written = std::io::stdout().lock().write_all(line.as_bytes());
    written.map_err(|error| error.to_string())
}

fn opened<E: Killed>(
    path: &Path,
    seed: u64,
    (store, round): (u64, u64),
) -> std::result::Result<E, String> {
    E::open_file(path, seed, store, round).map_err(|error| format!("an opening: {error}"))
}

fn key_of(thread: usize, key: u64) -> Vec<u8> {
    // Keys of all threads are neighbours.
    format!("key {key:06} {thread}").into_bytes()
}

/// A change of a thread, by its number in the round.
#[derive(Clone, Copy, Debug)]
struct Change {
    key: u64,
    version: Version,
    /// `None`: a deletion.
    len_bytes: Option<usize>,
    durability: Durability,
}

impl Change {
    fn of<E: Killed>(
        (seed, round): (u64, u64),
        manner: &Manner,
        thread: usize,
        number: u64,
    ) -> Self {
        let version = (round + 1) << 40 | (thread as u64) << 36 | number;
        let mut dice = Dice::new(seed.rotate_left(17) ^ version);
        let sizes = E::VALUE_BYTES;
        Self {
            key: dice.below(E::KEYS),
            version,
            len_bytes: (dice.below(100) >= E::deletes(number))
                .then(|| sizes[dice.below(sizes.len() as u64) as usize] + dice.below(20) as usize),
            durability: match dice.below(100) < manner.syncs {
                true => Durability::Sync,
                false => Durability::Buffered,
            },
        }
    }

    /// What its key has then.
    fn held(&self) -> Option<Version> {
        self.len_bytes.map(|_| self.version)
    }
}
