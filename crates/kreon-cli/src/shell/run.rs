//! The loop of the shell.

use clap::{Parser, Subcommand};
use kreon::{Error, Result};

use super::lines::Lines;
use super::words::split_words;
use crate::command::{Compact, Count, Delete, Get, Put, Regions, Scan, Stats, Verify};
use crate::failure;
use crate::session::Session;
use crate::sink::Sink;

const HELP: &str = "\
{subcommands}

Words with blanks stand in quotes; `COMMAND --help` tells more.";

/// One line of the shell.
#[derive(Debug, Parser)]
#[command(multicall = true, help_template = HELP, subcommand_required = true)]
struct Line {
    #[command(subcommand)]
    command: LineCommand,
}

#[derive(Debug, Subcommand)]
enum LineCommand {
    Put(Put),
    Get(Get),
    Delete(Delete),
    Scan(Scan),
    Count(Count),
    /// Go to another region, or print the name of the present one
    Region {
        /// The region to go to; it is made by the first put
        name: Option<String>,
    },
    Regions(Regions),
    Stats(Stats),
    Compact(Compact),
    Verify(Verify),
    /// Make everything written so far durable
    Sync,
    /// Leave the shell
    #[command(alias = "exit")]
    Quit,
}

/// Whether the shell goes on.
enum Flow {
    Go,
    Quit,
}

/// Runs lines until `quit` or the end of the input. A failed line is told and does not end the shell;
/// returns the exit code of the first failure if the lines come from a pipe.
pub fn run_shell(session: &Session, out: &mut Sink) -> Result<u8> {
    let mut lines = Lines::open()?;
    let at_terminal = lines.is_terminal();
    if at_terminal {
        out.line("`help` lists the commands, `quit` leaves.")?;
        out.flush()?;
    }
    let mut exit_code = 0;
    while let Some(line) = lines.next(&format!("{}> ", session.region_name()))? {
        let done = run_line(&line, session, out);
        // What a line printed stands before its failure, and is seen before the next line is read.
        out.flush()?;
        match done {
            Ok(Flow::Go) => {}
            Ok(Flow::Quit) => break,
            Err(error) if failure::is_closed_pipe(&error) => return Err(error),
            Err(error) => {
                failure::tell(&format!("kreon: {}", failure::line(&error)));
                if exit_code == 0 && !at_terminal {
                    exit_code = failure::exit_code(error.kind());
                }
            }
        }
    }
    lines.close();
    Ok(exit_code)
}

fn run_line(line: &str, session: &Session, out: &mut Sink) -> Result<Flow> {
    let words = split_words(line).map_err(Error::invalid)?;
    if words.is_empty() {
        return Ok(Flow::Go);
    }
    let command = match Line::try_parse_from(words) {
        Ok(line) => line.command,
        Err(error) if !error.use_stderr() => {
            out.write(error.to_string().as_bytes())?;
            return Ok(Flow::Go);
        }
        Err(error) => return Err(Error::invalid(first_line(&error))),
    };
    match command {
        LineCommand::Put(put) => put.run(session)?,
        LineCommand::Get(get) => get.run(session, out)?,
        LineCommand::Delete(delete) => delete.run(session)?,
        LineCommand::Scan(scan) => scan.run(session, out)?,
        LineCommand::Count(count) => count.run(session, out)?,
        LineCommand::Region { name: Some(name) } => session.set_region_name(&name),
        LineCommand::Region { name: None } => out.line(&session.region_name())?,
        LineCommand::Regions(regions) => regions.run(session, out)?,
        LineCommand::Stats(stats) => stats.run(session, out)?,
        LineCommand::Compact(compact) => compact.run(session)?,
        LineCommand::Verify(verify) => verify.run(session, out)?,
        LineCommand::Sync => session.store.sync()?,
        LineCommand::Quit => return Ok(Flow::Quit),
    }
    Ok(Flow::Go)
}

/// What is wrong with a line, without the usage text that follows.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}
