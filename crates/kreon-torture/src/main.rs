//! Crash and fault torture of the store: `kreon-torture sim`, `kreon-torture faults`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kreon_torture::{Counts, State};

#[derive(Parser)]
#[command(name = "kreon-torture", about = "Crash and fault torture of Kreon on a simulated device")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Cuts the power at every event of scripts and checks what is left.
    Sim {
        /// How many crash states are tried.
        #[arg(long, default_value_t = 20_000)]
        states: u64,
        /// Seed of the first script.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Fails every single call of the device and checks how the store takes it.
    Faults {
        /// Steps of the script.
        #[arg(long, default_value_t = 60)]
        steps: usize,
        /// Seed of the script.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Tries one crash state of `sim` again.
    Replay {
        /// As the failure says.
        #[arg(long)]
        seed: u64,
        /// As the failure says.
        #[arg(long)]
        event: usize,
        /// As the failure says.
        #[arg(long)]
        choice: usize,
        /// Power cuts in the recovery, too.
        #[arg(long)]
        nested: bool,
    },
}

fn main() -> ExitCode {
    let counts = match Arguments::parse().command {
        Command::Sim { states, seed } => kreon_torture::sim(states, seed),
        Command::Faults { steps, seed } => kreon_torture::faults(steps, seed),
        Command::Replay { seed, event, choice, nested } => {
            let mut counts = Counts::default();
            counts.count("replayed");
            if let Err(what) = kreon_torture::replay(State { seed, event, choice }, nested) {
                counts.fail(what);
            }
            counts
        }
    };
    println!("{counts}");
    match counts.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
