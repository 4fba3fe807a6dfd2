//! A process of `mapping`: one store under one memory limit.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use kreon::{Backend, Region, Store};
use serde::{Deserialize, Serialize};

use super::micro::{self, Cost};
use super::piece::{Measured, Piece};
use super::results::Row;
use super::settings::Settings;
use super::variants::{Variant, variants};
use crate::engine::tuning::Means;
use crate::keys::{fill, hash, key, number};
use crate::machine::disk::Disk;
use crate::machine::usage::Usage;
use crate::machine::{limit, memory};
use crate::recovery::child::forget_pages;
use crate::ycsb::choice::{Chooser, Distribution};

/// What a process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Which piece.
    pub task: Task,
    /// Name of the variant.
    pub variant: String,
    /// Where the store stands.
    pub dir: PathBuf,
    /// Memory limit of the process, in bytes; the store gets less.
    pub memory_bytes: u64,
    /// Where to enter the limit; `None`: there is none.
    pub door: Option<PathBuf>,
    /// What a [piece](Task::Piece) is.
    pub piece: Option<Piece>,
    /// What is measured.
    pub settings: Settings,
}

/// A piece of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// Makes the store that the gets read.
    Load,
    /// Gets.
    Gets,
    /// Inserts into a store of their own.
    Inserts,
    /// Hits and misses of the mapping alone.
    Micro,
    /// One measurement without a loaded store.
    Piece,
}

/// What a process says, a line of JSON each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Said {
    /// A workload was measured.
    Row(Row),
    /// A way to reach a page was measured.
    Cost(Cost),
    /// A piece was measured.
    Measured(Measured),
    /// It failed.
    Failed(String),
}

/// Does the job that stands on standard input.
///
/// # Errors
/// Of the store, or if an answer is wrong.
pub fn run() -> anyhow::Result<()> {
    let job: Job = serde_json::from_reader(std::io::stdin().lock()).context("read the job")?;
    if let Some(door) = &job.door {
        limit::enter(door)?;
    }
    let outcome = Run::new(&job).and_then(|run| run.all());
    if let Err(error) = &outcome {
        say(&Said::Failed(format!("{error:#}")))?;
    }
    outcome
}

fn say(said: &Said) -> anyhow::Result<()> {
    let line = serde_json::to_string(said)?;
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}

struct Run<'a> {
    job: &'a Job,
    settings: &'a Settings,
    variant: Variant,
    disk: Option<Disk>,
    budget_bytes: usize,
}

impl<'a> Run<'a> {
    fn new(job: &'a Job) -> anyhow::Result<Self> {
        let found = variants().into_iter().find(|v| v.name == job.variant);
        Ok(Self {
            job,
            settings: &job.settings,
            variant: found.context("no such variant")?,
            disk: Disk::under(&job.dir).ok(),
            budget_bytes: Means {
                memory_bytes: job.memory_bytes,
                ..Means::default()
            }
            .own_memory_bytes(),
        })
    }

    fn all(&self) -> anyhow::Result<()> {
        match self.job.task {
            Task::Load => self.load(),
            Task::Gets => self.gets(),
            Task::Inserts => self.inserts(),
            Task::Micro => {
                for cost in micro::costs(&self.job.dir)? {
                    say(&Said::Cost(cost))?;
                }
                Ok(())
            }
            Task::Piece => {
                let piece = self.job.piece.as_ref().context("no piece to measure")?;
                say(&Said::Measured(piece.measure(&self.job.dir)?))
            }
        }
    }

    fn open(&self, name: &str) -> anyhow::Result<(Store, Region)> {
        let store = Store::options()
            .memory_bytes(self.budget_bytes)
            .mapping_modes(self.variant.modes)
            .io_uring(self.variant.ring)
            .open(self.job.dir.join(name))?;
        let region = store.region("bench")?;
        Ok((store, region))
    }

    fn load(&self) -> anyhow::Result<()> {
        let (store, region) = self.open("gets.kreon")?;
        self.put(&region, self.settings.records, self.settings.value_bytes)?;
        store.checkpoint()?;
        drop(region);
        Ok(store.close()?)
    }

    fn gets(&self) -> anyhow::Result<()> {
        forget_pages(&self.job.dir)?;
        let (store, region) = self.open("gets.kreon")?;
        let records = self.settings.records;
        // A fifth of the memory, so that with the index all fits.
        let pair_bytes = self.settings.value_bytes + 38;
        let hot = (self.budget_bytes as u64 / 5 / pair_bytes).min(records);
        let zipfian = Chooser::new(Distribution::Zipfian, records);
        let uniform = Chooser::new(Distribution::Uniform, records);
        let few = Chooser::new(Distribution::Uniform, hot);
        self.numbered(hot, |n| get(&region, n))?;
        self.measure("C that fits", || self.timed(hot, &few, 1, &region))?;
        for (name, chooser, at_once) in [
            ("C uniform", &uniform, 1),
            ("C Zipf", &zipfian, 1),
            ("C uniform, 32 at once", &uniform, 32),
        ] {
            self.timed(records, chooser, at_once, &region)?;
            self.measure(name, || self.timed(records, chooser, at_once, &region))?;
        }
        drop(region);
        Ok(store.close()?)
    }

    fn inserts(&self) -> anyhow::Result<()> {
        let (store, region) = self.open("inserts.kreon")?;
        self.measure("insert and spill", || {
            self.put(
                &region,
                self.settings.inserts,
                self.settings.insert_value_bytes,
            )?;
            store.checkpoint()?;
            Ok(self.settings.inserts)
        })?;
        drop(region);
        store.close()?;
        Ok(std::fs::remove_file(self.job.dir.join("inserts.kreon"))?)
    }

    /// Measures requests, whose number `requests` returns, and says what they cost.
    fn measure(
        &self,
        workload: &str,
        requests: impl FnOnce() -> anyhow::Result<u64>,
    ) -> anyhow::Result<()> {
        sync_files(&self.job.dir);
        memory::reset_peak();
        let (before, start) = (Usage::now(self.disk.as_ref()), Instant::now());
        let requests = requests()?;
        let seconds = start.elapsed().as_secs_f64();
        sync_files(&self.job.dir);
        let used = Usage::now(self.disk.as_ref()).since(&before);
        let each = |sum: f64| sum / requests as f64;
        let pair_bytes = (self.settings.insert_value_bytes + 30) as f64;
        say(&Said::Row(Row {
            variant: self.job.variant.clone(),
            workload: workload.to_owned(),
            requests,
            ops_per_second: requests as f64 / seconds,
            cpu_us_per_op: each(used.cpu_seconds * 1e6),
            device_reads_per_op: each(used.device_reads as f64),
            device_read_bytes_per_op: each(used.device_read_bytes as f64),
            written_per_byte: (self.job.task == Task::Inserts)
                .then(|| each(used.device_write_bytes as f64) / pair_bytes),
            peak_rss_bytes: memory::peak_rss_bytes(),
            budget_bytes: self.budget_bytes as u64,
            is_mapped: self.variant.modes.backend != Backend::Pool,
        }))
    }

    /// Gets until the time is up; how many.
    fn timed(
        &self,
        records: u64,
        chooser: &Chooser,
        at_once: usize,
        region: &Region,
    ) -> anyhow::Result<u64> {
        let end = Instant::now() + Duration::from_secs_f64(self.settings.seconds);
        let done = AtomicU64::new(0);
        // Other numbers in each phase.
        static PHASES: AtomicU64 = AtomicU64::new(0);
        let seed = hash(PHASES.fetch_add(1, Ordering::Relaxed));
        self.spread(|thread| {
            let mut mine = 0;
            while Instant::now() < end {
                let wanted: Vec<u64> = (0..at_once as u64)
                    .map(|at| {
                        let random = hash(seed ^ thread << 56 ^ (mine + at));
                        chooser.choose(records, (random >> 11) as f64 / (1_u64 << 53) as f64)
                    })
                    .collect();
                match wanted[..] {
                    [one] => get(region, one)?,
                    _ => get_many(region, &wanted)?,
                }
                mine += at_once as u64;
            }
            done.fetch_add(mine, Ordering::Relaxed);
            Ok(())
        })?;
        Ok(done.into_inner())
    }

    fn put(&self, region: &Region, count: u64, value_bytes: u64) -> anyhow::Result<()> {
        self.numbered(count, |n| {
            let (mut name, mut value) = (Vec::new(), vec![0; value_bytes as usize]);
            key(n, &mut name);
            fill(n, &mut value);
            Ok(region.put(&name, &value)?)
        })
    }

    /// Calls `each` with every number below `count`, on all threads.
    fn numbered(
        &self,
        count: u64,
        each: impl Fn(u64) -> anyhow::Result<()> + Sync,
    ) -> anyhow::Result<()> {
        let next = AtomicU64::new(0);
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < count);
        self.spread(|_| std::iter::from_fn(take).try_for_each(&each))
    }

    fn spread(&self, each: impl Fn(u64) -> anyhow::Result<()> + Sync) -> anyhow::Result<()> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.settings.threads_max())
                .map(|thread| {
                    scope.spawn({
                        let each = &each;
                        move || each(thread)
                    })
                })
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
}

fn get(region: &Region, wanted: u64) -> anyhow::Result<()> {
    let mut name = Vec::with_capacity(30);
    key(wanted, &mut name);
    let found = region.get_with(&name, number)?;
    ensure!(found == Some(Some(wanted)), "a wrong value");
    Ok(())
}

fn get_many(region: &Region, wanted: &[u64]) -> anyhow::Result<()> {
    let names = wanted.iter().map(|n| {
        let mut name = Vec::with_capacity(30);
        key(*n, &mut name);
        name
    });
    let names: Vec<_> = names.collect();
    let found = region.multi_get(&names)?;
    for (wanted, found) in wanted.iter().zip(found) {
        let found = found.as_deref().and_then(number);
        ensure!(found == Some(*wanted), "a wrong value");
    }
    Ok(())
}

/// Brings what the page cache still holds to the device, so that it counts for who wrote it.
fn sync_files(dir: &Path) {
    if let Ok(folder) = std::fs::File::open(dir) {
        let _ = rustix::fs::syncfs(folder);
    }
}
