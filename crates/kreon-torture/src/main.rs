//! Torture of the store: power cuts, faults, damage, concurrent clients, settings. See `kreon-torture help`.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use kreon_engine::Isolation;
use kreon_torture::settings::set_memory_bytes_min;
use kreon_torture::{Counts, Crowd, DamageArguments, Extent, Origin, Sim, State};

#[derive(Parser)]
#[command(
    name = "kreon-torture",
    about = "Torture of Kreon: power cuts, faults, damage, concurrent clients, settings"
)]
struct Arguments {
    /// Least memory of every store, in bytes, instead of the little that hunts give most of them.
    #[arg(long, global = true)]
    memory_bytes: Option<usize>,
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
        /// Threads.
        #[arg(long, default_value_t = 2)]
        threads: usize,
        /// End with the first failure.
        #[arg(long)]
        stop: bool,
        /// End after so many seconds, whatever was tried by then.
        #[arg(long)]
        seconds: Option<u64>,
    },
    /// Tries one crash state of `sim` again.
    Replay {
        /// As the failure says.
        #[arg(long)]
        seed: u64,
        /// As the failure says.
        #[arg(long)]
        sequence: Option<u64>,
        /// As the failure says.
        #[arg(long = "cut", value_parser = cut)]
        cuts: Vec<(usize, usize)>,
    },
    /// Fails every single call of the device and checks how the store takes it.
    Faults {
        /// Seed of the scripts.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Of all calls one in so many fails.
        #[arg(long, default_value_t = 1)]
        stride: usize,
        /// Of ten thousand calls so many fail, instead of `stride`.
        #[arg(long)]
        share: Option<usize>,
        /// Ends with the first failure.
        #[arg(long)]
        first: bool,
        /// Only this class.
        #[arg(long, requires = "n")]
        class: Option<String>,
        /// With `class`: while this is done.
        #[arg(long, default_value = "little")]
        workload: String,
        /// With `class`: only this call.
        #[arg(long, requires = "class")]
        n: Option<u64>,
    },
    /// Changes every byte of every structure on disk and checks what the store says.
    Damage(DamageArguments),
    /// Records the block trace of a running store and tries crash states of it.
    Trace(kreon_torture::trace::run::Arguments),
    /// Runs concurrent clients on stores and judges what they saw.
    History {
        /// For how long at most; 60 without `transactions`.
        #[arg(long)]
        seconds: Option<u64>,
        /// Seed of the first store.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Clients of each round, at most 40; 2 to 6 by default.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=40))]
        clients: Option<u32>,
        /// Mostly transactions over power cuts, until so many commits of each isolation were judged.
        #[arg(long)]
        transactions: Option<u64>,
        /// Of all transactions.
        #[arg(long, value_enum, default_value = "both")]
        isolation: IsolationOf,
    },
    /// Does the same operations under many settings and compares the answers.
    Metamorphic {
        /// How many courses of settings are tried.
        #[arg(long, default_value_t = 400)]
        runs: u64,
        /// Seed of the first operations.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Only this course of that seed.
        #[arg(long)]
        course: Option<u64>,
    },
    /// Cuts streams from a primary to a backup, and the power of both, and checks what is left.
    Mirror {
        /// How many scripts are tried.
        #[arg(long, default_value_t = 20)]
        scripts: u64,
        /// Seed of the first script.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Cut at every packet, not at some.
        #[arg(long)]
        all: bool,
    },
    /// Makes chains of backups of a store that goes on, and compares each, restored, with the store at its moment.
    Backups {
        /// How many chains are tried.
        #[arg(long, default_value_t = 1000)]
        runs: u64,
        /// Seed of the first.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Lets maps follow the change feeds of stores over power cuts, and compares each with its store.
    Feeds {
        /// How many stores are tried.
        #[arg(long, default_value_t = 200)]
        runs: u64,
        /// Seed of the first.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Cuts the power of stores of the engine KVell and fails their calls, and checks what is left.
    Kvell(kreon_torture::engines::Arguments),
    /// Cuts the power of stores of the engine Tucana, and checks what is left.
    Tucana(kreon_torture::engines::Arguments),
    /// Plants bugs in the store, one after the other, and demands that each is caught.
    #[cfg(feature = "planted")]
    Planted(kreon_torture::planted::Arguments),
    /// One bug under one hunt, in the process that `planted` starts.
    #[cfg(feature = "planted")]
    #[command(hide = true)]
    Hunt(kreon_torture::planted::HuntArguments),
}

/// The isolation of transactions of clients.
#[derive(Clone, Copy, clap::ValueEnum)]
enum IsolationOf {
    Snapshot,
    Serializable,
    Both,
}

impl IsolationOf {
    fn only(self) -> Option<Isolation> {
        match self {
            Self::Snapshot => Some(Isolation::Snapshot),
            Self::Serializable => Some(Isolation::Serializable),
            Self::Both => None,
        }
    }
}

/// Longer than anybody waits.
const MONTH_SECONDS: u64 = 30 * 86_400;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(memory_bytes) = arguments.memory_bytes {
        set_memory_bytes_min(memory_bytes);
    }
    let Some(counts) = run(arguments.command) else {
        return ExitCode::SUCCESS;
    };
    println!("{counts}");
    match counts.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Nothing: it could not be tried here.
fn run(command: Command) -> Option<Counts> {
    let counts = match command {
        Command::Sim {
            states,
            seed,
            threads,
            stop,
            seconds,
        } => Sim {
            threads,
            stops_at_failure: stop,
            time_max: seconds.map(Duration::from_secs),
            ..Sim::new(states, seed)
        }
        .run(),
        Command::Replay {
            seed,
            sequence,
            cuts,
        } => {
            let origin = match sequence {
                Some(number) => Origin::Sequence { number, seed },
                None => Origin::Script(seed),
            };
            one(kreon_torture::replay(&State { origin, cuts }))
        }
        Command::Faults {
            seed,
            class: Some(class),
            n: Some(n),
            workload,
            ..
        } => one(kreon_torture::replay_fault(&class, &workload, n, seed)),
        Command::Faults {
            seed,
            stride,
            share,
            first,
            ..
        } => kreon_torture::faults(seed, extent(stride, share, first)),
        Command::Damage(arguments) => match arguments.single() {
            Some((fixture, hurt)) => one(kreon_torture::replay_damage(fixture, hurt)),
            None => kreon_torture::damage(arguments.extent()),
        },
        Command::Trace(arguments) => match kreon_torture::trace::run::run(&arguments) {
            Ok(counts) => counts?,
            Err(what) => one(Err(what)),
        },
        Command::History {
            seconds,
            seed,
            clients,
            transactions,
            isolation,
        } => {
            let crowd = Crowd {
                clients,
                transactions,
                isolation: isolation.only(),
            };
            let seconds = seconds.unwrap_or(if transactions.is_some() {
                MONTH_SECONDS
            } else {
                60
            });
            kreon_torture::history_of(crowd, Duration::from_secs(seconds), seed)
        }
        Command::Metamorphic {
            seed,
            course: Some(course),
            ..
        } => kreon_torture::metamorphic::replay(seed, course),
        Command::Metamorphic { runs, seed, .. } => kreon_torture::metamorphic(runs, seed),
        Command::Mirror { scripts, seed, all } => kreon_torture::mirror::run(scripts, seed, all),
        Command::Backups { runs, seed } => kreon_torture::many_backups(runs, seed),
        Command::Feeds { runs, seed } => kreon_torture::many_feeds(runs, seed),
        Command::Kvell(arguments) => kreon_torture::kvell::run(arguments),
        Command::Tucana(arguments) => kreon_torture::tucana::run(arguments),
        #[cfg(feature = "planted")]
        Command::Planted(arguments) => kreon_torture::planted::planted(&arguments),
        #[cfg(feature = "planted")]
        Command::Hunt(arguments) => kreon_torture::planted::hunt(&arguments),
    };
    Some(counts)
}

fn extent(stride: usize, share: Option<usize>, stops_at_first: bool) -> Extent {
    const WHOLE: usize = 10_000;
    Extent {
        stride: share.map_or(stride, |share| WHOLE / share.clamp(1, WHOLE)),
        stops_at_first,
        ..Extent::default()
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

/// `event:choice`.
fn cut(text: &str) -> Result<(usize, usize), String> {
    let (event, choice) = text.split_once(':').ok_or("not of the form EVENT:CHOICE")?;
    let number = |part: &str| part.parse().map_err(|error| format!("{part:?}: {error}"));
    Ok((number(event)?, number(choice)?))
}
