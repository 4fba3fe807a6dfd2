//! The command: a process for each variant, by turns.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::child::{Job, Said, Task};
use super::results::Results;
use super::settings::Settings;
use super::table;
use super::variants::variants;
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
    };
    let wanted = variants().into_iter().map(|variant| variant.name);
    let wanted: Vec<_> = wanted
        .filter(|name| name.contains(&settings.only))
        .collect();
    if !wanted.is_empty() {
        step(settings, &scratch.0, "pool", Task::Load, &mut results)?;
    }
    for name in wanted {
        for task in [Task::Gets, Task::Inserts] {
            step(settings, &scratch.0, name, task, &mut results)?;
        }
    }
    if "micro".contains(&settings.only) {
        step(settings, &scratch.0, "pool", Task::Micro, &mut results)?;
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

/// Runs a process to its end.
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
    let job = Job {
        task,
        variant: variant.to_owned(),
        dir: dir.to_owned(),
        memory_bytes,
        door: limit.as_ref().map(Limit::door),
        settings: settings.clone(),
    };
    let mut child = Command::new(std::env::current_exe()?)
        .arg("mapping-child")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("start a child process")?;
    let input = child.stdin.take().context("the child has no input")?;
    serde_json::to_writer(input, &job)?;
    let output = child.stdout.take().context("the child has no output")?;
    let mut failed = None;
    for line in BufReader::new(output).lines() {
        match serde_json::from_str(&line?).context("a child's line")? {
            Said::Row(row) => {
                println!("{}", table::line(&row));
                results.rows.push(row);
            }
            Said::Cost(cost) => results.costs.push(cost),
            Said::Failed(why) => failed = Some(why),
        }
    }
    let status = child.wait()?;
    match failed {
        Some(why) => bail!("{variant}, {task:?}: {why}"),
        None if !status.success() => bail!("{variant}, {task:?}: the process ended with {status}"),
        None => Ok(()),
    }
}
