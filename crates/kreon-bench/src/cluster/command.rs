//! What is asked for, and the stores that it is asked of.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::kreon::Kreon;
use super::measure::{Plan, measure};
use super::nodes::Nodes;
use super::store::Store;
use super::table::{self, Kind, Sample};
use crate::machine::about::About;
use crate::run::parent::Scratch;

/// What is measured.
#[derive(clap::Args)]
pub struct Settings {
    /// The `kreon` program; the one beside this program if not given.
    #[arg(long)]
    kreon: Option<PathBuf>,
    /// Folder of the files of ZooKeeper; that of `cargo xtask zookeeper` if not given.
    #[arg(long)]
    zookeeper_files: Option<PathBuf>,
    /// Copies of everything in the cluster, one row of the tables for each number.
    #[arg(long, value_delimiter = ',', default_value = "2", value_parser = clap::value_parser!(u8).range(2..=3))]
    copies: Vec<u8>,
    /// The server program of Redis to compare with; builds with the feature `redis` only.
    #[arg(long)]
    redis: Option<PathBuf>,
    /// Calls one after the other, of each kind.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..))]
    calls: u64,
    /// Seconds with many calls under way, of each kind.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Calls under way then.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..))]
    depth: u64,
    /// Records that are there, and that are put and got.
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    records: u64,
    /// Bytes of a value, 8 at the least.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(8..))]
    value_bytes: u64,
    /// Memory of each server of the cluster, in MiB.
    #[arg(long, default_value_t = 512)]
    memory_mib: u64,
    /// Rounds, in each of which the stores take turns; tables have the medians.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Folder for the stores; a new one in the current folder, deleted afterwards, if not given.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Runs it all, tells each round on the way, and prints the tables.
///
/// # Errors
/// Of the stores; a value that was acknowledged and is not there.
pub fn run(settings: &Settings) -> Result<()> {
    let scratch = Scratch::new(settings.dir.as_deref())?;
    let mut stores = stores(settings, &scratch.0)?;
    let plan = Plan {
        calls: settings.calls,
        seconds: settings.seconds,
        depth: settings.depth,
        records: settings.records,
        value_bytes: usize::try_from(settings.value_bytes)?,
    };
    for store in &mut stores {
        plan.load(store.as_mut())?;
    }
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); stores.len()];
    for round in 0..settings.rounds {
        for turn in 0..stores.len() {
            // Another one begins each time.
            let at = (turn + round as usize) % stores.len();
            for kind in Kind::ALL {
                let sample = measure(&plan, stores[at].as_mut(), kind)?;
                eprintln!(
                    "round {}, {}: {}",
                    round + 1,
                    stores[at].name(),
                    sample.line()
                );
                samples[at].push(sample);
            }
        }
    }
    println!("{}", heading(settings, &plan, &scratch.0));
    let rows = stores.iter().map(|store| store.name()).zip(&samples);
    print!("{}", table::tables(rows));
    Ok(())
}

fn stores(settings: &Settings, dir: &Path) -> Result<Vec<Box<dyn Store>>> {
    let program = match &settings.kreon {
        Some(program) => program.clone(),
        None => std::env::current_exe()?.with_file_name("kreon"),
    };
    ensure!(
        program.is_file(),
        "no program {}: build kreon-cli, or name it by --kreon",
        program.display()
    );
    let files = settings.zookeeper_files.as_deref();
    let mut stores: Vec<Box<dyn Store>> = Vec::new();
    for copies in &settings.copies {
        let folder = dir.join(format!("cluster-{copies}"));
        let nodes = Nodes::start(&program, files, &folder, *copies, settings.memory_mib)?;
        stores.push(Box::new(Kreon::connect(nodes)?));
    }
    if let Some(program) = &settings.redis {
        stores.extend(redis_stores(program, dir)?);
    }
    Ok(stores)
}

#[cfg(feature = "redis")]
fn redis_stores(program: &Path, dir: &Path) -> Result<Vec<Box<dyn Store>>> {
    super::redis::start(program, dir)
}

#[cfg(not(feature = "redis"))]
fn redis_stores(_: &Path, _: &Path) -> Result<Vec<Box<dyn Store>>> {
    anyhow::bail!("this build knows no Redis: build it with --features redis")
}

fn heading(settings: &Settings, plan: &Plan, dir: &Path) -> String {
    let about = About::here(dir);
    format!(
        "{} rounds, medians. Values of {} bytes under keys of 30 bytes, {} records; {} calls one at a time, then {} s with {} \
         under way. {}, {} cores, Linux {}; data on {}.\n",
        settings.rounds,
        plan.value_bytes,
        plan.records,
        plan.calls,
        plan.seconds,
        plan.depth,
        about.processor,
        about.cores,
        about.kernel,
        about.file_system.split(' ').next().unwrap_or_default(),
    )
}
