//! A store on two servers, from loading to a lost primary and its return, in real processes over TCP on one machine.
//!
//! `cargo run --release -p kreon-replica --example two_replicas [--gib N | --mib N] [--dir FOLDER] [--memory-mib N] [--silence-ms N]`
//!
//! Loads values of 1 KiB into a primary with one backup, kills the primary, has the backup promoted, looks for everything that
//! was acknowledged, lets the first server join again while writes go on, and compares the files. Prints what it cost.
//!
//! The coordinator is the fake one, in the parent process, behind a socket: a session ends when nothing was heard of it for a
//! second. So is the master. Servers are children of this process.

#![forbid(unsafe_code)]

mod child;
mod client;
mod coded;
mod compare;
mod coordinator;
mod course;
mod ending;
mod measure;
mod told;
mod words;

use std::error::Error;
use std::path::PathBuf;

/// What may be chosen.
#[derive(Clone, Debug)]
pub struct Choice {
    /// MiB of values.
    pub mib: u64,
    /// Memory of a store in MiB.
    pub memory_mib: usize,
    /// A server is silent, and a session over, when nothing was heard of it for so long.
    pub silence_ms: u32,
    /// Where the files go; a new folder in the system's place for such, which is removed, if none is named.
    pub dir: Option<PathBuf>,
}

impl Choice {
    fn timing(&self) -> kreon_replica::machine::Timing {
        child::timing(self.silence_ms)
    }
}

/// Runs what the arguments say, or what `choice` says where they say nothing.
pub fn run(mut choice: Choice) -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--server" => {
                told::begin();
                return child::serve(args);
            }
            "--mib" => choice.mib = value()?.parse()?,
            "--gib" => choice.mib = value()?.parse::<u64>()? << 10,
            "--memory-mib" => choice.memory_mib = value()?.parse()?,
            "--silence-ms" => choice.silence_ms = value()?.parse()?,
            "--dir" => choice.dir = Some(value()?.into()),
            // Those of a test's runner.
            _ => {}
        }
    }
    told::begin();
    course::run(&choice)
}

#[allow(dead_code)]
fn main() -> Result<(), Box<dyn Error>> {
    run(Choice {
        mib: 1024,
        memory_mib: 256,
        silence_ms: 1000,
        dir: None,
    })
}
