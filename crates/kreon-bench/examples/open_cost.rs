//! What an opening costs: for writing and for reading, after a close and after a crash, each with the get that follows it.
//!
//! ```sh
//! cargo run --release -p kreon-bench --example open_cost -- --folder DISK
//! cargo run --release -p kreon-bench --features lmdb --example open_cost -- --keys 100000 --unspilled-bytes 1000000000
//! ```
//!
//! Two stores have the same pairs, all spilled but the last bytes of the log. One was closed. The other one is written by a
//! child in each round, which ends without closing it: the first opening behind that replays the log, as one after a crash.
//! LMDB has no log, and opens its map.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use kreon::{Options, Store};
use rustix::time::{ClockId, clock_gettime};

#[derive(Clone, Parser)]
struct Arguments {
    /// Where the stores are made; by default the folder for temporary files
    #[arg(long)]
    folder: Option<PathBuf>,
    #[arg(long, default_value_t = 1_000_000)]
    keys: u64,
    #[arg(long, default_value_t = 1000)]
    value_bytes: usize,
    /// Bytes of the log that no tree has
    #[arg(long, default_value_t = 64 << 20)]
    unspilled_bytes: u64,
    #[arg(long, default_value_t = 256 << 20)]
    memory_bytes: usize,
    /// Of each way, by turns; the median counts
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// The child's part: writes the last bytes of this store, and ends without closing it
    #[arg(long, hide = true)]
    crash: Option<PathBuf>,
}

impl Arguments {
    fn options(&self) -> Options {
        // Nothing but what is measured writes.
        let options = Store::options().memory_bytes(self.memory_bytes);
        options
            .l0_checkpoint_interval(None)
            .idle_reorganisation(false)
    }

    /// Any key, by chance.
    fn key(&self, chance: u64) -> [u8; 8] {
        (mixed(chance) % self.keys).to_be_bytes()
    }

    /// A value that no file system can make shorter.
    fn value(&self, seed: u64) -> Vec<u8> {
        let words = self.value_bytes.div_ceil(8) as u64;
        let mut value: Vec<u8> = (0..words)
            .flat_map(|word| mixed(seed << 16 ^ word).to_le_bytes())
            .collect();
        value.truncate(self.value_bytes);
        value
    }

    /// All keys, spilled.
    fn fill(&self, store: &Store) -> Result<()> {
        let region = store.region("r")?;
        for key in 0..self.keys {
            region.put(key.to_be_bytes(), self.value(key))?;
        }
        Ok(store.checkpoint()?)
    }

    /// Overwrites keys until so many bytes of the log are in no tree; they are durable then.
    fn write_unspilled(&self, store: &Store) -> Result<()> {
        let region = store.region("r")?;
        store.checkpoint()?;
        let written = self.unspilled_bytes / (self.value_bytes as u64 + 24);
        for put in 0..written {
            region.put(self.key(put), self.value(put))?;
        }
        Ok(store.sync()?)
    }
}

/// Hashes a number.
fn mixed(number: u64) -> u64 {
    let mut hash = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// What one opening and the get behind it took, in ms: time, and CPU time of the process.
#[derive(Clone, Copy)]
struct Took {
    wall: f64,
    cpu: f64,
}

fn timed<T>(open: impl FnOnce() -> Result<T>) -> Result<(Took, T)> {
    let cpu_ms = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    };
    let (begun, cpu) = (Instant::now(), cpu_ms());
    let opened = open()?;
    let took = Took {
        wall: begun.elapsed().as_secs_f64() * 1e3,
        cpu: cpu_ms() - cpu,
    };
    Ok((took, opened))
}

/// One way to open, with what each round of it took.
struct Way {
    name: &'static str,
    path: PathBuf,
    took: Vec<Took>,
    /// Of the log, in the last round.
    replayed_bytes: u64,
}

impl Way {
    fn new(name: &'static str, path: &Path) -> Self {
        Self {
            name,
            path: path.to_owned(),
            took: Vec::new(),
            replayed_bytes: 0,
        }
    }

    fn open(&mut self, options: Options, key: &[u8]) -> Result<()> {
        let (took, (store, found)) = timed(|| {
            let store = options.open(&self.path)?;
            let found = store.existing_region("r")?.get(key)?;
            Ok((store, found))
        })?;
        ensure!(found.is_some(), "a key is missing");
        self.took.push(took);
        Ok(store.close()?)
    }

    fn line(&self) -> String {
        let median = |of: fn(&Took) -> f64| {
            let mut all: Vec<f64> = self.took.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
        };
        format!(
            "{:<28} {:>9.1} {:>9.1} {:>12.1} {:>10.1}",
            self.name,
            median(|took| took.wall),
            median(|took| took.cpu),
            self.replayed_bytes as f64 / 1e6,
            space_bytes(&self.path) as f64 / 1e6,
        )
    }
}

/// What a file, or the files of a folder, take of the disk.
fn space_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = fs::read_dir(path) else {
        return path.metadata().map_or(0, |file| file.blocks() * 512);
    };
    let entries = entries.flatten().map(|entry| space_bytes(&entry.path()));
    entries.sum()
}

/// Bytes of the log that an opening of the store at `path` replays.
fn replay_bytes(options: Options, path: &Path) -> Result<u64> {
    let store = options.open(path)?;
    let bytes = store.stats().replay_bytes;
    store.close()?;
    Ok(bytes)
}

#[cfg(feature = "lmdb")]
mod lmdb {
    use std::path::Path;

    use anyhow::{Result, ensure};
    use kreon_bench_lmdb::heed::Database;
    use kreon_bench_lmdb::heed::types::Bytes;

    use super::{Arguments, Way, fs, timed};

    /// A multiple of a page, and room for what pages waste.
    fn map_bytes(arguments: &Arguments) -> usize {
        let data_bytes = arguments.keys as usize * (arguments.value_bytes + 16);
        (4 * data_bytes + (64 << 20)).next_multiple_of(4096)
    }

    /// Puts all keys, in order.
    pub fn fill(arguments: &Arguments, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        let env = kreon_bench_lmdb::open(folder, map_bytes(arguments), false)?;
        let mut transaction = env.write_txn()?;
        let table: Database<Bytes, Bytes> = env.create_database(&mut transaction, None)?;
        for key in 0..arguments.keys {
            table.put(&mut transaction, &key.to_be_bytes(), &arguments.value(key))?;
        }
        transaction.commit()?;
        Ok(env.force_sync()?)
    }

    pub fn open(arguments: &Arguments, way: &mut Way, key: &[u8]) -> Result<()> {
        let (took, found) = timed(|| {
            let env = kreon_bench_lmdb::open_to_read(&way.path, map_bytes(arguments))?;
            let transaction = env.read_txn()?;
            let table = env.open_database::<Bytes, Bytes>(&transaction, None)?;
            let found = table.map(|table| Ok(table.get(&transaction, key)?.is_some()));
            found.unwrap_or(Ok(false))
        })?;
        ensure!(found, "a key is missing");
        way.took.push(took);
        Ok(())
    }
}

/// Lets a child write the last bytes of the store at `path`, and end without closing it.
fn crash(arguments: &Arguments, path: &Path) -> Result<()> {
    let status = Command::new(std::env::current_exe()?)
        .args(["--keys", &arguments.keys.to_string()])
        .args(["--value-bytes", &arguments.value_bytes.to_string()])
        .args(["--unspilled-bytes", &arguments.unspilled_bytes.to_string()])
        .args(["--memory-bytes", &arguments.memory_bytes.to_string()])
        .arg("--crash")
        .arg(path)
        .status()
        .context("starting the child")?;
    ensure!(status.success(), "the child: {status}");
    Ok(())
}

fn measure(arguments: &Arguments, folder: &Path) -> Result<()> {
    let (closed, crashed) = (folder.join("closed"), folder.join("crashed"));
    for path in [&closed, &crashed] {
        let store = arguments.options().open(path)?;
        arguments.fill(&store)?;
        if path == &closed {
            arguments.write_unspilled(&store)?;
        }
        store.close()?;
    }
    let reading = || arguments.options().read_only(true);
    let mut ways = [
        Way::new("for writing, after a close", &closed),
        Way::new("for reading, after a close", &closed),
        Way::new("for reading, after a crash", &crashed),
        Way::new("for writing, after a crash", &crashed),
    ];
    #[cfg(feature = "lmdb")]
    let mut of_lmdb = {
        let folder = folder.join("lmdb");
        lmdb::fill(arguments, &folder)?;
        Way::new("LMDB, for reading", &folder)
    };
    for round in 0..arguments.rounds as u64 {
        // A reader changes nothing; a writer behind a crash makes a checkpoint.
        crash(arguments, &crashed)?;
        let key = arguments.key(round);
        let [write_closed, read_closed, read_crashed, write_crashed] = &mut ways;
        write_closed.open(arguments.options(), &key)?;
        read_closed.open(reading(), &key)?;
        read_crashed.replayed_bytes = replay_bytes(reading(), &crashed)?;
        write_crashed.replayed_bytes = read_crashed.replayed_bytes;
        read_crashed.open(reading(), &key)?;
        write_crashed.open(arguments.options(), &key)?;
        #[cfg(feature = "lmdb")]
        lmdb::open(arguments, &mut of_lmdb, &key)?;
    }
    for way in &mut ways[..2] {
        way.replayed_bytes = replay_bytes(reading(), &closed)?;
    }
    println!(
        "{} keys with values of {} bytes, {:.0} MB of memory; medians of {} interleaved rounds of an opening and a get",
        arguments.keys,
        arguments.value_bytes,
        arguments.memory_bytes as f64 / 1e6,
        arguments.rounds
    );
    println!(
        "{:<28} {:>9} {:>9} {:>12} {:>10}",
        "", "ms", "CPU ms", "replayed MB", "store MB"
    );
    ways.iter().for_each(|way| println!("{}", way.line()));
    #[cfg(feature = "lmdb")]
    println!("{}", of_lmdb.line());
    Ok(())
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(path) = &arguments.crash {
        let store = arguments.options().open(path)?;
        arguments.write_unspilled(&store)?;
        // Without a destructor: nothing closes the store.
        std::process::exit(0);
    }
    let parent = arguments.folder.clone();
    let parent = parent.unwrap_or_else(std::env::temp_dir);
    let folder = parent.join(format!("kreon-open-cost-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let measured = measure(&arguments, &folder);
    fs::remove_dir_all(&folder)?;
    measured
}
