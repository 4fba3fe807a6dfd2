//! One line of the shell: its words, and the command that they stand for.

use clap::{Parser, Subcommand};

use crate::command::{
    Compact, Count, Delete, Get, Persist, Put, Regions, Scan, Stats, Ttl, Verify,
};
use crate::failure::{Failure, Result};
use crate::options::{LineDeletes, LineReads, LineReadsKeys, LineRegion, LineWrites, With};

const HELP: &str = "\
{subcommands}

`COMMAND --help` tells more. Lines are cut into words as in sh: quote blanks, backslashes and #.";

/// One line of the shell.
#[derive(Debug, Parser)]
#[command(multicall = true, help_template = HELP, subcommand_required = true)]
pub struct Line {
    #[command(subcommand)]
    pub command: LineCommand,
}

#[derive(Debug, Subcommand)]
pub enum LineCommand {
    // The store is open: there is nothing to format.
    #[command(mut_arg("format_store", |arg| arg.hide(true)))]
    Put(With<LineWrites, Put>),
    Get(With<LineReads, Get>),
    Delete(With<LineDeletes, Delete>),
    Ttl(With<LineReadsKeys, Ttl>),
    Persist(With<LineDeletes, Persist>),
    Scan(With<LineReads, Scan>),
    Count(With<LineReadsKeys, Count>),
    /// Go to another region, or print the name of the present one
    Region {
        /// The region to go to; the first put makes it if it does not exist
        name: Option<String>,
    },
    #[command(mut_subcommand("create", |create| create.mut_arg("format_store", |arg| arg.hide(true))))]
    Regions(Regions),
    Stats(Stats),
    Compact(With<LineRegion, Compact>),
    Verify(Verify),
    /// Make everything written so far durable
    Sync,
    /// Leave the shell (at a terminal also Ctrl-D)
    #[command(alias = "exit")]
    Quit,
}

impl LineCommand {
    /// Whether the line asks for a store over something else.
    pub fn formats_store(&self) -> bool {
        match self {
            Self::Put(put) => put.command.formatting.format_store,
            Self::Regions(regions) => regions.formats_store(),
            _ => false,
        }
    }
}

/// The words of a line, cut as in sh.
pub fn words(line: &str) -> Result<Vec<String>> {
    shell_words::split(line)
        .map_err(|_| Failure::usage("a quote is not closed: the line ends within '..' or \"..\""))
}
