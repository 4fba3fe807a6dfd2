//! `kreon-bench regions`: what a store costs that has very many regions: making them, the first pair in each, checkpoints,
//! opening, and writes beside those to a store that has one region.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use kreon::{Durability, Options, Region, Store};

use crate::keys::{fill, key};
use crate::meter::{Meter, Taken};
use crate::run::parent::Scratch;

/// What is measured.
#[derive(clap::Args)]
pub struct Settings {
    /// Regions.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    regions: u64,
    /// Memory of a store, in MiB.
    #[arg(long, default_value_t = 256)]
    memory_mib: usize,
    /// Puts of a round into one region of a store with one, and of a store with many.
    #[arg(long, default_value_t = 200_000)]
    puts: u64,
    /// Bytes of their values, 8 at the least.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(8..))]
    value_bytes: u64,
    /// Rounds, the two stores by turns.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Folder for the stores; a new one in the current folder, deleted afterwards, if not given.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Makes the stores and prints what it costs.
///
/// # Errors
/// If the store or the file system fails, or a region or pair is missing.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let scratch = Scratch::new(settings.dir.as_deref())?;
    let path = scratch.0.join("many.kreon");
    println!(
        "{} regions, {} MiB of memory\n",
        settings.regions, settings.memory_mib
    );
    println!("| | us each | CPU us each | all, ms | written | file |");
    println!("|---|---|---|---|---|---|");
    make(settings, &path)?;
    let many = reopen(settings, &path)?;
    println!("\n| store | put us | CPU us a put |");
    println!("|---|---|---|");
    let one = options(settings).open(scratch.0.join("one.kreon"))?;
    let stores = [
        ("one region", one.region("region")?),
        ("all regions", many.region(&name(0))?),
    ];
    for round in 0..settings.rounds {
        for (what, region) in &stores {
            let taken = puts(settings, region, round)?;
            let us = |seconds: f64| seconds * 1e6 / settings.puts as f64;
            let (wall, cpu) = (us(taken.seconds), us(taken.cpu_seconds));
            println!("| {what} | {wall:.2} | {cpu:.2} |");
        }
    }
    Ok(())
}

fn options(settings: &Settings) -> Options {
    Store::options()
        .memory_bytes(settings.memory_mib << 20)
        .l0_checkpoint_interval(Duration::MAX)
}

fn name(number: u64) -> String {
    format!("region {number:08}")
}

/// Makes the regions, puts a pair into each, and makes checkpoints.
fn make(settings: &Settings, path: &Path) -> anyhow::Result<()> {
    let phase = Phase {
        path,
        regions: settings.regions,
    };
    let store = options(settings).open(path)?;
    ensure!(store.region_names().is_empty(), "a new store has regions");
    let mut regions = Vec::new();
    phase.measure(&store, "make, buffered", settings.regions, || {
        for number in 0..settings.regions {
            regions.push(store.region(&name(number))?);
        }
        Ok(())
    })?;
    phase.measure(&store, "sync", 1, || Ok(store.sync()?))?;
    phase.measure(&store, "put one in each", settings.regions, || {
        for region in &regions {
            region.put("key", "value")?;
        }
        Ok(())
    })?;
    drop(regions);
    phase.measure(&store, "checkpoint", 1, || Ok(store.checkpoint()?))?;
    store.region(&name(0))?.put("key", "another value")?;
    let what = "checkpoint after one put";
    phase.measure(&store, what, 1, || Ok(store.checkpoint()?))?;
    store.region("dropped")?.put("key", "value")?;
    phase.measure(&store, "drop", 1, || Ok(store.drop_region("dropped")?))?;
    phase.measure(&store, "make, durable", 100, || {
        for number in 0..100 {
            let region = store.region(&name(settings.regions + number))?;
            region.put_with("key", "value", Durability::Sync)?;
        }
        Ok(())
    })?;
    store.close()?;
    Ok(())
}

/// Opens the store, and looks whether all is there.
fn reopen(settings: &Settings, path: &Path) -> anyhow::Result<Store> {
    let meter = Meter::start();
    let store = options(settings).open(path)?;
    let taken = meter.stop();
    println!(
        "| open | | | {:.0} (CPU {:.0}) | | |",
        taken.seconds * 1e3,
        taken.cpu_seconds * 1e3
    );
    let found = store.region_names().len() as u64;
    let expected = settings.regions + 100;
    ensure!(found == expected, "{found} regions of {expected}");
    for number in (0..settings.regions).step_by(97) {
        let value = store.existing_region(&name(number))?.get("key")?;
        ensure!(value.is_some(), "a pair is missing");
    }
    Ok(store)
}

/// A store as it goes through its phases.
struct Phase<'a> {
    path: &'a Path,
    regions: u64,
}

impl Phase<'_> {
    /// Does `work`, which is `count` times the same, and prints a row.
    fn measure(
        &self,
        store: &Store,
        what: &str,
        count: u64,
        work: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let written = store.stats().device_write_bytes;
        let meter = Meter::start();
        work()?;
        let Taken {
            seconds,
            cpu_seconds,
        } = meter.stop();
        let written = store.stats().device_write_bytes - written;
        let blocks = std::fs::metadata(self.path)
            .context("look at the file")?
            .blocks();
        let each = |seconds: f64| seconds * 1e6 / count as f64;
        println!(
            "| {what} | {:.2} | {:.2} | {:.0} | {:.2} MB | {:.1} MB, {:.0} B a region |",
            each(seconds),
            each(cpu_seconds),
            seconds * 1e3,
            written as f64 / 1e6,
            blocks as f64 * 512.0 / 1e6,
            blocks as f64 * 512.0 / self.regions as f64,
        );
        Ok(())
    }
}

fn puts(settings: &Settings, region: &Region, round: u64) -> anyhow::Result<Taken> {
    let mut name = Vec::new();
    let mut value = vec![0; settings.value_bytes as usize];
    let meter = Meter::start();
    for number in 0..settings.puts {
        let number = round * settings.puts + number;
        key(number, &mut name);
        fill(number, &mut value);
        region.put(&name, &value)?;
    }
    Ok(meter.stop())
}
