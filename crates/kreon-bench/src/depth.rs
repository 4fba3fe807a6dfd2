//! `kreon-bench depth`: how much of the device's random reads one thread gets by asynchronous gets, from data that
//! do not fit in memory; both measured by turns.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use futures_util::{StreamExt, stream::FuturesUnordered};
use kreon::{Region, Store};
use kreon_device::{AlignedBuf, Device, FileDevice, FileOptions, Read};

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
    let file = FileOptions {
        create: true,
        ring_depth: settings.in_flight as u32,
        ..FileOptions::default()
    };
    let device = Arc::new(FileDevice::open(&path, &file)?.0);
    let store = Store::options()
        .memory_bytes(settings.memory_mib << 20)
        .open_on(Arc::clone(&device) as Arc<dyn Device>)?;
    let region = store.region("bench")?;
    load(settings, &region)?;
    store.checkpoint()?;
    println!(
        "{} records of {} B, {} MiB of memory, {} in flight, one thread\n",
        settings.records, settings.value_bytes, settings.memory_mib, settings.in_flight
    );
    get_all(settings, &store, &region, 0..settings.gets, 0)?;
    println!("| round | raw reads k/s | gets k/s | of raw | CPU us a get | device reads a get |");
    println!("|---|---|---|---|---|---|");
    for round in 1..=settings.rounds {
        let (raw, gets) = round_of(settings, &device, &store, &region, round)?;
        println!(
            "| {round} | {:.1} | {:.1} | {:.2} | {:.2} | {:.3} |",
            raw.per_second() / 1e3,
            gets.per_second() / 1e3,
            gets.per_second() / raw.per_second(),
            gets.cpu_seconds * 1e6 / gets.requests,
            gets.device_reads / gets.requests,
        );
    }
    drop(region);
    Ok(store.close()?)
}

/// What requests of one sort took in a round.
#[derive(Default)]
struct Sum {
    requests: f64,
    seconds: f64,
    cpu_seconds: f64,
    device_reads: f64,
}

impl Sum {
    fn per_second(&self) -> f64 {
        self.requests / self.seconds
    }

    fn add(&mut self, requests: u64, taken: &Taken, device_reads: u64) {
        self.requests += requests as f64;
        self.seconds += taken.seconds;
        self.cpu_seconds += taken.cpu_seconds;
        self.device_reads += device_reads as f64;
    }
}

/// A round of raw reads and of gets, in slices by turns: a machine shared with others changes its speed within seconds.
fn round_of(
    settings: &Settings,
    device: &FileDevice,
    store: &Store,
    region: &Region,
    round: u64,
) -> anyhow::Result<(Sum, Sum)> {
    /// A tenth of a second, about: as many reads as gets.
    const SLICE_GETS: u64 = 8192;
    let (mut raw, mut gets) = (Sum::default(), Sum::default());
    let mut memory = AlignedBuf::new(SLICE_GETS as usize * PAGE_BYTES);
    let slices = settings.gets.div_ceil(SLICE_GETS);
    for slice in 0..slices {
        let meter = Meter::start();
        raw_reads(device, round * slices + slice, &mut memory)?;
        raw.add(SLICE_GETS, &meter.stop(), SLICE_GETS);
        let wanted = slice * SLICE_GETS..settings.gets.min((slice + 1) * SLICE_GETS);
        let (before, meter, count) = (store.stats(), Meter::start(), wanted.end - wanted.start);
        get_all(settings, store, region, wanted, round)?;
        let taken = meter.stop();
        gets.add(
            count,
            &taken,
            store.stats().device_reads - before.device_reads,
        );
    }
    Ok((raw, gets))
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
fn get_all(
    settings: &Settings,
    store: &Store,
    region: &Region,
    numbers: Range<u64>,
    round: u64,
) -> anyhow::Result<()> {
    let mut wanted = numbers.map(|n| hash(n ^ round << 48) % settings.records);
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

/// Direct reads of 4 KiB at random places, so many in flight from one thread: what the device gives. A thread with `pread`
/// for each read in flight came to the same (93 to 98 k/s against 94 k/s, 64 in flight, two cores).
fn raw_reads(device: &FileDevice, slice: u64, memory: &mut AlignedBuf) -> anyhow::Result<()> {
    let pages = device.len_bytes() / PAGE_BYTES as u64;
    let place = |n| hash(n ^ slice << 32 ^ 1 << 60) % pages * PAGE_BYTES as u64;
    let buffers = memory.chunks_exact_mut(PAGE_BYTES).zip(0..);
    let mut reads: Vec<_> = buffers.map(|(page, n)| Read::new(place(n), page)).collect();
    // One call: the ring is full until its end.
    Ok(device.read(&mut reads)?)
}
