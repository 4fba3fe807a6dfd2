//! The two processes of a recovery: one loads and is killed, the next opens.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use rustix::fs::Advice;
use serde::{Deserialize, Serialize};

use crate::engine::tuning::Means;
use crate::engine::{Engine, Kind};
use crate::keys::hash;
use crate::machine::disk::Disk;
use crate::machine::usage::Usage;
use crate::machine::{limit, memory};
use crate::ycsb::record;

/// What to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The store.
    pub engine: Kind,
    /// Its folder.
    pub dir: PathBuf,
    /// What it gets.
    pub means: Means,
    /// Records to load, or that were loaded.
    pub records: u64,
    /// Where to enter the memory limit; `None`: there is none.
    pub door: Option<PathBuf>,
    /// Load and wait for the end, or open.
    pub is_load: bool,
}

/// What a process says in the end.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// All records are durable; kill me.
    Loaded {
        /// Bytes of the log that the next open has to replay, if the store can tell.
        replay_bytes: Option<u64>,
    },
    /// The store is open.
    Opened(Opening),
}

/// How it opened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Opening {
    /// Until the store took requests.
    pub seconds: f64,
    /// CPU time of the process meanwhile, in seconds.
    pub cpu_seconds: f64,
    /// Bytes read at the device meanwhile, by whomever.
    pub device_read_bytes: u64,
    /// Bytes written at the device meanwhile, by whomever.
    pub device_write_bytes: u64,
    /// Most memory that was resident.
    pub peak_rss_bytes: u64,
    /// Records that were looked for afterwards.
    pub looked_for: u64,
    /// Of them, those that were lost or wrong.
    pub failures: u64,
}

/// Does the job that stands on standard input.
///
/// # Errors
/// Of the store.
pub fn run() -> anyhow::Result<()> {
    let job: Job = serde_json::from_reader(std::io::stdin().lock()).context("read the job")?;
    if let Some(door) = &job.door {
        limit::enter(door)?;
    }
    let said = match job.is_load {
        true => load(&job)?,
        false => Said::Opened(open(&job)?),
    };
    let line = serde_json::to_string(&said)?;
    writeln!(std::io::stdout().lock(), "{line}")?;
    Ok(())
}

fn load(job: &Job) -> anyhow::Result<Said> {
    fs::create_dir_all(&job.dir)?;
    let engine = job.engine.open(&job.dir, &job.means)?;
    std::thread::scope(|scope| -> anyhow::Result<()> {
        let loaders: Vec<_> = (0..job.engine.loaders())
            .map(|first| {
                let engine = engine.as_ref();
                scope.spawn(move || put_all(job, engine, first))
            })
            .collect();
        for loader in loaders {
            let ended = loader.join();
            ended.map_err(|_| anyhow::anyhow!("a loader panicked"))??;
        }
        Ok(())
    })?;
    engine.persist()?;
    let replay_bytes = engine.replay_bytes();
    let line = serde_json::to_string(&Said::Loaded { replay_bytes })?;
    writeln!(std::io::stdout().lock(), "{line}")?;
    // The parent kills us: nothing is closed, no destructor runs.
    loop {
        std::thread::park();
    }
}

fn put_all(job: &Job, engine: &dyn Engine, first: u64) -> anyhow::Result<()> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for number in (first..job.records).step_by(job.engine.loaders() as usize) {
        record::key(job.means.mix, number, &mut key);
        record::value(job.means.mix, number, 0, &mut value);
        engine.put(&key, &value)?;
    }
    Ok(())
}

fn open(job: &Job) -> anyhow::Result<Opening> {
    forget_pages(&job.dir)?;
    let disk = Disk::under(&job.dir).ok();
    let (before, started) = (Usage::now(disk.as_ref()), Instant::now());
    let engine = job.engine.open(&job.dir, &job.means)?;
    let seconds = started.elapsed().as_secs_f64();
    let used = Usage::now(disk.as_ref()).since(&before);
    let peak_rss_bytes = memory::peak_rss_bytes();
    let (looked_for, failures) = look(job, engine.as_ref())?;
    Ok(Opening {
        seconds,
        cpu_seconds: used.cpu_seconds,
        device_read_bytes: used.device_read_bytes,
        device_write_bytes: used.device_write_bytes,
        peak_rss_bytes,
        looked_for,
        failures,
    })
}

/// Looks for the newest records and for some of all; how many, and how many were not there.
fn look(job: &Job, engine: &dyn Engine) -> anyhow::Result<(u64, u64)> {
    const EACH: u64 = 5000;
    let newest = (0..EACH.min(job.records)).map(|n| job.records - 1 - n);
    let any = (0..EACH).map(|n| hash(n) % job.records.max(1));
    let (mut key, mut looked_for, mut failures) = (Vec::new(), 0, 0);
    for number in newest.chain(any) {
        record::key(job.means.mix, number, &mut key);
        let mut is_right = false;
        engine.get(&key, &mut |value| {
            is_right = record::is_value(job.means.mix, number, value);
        })?;
        looked_for += 1;
        failures += u64::from(!is_right);
    }
    Ok((looked_for, failures))
}

/// Drops what the page cache holds of the files in `dir`: a machine that was just started has none of it.
pub fn forget_pages(dir: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            forget_pages(&entry.path())?;
            continue;
        }
        let file = fs::File::open(entry.path())?;
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}
