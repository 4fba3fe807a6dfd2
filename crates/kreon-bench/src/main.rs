//! `kreon-bench`: what operations cost, in throughput, latency, CPU time and bytes moved, beside other stores.
#![forbid(unsafe_code)]

mod cluster;
mod depth;
mod document;
mod engine;
mod figures;
mod keys;
mod machine;
mod mapping;
mod meter;
mod overwrite;
mod queue;
mod randomness;
mod recovery;
mod regions;
mod report;
mod run;
mod share;
mod sync;
mod ycsb;
mod ycsb_command;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use report::results::Results;

/// Measures stores.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the core workloads of YCSB on kreon and other stores by turns.
    Ycsb(Box<run::settings::Arguments>),
    /// Loads records in hashed order, then gets them: uniform, at depth, and by scan.
    Figures(figures::Settings),
    /// Loads, kills the process, and measures the opening.
    Recovery(recovery::Settings),
    /// One process of `recovery`.
    #[command(hide = true)]
    RecoveryChild,
    /// Loads, then overwrites many times the data set: space on the device, what is written, throughput over time.
    Overwrite(overwrite::Settings),
    /// One store of `overwrite`.
    #[command(hide = true)]
    OverwriteChild,
    /// Puts at the end, reads the first pair, deletes it, over and over: a region as a queue.
    Queue(queue::Settings),
    /// Prints the tables for a README from a run's `results.json`.
    Table {
        /// The file.
        results: PathBuf,
        /// Draw the other files anew into this folder, too.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Writes the tables of documents anew, from the folders of runs of one commit.
    Readme(document::Settings),
    /// What each part of the mapping is worth.
    Mapping(mapping::Settings),
    /// One process of `mapping`.
    #[command(hide = true)]
    MappingChild,
    /// What one thread gets with many gets in flight, beside the device's random reads.
    Depth(depth::Settings),
    /// Which share of the device's own rate a store reaches, and its latencies beside the device's.
    Share(share::Settings),
    /// How long single durable puts take, alone and beside buffered batches at a fixed rate.
    Sync(sync::Settings),
    /// Very many regions: making them, a pair in each, checkpoints, opening, and writes beside a store of one region.
    Regions(regions::Settings),
    /// A cluster: puts and gets one at a time and at depth, CPU by process; beside Redis with a replica.
    Cluster(cluster::Settings),
    /// One store through its phases: what `ycsb` starts.
    #[command(hide = true)]
    Child,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Ycsb(arguments) => ycsb_command::run(&arguments),
        Command::Figures(settings) => figures::run(&settings),
        Command::Recovery(settings) => recovery::run(&settings),
        Command::RecoveryChild => recovery::child::run(),
        Command::Overwrite(settings) => overwrite::run(&settings),
        Command::OverwriteChild => overwrite::child::run(),
        Command::Queue(settings) => queue::run(&settings),
        Command::Table { results, out } => {
            let results = Results::read(&results)?;
            print!("{}", document::overview(&results));
            out.map_or(Ok(()), |out| report::files::write(&results, &out))
        }
        Command::Readme(settings) => document::run(&settings),
        Command::Mapping(settings) => mapping::run(&settings),
        Command::MappingChild => mapping::child::run(),
        Command::Depth(settings) => depth::run(&settings),
        Command::Share(settings) => share::run(&settings),
        Command::Sync(settings) => sync::run(&settings),
        Command::Regions(settings) => regions::run(&settings),
        Command::Cluster(settings) => cluster::run(&settings),
        Command::Child => run::child::run(),
    }
}
