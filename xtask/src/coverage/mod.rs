//! Which lines of each crate the tests reach.
//!
//! Everything is built with the compiler's own counters, the tests and a few rounds of the kill loop
//! run, and the LLVM tools that belong to the compiler read what was counted. The counters live in a
//! mapped file, so processes that are killed count, too.

mod lines;
mod measure;
mod report;
pub mod test_code;
mod tools;

use anyhow::Result;

use crate::workspace;
use lines::Lines;
use measure::Measurement;
use tools::Tools;

#[derive(clap::Args)]
pub struct CoverageArguments {
    /// Least share of lines, in percent, that each of the measured crates must reach.
    #[arg(long, default_value_t = 90.0)]
    min: f64,
    /// Lists the lines that no test reaches.
    #[arg(long)]
    uncovered: bool,
    /// Rounds of the kill loop that count as well.
    #[arg(long, default_value_t = 10)]
    crash_rounds: u32,
    /// Reads the counters of the last run again instead of running the tests.
    #[arg(long)]
    again: bool,
}

/// The crates that must reach the minimum.
const MEASURED: [&str; 7] = [
    "kreon-device",
    "kreon-engine",
    "kreon-format",
    "kreon-l0",
    "kreon-log",
    "kreon-mapping",
    "kreon-volume",
];

/// Runs the tests, prints the table, and fails below the minimum.
pub fn run(arguments: &CoverageArguments) -> Result<()> {
    let tools = Tools::find()?;
    let metadata = workspace::metadata(&["--no-deps", "--offline"])?;
    let measurement = Measurement::new(&metadata.target_directory);
    let executables = measurement.build()?;
    if !arguments.again {
        measurement.run_tests()?;
        measurement.run_crash_rounds(arguments.crash_rounds)?;
    }
    let report = measurement.read(&tools, &executables)?;
    let mut lines = Lines::parse(&report, workspace::root())?;
    lines.remove_test_code(workspace::root())?;
    if arguments.uncovered {
        print!("{}", report::uncovered(&lines));
    }
    let crates = report::shares(&lines, &metadata.packages, workspace::root());
    print!("{}", report::table(&crates));
    report::check(&crates, &MEASURED, arguments.min)
}
