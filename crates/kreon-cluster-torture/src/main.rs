//! Real servers on a real ZooKeeper, killed, frozen, cut off and starved, under clients whose whole history is judged.
//!
//! - `place`: processes, networks and disks, and how each fails; `cluster`: what is tortured; `faults`: by what
//! - `clients`: who sees it, and the judgement; `figures`: what is told; `course`: where the time of an outage went
//! - `run`: stretches of work and moments of rest; `pauses`: primaries frozen again and again; `planted`: bugs to be found
#![forbid(unsafe_code)]

mod arguments;
mod clients;
mod clock;
mod cluster;
mod course;
mod faults;
mod figures;
mod pauses;
mod place;
mod planted;
mod run;
mod torture;

use std::process::ExitCode;

use clap::Parser;

/// How a run ends that found a broken promise.
const FOUND: u8 = 2;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    let outcome = match &arguments.command {
        Some(arguments::Command::Serve(serve)) => serve.run(),
        None => match &arguments.planted {
            Some(names) => planted::planted(names, arguments.minutes, arguments.seed),
            None => torture::torture(&arguments),
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("error: {text}");
            match text.starts_with(clients::rest::VIOLATION) {
                true => ExitCode::from(FOUND),
                false => ExitCode::FAILURE,
            }
        }
    }
}
