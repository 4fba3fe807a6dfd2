//! The command line: the options that every command takes, and the list of commands.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};
use kreon::Result;

use crate::command::{
    Compact, Count, Delete, Export, Get, Import, Put, Regions, Repair, Scan, Stats, Verify,
    run_shell,
};
use crate::encoding::Encoding;
use crate::session::Session;
use crate::sink::Sink;
use crate::size::parse_size;

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 not found, 2 wrong use or bad input, 3 corruption found, 4 the store is open \
elsewhere, 5 out of space, 6 any other failure.

Text encoding: UTF-8 stands for itself and \\xNN for the byte NN; everything else, a lone backslash \
too, is taken as it stands. Output escapes what is not UTF-8 (and, in lists, control characters) the \
same way, so that it can be read back.";

/// The region that commands work in if none is named.
pub const DEFAULT_REGION: &str = "default";

/// A persistent ordered key-value store for flash.
#[derive(Debug, Parser)]
#[command(name = "kreon", version, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub shared: Shared,
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Store")]
pub struct Shared {
    /// The store: a file or a block device
    #[arg(short, long, global = true, env = "KREON_STORE", value_name = "PATH")]
    pub store: Option<PathBuf>,
    /// The region (key space) to work in
    #[arg(
        short,
        long,
        global = true,
        value_name = "NAME",
        default_value = DEFAULT_REGION
    )]
    pub region: String,
    /// Make each write durable before going on
    #[arg(long, global = true)]
    pub sync: bool,
    /// Memory budget of the store: 256MiB, 1g, 65536 [default: 256MiB, or 32MiB for commands that
    /// touch little]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<usize>,
    /// Never let the volume grow beyond this
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_size)]
    pub volume_max: Option<usize>,
    /// How keys and values are written, on the command line, in files and in output
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "ENCODING",
        default_value = "text"
    )]
    pub encoding: Encoding,
    /// The same for keys only
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "ENCODING",
        hide_possible_values = true
    )]
    pub key_encoding: Option<Encoding>,
    /// The same for values only
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "ENCODING",
        hide_possible_values = true
    )]
    pub value_encoding: Option<Encoding>,
    /// Tell more on standard error; twice for even more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Put(Put),
    Get(Get),
    Delete(Delete),
    Scan(Scan),
    Count(Count),
    Import(Import),
    Export(Export),
    Stats(Stats),
    Compact(Compact),
    Verify(Verify),
    Repair(Repair),
    Regions(Regions),
    /// Work with the store line by line
    Shell,
}

impl Command {
    /// Whether the command makes a store where there is none.
    pub fn creates_store(&self) -> bool {
        match self {
            Self::Put(_) | Self::Import(_) | Self::Shell => true,
            Self::Regions(regions) => regions.creates_store(),
            _ => false,
        }
    }

    /// Memory budget if none is given, in bytes. It is all taken when the store is opened (about 1 ms for
    /// each MiB where pages are small), so a command that touches little takes little.
    pub fn memory_bytes_default(&self) -> usize {
        match self {
            Self::Put(_) | Self::Get(_) | Self::Delete(_) | Self::Stats(_) | Self::Regions(_) => {
                32 << 20
            }
            _ => 256 << 20,
        }
    }

    /// Runs the command. Returns the exit code: not 0 only for failures that were already told.
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<u8> {
        match self {
            Self::Put(put) => put.run(session),
            Self::Get(get) => get.run(session, out),
            Self::Delete(delete) => delete.run(session),
            Self::Scan(scan) => scan.run(session, out),
            Self::Count(count) => count.run(session, out),
            Self::Import(import) => import.run(session, out),
            Self::Export(export) => export.run(session),
            Self::Stats(stats) => stats.run(session, out),
            Self::Compact(compact) => compact.run(session),
            Self::Verify(verify) => verify.run(session, out),
            Self::Regions(regions) => regions.run(session, out),
            Self::Shell => return run_shell(session, out),
            // It works on two stores, neither of them the session's.
            Self::Repair(_) => Ok(()),
        }?;
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_of_the_store_stand_before_or_after_the_command() {
        for line in [
            ["kreon", "-s", "x", "--memory", "1m", "get", "k"],
            ["kreon", "get", "k", "--memory", "1m", "-s", "x"],
        ] {
            let cli = Cli::try_parse_from(line).unwrap();
            assert_eq!(cli.shared.store, Some(PathBuf::from("x")));
            assert_eq!(cli.shared.memory, Some(1 << 20));
        }
    }
}
