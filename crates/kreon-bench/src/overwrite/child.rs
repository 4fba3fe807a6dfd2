//! The child process: one store.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, anyhow, ensure};

use super::check::Expected;
use super::course::{Sample, Watch, sum};
use super::figures::{Measured, Run};
use super::job::{Job, Said};
use super::writers::Writer;
use crate::machine::limit;
use crate::run::child::{empty, settle_device};
use crate::ycsb::choice::Chooser;
use crate::ycsb::client::{Done, latencies};

/// Does the job that stands on standard input.
///
/// # Errors
/// Of the store, or if the folder is not empty. Wrong answers are no errors here: they stand in the run.
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
    let outcome = measure(&job);
    match &outcome {
        Ok(run) => say(&Said::Ended(Box::new(run.clone()))),
        Err(error) => say(&Said::Failed(format!("{error:#}"))),
    };
    empty(&job.dir)?;
    outcome.map(|_| ())
}

fn measure(job: &Job) -> anyhow::Result<Run> {
    let engine = job.engine.open(&job.dir, &job.means)?;
    let of = job.threads.max(1) as u64;
    let writers = (0..of).map(|number| {
        let share = (number, of);
        Writer::new(engine.as_ref(), job.means.mix, job.records, share, job.seed)
    });
    let mut writers = writers.collect::<anyhow::Result<Vec<_>>>()?;
    let live_bytes = load(&mut writers)?;
    engine.settle()?;
    settle_device(&job.dir);
    let mut watch = Watch::begin(engine.as_ref(), &job.dir, live_bytes);
    let started = Instant::now();
    let operations = overwrite(job, &mut writers, &mut watch)?;
    let (seconds, settling) = (started.elapsed().as_secs_f64(), Instant::now());
    engine.settle()?;
    settle_device(&job.dir);
    let settle_seconds = settling.elapsed().as_secs_f64();
    watch.sample(operations);
    let (tenths, samples) = (watch.tenths(), watch.samples);
    let mut merged = latencies()?;
    let mut given_bytes = 0;
    let mut versions = Vec::new();
    for writer in writers {
        merged.add(&writer.latencies)?;
        given_bytes += writer.given_bytes;
        versions.push(writer.versions);
    }
    let expected = Expected {
        mix: job.means.mix,
        versions,
    };
    let failed = match job.engine.is_store() {
        true => expected.check(engine.as_ref(), job.checks, job.seed)?,
        false => Default::default(),
    };
    let measured = Measured {
        live_bytes,
        given_bytes,
        seconds,
        settle_seconds,
        tenths,
        samples,
        latencies: merged,
        failed,
    };
    Ok(Run::new(job, measured))
}

/// All records once; the bytes of their keys and values.
fn load(writers: &mut [Writer<'_>]) -> anyhow::Result<u64> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = writers
            .iter_mut()
            .map(|writer| scope.spawn(move || writer.load()))
            .collect();
        let mut bytes = 0;
        for thread in threads {
            bytes += thread.join().map_err(|_| anyhow!("a writer panicked"))??;
        }
        Ok(bytes)
    })
}

/// How many overwrites there were.
fn overwrite(job: &Job, writers: &mut [Writer<'_>], watch: &mut Watch<'_>) -> anyhow::Result<u64> {
    let chooser = Chooser::new(job.distribution, job.records);
    let done: Vec<Done> = writers.iter().map(|_| Done::default()).collect();
    let (stop, of) = (AtomicBool::new(false), job.threads.max(1) as u64);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..of)
            .zip(writers)
            .zip(&done)
            .map(|((number, writer), done)| {
                let count = job.overwrites / of + u64::from(number < job.overwrites % of);
                let (chooser, stop) = (&chooser, &stop);
                scope.spawn(move || writer.overwrite(count, chooser, done, stop))
            })
            .collect();
        watch.until(
            (job.interval_seconds, job.seconds_max),
            (&done, &stop),
            &mut |sample| tell(&job.dir, sample),
            || threads.iter().all(|thread| thread.is_finished()),
        );
        for thread in threads {
            thread.join().map_err(|_| anyhow!("a writer panicked"))??;
        }
        Ok(sum(&done))
    })
}

/// Tells the parent; if it is gone, the run was interrupted.
fn tell(dir: &Path, sample: &Sample) {
    if !say(&Said::Sampled(*sample)) {
        let _ = fs::remove_dir_all(dir);
        std::process::exit(1);
    }
}

/// Whether the parent listens.
fn say(what: &Said) -> bool {
    serde_json::to_string(what)
        .is_ok_and(|line| writeln!(std::io::stdout().lock(), "{line}").is_ok())
}
