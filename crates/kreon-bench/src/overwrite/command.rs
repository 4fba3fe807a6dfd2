//! The command: one store after the other.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

use super::figures::Run;
use super::job::{Job, Said};
use super::report::{self, Broken, Results, SCHEMA};
use crate::engine::Kind;
use crate::engine::planted::Plant;
use crate::engine::tuning::Means;
use crate::machine::about::About;
use crate::machine::limit::Limit;
use crate::report::origin::Origin;
use crate::run::parent::{Ends, Scratch, bar};
use crate::ycsb::choice::Distribution;
use crate::ycsb::mix::Mix;

/// What is measured.
#[derive(clap::Args)]
pub struct Settings {
    /// The stores, one after the other.
    #[arg(long, value_delimiter = ',', default_value = "kreon")]
    engines: Vec<Kind>,
    /// Which records are overwritten how often: `zipfian` is YCSB's scrambled one, `true-zipfian` one over the records
    /// themselves, which is far more skewed.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "uniform,zipfian"
    )]
    distributions: Vec<Distribution>,
    /// Space for each live byte that kreon may take, one run for each; as the store likes it, if not given.
    #[arg(long, value_delimiter = ',')]
    targets: Vec<f64>,
    /// Bytes that kreon may write for each byte given. If not given, as the store likes it, but 16 where `--targets` are.
    #[arg(long)]
    write_amplification_max: Option<f64>,
    /// Sizes of the pairs.
    #[arg(long, value_enum, default_value = "k")]
    mix: Mix,
    /// MiB of pairs to load.
    #[arg(long, default_value_t = 1024)]
    data_mib: u64,
    /// Memory of each store, in MiB; a quarter of the pairs, if not given.
    #[arg(long)]
    memory_mib: Option<u64>,
    /// Overwrites for each record, on average.
    #[arg(long, default_value_t = 10.0)]
    times: f64,
    /// The overwriting ends after so many seconds, however many are left.
    #[arg(long)]
    seconds: Option<f64>,
    /// Seconds from one sample to the next.
    #[arg(long, default_value_t = 1.0)]
    interval_seconds: f64,
    /// Threads that write.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Records that are looked up in the end, beside a scan of all.
    #[arg(long, default_value_t = 10_000)]
    checks: u64,
    /// Of all draws.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Makes the stores wrong on purpose, to see that the run fails.
    #[arg(long, value_enum)]
    plant: Option<Plant>,
    /// Where `overwrite.json`, `overwrite.md` and `overwrite.html` go.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Folder for the stores; a new one in the current folder, deleted afterwards, if not given.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Bytes written for each byte given where the space is what matters: a target that costs more is raised.
const SPACE_MATTERS: f64 = 16.0;

/// Runs it all, prints the tables, and writes the files.
///
/// # Errors
/// If a store failed or any record was not what was written last: after all tables and files, for the others' sake.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    settings.check()?;
    let scratch = Scratch::new(settings.dir.as_deref())?;
    let jobs = settings.jobs(&scratch.0);
    let means = jobs.first().map(|job| job.means).unwrap_or_default();
    let mut results = Results {
        schema: SCHEMA,
        origin: Origin::now(&settings.engines, &means),
        machine: About::here(&scratch.0),
        runs: Vec::new(),
        broken: Vec::new(),
    };
    for job in jobs {
        match run_limited(job.clone()) {
            Ok(run) => {
                println!("{}", report::line(&run));
                results.runs.push(run);
            }
            Err(error) => {
                let broken = Broken::new(&job, format!("{error:#}"));
                eprintln!("{broken}");
                results.broken.push(broken);
            }
        }
    }
    println!("\n{}", report::markdown(&results));
    if let Some(out) = &settings.out {
        results.write(out)?;
        println!("{}", out.join("overwrite.html").display());
    }
    match report::verdict(&results) {
        Some(failed) => bail!("{failed}"),
        None => Ok(()),
    }
}

impl Settings {
    fn check(&self) -> anyhow::Result<()> {
        for engine in &self.engines {
            let name = engine.name();
            ensure!(!engine.is_device(), "{name} cannot read");
            engine.ensure_built()?;
        }
        ensure!(self.times > 0.0, "--times must be above 0");
        ensure!(
            self.interval_seconds > 0.0,
            "--interval-seconds must be above 0"
        );
        ensure!(
            self.targets.iter().all(|target| *target > 1.0),
            "a store takes more than its live bytes: targets must be above 1"
        );
        Ok(())
    }

    fn jobs(&self, scratch: &Path) -> Vec<Job> {
        let mut jobs = Vec::new();
        for distribution in &self.distributions {
            for engine in &self.engines {
                // Only kreon can be told.
                let targets: Vec<_> = match (self.targets.is_empty(), engine) {
                    (false, Kind::Kreon) => self.targets.iter().copied().map(Some).collect(),
                    _ => vec![None],
                };
                for target in targets {
                    jobs.push(self.job(scratch, *engine, *distribution, target));
                }
            }
        }
        jobs
    }

    fn job(
        &self,
        scratch: &Path,
        engine: Kind,
        distribution: Distribution,
        space_amplification: Option<f64>,
    ) -> Job {
        let data_bytes = self.data_mib << 20;
        let dear = space_amplification.map(|_| SPACE_MATTERS);
        // A writer must own a record at least.
        let threads = self.threads.max(1);
        let records = (data_bytes as f64 / self.mix.pair_bytes_mean()) as u64;
        let records = records.max(threads as u64);
        Job {
            engine,
            dir: scratch.join(engine.name()),
            means: Means {
                memory_bytes: self.memory_mib.map_or(data_bytes / 4, |mib| mib << 20),
                mix: self.mix,
                data_bytes,
                space_amplification,
                write_amplification_max: self.write_amplification_max.or(dear),
                plant: self.plant,
                ..Means::default()
            },
            distribution,
            records,
            overwrites: (records as f64 * self.times).ceil() as u64,
            seconds_max: self.seconds,
            interval_seconds: self.interval_seconds,
            threads,
            checks: self.checks,
            seed: self.seed,
            door: None,
        }
    }
}

fn run_limited(mut job: Job) -> anyhow::Result<Run> {
    let limit = Limit::new(job.means.memory_bytes).ok();
    job.door = limit.as_ref().map(Limit::door);
    let dir = job.dir.clone();
    let outcome = run_child(&job);
    // A child that died leaves its files.
    let _ = std::fs::remove_dir_all(&dir);
    match limit.is_some_and(|limit| limit.has_killed()) {
        true => outcome.context("it needed more than its memory, and was killed"),
        false => outcome,
    }
}

fn run_child(job: &Job) -> anyhow::Result<Run> {
    let mut child = Ends(
        Command::new(std::env::current_exe()?)
            .arg("overwrite-child")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start a child process")?,
    );
    let input = child.0.stdin.take().context("the child has no input")?;
    serde_json::to_writer(input, job)?;
    let output = child.0.stdout.take().context("the child has no output")?;
    let bar = bar(&report::title(
        job.engine,
        job.distribution,
        job.means.space_amplification,
    ));
    bar.set_length(job.overwrites);
    let mut ended = None;
    for line in BufReader::new(output).lines() {
        match serde_json::from_str(&line?).context("a child's line")? {
            Said::Sampled(sample) => {
                bar.set_position(sample.operations);
                bar.set_message(format!(
                    "{:>8.1} k ops/s, space {:.2}",
                    sample.ops_per_second / 1e3,
                    sample.space_amplification
                ));
            }
            Said::Ended(run) => ended = Some(Ok(*run)),
            Said::Failed(why) => ended = Some(Err(why)),
        }
    }
    bar.finish_and_clear();
    let status = child.0.wait()?;
    match ended {
        Some(Ok(run)) => Ok(run),
        Some(Err(why)) => bail!("{why}"),
        None => bail!("the process ended with {status}"),
    }
}
