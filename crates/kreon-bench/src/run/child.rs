//! The child process: one store, all its phases.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, ensure};

use super::job::{Job, Said};
use super::record::{Circumstances, Record};
use crate::engine::{Engine, Searches};
use crate::machine::about::About;
use crate::machine::disk::Disk;
use crate::machine::usage::{Usage, space_bytes};
use crate::machine::{limit, memory};

/// Does the job that stands on standard input.
///
/// # Errors
/// Of the store, or if the folder is not empty. Wrong answers are no errors here: they stand in the records.
pub fn run() -> anyhow::Result<()> {
    let job: Job = serde_json::from_reader(std::io::stdin().lock()).context("read the job")?;
    if let Some(door) = &job.door {
        limit::enter(door)?;
    }
    fs::create_dir_all(&job.dir)?;
    ensure!(
        fs::read_dir(&job.dir)?.next().is_none(),
        "{} is not empty",
        job.dir.display()
    );
    let outcome = phases(&job);
    if let Err(error) = &outcome {
        say(&Said::Failed(format!("{error:#}")));
    }
    empty(&job.dir)?;
    outcome
}

fn phases(job: &Job) -> anyhow::Result<()> {
    let (disk, mhz) = (Disk::under(&job.dir).ok(), About::here(&job.dir).mhz);
    let mut engine: Option<Box<dyn Engine>> = None;
    let mut records = 0;
    for (at, phase) in job.phases.iter().enumerate() {
        if phase.workload.is_load() {
            // The old store first: both would not fit into the memory.
            drop(engine.take());
            empty(&job.dir)?;
            records = 0;
        }
        let open = match engine.take() {
            Some(open) => open,
            None => job.engine.open(&job.dir, &job.means)?,
        };
        let phase = crate::ycsb::phase::Phase { records, ..*phase };
        memory::reset_peak();
        open.take_randomness();
        let searched = open.searches();
        settle_device(&job.dir);
        let before = Usage::now(disk.as_ref());
        let workload = phase.workload.name().to_owned();
        let outcome = phase.run(open.as_ref(), &mut |requests, last| {
            let said = Said::Progress {
                workload: workload.clone(),
                requests,
                of: phase.requests,
                rate: last as f64 / crate::ycsb::phase::INTERVAL_SECONDS,
            };
            if !say(&said) {
                // Nobody listens any more: the run was interrupted.
                let _ = fs::remove_dir_all(&job.dir);
                std::process::exit(1);
            }
        })?;
        settle_device(&job.dir);
        let about = Circumstances {
            job,
            used: Usage::now(disk.as_ref()).since(&before),
            mhz,
            space_bytes: space_bytes(&job.dir),
            peak_rss_bytes: memory::peak_rss_bytes(),
            randomness: open.take_randomness(),
            searches: searches_since(open.as_ref(), searched),
        };
        records = outcome.records;
        say(&Said::Ended(Box::new(Record::new(
            &phase, &outcome, &about,
        ))));
        let is_followed = job
            .phases
            .get(at + 1)
            .is_some_and(|next| !next.workload.is_load());
        if job.means.is_warmed && phase.workload.is_load() && is_followed {
            crate::ycsb::warm::warm(open.as_ref(), phase.mix, records, phase.threads)?;
        }
        engine = Some(open);
    }
    Ok(())
}

fn searches_since(engine: &dyn Engine, before: Option<Searches>) -> Option<Searches> {
    Some(engine.searches()?.since(before?))
}

/// Brings what the page cache still holds to the device, so that it counts for the phase that wrote it.
pub fn settle_device(dir: &Path) {
    if let Ok(folder) = fs::File::open(dir) {
        let _ = rustix::fs::syncfs(folder);
    }
}

/// Whether the parent listens.
fn say(what: &Said) -> bool {
    serde_json::to_string(what)
        .is_ok_and(|line| writeln!(std::io::stdout().lock(), "{line}").is_ok())
}

/// Deletes what is in `dir`.
///
/// # Errors
/// Of the file system.
pub fn empty(dir: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}
