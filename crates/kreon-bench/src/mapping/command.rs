//! The command: variants of a store by turns, or single experiments.

use std::path::Path;

use anyhow::bail;

use super::child::Task;
use super::process::{Step, run_step};
use super::results::Results;
use super::settings::Settings;
use super::variants::variants;
use super::{demands, experiments, table};
use crate::machine::about::About;
use crate::machine::limit::Limit;
use crate::run::parent::Scratch;

/// Loads a store, runs it under each variant, and prints the tables.
///
/// # Errors
/// If the store fails, an answer is wrong, or a process took more memory than its store may.
pub fn run(settings: &Settings) -> anyhow::Result<()> {
    let scratch = Scratch::new(settings.dir.as_deref())?;
    let mut results = Results {
        command: std::env::args().collect::<Vec<_>>().join(" "),
        machine: About::here(&scratch.0),
        settings: settings.clone(),
        is_limited: Limit::new(settings.memory_mib << 20).is_ok(),
        rows: Vec::new(),
        costs: Vec::new(),
        measured: Vec::new(),
        skipped: Vec::new(),
    };
    if settings.demands {
        return demands::run(settings);
    }
    if settings.has_experiments() {
        experiments::run(settings, &scratch.0, &mut results)?;
    } else {
        of_store(settings, &scratch.0, &mut results)?;
    }
    let text = table::markdown(&results);
    println!("\n{text}");
    if let Some(out) = &settings.out {
        std::fs::create_dir_all(out)?;
        let json = serde_json::to_string_pretty(&results)?;
        std::fs::write(out.join("mapping.json"), json)?;
        std::fs::write(out.join("mapping.md"), &text)?;
    }
    match results.rows.iter().find(|row| row.is_over_budget()) {
        Some(row) => bail!(
            "{} took {} MiB of memory in {}, over its budget",
            row.variant,
            row.peak_rss_bytes >> 20,
            row.workload
        ),
        None => Ok(()),
    }
}

/// The variants of a store, and single reads.
fn of_store(settings: &Settings, dir: &Path, results: &mut Results) -> anyhow::Result<()> {
    let wanted = variants().into_iter().map(|variant| variant.name);
    let wanted: Vec<_> = wanted
        .filter(|name| name.contains(&settings.only))
        .collect();
    if !wanted.is_empty() {
        step(settings, dir, "pool", Task::Load, results)?;
    }
    for name in wanted {
        for task in [Task::Gets, Task::Inserts] {
            step(settings, dir, name, task, results)?;
        }
    }
    if "micro".contains(&settings.only) {
        step(settings, dir, "pool", Task::Micro, results)?;
    }
    Ok(())
}

/// Runs a process of a store to its end.
fn step(
    settings: &Settings,
    dir: &Path,
    variant: &str,
    task: Task,
    results: &mut Results,
) -> anyhow::Result<()> {
    let memory_bytes = match task {
        Task::Inserts => settings.memory_mib << 18,
        _ => settings.memory_mib << 20,
    };
    let is_limited = matches!(task, Task::Gets | Task::Inserts);
    let limit = is_limited.then(|| Limit::new(memory_bytes).ok()).flatten();
    let step = Step {
        variant,
        task,
        piece: None,
        memory_bytes,
    };
    run_step(settings, dir, step, limit.as_ref(), results)
}
