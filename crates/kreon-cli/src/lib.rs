//! The `kreon` command: a shell over the library. It parses, calls and prints; every decision about
//! data is the library's.
//!
//! A crate of its own behind the command, so that what reads input of users can be tested from outside.
#![forbid(unsafe_code)]

mod args;
mod command;
mod encoding;
mod failure;
pub mod parsing;
mod progress;
mod rows;
mod session;
mod shell;
mod sink;
mod size;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::Parser;
use kreon::Result;

use args::{Cli, Command};
use session::Session;
use sink::Sink;

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    trace_to_stderr(cli.shared.verbose);
    match run(&cli) {
        Ok(exit_code) => ExitCode::from(exit_code),
        // The reader of the pipe has seen enough; that is no failure of ours.
        Err(error) if failure::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            failure::tell(&format!("kreon: {}", failure::line(&error)));
            ExitCode::from(failure::exit_code(error.kind()))
        }
    }
}

fn run(cli: &Cli) -> Result<u8> {
    if let Command::Repair(repair) = &cli.command {
        let mut out = Sink::stdout();
        return repair.run(&cli.shared, &mut out).map(|()| 0);
    }
    let session = Session::open(&cli.shared, &cli.command)?;
    let mut out = Sink::stdout();
    let done = cli
        .command
        .run(&session, &mut out)
        .and_then(|exit_code| out.flush().map(|()| exit_code));
    // Closed also after a failure: what was written before it must become durable.
    let closed = session.close();
    done.and_then(|exit_code| closed.map(|()| exit_code))
}

/// Events of the library on standard error: warnings always, more with each `-v`.
fn trace_to_stderr(verbose: u8) {
    use tracing_subscriber::filter::LevelFilter;
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .init();
}
