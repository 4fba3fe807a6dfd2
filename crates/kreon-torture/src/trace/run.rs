//! `kreon-torture trace`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::daemon;
use super::errors::{Kind, errors};
use super::record::record;
use super::replay::{State, ignore_flushes, replay, replay_one};
use crate::counts::Counts;

/// States without flushes that are tried in every run.
const PLANTED_STATES: u64 = 12;

/// What is recorded, and what is tried of it.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// How long the store is recorded; less if it has written 128 MiB before.
    #[arg(long, default_value_t = 6.0)]
    seconds: f64,
    /// How many crash states are tried.
    #[arg(long, default_value_t = 600)]
    states: u64,
    /// Seed of the operations and of the states. Threads make each recording another one.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for the recording; without it a new one, removed at the end unless something is wrong.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Tries a recording that was kept, in this folder.
    #[arg(long, conflicts_with = "dir")]
    replay: Option<PathBuf>,
    /// With `replay`: one state, as the failure says.
    #[arg(long, requires_all = ["replay", "choice"])]
    event: Option<usize>,
    /// With `event`.
    #[arg(long, requires = "event")]
    choice: Option<usize>,
    /// Tries states as if no flush had done anything. These must show losses.
    #[arg(long)]
    ignore_flushes: bool,
    /// Records nothing, but lets requests fail under the store.
    #[arg(long, conflicts_with_all = ["replay", "ignore_flushes"])]
    inject: Option<Kind>,
    /// With `inject`: how many failures.
    #[arg(long, default_value_t = 8)]
    runs: u64,
}

/// Records and tries. `None`: this machine cannot, and it was said why.
///
/// # Errors
/// What failed around the states.
pub fn run(arguments: &Arguments) -> Result<Option<Counts>, String> {
    let seed = arguments.seed;
    if let Some(folder) = &arguments.replay {
        return tried(arguments, folder).map(Some);
    }
    if let Some(reason) = daemon::missing() {
        println!("trace: SKIPPED, no trace was recorded: {reason}");
        return Ok(None);
    }
    let (folder, is_ours) = folder(arguments.dir.as_deref())?;
    println!("trace: seed {seed}, working in {}", folder.display());
    let outcome = match arguments.inject {
        Some(kind) => Ok(errors(&folder, kind, arguments.runs, seed)),
        None => recorded(arguments, &folder),
    };
    let is_right = outcome.as_ref().is_ok_and(|counts| counts.failed == 0);
    match is_right && is_ours {
        true => std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())?,
        false => println!("trace: everything stays in {}", folder.display()),
    }
    outcome.map(Some)
}

fn recorded(arguments: &Arguments, folder: &Path) -> Result<Counts, String> {
    record(folder, arguments.seed, arguments.seconds)?;
    tried(arguments, folder)
}

fn tried(arguments: &Arguments, folder: &Path) -> Result<Counts, String> {
    let Arguments { states, seed, .. } = *arguments;
    if let (Some(event), Some(choice)) = (arguments.event, arguments.choice) {
        let mut counts = Counts::default();
        counts.count("replayed");
        if let Err(what) = replay_one(folder, State { event, choice }) {
            counts.fail(what);
        }
        return Ok(counts);
    }
    if arguments.ignore_flushes {
        return planted(folder, states.min(100), seed).map(|()| Counts::default());
    }
    let counts = replay(folder, states, seed)?;
    planted(folder, PLANTED_STATES, seed)?;
    Ok(counts)
}

/// The checker can fail: without flushes there are losses.
fn planted(folder: &Path, states: u64, seed: u64) -> Result<(), String> {
    let counts = ignore_flushes(folder, states, seed)?;
    let (failed, total) = (counts.failed, counts.total());
    println!("trace: as if flushes did nothing: {failed} of {total} states are lost or wrong");
    if let Some(first) = counts.failures.first() {
        println!("trace: the first: {}", first.get(..300).unwrap_or(first));
    }
    match failed {
        0 => Err("without flushes nothing is lost: the checker sees nothing".to_owned()),
        _ => Ok(()),
    }
}

/// The folder to record in, and whether this run made it.
fn folder(given: Option<&Path>) -> Result<(PathBuf, bool), String> {
    let own = || Path::new("/var/tmp").join(format!("kreon-trace-{}", std::process::id()));
    let folder = given.map_or_else(own, Path::to_owned);
    let is_ours = !folder.exists();
    let outcome = std::fs::create_dir_all(&folder).and_then(|()| folder.canonicalize());
    let folder = outcome.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok((folder, is_ours))
}
