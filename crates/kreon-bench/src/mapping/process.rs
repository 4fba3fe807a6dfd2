//! Starts a process of the command, and takes what it says.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::child::{Job, Said, Task};
use super::piece::Piece;
use super::results::Results;
use super::settings::Settings;
use super::table;
use crate::machine::limit::Limit;

/// What a process does.
pub(super) struct Step<'a> {
    /// Name of the variant of the store.
    pub variant: &'a str,
    /// Which part of the run.
    pub task: Task,
    /// The piece, if the part is one.
    pub piece: Option<Piece>,
    /// Memory of the store's process.
    pub memory_bytes: u64,
}

/// Runs a process to its end, under a limit if there is one.
pub(super) fn run_step(
    settings: &Settings,
    dir: &Path,
    step: Step<'_>,
    limit: Option<&Limit>,
    results: &mut Results,
) -> anyhow::Result<()> {
    let (variant, task) = (step.variant, step.task);
    let job = Job {
        task,
        variant: variant.to_owned(),
        dir: dir.to_owned(),
        memory_bytes: step.memory_bytes,
        door: limit.map(Limit::door),
        piece: step.piece,
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
            Said::Measured(measured) => results.measured.push(measured),
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
