//! `kreon-bench`: what operations cost, in throughput, latency, CPU time and bytes moved, beside other stores.
#![forbid(unsafe_code)]

mod engine;
mod figures;
mod keys;
mod machine;
mod meter;
mod randomness;
mod report;
mod run;
mod ycsb;
mod ycsb_command;

use std::path::PathBuf;

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
    /// Prints the tables for a README from a run's `results.json`.
    Table {
        /// The file.
        results: PathBuf,
    },
    /// One store through its phases: what `ycsb` starts.
    #[command(hide = true)]
    Child,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Ycsb(arguments) => ycsb_command::run(&arguments),
        Command::Figures(settings) => figures::run(&settings),
        Command::Table { results } => {
            print!("{}", report::readme::markdown(&Results::read(&results)?));
            Ok(())
        }
        Command::Child => run::child::run(),
    }
}
