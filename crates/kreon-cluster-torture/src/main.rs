//! Real servers on a real ZooKeeper, killed, frozen, cut off and starved, under clients whose whole history is judged.
//!
//! - `place`: processes, networks and disks, and how each fails; `cluster`: what is tortured; `faults`: by what
//! - `clients`: who sees it, and the judgement; `figures`: what is told
//! - `run`: stretches of work and moments of rest; `pauses`: primaries frozen again and again
#![forbid(unsafe_code)]

mod arguments;
mod clients;
mod cluster;
mod faults;
mod figures;
mod pauses;
mod place;
mod run;
mod torture;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    let outcome = match &arguments.command {
        Some(arguments::Command::Serve(serve)) => serve.run(),
        None => torture::torture(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("error: {text}");
            ExitCode::FAILURE
        }
    }
}
