//! The parent process: runs the stores by turns, and shows how it goes.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use super::job::{Job, Said};
use super::record::Record;
use super::settings::{Point, Settings};
use crate::engine::Kind;
use crate::machine::limit::Limit;
use crate::ycsb::phase::Phase;

/// What came of all jobs.
#[derive(Default)]
pub struct Ran {
    /// Of each phase that ended.
    pub records: Vec<Record>,
    /// Jobs that did not come to their end. The others' results count none the less.
    pub broken: Vec<Broken>,
}

/// A job that did not come to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Broken {
    /// The store.
    pub engine: Kind,
    /// Point of a sweep.
    pub variant: String,
    /// From 1.
    pub round: u32,
    /// Why.
    pub why: String,
}

/// Runs everything. Stores stand in `dir`; `ended` gets each record at once.
pub fn run(settings: &Settings, dir: &Path, ended: &mut dyn FnMut(&Record)) -> Ran {
    let mut ran = Ran::default();
    for round in 1..=settings.rounds {
        for point in &settings.points {
            for &engine in &settings.engines {
                let job = Job {
                    engine,
                    dir: dir.join(engine.name()),
                    means: point.means,
                    phases: phases(engine, &point.phases),
                    door: None,
                    preset: settings.preset.clone(),
                    round,
                    variant: point.variant.clone(),
                };
                let title = title(engine, point, round, settings.rounds);
                let outcome = run_limited(job, &title, &mut |record| {
                    ended(&record);
                    ran.records.push(record);
                });
                if let Err(error) = outcome {
                    let why = format!("{error:#}");
                    eprintln!("{title}: {why}");
                    ran.broken.push(Broken {
                        engine,
                        variant: point.variant.clone(),
                        round,
                        why,
                    });
                }
            }
        }
    }
    ran
}

/// What a store goes through: of the phases those that it can.
///
/// The store that does nothing is done at once: with more requests its own cost and the machine's noise are seen,
/// and it needs no records.
fn phases(engine: Kind, phases: &[Phase]) -> Vec<Phase> {
    const MORE: u64 = 20;
    const SECONDS: f64 = 2.5;
    let longer = |phase: &Phase| match engine {
        Kind::Nothing => Phase {
            requests: phase.requests * MORE,
            seconds_max: Some(phase.seconds_max.unwrap_or(SECONDS).min(SECONDS)),
            ..*phase
        },
        _ => *phase,
    };
    // The bare device cannot read.
    let can = |phase: &&Phase| phase.workload.is_load() || !engine.is_device();
    phases.iter().filter(can).map(longer).collect()
}

fn title(engine: Kind, point: &Point, round: u32, rounds: u32) -> String {
    let name = engine.name();
    match point.variant.as_str() {
        "" => format!("round {round}/{rounds} {name}"),
        variant => format!("round {round}/{rounds} {name}, {variant}"),
    }
}

fn run_limited(mut job: Job, title: &str, ended: &mut dyn FnMut(Record)) -> anyhow::Result<()> {
    let limit = Limit::new(job.means.memory_bytes).ok();
    job.door = limit.as_ref().map(Limit::door);
    let dir = job.dir.clone();
    let outcome = run_child(&job, title, ended);
    // A child that died leaves its files.
    let _ = std::fs::remove_dir_all(&dir);
    match limit.is_some_and(|limit| limit.has_killed()) {
        true => outcome.context("it needed more than its memory, and was killed"),
        false => outcome,
    }
}

fn run_child(job: &Job, title: &str, ended: &mut dyn FnMut(Record)) -> anyhow::Result<()> {
    let mut child = Ends(
        Command::new(std::env::current_exe()?)
            .arg("child")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start a child process")?,
    );
    let input = child.0.stdin.take().context("the child has no input")?;
    serde_json::to_writer(input, job)?;
    let output = child.0.stdout.take().context("the child has no output")?;
    let bar = bar(title);
    let mut failed = None;
    for line in BufReader::new(output).lines() {
        match serde_json::from_str(&line?).context("a child's line")? {
            Said::Progress {
                workload,
                requests,
                of,
                rate,
            } => {
                bar.set_length(of);
                bar.set_position(requests);
                bar.set_message(format!("{workload:<6} {:>8.1} k ops/s", rate / 1e3));
            }
            Said::Ended(record) => {
                bar.suspend(|| ended(*record));
            }
            Said::Failed(why) => failed = Some(why),
        }
    }
    bar.finish_and_clear();
    let status = child.0.wait()?;
    match failed {
        Some(why) => bail!("{why}"),
        None if !status.success() => bail!("the process ended with {status}"),
        None => Ok(()),
    }
}

/// Shows how far a job is.
pub fn bar(title: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {bar:30} {pos:>9}/{len:<9} {msg}");
    let bar = ProgressBar::new(0).with_prefix(title.to_owned());
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// A child that does not outlive the run, whatever ends it.
pub struct Ends(pub Child);

impl Drop for Ends {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// A folder for the stores that is deleted in the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// `dir`, or a new folder in the current one: the temporary folder may be in memory.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(dir: Option<&Path>) -> anyhow::Result<Self> {
        let dir = match dir {
            Some(dir) => dir.join(format!("kreon-bench-{}", std::process::id())),
            None => PathBuf::from(format!("kreon-bench-{}.tmp", std::process::id())),
        };
        std::fs::create_dir_all(&dir).with_context(|| format!("make {}", dir.display()))?;
        Ok(Self(std::fs::canonicalize(dir)?))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
