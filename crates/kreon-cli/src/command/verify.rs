//! `kreon verify`: read everything and check it.

use clap::Args;
use kreon::Error;

use crate::failure::Result;
use crate::progress::Bar;
use crate::session::Session;
use crate::sink::Sink;

/// Read the whole store and check it; exit code 3 if something is wrong
///
/// The first line of standard output is OK or DAMAGED.
#[derive(Debug, Args)]
pub struct Verify {}

impl Verify {
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<()> {
        let bar = Bar::new();
        let report = session
            .place
            .store()?
            .verify_with(|progress| bar.show(progress))?;
        drop(bar);
        out.line(match report.is_clean() {
            true => "OK",
            false => "DAMAGED",
        })?;
        for (count, what) in [
            (report.regions, "regions"),
            (report.pages, "tree pages"),
            (report.entries, "entries"),
            (report.records, "log records"),
            (report.value_bytes, "bytes of their values"),
        ] {
            out.line(&format!("{count:>16} {what}"))?;
        }
        for problem in &report.problems {
            out.line(&format!("problem: {problem}"))?;
        }
        out.line(&format!("{:>16} problems", report.problems.len()))?;
        match report.is_clean() {
            true => Ok(()),
            false => Err(Error::corruption(format!(
                "{} problems found, listed on standard output",
                report.problems.len()
            ))
            .into()),
        }
    }
}
