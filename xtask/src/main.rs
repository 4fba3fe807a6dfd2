//! Development commands: `cargo xtask <command>`.
#![forbid(unsafe_code)]

mod ci;
mod cluster_sim;
mod cluster_torture;
mod coverage;
mod crash;
mod demo;
mod floors;
mod fuzz;
mod interleavings;
mod miri;
mod package;
mod portability;
mod redis_tests;
mod results;
mod sanitize;
mod soak;
mod torture;
mod workspace;
mod zookeeper;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Development commands of Kreon")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that must pass before a change lands, in order, up to the first failure.
    Ci,
    /// Checks the arrows between crates and modules, and the limits, against FLOORS.toml (`--report`).
    Floors(floors::Arguments),
    /// Runs the tests with counters and tells which lines of each crate they reach (`--uncovered`, `--min`).
    Coverage(coverage::CoverageArguments),
    /// Kills a writing process again and again and checks what its store still holds.
    Crash(crash::CrashArguments),
    /// Cuts the power of a simulated device at every event and checks what is left (`--states`, `--seed`).
    Sim(torture::Arguments),
    /// Explores the protocol of the cluster: all states within bounds (`--explore`), random walks (`--seeds`).
    ClusterSim(cluster_sim::Arguments),
    /// Kills, freezes, cuts off and starves real servers under clients whose history is judged (`--minutes`, `--pauses`,
    /// `--seed`, `--planted`).
    ClusterTorture(cluster_torture::Arguments),
    /// Fails every single call of a simulated device (`--seed`, `--stride`).
    Faults(torture::Arguments),
    /// Cuts streams from a primary to a backup, and the power of both (`--scripts`, `--seed`, `--all`).
    Mirror(torture::Arguments),
    /// Plants bugs in the store, one after the other: the torture must catch each (`--by-all`, names of bugs).
    Planted(torture::Arguments),
    /// Records the block trace of a running store and checks what power cuts would leave (`--seconds`, `--states`,
    /// `--seed`).
    Trace(torture::Arguments),
    /// Kills, power cuts and faults in turn with ever new seeds, for some minutes.
    Soak(soak::Arguments),
    /// Feeds bytes that coverage suggests to everything that reads bytes (needs cargo-fuzz).
    Fuzz(fuzz::Arguments),
    /// Runs small models of the concurrent parts in every interleaving (loom), larger ones in many
    /// (shuttle).
    Interleavings(interleavings::Arguments),
    /// Runs the tests of the unsafe code under Miri, if there is a Miri.
    Miri,
    /// Runs tests under a sanitizer: address, leak or thread.
    Sanitize(sanitize::Arguments),
    /// Runs concurrent clients on stores and judges what they saw (`--seconds`, `--seed`, `--transactions`, `--isolation`).
    History(torture::Arguments),
    /// Makes chains of backups and compares each, restored, with the store at its moment (`--runs`, `--seed`).
    Backups(torture::Arguments),
    /// Does the same operations under many settings (`--runs`, `--seed`).
    Metamorphic(torture::Arguments),
    /// Changes every byte of every structure on a simulated device (`--stride`).
    Damage(torture::Arguments),
    /// Runs the bench with all peers and writes the tables of README.md and docs/results anew (`--only`, `--tiny`).
    Results(results::Arguments),
    /// Packs the crates that are published, without the network (`--verify` builds each from its package).
    Package(package::Arguments),
    /// Tests what other systems than Linux get, builds and tests for musl, and compiles for other targets, as far as the
    /// compiler has their standard libraries (`--all`).
    Portability(portability::Arguments),
    /// Runs the tests that Redis has of itself against `kreon serve` (names of units, `--release`, `--failures`). Ends with
    /// 3 if this machine has no tcl, or no way to get the tests.
    RedisTests(redis_tests::Arguments),
    /// Loads a real list of cities into a store and asks it questions with the `kreon` command.
    Demo,
    /// Fetches ZooKeeper and runs servers of it until Ctrl-C (`--servers`, `--port`, `--data`, `--fetch-only`). Ends
    /// with 3 if this machine has no Java, no Maven or no way to get it.
    Zookeeper(zookeeper::Arguments),
    /// The process that `crash` kills.
    #[command(hide = true)]
    CrashWriter(crash::WriterArguments),
    /// The process that tells `crash` what a store holds.
    #[command(hide = true)]
    CrashWitness(crash::WitnessArguments),
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
        Command::Ci => ci::run(),
        Command::Floors(arguments) => floors::run(&arguments),
        Command::Coverage(arguments) => coverage::run(&arguments),
        Command::Crash(arguments) => crash::run(&arguments),
        Command::Sim(arguments) => torture::run("sim", &arguments),
        Command::ClusterSim(arguments) => {
            cluster_sim::run(&arguments, cluster_sim::Profile::ForSpeed)
        }
        Command::ClusterTorture(arguments) => cluster_torture::run(&arguments),
        Command::Faults(arguments) => torture::run("faults", &arguments),
        Command::Mirror(arguments) => torture::run("mirror", &arguments),
        Command::Planted(arguments) => torture::run("planted", &arguments),
        Command::Trace(arguments) => torture::run("trace", &arguments),
        Command::Soak(arguments) => soak::run(&arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Interleavings(arguments) => interleavings::run(&arguments),
        Command::Miri => miri::run(),
        Command::Sanitize(arguments) => sanitize::run(&arguments),
        Command::History(arguments) => torture::run("history", &arguments),
        Command::Backups(arguments) => torture::run("backups", &arguments),
        Command::Metamorphic(arguments) => torture::run("metamorphic", &arguments),
        Command::Damage(arguments) => torture::run("damage", &arguments),
        Command::Results(arguments) => results::run(&arguments),
        Command::Package(arguments) => package::run(&arguments),
        Command::Portability(arguments) => portability::run(&arguments),
        Command::RedisTests(arguments) => redis_tests::run(&arguments),
        Command::Demo => demo::run(),
        Command::Zookeeper(arguments) => zookeeper::run(&arguments),
        Command::CrashWriter(arguments) => crash::write(&arguments),
        Command::CrashWitness(arguments) => crash::witness(&arguments),
    }
}
