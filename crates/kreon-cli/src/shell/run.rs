//! The loop of the shell.

use clap::Parser;

use super::line::{Line, LineCommand, words};
use super::lines::Lines;
use crate::encoding::{Encoding, shown};
use crate::failure::{Code, Failure, Result, tell};
use crate::interrupt::Interrupt;
use crate::options::{Groups, Shared};
use crate::session::Session;
use crate::sink::Sink;

/// Whether the shell goes on.
enum Flow {
    Go,
    /// The line was refused; why was told.
    Refused,
    Quit,
}

/// Runs lines until `quit` or the end of the input. A failed line is told and does not end the shell;
/// returns the exit code of the first failure if the lines come from a pipe.
pub fn run_shell(session: &Session, out: &mut Sink) -> Result<u8> {
    let at_terminal = Lines::at_terminal();
    let mut session = session.for_line(&Shared::default());
    session.interrupt = Interrupt::in_shell(&session.place, at_terminal)?;
    let mut lines = Lines::open(&session)?;
    if at_terminal {
        out.line("`help` lists the commands, Tab completes, `quit` or Ctrl-D leaves.")?;
        out.flush()?;
    }
    let mut exit_code = 0;
    while let Some(line) = lines.next(&format!("{}> ", session.region_name()))? {
        session.interrupt.clear();
        let done = run_line(&line, &session, out);
        // What a line printed stands before its failure, and is seen before the next line is read.
        out.flush()?;
        let code = match done {
            Ok(Flow::Go) => continue,
            Ok(Flow::Quit) => break,
            Ok(Flow::Refused) => Code::Usage as u8,
            Err(failure) if failure.is_closed_pipe() => return Err(failure),
            Err(failure) => {
                tell(&format!("kreon: {failure}"));
                failure.exit_code()
            }
        };
        if exit_code == 0 && !at_terminal {
            exit_code = code;
        }
    }
    lines.close();
    Ok(exit_code)
}

fn run_line(line: &str, session: &Session, out: &mut Sink) -> Result<Flow> {
    let words = words(line)?;
    if words.is_empty() {
        return Ok(Flow::Go);
    }
    let command = match Line::try_parse_from(words) {
        Ok(line) => line.command,
        Err(error) if !error.use_stderr() => {
            out.write(error.to_string().as_bytes())?;
            return Ok(Flow::Go);
        }
        Err(error) => {
            tell(error.to_string().trim_end());
            return Ok(Flow::Refused);
        }
    };
    if command.formats_store() {
        return Err(Failure::usage(
            "the store is open: --format-store is for the command that opens it",
        ));
    }
    let on = |groups: &dyn Groups| session.for_line(&groups.given());
    match command {
        LineCommand::Put(put) => put.command.run(&on(&put.groups))?,
        LineCommand::Get(get) => get.command.run(&on(&get.groups), out)?,
        LineCommand::Delete(delete) => delete.command.run(&on(&delete.groups))?,
        LineCommand::Ttl(ttl) => ttl.command.run(&on(&ttl.groups), out)?,
        LineCommand::Persist(persist) => persist.command.run(&on(&persist.groups))?,
        LineCommand::Scan(scan) => scan.command.run(&on(&scan.groups), out)?,
        LineCommand::Count(count) => count.command.run(&on(&count.groups), out)?,
        LineCommand::Region { name: Some(name) } => go_to(&name, session)?,
        LineCommand::Region { name: None } => out.line(&session.region_name())?,
        LineCommand::Regions(regions) => regions.run(session, out)?,
        LineCommand::Stats(stats) => stats.run(session, out)?,
        LineCommand::Compact(compact) => compact.command.run(&on(&compact.groups))?,
        LineCommand::Verify(verify) => verify.run(session, out)?,
        LineCommand::Sync => session.place.sync()?,
        LineCommand::Quit => return Ok(Flow::Quit),
    }
    Ok(Flow::Go)
}

fn go_to(name: &str, session: &Session) -> Result<()> {
    session.set_region_name(name);
    if !session
        .place
        .region_names()?
        .iter()
        .any(|there| there == name)
    {
        let name = shown(Encoding::Escapes, name.as_bytes());
        tell(&format!(
            "kreon: region `{name}` does not exist yet; the first put makes it"
        ));
    }
    Ok(())
}
