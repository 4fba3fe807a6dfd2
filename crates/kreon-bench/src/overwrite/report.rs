//! `overwrite.json` and `overwrite.md`.

use std::fmt;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::cleaning::SIMULATED_GREEDY;
use super::figures::Run;
use super::job::Job;
use super::page;
use crate::engine::Kind;
use crate::machine::about::About;
use crate::report::origin::Origin;
use crate::ycsb::choice::Distribution;

/// The content of `overwrite.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// Of this layout; higher when a field changes its meaning or goes.
    pub schema: u32,
    /// Where the figures come from.
    #[serde(flatten)]
    pub origin: Origin,
    /// The machine.
    pub machine: About,
    /// One for each store, distribution and target.
    pub runs: Vec<Run>,
    /// Those that did not come to their end.
    pub broken: Vec<Broken>,
}

/// See [`Results::schema`].
pub const SCHEMA: u32 = 1;

/// A store that did not come to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Broken {
    /// The store.
    pub engine: Kind,
    /// Which records were to be overwritten.
    pub distribution: Distribution,
    /// What was asked of the store.
    pub space_target: Option<f64>,
    /// Why.
    pub why: String,
}

impl Broken {
    /// What became of `job`.
    pub fn new(job: &Job, why: String) -> Self {
        Self {
            engine: job.engine,
            distribution: job.distribution,
            space_target: job.means.space_amplification,
            why,
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = title(self.engine, self.distribution, self.space_target);
        write!(f, "{title} did not come to its end: {}", self.why)
    }
}

impl Results {
    /// Writes all files into `dir`.
    ///
    /// # Errors
    /// Of writing.
    pub fn write(&self, dir: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))?;
        let files = [
            ("overwrite.json", serde_json::to_string_pretty(self)?),
            ("overwrite.md", markdown(self)),
            ("overwrite.html", page::page(self)?),
        ];
        for (name, content) in files {
            let path = dir.join(name);
            std::fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
        }
        Ok(())
    }

    /// The distributions in the order of the runs.
    pub fn distributions(&self) -> Vec<Distribution> {
        let mut all = Vec::new();
        for run in &self.runs {
            if !all.contains(&run.distribution) {
                all.push(run.distribution);
            }
        }
        all
    }

    /// Runs with a target and uniform overwrites, which an analysis is known for.
    pub fn on_the_curve(&self) -> Vec<&Run> {
        let uniform =
            |run: &&Run| run.space_target.is_some() && run.distribution == Distribution::Uniform;
        self.runs.iter().filter(uniform).collect()
    }
}

/// Why the run has failed, if it has.
pub fn verdict(results: &Results) -> Option<String> {
    let broken = results.broken.iter().map(Broken::to_string);
    let wrong = results.runs.iter().filter(|run| run.failures > 0);
    let wrong = wrong.map(|run| {
        let title = title(run.engine, run.distribution, run.space_target);
        let first = run.failed.first.as_deref().unwrap_or("not told");
        format!(
            "{title}: {} wrong answers; the first: {first}",
            run.failures
        )
    });
    let whys: Vec<_> = broken.chain(wrong).collect();
    (!whys.is_empty()).then(|| whys.join("; "))
}

/// A run in words.
pub fn title(engine: Kind, distribution: Distribution, space_target: Option<f64>) -> String {
    let (name, spread) = (engine.name(), spread(distribution));
    match space_target {
        Some(target) => format!("{name}, {spread}, target {target}"),
        None => format!("{name}, {spread}"),
    }
}

/// A distribution in words: there are two Zipfians.
pub fn spread(distribution: Distribution) -> &'static str {
    match distribution {
        Distribution::Zipfian => "YCSB's scrambled Zipfian",
        Distribution::TrueZipfian => "a true Zipfian",
        Distribution::Uniform => "uniform",
        Distribution::Latest => "newest first",
    }
}

/// A line for a run that has ended.
pub fn line(run: &Run) -> String {
    format!(
        "{:<40} space {:.2} at most, {:.2} B written per B, {:>8.1} k ops/s{}",
        title(run.engine, run.distribution, run.space_target),
        run.space_amplification_max,
        run.written_per_byte,
        run.ops_per_second() / 1e3,
        match run.failures {
            0 => String::new(),
            failures => format!("  {failures} WRONG ANSWERS"),
        }
    )
}

/// The whole of `overwrite.md`.
pub fn markdown(results: &Results) -> String {
    let mut text = format!(
        "# overwrite\n\n```text\n{}\n```\n\n",
        results.origin.command
    );
    for (name, value) in about(results) {
        text += &format!("- {name}: {value}\n");
    }
    for distribution in results.distributions() {
        let of = |run: &&Run| run.distribution == distribution;
        let rows = results.runs.iter().filter(of).map(row);
        text += &format!(
            "\n## Overwrites: {}\n\n{HEAD}{}",
            spread(distribution),
            rows.collect::<String>()
        );
    }
    let curve = results.on_the_curve();
    if !curve.is_empty() {
        text += &format!(
            "\n## Writes against space, uniform\n\n{}",
            curve_table(&curve)
        );
    }
    for broken in &results.broken {
        text += &format!("\n**{}**\n", broken.to_string().replace('\n', " "));
    }
    if let Some(failed) = verdict(results) {
        text += &format!("\n**This run has failed: {}**\n", failed.replace('\n', " "));
    }
    text
}

/// What a reader must know of the circumstances, as (name, value).
pub fn about(results: &Results) -> Vec<(&'static str, String)> {
    let machine = &results.machine;
    let mut all = vec![
        ("processor", format!("{}, {} cores", machine.processor, machine.cores)),
        ("kernel", machine.kernel.clone()),
        ("file system", machine.file_system.clone()),
        ("device", machine.device.clone()),
        ("commit", results.origin.commit.clone()),
        ("stores", results.origin.versions_line()),
        ("settings", results.origin.tuning_line()),
        (
            "written, read",
            "of the process for each byte of overwritten keys and values, index and background work included; at the \
             device by whomever"
                .to_owned(),
        ),
        ("space", "blocks of the store's files over the bytes of all keys and values".to_owned()),
    ];
    if let Some(run) = results.runs.first() {
        let limit = if run.is_limited {
            "enforced"
        } else {
            "NOT enforced"
        };
        all.push((
            "records",
            format!(
                "{} of mix {}, {} MiB",
                run.records,
                run.mix.name(),
                run.live_bytes >> 20
            ),
        ));
        all.push(("memory", format!("{} MiB, {limit}", run.memory_bytes >> 20)));
    }
    all
}

const HEAD: &str = "| store | target | space max | median | end | written B/B | pages of it | at the device | read B/B | k ops/s | last / 2nd tenth | CPU us/op | p50 us | p99.9 | p99.99 | max | overwrites | settle s | other load |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";

fn row(run: &Run) -> String {
    let told = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.2}"));
    let failed = match (run.failures, run.is_cut) {
        (0, false) => String::new(),
        (0, true) => " (cut short)".to_owned(),
        (failures, _) => format!(" **{failures} WRONG**"),
    };
    format!(
        "| {}{failed} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {} | {:.2} | {:.2} | {:.1} | {:.2} | {:.2} | {:.1} | {:.0} | {:.0} | {:.0} | {} | {:.1} | {:.2} |\n",
        run.engine.label(),
        told(run.space_target),
        run.space_amplification_max,
        run.space_amplification_median,
        run.space_amplification_end,
        run.written_per_byte,
        told(run.pages_written_per_byte),
        run.device_written_per_byte,
        run.read_per_byte,
        run.ops_per_second() / 1e3,
        run.last_over_second_tenth(),
        run.cpu_us_per_op,
        run.p50_us,
        run.p999_us,
        run.p9999_us,
        run.max_us,
        run.operations,
        run.settle_seconds,
        run.other_load_cores,
    )
}

/// What the log wrote beside what it must write by analysis: at the target, and at the space that the store really
/// took, which holds its index, too.
fn curve_table(runs: &[&Run]) -> String {
    let told = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.2}"));
    let mut text = "| target | space median | max | log written B/B | all written B/B | analytic at target | simulated greedy | analytic at median space |\n|---|---|---|---|---|---|---|---|\n".to_owned();
    for run in runs {
        let target = run.space_target.unwrap_or(0.0);
        let simulated = SIMULATED_GREEDY.iter().find(|(at, _)| *at == target);
        text += &format!(
            "| {target} | {:.2} | {:.2} | {} | {:.2} | {} | {} | {} |\n",
            run.space_amplification_median,
            run.space_amplification_max,
            told(run.log_written_per_byte()),
            run.written_per_byte,
            told(run.analytic(target)),
            told(simulated.map(|(_, written)| *written)),
            told(run.analytic(run.space_amplification_median)),
        );
    }
    text
}
