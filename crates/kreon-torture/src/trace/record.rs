//! A recording: a store with threads on a device whose writes are logged, from its making to its end.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use kreon_base::Error;
use kreon_device::{Device, FileDevice, FileOptions};
use kreon_engine::{Background, Engine, MEMORY_BYTES_MIN, Options};
use kreon_sim::Dice;

use super::daemon::Daemon;
use super::events::{Flushes, Trace, trace};
use super::judge::Judge;
use super::log::parse;
use super::mark::MARKS_BYTES;
use super::marking::Marking;
use super::work::{Work, Worker};
use crate::check::said;
use crate::content::{self, difference};
use crate::settings::options;

/// Threads that write.
pub const THREADS: u64 = 3;

/// How often the store is opened.
const LIVES: u32 = 2;

/// A recording ends when so much was written: the log is held in memory, and the volume has an end.
const WRITTEN_BYTES_MAX: u64 = 128 << 20;

/// The log of writes, in the recording's folder.
const LOG: &str = "log";

/// The record of what was acknowledged.
const WORK: &str = "work";

/// Where the volume ends.
pub fn volume_bytes() -> u64 {
    options().volume_bytes_max
}

/// Records a store for about `seconds` into `folder`.
///
/// # Errors
/// What failed, in the store or around it.
pub fn record(folder: &Path, seed: u64, seconds: f64) -> Result<(), String> {
    let io = |what: &str, error: std::io::Error| format!("{what} in {}: {error}", folder.display());
    let make = |name: &str| File::create(folder.join(name)).map_err(|e| io("making a file", e));
    make(LOG)?;
    let len_bytes = volume_bytes() + MARKS_BYTES;
    make("data")?
        .set_len(len_bytes)
        .map_err(|e| io("making a volume", e))?;
    let nodes = [
        "driver=file,node-name=data,filename=data,discard=unmap,locking=off",
        "driver=file,node-name=log,filename=log,locking=off",
        "driver=blklogwrites,node-name=export,file=data,log=log,discard=unmap",
    ];
    let daemon = Daemon::start(folder, &nodes, "volume", len_bytes)?;
    let work = drive(daemon.export(), seed, seconds);
    // Also if that failed: what was logged is of use.
    let stopped = daemon.stop();
    let work = work?;
    stopped?;
    fs::write(folder.join(WORK), work.to_text()).map_err(|e| io("writing a file", e))
}

/// Reads a recording: the history of its volume, and who can judge what a power cut leaves of it.
///
/// # Errors
/// If it is not whole.
pub fn load(folder: &Path, flushes: Flushes) -> Result<(Trace, Judge), String> {
    let of = |name: &str, error: &dyn std::fmt::Display| {
        format!("{}: {error}", folder.join(name).display())
    };
    let log = fs::read(folder.join(LOG)).map_err(|e| of(LOG, &e))?;
    let work = fs::read_to_string(folder.join(WORK)).map_err(|e| of(WORK, &e))?;
    let work = Work::of_text(&work).ok_or(of(WORK, &"the record is not whole"))?;
    let entries = parse(&log).map_err(|e| of(LOG, &e))?;
    let trace = trace(&log, &entries, volume_bytes(), flushes).map_err(|e| of(LOG, &e))?;
    Ok((trace, Judge::new(&work)))
}

/// Works on a store on the exported file.
fn drive(export: &Path, seed: u64, seconds: f64) -> Result<Work, String> {
    let device = device(export)?;
    let file = device.file();
    if !file.is_direct() || !file.has_rings() {
        println!(
            "trace: note: O_DIRECT {}, io_uring {}",
            file.is_direct(),
            file.has_rings()
        );
    }
    let clock = AtomicU64::new(0);
    let mut dice = Dice::new(seed);
    let mut workers: Vec<_> = (0..THREADS)
        .map(|thread| Worker::new(seed, thread))
        .collect();
    let life = Duration::from_secs_f64(seconds / f64::from(LIVES));
    for _ in 0..LIVES {
        let engine = Engine::open(
            Arc::clone(&device) as Arc<dyn Device>,
            some_options(&mut dice),
        );
        let engine = engine.map_err(said("open"))?;
        let over = Over::after(life, &device);
        for outcome in all_work(&mut workers, &engine, &device, &clock, &over) {
            outcome.map_err(|error| error.to_string())?;
        }
        check_content(&engine, &work_of(seed, &workers))?;
        engine.close().map_err(said("close"))?;
        for worker in &mut workers {
            worker.mark_all_durable(&device).map_err(said("a mark"))?;
        }
    }
    // The log counts entries up to its last flush only.
    device.file().flush().map_err(said("the last flush"))?;
    Ok(work_of(seed, &workers))
}

/// The device under the store.
///
/// # Errors
/// If the exported file cannot be opened.
pub fn device(export: &Path) -> Result<Arc<Marking>, String> {
    let file = FileOptions {
        // See `Marking`.
        ring_depth: 1,
        ..FileOptions::default()
    };
    let (file, _) = FileDevice::open(export, &file).map_err(said("device"))?;
    Ok(Arc::new(Marking::new(file)))
}

/// Another mixture each time.
pub fn some_options(dice: &mut Dice) -> Options {
    Options {
        memory_bytes: MEMORY_BYTES_MIN << dice.below(2),
        l0_bytes: Some(16 << 10 << dice.below(5)),
        growth_factor: [Some(2), Some(4), Some(10)][dice.below(3) as usize],
        background: Background::Threads,
        // A raw device is never empty.
        format: true,
        ..options()
    }
}

/// When to stop.
pub struct Over<'a> {
    end: Instant,
    device: &'a Marking,
    has_failed: AtomicBool,
}

impl<'a> Over<'a> {
    /// At the end of `life`, or when enough was written, or when a thread failed.
    pub fn after(life: Duration, device: &'a Marking) -> Self {
        Self {
            end: Instant::now() + life,
            device,
            has_failed: AtomicBool::new(false),
        }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.end
            || self.device.stats().writes.bytes >= WRITTEN_BYTES_MAX
            || self.has_failed.load(Relaxed)
    }
}

/// Lets all work at once; how each thread ended. The first failure ends the others, too.
pub fn all_work(
    workers: &mut [Worker],
    engine: &Engine,
    device: &Marking,
    clock: &AtomicU64,
    over: &Over<'_>,
) -> Vec<Result<(), Error>> {
    std::thread::scope(|scope| {
        let run = |worker: &mut Worker| {
            let outcome = worker.work(engine, device, clock, &|| over.is_over());
            over.has_failed.fetch_or(outcome.is_err(), Relaxed);
            outcome
        };
        let threads: Vec<_> = workers
            .iter_mut()
            .map(|worker| scope.spawn(move || run(worker)))
            .collect();
        let panicked = |_| Err(Error::invalid("PANIC in a thread that writes"));
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(panicked))
            .collect()
    })
}

/// The record of what they did.
pub fn work_of(seed: u64, workers: &[Worker]) -> Work {
    Work {
        seed,
        threads: workers.iter().map(|worker| worker.done.clone()).collect(),
    }
}

/// Without a power cut everything is there, and reads through the device say so.
fn check_content(engine: &Engine, work: &Work) -> Result<(), String> {
    let read = content::read(engine).map_err(|error: Error| format!("read: {error}"))?;
    let expected = Judge::new(work).end();
    match read == expected {
        true => Ok(()),
        false => Err(format!(
            "without any power cut: {}",
            difference(&expected, &read)
        )),
    }
}
