//! `kreon verify`: read everything and check it.

use clap::Args;
use kreon::{Error, ErrorKind};

use crate::failure::Result;
use crate::place::Place;
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
        if let Place::Kvell(store) = &session.place {
            return verify_kvell(store, out);
        }
        if let Place::Tucana(store) = &session.place {
            return verify_tucana(store, out);
        }
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
        outcome(report.problems.len() as u64)
    }
}

fn verify_kvell(store: &kvell::Store, out: &mut Sink) -> Result<()> {
    let report = store.verify()?;
    out.line(match report.is_clean() {
        true => "OK",
        false => "DAMAGED",
    })?;
    for (count, what) in [
        (report.extents, "extents"),
        (report.items, "items"),
        (report.value_bytes, "bytes of their values"),
        (report.parts, "parts of large values"),
        (report.outdated_items, "outdated items"),
        (report.tombstones, "tombstones"),
    ] {
        out.line(&format!("{count:>16} {what}"))?;
    }
    for damage in &report.damage {
        out.line(&format!("problem: {damage}"))?;
    }
    out.line(&format!("{:>16} problems", report.damaged))?;
    outcome(report.damaged)
}

/// It ends at the first damage.
fn verify_tucana(store: &tucana::Store, out: &mut Sink) -> Result<()> {
    let found = match store.verify() {
        Err(error) if error.kind() == ErrorKind::Corruption => {
            out.line("DAMAGED")?;
            out.line(&format!("problem: {error}"))?;
            return outcome(1);
        }
        found => found?,
    };
    out.line("OK")?;
    for (count, what) in [
        (found.pages.len() as u64, "tree pages"),
        (found.keys, "entries"),
        (
            found.live_bytes.values().sum(),
            "bytes of their log records",
        ),
        (0, "problems"),
    ] {
        out.line(&format!("{count:>16} {what}"))?;
    }
    Ok(())
}

fn outcome(problems: u64) -> Result<()> {
    match problems {
        0 => Ok(()),
        problems => Err(Error::corruption(format!(
            "{problems} problems found, listed on standard output"
        ))
        .into()),
    }
}
