//! The commands `kreon-torture kvell` and `kreon-torture tucana`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::clients::Shared;
use super::crash::{self, CrashArguments, Killed, WriterArguments};
use super::damage::{self, Damaged};
use super::engine::{Cut, many_states};
use super::faults::{self, Scripted};
use super::history;
use crate::{Counts, DamageArguments, Extent};

/// What is tried: power cuts, if nothing else is named.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// How many crash states are tried.
    #[arg(long, default_value_t = 50_000)]
    states: u64,
    /// Seed of the first store.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(subcommand)]
    other: Option<Other>,
}

#[derive(Subcommand, Clone, Debug)]
enum Other {
    /// Fails every single call of the device, and checks how a store takes it.
    Faults {
        /// Seed of the script.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Of all calls one in so many fails.
        #[arg(long, default_value_t = 1)]
        stride: usize,
        /// Ends with the first failure.
        #[arg(long)]
        first: bool,
    },
    /// Changes every sector on disk, and checks what a store says.
    Damage(DamageArguments),
    /// Runs concurrent clients on stores, and judges what they saw.
    History {
        /// For how long.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Seed of the first store.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Kills processes that write, and checks what they leave.
    Crash(CrashArguments),
    /// The process that `crash` kills.
    #[command(hide = true)]
    CrashWriter(WriterArguments),
}

impl Arguments {
    /// Tries it on an engine.
    pub(crate) fn run<E: Cut + Scripted + Damaged + Shared + Killed>(self) -> Counts {
        match self.other {
            None => many_states::<E>(self.states, self.seed),
            Some(Other::Faults {
                seed,
                stride,
                first,
            }) => faults::faults::<E>(
                seed,
                Extent {
                    stride,
                    stops_at_first: first,
                    ..Extent::default()
                },
            ),
            Some(Other::Damage(arguments)) => match arguments.single() {
                Some((fixture, hurt)) => replayed(damage::replay::<E>(fixture, hurt)),
                None => damage::damage::<E>(arguments.extent()),
            },
            Some(Other::History { seconds, seed }) => {
                history::history::<E>(Duration::from_secs(seconds), seed)
            }
            Some(Other::Crash(arguments)) => crash::crash::<E>(&arguments),
            Some(Other::CrashWriter(arguments)) => replayed(crash::write::<E>(&arguments)),
        }
    }
}

fn replayed(outcome: Result<(), String>) -> Counts {
    let mut counts = Counts::default();
    counts.count("replayed");
    if let Err(what) = outcome {
        counts.fail(what);
    }
    counts
}
