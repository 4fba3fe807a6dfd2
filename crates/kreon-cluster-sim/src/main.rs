//! `kreon-cluster-sim`: explores the protocol of the cluster.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use kreon_cluster_sim::explore::{Bounds, World, search};

#[derive(Parser)]
struct Arguments {
    /// All states within bounds.
    #[arg(long, value_enum)]
    explore: Option<Row>,
    /// Shows the state after each step of what was found.
    #[arg(long)]
    states: bool,
    /// With this bug.
    #[cfg(feature = "planted")]
    #[arg(long, value_parser = bug)]
    bug: Option<kreon_base::Bug>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Row {
    Two,
    Three,
    ThreeTwoWrites,
    ThreeTwoCrashes,
}

impl Row {
    fn bounds(self) -> Bounds {
        match self {
            Self::Two => Bounds::TWO,
            Self::Three => Bounds::THREE,
            Self::ThreeTwoWrites => Bounds::THREE_TWO_WRITES,
            Self::ThreeTwoCrashes => Bounds::THREE_TWO_CRASHES,
        }
    }
}

#[cfg(feature = "planted")]
fn bug(name: &str) -> Result<kreon_base::Bug, String> {
    let named = |bug: &&kreon_base::Bug| format!("{bug:?}").eq_ignore_ascii_case(name);
    let mut bugs = kreon_base::Bug::ALL
        .iter()
        .filter(|bug| bug.is_of_cluster());
    bugs.find(named)
        .copied()
        .ok_or_else(|| "there is no such bug".into())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    #[cfg(feature = "planted")]
    if let Some(bug) = arguments.bug {
        bug.plant();
    }
    let Some(row) = arguments.explore else {
        return ExitCode::SUCCESS;
    };
    let started = Instant::now();
    let verdict = search(&row.bounds());
    println!(
        "{} states, {} steps deep, {}, {:.1} s",
        verdict.states,
        verdict.depth,
        if verdict.is_complete {
            "complete"
        } else {
            "not complete"
        },
        started.elapsed().as_secs_f64()
    );
    match verdict.found {
        None => ExitCode::SUCCESS,
        Some(found) => {
            let mut world = World::new(&row.bounds());
            for (number, step) in found.steps.iter().enumerate() {
                println!("{:3} {step}", number + 1);
                let _ = world.take(*step);
                if arguments.states {
                    print!("{world}");
                }
            }
            println!("    {:?}", found.violation);
            ExitCode::FAILURE
        }
    }
}
