//! The `kreon` command: a shell over the library. It parses, calls and prints; every decision about
//! data is the library's.
//!
//! A crate of its own behind the command, so that what reads input of users can be tested from outside.
#![forbid(unsafe_code)]

mod args;
mod cluster;

mod command;
mod encoding;
mod failure;
mod interrupt;
mod lifetime;
mod options;
pub mod parsing;
mod place;
mod progress;
mod rows;
mod serve;
mod session;
mod shell;
mod sink;
mod size;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use failure::Result;
use session::Session;
use sink::Sink;

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(exit_code) => ExitCode::from(exit_code),
        // The reader of the pipe has seen enough; that is no failure of ours.
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            failure::tell(&format!("kreon: {failure}"));
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(cli: &Cli) -> Result<u8> {
    let shared = cli.command.given().or(&cli.before);
    trace_to_stderr(shared.store.verbose);
    let mut out = Sink::stdout();
    if let Some(done) = cli.command.run_without_store(&shared, &mut out) {
        done?;
        out.flush()?;
        return Ok(0);
    }
    let session = Session::open(&shared, cli.command.opening())?;
    let done = cli.command.run(&session, &mut out).and_then(|exit_code| {
        out.flush()?;
        Ok(exit_code)
    });
    // Closed also after a failure: what was written before it must become durable.
    let closed = session.close();
    let exit_code = done?;
    closed?;
    Ok(exit_code)
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
