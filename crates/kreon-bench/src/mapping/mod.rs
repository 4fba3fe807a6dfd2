//! `kreon-bench mapping`: what each part of the mapping is worth. One store is loaded, then opened with one part
//! changed at a time (the ablations of `FastMap 4.4` and `Kreon 4.2`).

mod variants;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail, ensure};
use kreon::{MappingModes, Region, Stats, Store};

use crate::keys::{fill, hash, key, number};
use crate::meter::{Meter, Taken};
use crate::run::parent::Scratch;
use crate::ycsb::choice::{Chooser, Distribution};
use variants::{Variant, reading, writing};

/// What is measured.
#[derive(clap::Args)]
pub struct Settings {
    /// Records.
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,
    /// Bytes of a value, 8 at the least.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(8..))]
    value_bytes: u64,
    /// Memory of the store, in MiB: a quarter of the data.
    #[arg(long, default_value_t = 256)]
    memory_mib: usize,
    /// Gets that are measured, of each distribution; as many before warm the memory up.
    #[arg(long, default_value_t = 200_000)]
    gets: u64,
    /// Puts that are measured, with the checkpoint behind them.
    #[arg(long, default_value_t = 200_000)]
    puts: u64,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// Only variants whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Folder for the store; a new one in the current folder, deleted afterwards, if not given.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Loads a store and prints the tables.
///
/// # Errors
/// If the store fails, or an answer is wrong.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let scratch = Scratch::new(settings.dir.as_deref())?;
    let path = scratch.0.join("mapping.kreon");
    println!(
        "{} records of {} B, {} threads, {} MiB of memory\n",
        settings.records, settings.value_bytes, settings.threads, settings.memory_mib
    );
    let store = open(settings, &path, MappingModes::default())?;
    let region = store.region("bench")?;
    put(settings, &region, settings.records, |n| n)?;
    store.checkpoint()?;
    drop(region);
    store.close()?;
    let wanted = |variant: &Variant| variant.name.contains(&settings.only);
    println!(
        "| gets | requests | CPU us | k/s | page hits | record hits | pages read | device reads |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for variant in reading().into_iter().filter(wanted) {
        read_variant(settings, &path, &variant)?;
    }
    println!("\n| puts, checkpoint included | CPU us | k/s | pages written | pages a write |");
    println!("|---|---|---|---|---|");
    for variant in writing().into_iter().filter(wanted) {
        write_variant(settings, &path, &variant)?;
    }
    std::fs::remove_file(&path).with_context(|| format!("delete {}", path.display()))
}

fn open(settings: &Settings, path: &Path, modes: MappingModes) -> anyhow::Result<Store> {
    Ok(Store::options()
        .memory_bytes(settings.memory_mib << 20)
        .mapping_modes(modes)
        .open(path)?)
}

fn read_variant(settings: &Settings, path: &Path, variant: &Variant) -> anyhow::Result<()> {
    let store = open(settings, path, variant.modes)?;
    let region = store.region("bench")?;
    for (name, distribution) in [
        ("Zipf, scrambled", Distribution::Zipfian),
        ("Zipf", Distribution::TrueZipfian),
        ("uniform", Distribution::Uniform),
    ] {
        let chooser = Chooser::new(distribution, settings.records);
        get(settings, &region, &chooser, 1)?;
        let (before, meter) = (store.stats(), Meter::start());
        get(settings, &region, &chooser, 2)?;
        let (taken, after) = (meter.stop(), store.stats());
        let each = |of: fn(&Stats) -> u64| (of(&after) - of(&before)) as f64 / settings.gets as f64;
        println!(
            "| {} | {name} | {:.2} | {:.1} | {:.2} | {:.3} | {:.3} | {:.3} |",
            variant.name,
            cpu_us(&taken, settings.gets),
            settings.gets as f64 / taken.seconds / 1e3,
            each(|stats| stats.mapping.hits),
            each(|stats| stats.mapping.record_hits),
            each(|stats| stats.mapping.pages_read),
            each(|stats| stats.device_reads),
        );
    }
    drop(region);
    Ok(store.close()?)
}

fn write_variant(settings: &Settings, path: &Path, variant: &Variant) -> anyhow::Result<()> {
    let store = open(settings, path, variant.modes)?;
    let region = store.region("bench")?;
    let (before, meter) = (store.stats(), Meter::start());
    put(settings, &region, settings.puts, |n| {
        hash(n) % settings.records
    })?;
    store.checkpoint()?;
    let (taken, after) = (meter.stop(), store.stats());
    let pages = after.mapping.pages_written - before.mapping.pages_written;
    let writes = after.mapping.writes - before.mapping.writes;
    println!(
        "| {} | {:.2} | {:.1} | {pages} | {:.1} |",
        variant.name,
        cpu_us(&taken, settings.puts),
        settings.puts as f64 / taken.seconds / 1e3,
        pages as f64 / writes.max(1) as f64,
    );
    drop(region);
    Ok(store.close()?)
}

fn cpu_us(taken: &Taken, operations: u64) -> f64 {
    taken.cpu_seconds * 1e6 / operations as f64
}

/// Runs `each` on every thread, which takes numbers below `count` until none is left.
fn spread(
    settings: &Settings,
    count: u64,
    each: impl Fn(&mut dyn Iterator<Item = u64>) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    let next = AtomicU64::new(0);
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < count);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..settings.threads)
            .map(|_| scope.spawn(|| each(&mut std::iter::from_fn(take))))
            .collect();
        for thread in threads {
            match thread.join() {
                Ok(outcome) => outcome?,
                Err(_) => bail!("a thread panicked"),
            }
        }
        Ok(())
    })
}

fn put(
    settings: &Settings,
    region: &Region,
    count: u64,
    record: impl Fn(u64) -> u64 + Sync,
) -> anyhow::Result<()> {
    spread(settings, count, |numbers| {
        let (mut name, mut value) = (Vec::new(), vec![0; settings.value_bytes as usize]);
        for n in numbers {
            key(record(n), &mut name);
            fill(record(n), &mut value);
            region.put(&name, &value)?;
        }
        Ok(())
    })
}

fn get(settings: &Settings, region: &Region, chooser: &Chooser, seed: u64) -> anyhow::Result<()> {
    spread(settings, settings.gets, |numbers| {
        let mut name = Vec::new();
        for n in numbers {
            let uniform = (hash(n ^ seed << 48) >> 11) as f64 / (1_u64 << 53) as f64;
            let wanted = chooser.choose(settings.records, uniform);
            key(wanted, &mut name);
            let found = region.get_with(&name, number)?;
            ensure!(found == Some(Some(wanted)), "a wrong value");
        }
        Ok(())
    })
}
