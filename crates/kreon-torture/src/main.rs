//! Crash and fault torture of the store: `kreon-torture sim`, `kreon-torture faults`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kreon_torture::{Counts, State};

#[derive(Parser)]
#[command(
    name = "kreon-torture",
    about = "Crash and fault torture of Kreon on a simulated device"
)]
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
        /// Most runs of each class of faults, spread over all calls.
        #[arg(long, default_value_t = u64::MAX)]
        runs: u64,
        /// Only this class.
        #[arg(long, requires = "n")]
        class: Option<String>,
        /// Only this call.
        #[arg(long, requires = "class")]
        n: Option<u64>,
        /// With `class`: on a new store.
        #[arg(long)]
        new: bool,
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
        Command::Faults {
            steps,
            seed,
            class: Some(class),
            n: Some(n),
            new,
            ..
        } => one(kreon_torture::replay_fault(&class, n, new, steps, seed)),
        Command::Faults {
            steps, seed, runs, ..
        } => kreon_torture::faults(steps, seed, runs),
        Command::Replay {
            seed,
            event,
            choice,
            nested,
        } => one(kreon_torture::replay(
            State {
                seed,
                event,
                choice,
            },
            nested,
        )),
    };
    println!("{counts}");
    match counts.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn one(outcome: Result<(), String>) -> Counts {
    let mut counts = Counts::default();
    counts.count("replayed");
    if let Err(what) = outcome {
        counts.fail(what);
    }
    counts
}
