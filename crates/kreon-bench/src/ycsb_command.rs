//! `kreon-bench ycsb`.

use anyhow::bail;

use crate::engine::Kind;
use crate::machine::about::About;
use crate::machine::memory::allowed_bytes;
use crate::report::origin::Origin;
use crate::report::results::{Results, SCHEMA};
use crate::report::{files, table};
use crate::run::parent::{self, Scratch};
use crate::run::record::Record;
use crate::run::settings::Arguments;

/// Runs a preset, prints its tables, and writes its files.
///
/// # Errors
/// If a store failed or any answer was not what it must be: after all tables and files, for the others' sake.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let settings = arguments.settings();
    for engine in &settings.engines {
        engine.ensure_built()?;
    }
    let scratch = Scratch::new(arguments.dir.as_deref())?;
    let means = settings.points.first().map(|point| point.means);
    let origin = Origin::now(&settings.engines, &means.unwrap_or_default());
    let ran = parent::run(&settings, &scratch.0, &mut |record| {
        println!("{}", line(record))
    });
    let results = Results {
        schema: SCHEMA,
        origin,
        machine: About::here(&scratch.0),
        settings,
        records: ran.records,
        broken: ran.broken,
    };
    println!("\n{}", table::markdown(&results));
    if let Some(out) = &arguments.out {
        files::write(&results, out)?;
        println!("{}", out.join("report.html").display());
    }
    match verdict(&results) {
        Some(failed) => bail!("{failed}"),
        None => Ok(()),
    }
}

/// Why the run has failed, if it has.
fn verdict(results: &Results) -> Option<String> {
    let mut whys: Vec<String> = Vec::new();
    for broken in &results.broken {
        let (name, round) = (broken.engine.name(), broken.round);
        whys.push(format!(
            "{name} did not come to its end in round {round}: {}",
            broken.why
        ));
    }
    let mut wrong = results.records.iter().filter(|r| r.failures > 0);
    if let Some(first) = wrong.next() {
        whys.push(format!(
            "{} wrong answers; the first is one of {} in {}: {}",
            results.failures(),
            first.engine.name(),
            first.workload.name(),
            first.failed.first.as_deref().unwrap_or("not told")
        ));
    }
    if let Some(over) = results.records.iter().find(|r| is_over_budget(results, r)) {
        whys.push(format!(
            "{} took {} MiB of memory in {}, more than its budget, a twentieth and 32 MiB",
            over.engine.name(),
            over.peak_rss_bytes >> 20,
            over.workload.name()
        ));
    }
    (!whys.is_empty()).then(|| whys.join("; "))
}

/// Whether the process took more memory than kreon promises for its budget. The others promise nothing.
fn is_over_budget(results: &Results, record: &Record) -> bool {
    let points = &results.settings.points;
    let point = points.iter().find(|point| point.variant == record.variant);
    point.is_some_and(|point| {
        let budget_bytes = point.means.own_memory_bytes() as u64;
        record.engine == Kind::Kreon && record.peak_rss_bytes > allowed_bytes(budget_bytes)
    })
}

/// A line for a phase that has ended.
fn line(record: &Record) -> String {
    format!(
        "{:<10} {:<7} round {} {:>9.1} k ops/s {:>8.2} us CPU/op  p99.9 {:>8.1} us{}",
        record.engine.name(),
        record.workload.name(),
        record.round,
        record.ops_per_second / 1e3,
        record.cpu_us_per_op,
        record.p999_us,
        match (
            record.failures,
            record.is_cut && record.workload.is_load() && record.engine.is_store()
        ) {
            (0, false) => String::new(),
            (0, true) => "  CUT SHORT".to_owned(),
            (failures, _) => format!("  {failures} WRONG ANSWERS"),
        }
    )
}
