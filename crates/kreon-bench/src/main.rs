//! `kreon-bench`: what inserts and gets cost, in operations a second and in CPU time.
#![forbid(unsafe_code)]

mod figures;
mod keys;
mod meter;

use clap::{Parser, Subcommand};

/// Measures a store.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Loads records in hashed order, then gets them: uniform, at depth, and by scan.
    Figures(figures::Settings),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Figures(settings) => figures::run(&settings),
    }
}
