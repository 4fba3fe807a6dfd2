//! The command: by turns, one size after the other.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

use super::child::{Job, Opening, Said};
use super::sequential;
use crate::engine::Kind;
use crate::engine::tuning::Means;
use crate::machine::about::About;
use crate::machine::limit::Limit;
use crate::report::origin::Origin;
use crate::report::summary::median;
use crate::run::parent::Scratch;
use crate::ycsb::mix::Mix;

/// What is measured.
#[derive(clap::Args)]
pub struct Settings {
    /// The stores, by turns.
    #[arg(long, value_delimiter = ',', default_value = "kreon")]
    engines: Vec<Kind>,
    /// MiB of pairs that are loaded before the process is killed.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256, 1024])]
    data_mib: Vec<u64>,
    /// Sizes of the pairs.
    #[arg(long, value_enum, default_value = "k")]
    mix: Mix,
    /// Memory of each store, in MiB.
    #[arg(long, default_value_t = 2048)]
    memory_mib: u64,
    /// Seconds from one checkpoint of L0 to the next, 0: none; the store's default, if not given (kreon only).
    #[arg(long)]
    interval_seconds: Option<u32>,
    /// Rounds.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Where `recovery.json` and `recovery.md` go.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Folder for the stores; a new one in the current folder, deleted afterwards, if not given.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// `recovery.json`.
#[derive(Serialize, Deserialize)]
pub struct Results {
    /// Where the figures come from.
    #[serde(flatten)]
    pub origin: Origin,
    /// The machine.
    pub machine: About,
    /// Bytes a second that the device reads in a row, with one read of a MiB in flight and with [`DEPTHS`]'s others.
    sequential_read_bytes_per_second: Vec<(usize, f64)>,
    rows: Vec<Row>,
}

/// One store, one size, one round.
#[derive(Clone, Serialize, Deserialize)]
struct Row {
    engine: Kind,
    round: u32,
    data_bytes: u64,
    /// Bytes of the log behind the last checkpoint of L0 when the process was killed, if the store can tell.
    replay_bytes: Option<u64>,
    opening: Opening,
}

/// Reads in flight when the device's own rate is measured.
const DEPTHS: [usize; 3] = [1, 4, 16];

/// Runs it all, and prints a table.
///
/// # Errors
/// Of a store, or if a durable record was lost.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    for engine in &settings.engines {
        engine.ensure_built()?;
        ensure!(
            engine.is_store() && engine.is_durable(),
            "{} cannot recover",
            engine.name()
        );
    }
    let scratch = Scratch::new(settings.dir.as_deref())?;
    let origin = Origin::now(&settings.engines, &settings.means(0));
    let rates = sequential::read_rates(&scratch.0, &DEPTHS)?;
    let mut rows = Vec::new();
    for round in 1..=settings.rounds {
        for mib in &settings.data_mib {
            for engine in &settings.engines {
                let row = row(settings, &scratch.0, *engine, round, mib << 20)
                    .with_context(|| format!("{}, round {round}, {mib} MiB", engine.name()))?;
                println!(
                    "round {round} {}: {mib} MiB, {:.3} s",
                    engine.name(),
                    row.opening.seconds
                );
                rows.push(row);
            }
        }
    }
    let results = Results {
        origin,
        machine: About::here(&scratch.0),
        sequential_read_bytes_per_second: DEPTHS.into_iter().zip(rates).collect(),
        rows,
    };
    let table = table(&results);
    println!("\n{table}");
    if let Some(out) = &settings.out {
        std::fs::create_dir_all(out)?;
        std::fs::write(
            out.join("recovery.json"),
            serde_json::to_string_pretty(&results)?,
        )?;
        std::fs::write(out.join("recovery.md"), &table)?;
    }
    let lost: u64 = results.rows.iter().map(|row| row.opening.failures).sum();
    ensure!(lost == 0, "{lost} durable records were lost or wrong");
    Ok(())
}

impl Results {
    /// Rounds.
    pub fn rounds(&self) -> u32 {
        self.rows.iter().map(|row| row.round).max().unwrap_or(0)
    }
}

impl Settings {
    fn means(&self, data_bytes: u64) -> Means {
        Means {
            memory_bytes: self.memory_mib << 20,
            mix: self.mix,
            data_bytes,
            l0_checkpoint_seconds: self.interval_seconds,
            ..Means::default()
        }
    }
}

fn row(
    settings: &Settings,
    scratch: &Path,
    engine: Kind,
    round: u32,
    data_bytes: u64,
) -> anyhow::Result<Row> {
    let limit = Limit::new(settings.memory_mib << 20).ok();
    let mut job = Job {
        engine,
        dir: scratch.join(engine.name()),
        means: settings.means(data_bytes),
        records: (data_bytes as f64 / settings.mix.pair_bytes_mean()) as u64,
        door: limit.as_ref().map(Limit::door),
        is_load: true,
    };
    let Said::Loaded { replay_bytes } = step(&job)? else {
        bail!("the load did not say that it ended");
    };
    job.is_load = false;
    let Said::Opened(opening) = step(&job)? else {
        bail!("the opening did not say that it ended");
    };
    std::fs::remove_dir_all(&job.dir)?;
    Ok(Row {
        engine,
        round,
        data_bytes,
        replay_bytes,
        opening,
    })
}

/// Runs a process until it has said something; then it is killed.
fn step(job: &Job) -> anyhow::Result<Said> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("recovery-child")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("start a child process")?;
    let input = child.stdin.take().context("the child has no input")?;
    serde_json::to_writer(input, job)?;
    let output = child.stdout.take().context("the child has no output")?;
    let line = BufReader::new(output).lines().next();
    // It may have ended by itself already.
    let _ = child.kill();
    let status = child.wait()?;
    match line {
        Some(line) => serde_json::from_str(&line?).context("a child's line"),
        None => bail!("the process ended with {status}"),
    }
}

/// The table of `recovery.md`.
pub fn table(results: &Results) -> String {
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let rates: Vec<String> = results
        .sequential_read_bytes_per_second
        .iter()
        .map(|(depth, rate)| format!("{:.0} with {depth}", mib(*rate)))
        .collect();
    let mut text = format!(
        "The device's sequential reads of 1 MiB, in MiB/s by how many are in flight: {}.\n\n\
         | store | loaded MiB | log to replay MiB | open s | replayed MiB/s | CPU s | device read MiB | peak MiB |\n\
         |---|---|---|---|---|---|---|---|\n",
        rates.join(", ")
    );
    let mut keys: Vec<(Kind, u64)> = results
        .rows
        .iter()
        .map(|r| (r.engine, r.data_bytes))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    for (engine, data_bytes) in keys {
        let of_key = || {
            results
                .rows
                .iter()
                .filter(|r| (r.engine, r.data_bytes) == (engine, data_bytes))
        };
        let median_of = |field: &dyn Fn(&Row) -> f64| median(of_key().map(field));
        let told = of_key().all(|row| row.replay_bytes.is_some());
        let replay_bytes = median_of(&|row| row.replay_bytes.unwrap_or(0) as f64);
        let seconds = median_of(&|row| row.opening.seconds);
        let if_told = |value: f64| {
            if told {
                format!("{value:.0}")
            } else {
                "-".to_owned()
            }
        };
        text += &format!(
            "| {} | {} | {} | {seconds:.3} | {} | {:.3} | {:.0} | {:.0} |\n",
            engine.name(),
            data_bytes >> 20,
            if_told(mib(replay_bytes)),
            if_told(mib(replay_bytes) / seconds.max(1e-9)),
            median_of(&|row| row.opening.cpu_seconds),
            mib(median_of(&|row| row.opening.device_read_bytes as f64)),
            mib(median_of(&|row| row.opening.peak_rss_bytes as f64)),
        );
    }
    text
}
