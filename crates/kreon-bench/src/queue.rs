//! `kreon-bench queue`: a region as a queue. What a push and a pop cost as the run goes on, and the space that it takes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};
use kreon::{Durability, Region, Store};

use crate::keys::{fill, number};
use crate::meter::Meter;

/// What is measured.
#[derive(clap::Args)]
pub struct Settings {
    /// Pushes, each with a pop.
    #[arg(long, default_value_t = 10_000_000)]
    operations: u64,
    /// Entries in the queue before the first pop.
    #[arg(long, default_value_t = 1000)]
    length: u64,
    /// Bytes of a value, 8 at the least.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(8..))]
    value_bytes: u64,
    /// Longest value that stands in the index; the store's default, if not given.
    #[arg(long)]
    inline_bytes: Option<usize>,
    /// Memory of the store, in MiB.
    #[arg(long, default_value_t = 256)]
    memory_mib: usize,
    /// How the first pair is read: `iter`, `range`, or `first`.
    #[arg(long, value_enum, default_value_t = Way::Iter)]
    way: Way,
    /// Instead: deletes so many keys and reads the first pair before and behind them.
    #[arg(long)]
    first_pair: Option<u64>,
    /// Folder for the store; a new one in the temporary folder, deleted afterwards, if not given.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// How the first pair is read.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Way {
    Iter,
    Range,
    First,
}

/// Runs it and prints a table.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let dir = settings.dir.clone().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("kreon-bench-{}", std::process::id()))
    });
    std::fs::create_dir_all(&dir).with_context(|| format!("make {}", dir.display()))?;
    let path = dir.join("queue.kreon");
    ensure!(!path.exists(), "{} exists", path.display());
    let outcome = match settings.first_pair {
        Some(keys) => first_pairs(settings, keys, &path),
        None => measure(settings, &path),
    };
    let removed = std::fs::remove_file(&path);
    if settings.dir.is_none() {
        let _ = std::fs::remove_dir(&dir);
    }
    outcome?;
    removed.with_context(|| format!("delete {}", path.display()))
}

fn open(settings: &Settings, path: &Path) -> anyhow::Result<(Store, Region)> {
    let mut options = Store::options().memory_bytes(settings.memory_mib << 20);
    if let Some(bytes) = settings.inline_bytes {
        options = options.inline_value_bytes_max(bytes);
    }
    let store = options.open(path)?;
    let region = store.region("queue")?;
    Ok((store, region))
}

fn measure(settings: &Settings, path: &Path) -> anyhow::Result<()> {
    println!(
        "{} pushes and pops of {} B, {} in the queue, {} MiB of memory",
        settings.operations, settings.value_bytes, settings.length, settings.memory_mib
    );
    println!(
        "| tenth | k push+pop/s | CPU us each | dead entries passed each | file MiB | spills |"
    );
    println!("|---|---|---|---|---|---|");
    let (store, region) = open(settings, path)?;
    let mut value = vec![0; settings.value_bytes as usize];
    let mut next = 0;
    let mut push = |region: &Region| -> kreon::Result<()> {
        fill(next, &mut value);
        region.put_with(next.to_be_bytes(), &value, Durability::Buffered)?;
        next += 1;
        Ok(())
    };
    for _ in 0..settings.length {
        push(&region)?;
    }
    let each = settings.operations.div_ceil(10).max(1);
    for tenth in 0..10 {
        let dead = store.stats().scanned_dead;
        let meter = Meter::start();
        for expected in tenth * each..(tenth + 1) * each {
            push(&region)?;
            pop(&region, settings.way, expected)?;
        }
        let taken = meter.stop();
        let stats = store.stats();
        println!(
            "| {} | {:.0} | {:.2} | {:.1} | {:.0} | {} |",
            tenth + 1,
            each as f64 / taken.seconds / 1e3,
            taken.cpu_seconds * 1e6 / each as f64,
            (stats.scanned_dead - dead) as f64 / each as f64,
            (std::fs::metadata(path)?.blocks() * 512) as f64 / (1 << 20) as f64,
            stats.spills,
        );
    }
    store.close()?;
    Ok(())
}

fn pop(region: &Region, way: Way, expected: u64) -> anyhow::Result<()> {
    let pair = match way {
        Way::Iter => region.iter().next().transpose()?,
        Way::Range => region.range(0_u64.to_be_bytes()..).next().transpose()?,
        Way::First => region.first()?,
    };
    let (key, value) = pair.context("the queue is empty")?;
    ensure!(number(&value) == Some(expected), "not the oldest");
    region.delete_with(&key, Durability::Buffered)?;
    Ok(())
}

/// The time of a first pair, a hundred times, in microseconds: the first, the least and the most of the others.
fn time(mut read: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<String> {
    let mut times = Vec::new();
    for _ in 0..100 {
        let begun = Instant::now();
        read()?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let rest = times.split_off(1);
    let least = rest.iter().copied().fold(f64::MAX, f64::min);
    let most = rest.iter().copied().fold(0.0, f64::max);
    Ok(format!("{:.1} / {least:.1} / {most:.1}", times[0]))
}

/// The first pair before and behind many deleted keys, in each of the places where their entries can be.
fn first_pairs(settings: &Settings, keys: u64, path: &Path) -> anyhow::Result<()> {
    println!("| deleted | entries in | forward us: first / least / most of 99 | backward |");
    println!("|---|---|---|---|");
    for how in ["keys in order", "keys in any order", "a range"] {
        for place in ["L0", "L1, deletions in L0", "L1, deletions spilled"] {
            let (store, region) = open(settings, path)?;
            let mut value = vec![0; settings.value_bytes as usize];
            for n in 0..2 * keys + 1 {
                fill(n, &mut value);
                region.put_with(n.to_be_bytes(), &value, Durability::Buffered)?;
            }
            if place != "L0" {
                store.checkpoint()?;
            }
            // All but the one in the middle.
            for part in [0, keys + 1] {
                match how {
                    "a range" => {
                        let (from, to) = (part.to_be_bytes(), (part + keys).to_be_bytes());
                        region.delete_range_with(from..to, Durability::Buffered)?;
                    }
                    _ => {
                        for at in 0..keys {
                            let is_in_order = how == "keys in order";
                            let at = if is_in_order { at } else { at * 7919 % keys };
                            let key = (part + at).to_be_bytes();
                            region.delete_with(key, Durability::Buffered)?;
                        }
                    }
                }
            }
            if place == "L1, deletions spilled" {
                store.checkpoint()?;
            }
            let middle = |pair: Option<kreon::Result<(kreon::Value, kreon::Value)>>| {
                let (_, value) = pair.transpose()?.context("there is one key")?;
                ensure!(number(&value) == Some(keys), "another key");
                Ok(())
            };
            let forward = time(|| middle(region.iter().next()))?;
            let backward = time(|| middle(region.iter().next_back()))?;
            println!("| {how} | {place} | {forward} | {backward} |");
            store.close()?;
            std::fs::remove_file(path)?;
        }
    }
    // What the caller deletes.
    std::fs::write(path, b"")?;
    Ok(())
}
