//! `kreon-bench depth`: how much of the device's random reads one thread gets by asynchronous gets, from data that
//! do not fit in memory; both measured by turns.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use futures_util::{StreamExt, stream::FuturesUnordered};
use kreon::{Region, Store};
use kreon_device::AlignedBuf;
use rustix::fs::OFlags;

use crate::keys::{fill, hash, key, number};
use crate::meter::{Meter, Taken};
use crate::run::parent::Scratch;

/// Of the raw reads.
const PAGE_BYTES: usize = 4096;

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
    /// Gets, and raw reads, in flight.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=256))]
    in_flight: u64,
    /// Gets of a round.
    #[arg(long, default_value_t = 200_000)]
    gets: u64,
    /// Rounds; one more warms the memory up.
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Folder for the store; a new one in the current folder, deleted afterwards, if not given.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Loads a store and prints the table.
///
/// # Errors
/// If the store or the file system fails, or an answer is wrong.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let scratch = Scratch::new(settings.dir.as_deref())?;
    let path = scratch.0.join("depth.kreon");
    let store = Store::options()
        .memory_bytes(settings.memory_mib << 20)
        .open(&path)?;
    let region = store.region("bench")?;
    load(settings, &region)?;
    store.checkpoint()?;
    println!(
        "{} records of {} B, {} MiB of memory, {} in flight, one thread\n",
        settings.records, settings.value_bytes, settings.memory_mib, settings.in_flight
    );
    get_all(settings, &store, &region, 0)?;
    println!("| round | raw reads k/s | gets k/s | of raw | CPU us a get | device reads a get |");
    println!("|---|---|---|---|---|---|");
    for round in 1..=settings.rounds {
        let raw = raw_rate(settings, &path)?;
        let (before, meter) = (store.stats(), Meter::start());
        get_all(settings, &store, &region, round)?;
        let (taken, after) = (meter.stop(), store.stats());
        let Taken {
            seconds,
            cpu_seconds,
        } = taken;
        let gets = settings.gets as f64;
        println!(
            "| {round} | {:.1} | {:.1} | {:.2} | {:.2} | {:.3} |",
            raw / 1e3,
            gets / seconds / 1e3,
            gets / seconds / raw,
            cpu_seconds * 1e6 / gets,
            (after.device_reads - before.device_reads) as f64 / gets,
        );
    }
    drop(region);
    Ok(store.close()?)
}

fn load(settings: &Settings, region: &Region) -> anyhow::Result<()> {
    let (mut name, mut value) = (Vec::new(), vec![0; settings.value_bytes as usize]);
    for n in 0..settings.records {
        key(n, &mut name);
        fill(n, &mut value);
        region.put(&name, &value)?;
    }
    Ok(())
}

/// Gets of records chosen at random, so many in flight at any time.
fn get_all(settings: &Settings, store: &Store, region: &Region, round: u64) -> anyhow::Result<()> {
    let mut wanted = (0..settings.gets).map(|n| hash(n ^ round << 48) % settings.records);
    store.drive(async {
        let start = |record| {
            let mut name = Vec::new();
            key(record, &mut name);
            let get = region.get_async(name);
            async move { (record, get.await) }
        };
        let first = wanted.by_ref().take(settings.in_flight as usize);
        let mut gets: FuturesUnordered<_> = first.map(start).collect();
        while let Some((record, value)) = gets.next().await {
            let value = value?.context("a record is missing")?;
            ensure!(number(&value) == Some(record), "a wrong value");
            gets.extend(wanted.next().map(start));
        }
        Ok(())
    })
}

/// Direct reads of 4 KiB at random places a second, so many threads with one each: what the device gives.
fn raw_rate(settings: &Settings, path: &Path) -> anyhow::Result<f64> {
    const TIME: Duration = Duration::from_secs(2);
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(path)
        .with_context(|| format!("open {} for direct reads", path.display()))?;
    let pages = file.metadata()?.len() / PAGE_BYTES as u64;
    let (next, start) = (AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let readers: Vec<_> = (0..settings.in_flight)
            .map(|_| {
                scope.spawn(|| -> std::io::Result<()> {
                    let mut page = AlignedBuf::new(PAGE_BYTES);
                    while start.elapsed() < TIME {
                        let n = hash(next.fetch_add(1, Ordering::Relaxed) ^ 1 << 60);
                        file.read_exact_at(&mut page, n % pages * PAGE_BYTES as u64)?;
                    }
                    Ok(())
                })
            })
            .collect();
        for reader in readers {
            match reader.join() {
                Ok(outcome) => outcome?,
                Err(_) => bail!("a reader panicked"),
            }
        }
        Ok(())
    })?;
    Ok(next.into_inner() as f64 / start.elapsed().as_secs_f64())
}
