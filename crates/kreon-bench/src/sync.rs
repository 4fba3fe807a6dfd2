//! `kreon-bench sync`: how long single durable puts take, alone and beside buffered batches at a fixed rate.
//!
//! Stores take turns, each with a new folder, in one process: what counts is how long a put takes, and that depends on
//! the device of the hour. So the bare device runs by turns with them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use hdrhistogram::Histogram;

use crate::engine::tuning::Means;
use crate::engine::{Asked, Engine, Kind};
use crate::keys::{fill, hash, key};
use crate::meter::Meter;
use crate::run::parent::Scratch;
use crate::ycsb::client::latencies;

/// What is measured.
#[derive(clap::Args)]
pub struct Settings {
    /// The stores, by turns in each round.
    #[arg(long, value_delimiter = ',', default_value = "device,kreon")]
    engines: Vec<Kind>,
    /// Threads that put, one row for each number.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// MB a second of buffered batches beside one thread that puts, one row for each; 0: none.
    #[arg(long, value_delimiter = ',', default_value = "0,195")]
    batch_mb: Vec<u64>,
    /// Of each row.
    #[arg(long, default_value_t = 8.0)]
    seconds: f64,
    /// Rounds.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Memory of each store, in MiB.
    #[arg(long, default_value_t = 512)]
    memory_mib: u64,
    /// Records that puts choose from. Batches insert new ones.
    #[arg(long, default_value_t = 200_000)]
    records: u64,
    /// Bytes of a value, 8 at the least.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(8..))]
    value_bytes: u64,
    /// Pairs of a batch.
    #[arg(long, default_value_t = 100)]
    batch_pairs: u64,
    /// Folder for the stores; a new one in the current folder, deleted afterwards, if not given.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// What one store had to do at once.
#[derive(Clone, Copy)]
struct Load {
    engine: Kind,
    threads: usize,
    /// Bytes a second.
    batches: u64,
}

/// What came of it.
struct Outcome {
    latencies: Histogram<u64>,
    seconds: f64,
    cpu_seconds: f64,
    batch_bytes: u64,
    asked: Option<Asked>,
}

/// Runs it all and prints a row as soon as it is known.
///
/// # Errors
/// Of the stores.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    for engine in &settings.engines {
        engine.ensure_built()?;
    }
    let scratch = Scratch::new(settings.dir.as_deref())?;
    println!(
        "| round | store | threads | beside, MB/s | puts k/s | CPU us/put | p50 us | p99 | p99.9 | p99.99 | max | fallocate \
         | flushes | zeroes, MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for round in 1..=settings.rounds {
        for load in settings.loads() {
            let dir = scratch.0.join(load.engine.name());
            std::fs::create_dir_all(&dir)?;
            let outcome = measure(settings, load, &dir);
            // The next one begins with an empty folder.
            std::fs::remove_dir_all(&dir)?;
            println!("{}", row(round, load, &outcome?));
        }
    }
    Ok(())
}

impl Settings {
    fn loads(&self) -> Vec<Load> {
        let mut loads = Vec::new();
        for batch_mb in &self.batch_mb {
            for threads in &self.threads {
                // Beside batches one thread tells enough.
                if *batch_mb > 0 && *threads > 1 && self.threads.len() > 1 {
                    continue;
                }
                loads.extend(self.engines.iter().map(|engine| Load {
                    engine: *engine,
                    threads: (*threads).max(1),
                    batches: batch_mb * 1_000_000,
                }));
            }
        }
        loads
    }
}

fn measure(settings: &Settings, load: Load, dir: &std::path::Path) -> anyhow::Result<Outcome> {
    let means = Means {
        memory_bytes: settings.memory_mib << 20,
        is_sync: true,
        data_bytes: settings.records * (settings.value_bytes + 30),
        ..Means::default()
    };
    let engine = load.engine.open(dir, &means)?;
    let engine = engine.as_ref();
    let before = engine.asked();
    let (stop, meter) = (AtomicBool::new(false), Meter::start());
    let (latencies, batch_bytes) = std::thread::scope(|scope| {
        let stop = &stop;
        let puts: Vec<_> = (0..load.threads as u64)
            .map(|number| scope.spawn(move || put(settings, engine, number, stop)))
            .collect();
        let batches = scope.spawn(move || batches(settings, engine, load.batches, stop));
        std::thread::sleep(Duration::from_secs_f64(settings.seconds));
        stop.store(true, Ordering::Relaxed);
        let mut all = latencies()?;
        for thread in puts {
            all.add(thread.join().map_err(|_| anyhow!("a client panicked"))??)?;
        }
        let bytes = batches.join().map_err(|_| anyhow!("a client panicked"))??;
        anyhow::Ok((all, bytes))
    })?;
    let taken = meter.stop();
    let asked = engine.asked().zip(before);
    Ok(Outcome {
        latencies,
        seconds: taken.seconds,
        cpu_seconds: taken.cpu_seconds,
        batch_bytes,
        asked: asked.map(|(after, before)| Asked {
            allocations: after.allocations - before.allocations,
            flushes: after.flushes - before.flushes,
            zeroed_bytes: after.zeroed_bytes - before.zeroed_bytes,
        }),
    })
}

/// One durable put after the other; how long each took, in ns.
fn put(
    settings: &Settings,
    engine: &dyn Engine,
    number: u64,
    stop: &AtomicBool,
) -> anyhow::Result<Histogram<u64>> {
    let mut all = latencies()?;
    let (mut name, mut value) = (Vec::new(), vec![0; settings.value_bytes as usize]);
    for draw in 0_u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let record = hash(draw ^ number << 48) % settings.records;
        key(record, &mut name);
        fill(record, &mut value);
        let start = Instant::now();
        engine.put(&name, &value)?;
        all.saturating_record(start.elapsed().as_nanos() as u64);
    }
    Ok(all)
}

/// Buffered batches of new records at `rate` bytes a second, as far as the store takes them; the bytes of all.
fn batches(
    settings: &Settings,
    engine: &dyn Engine,
    rate: u64,
    stop: &AtomicBool,
) -> anyhow::Result<u64> {
    let (start, mut given) = (Instant::now(), 0);
    for batch in 0_u64.. {
        if rate == 0 || stop.load(Ordering::Relaxed) {
            break;
        }
        let pairs: Vec<_> = (0..settings.batch_pairs)
            .map(|pair| {
                let record = settings.records + batch * settings.batch_pairs + pair;
                let (mut name, mut value) = (Vec::new(), vec![0; settings.value_bytes as usize]);
                key(record, &mut name);
                fill(record, &mut value);
                (name, value)
            })
            .collect();
        let bytes = |(key, value): &(Vec<u8>, Vec<u8>)| (key.len() + value.len()) as u64;
        given += pairs.iter().map(bytes).sum::<u64>();
        engine.write_buffered(&pairs)?;
        let due = Duration::from_secs_f64(given as f64 / rate as f64);
        std::thread::sleep(due.saturating_sub(start.elapsed()));
    }
    Ok(given)
}

fn row(round: u32, load: Load, outcome: &Outcome) -> String {
    let us = |quantile| outcome.latencies.value_at_quantile(quantile) as f64 / 1e3;
    let puts = outcome.latencies.len() as f64;
    let asked = match outcome.asked {
        Some(asked) => format!(
            "{} | {} | {}",
            asked.allocations,
            asked.flushes,
            asked.zeroed_bytes >> 20
        ),
        None => "- | - | -".to_owned(),
    };
    format!(
        "| {round} | {} | {} | {:.0} | {:.1} | {:.1} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {asked} |",
        load.engine.name(),
        load.threads,
        outcome.batch_bytes as f64 / outcome.seconds / 1e6,
        puts / outcome.seconds / 1e3,
        outcome.cpu_seconds * 1e6 / puts.max(1.0),
        us(0.5),
        us(0.99),
        us(0.999),
        us(0.9999),
        outcome.latencies.max() as f64 / 1e3,
    )
}
