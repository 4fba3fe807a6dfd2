//! Ends the processes of a cluster on one machine: servers first, so that they can tell ZooKeeper.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kreon::Result;
use rustix::process::Signal;

use super::folder::Folder;
use super::plan::Plan;
use crate::cluster::process::Process;

/// How long servers may take to make everything durable, and ZooKeeper to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ended {
    /// Processes that ran.
    pub processes: usize,
    /// Of these, how many had to be killed.
    pub killed: usize,
}

/// Ends all processes that run; `tell` hears of each step.
///
/// # Errors
/// `Io`.
pub fn end(folder: &Folder, plan: &Plan, tell: impl Fn(&str)) -> Result<Ended> {
    let mut ended = Ended::default();
    let servers: Vec<_> = (1..=plan.server_ports.len())
        .map(|number| folder.server_process(number))
        .collect();
    let zookeeper = vec![folder.zookeeper_process()];
    // Servers all at once, and without a hand-over, which SIGTERM asks for: they would only take over each other's work.
    for (name, files, signal) in [
        ("servers", servers, Signal::INT),
        ("ZooKeeper", zookeeper, Signal::TERM),
    ] {
        let running = running(&files)?;
        if running.is_empty() {
            continue;
        }
        tell(&format!("ending {name}"));
        for (_, process) in &running {
            process.signal(signal)?;
        }
        let begun = Instant::now();
        for (file, process) in &running {
            ended.processes += 1;
            if !process.ends_within(PATIENCE.saturating_sub(begun.elapsed())) {
                tell(&format!(
                    "process {} does not end: killed",
                    process.number()
                ));
                process.signal(Signal::KILL)?;
                process.ends_within(PATIENCE);
                ended.killed += 1;
            }
            // It would name a process that has ended.
            let _ = fs::remove_file(file);
        }
    }
    Ok(ended)
}

/// Whether any process runs.
///
/// # Errors
/// `Io`.
pub fn runs(folder: &Folder, plan: &Plan) -> Result<bool> {
    let servers = (1..=plan.server_ports.len()).map(|number| folder.server_process(number));
    let files: Vec<_> = servers.chain([folder.zookeeper_process()]).collect();
    Ok(!running(&files)?.is_empty())
}

fn running(files: &[PathBuf]) -> Result<Vec<(&Path, Process)>> {
    let mut running = Vec::new();
    for file in files {
        if let Some(process) = Process::recorded(file)? {
            running.push((file.as_path(), process));
        }
    }
    Ok(running)
}
