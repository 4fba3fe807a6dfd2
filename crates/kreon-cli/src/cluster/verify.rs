//! `kreon cluster verify`.

use clap::Args;
use kreon::Error;
use kreon_client::GroupId;

use super::operate::Operation;
use crate::failure::{Failure, Result, tell};
use crate::sink::Sink;

/// Check each group: its primary reads its whole store, then copies are compared; exit code 3 if something is wrong
///
/// The first line of standard output is OK or DAMAGED. Copies in sync are compared by digests of their blocks while writes go
/// on; what differs is looked at again for some seconds before it counts.
#[derive(Debug, Args)]
pub struct Verify {
    /// Only this group
    #[arg(long, value_name = "GROUP")]
    group: Option<u32>,
    /// Do not compare copies
    #[arg(long)]
    primaries_only: bool,
}

/// What was found in a group.
struct Found {
    problems: u64,
    differing: u64,
    line: String,
}

impl Verify {
    pub fn run(&self, on: Operation<'_>, out: &mut Sink) -> Result<()> {
        let groups: Vec<GroupId> = match self.group {
            Some(group) => vec![GroupId(group)],
            None => on
                .surveyor
                .groups()?
                .iter()
                .map(|(_, config)| config.group)
                .collect(),
        };
        let mut all = Vec::new();
        for (at, group) in groups.iter().enumerate() {
            on.interrupt.check()?;
            tell(&format!(
                "kreon: group {}, {} of {}",
                group.0,
                at + 1,
                groups.len()
            ));
            all.push(self.check(&on, *group)?);
        }
        let problems: u64 = all.iter().map(|found| found.problems).sum();
        let differing: u64 = all.iter().map(|found| found.differing).sum();
        out.line(match problems + differing {
            0 => "OK",
            _ => "DAMAGED",
        })?;
        for found in &all {
            out.line(&found.line)?;
        }
        let (message, advice) = match (problems, differing) {
            (0, 0) => return Ok(()),
            (0, _) => (
                format!("{differing} blocks of copies differ from those of their primary"),
                "restart the server that is named with an empty data folder, so that it gets a full copy; then verify again",
            ),
            _ => (
                format!("{problems} problems found"),
                "a copy on another server may be whole: make it the primary by `kreon cluster move-group`",
            ),
        };
        Err(Failure::from(Error::corruption(message)).with_advice(advice))
    }

    fn check(&self, on: &Operation<'_>, group: GroupId) -> Result<Found> {
        let verified = on.cluster.verify(group)?;
        let mut found = Found {
            problems: verified.problems,
            differing: 0,
            line: format!(
                "group {}: {} tree pages, {} log records, {} problems",
                group.0, verified.pages, verified.records, verified.problems
            ),
        };
        if !self.primaries_only {
            let compared = on.cluster.compare(group)?;
            found.differing = compared.differing;
            found.line += &format!(
                "; {} copies compared, {} blocks each, {} differ",
                compared.copies, compared.blocks, compared.differing
            );
            if compared.differing > 0 {
                found.line += &format!(", most of them on server {}", compared.worst.0);
            }
            if compared.unsettled > 0 {
                found.line += &format!(
                    ", {} changed all the time: run it again when less is written",
                    compared.unsettled
                );
            }
        }
        Ok(found)
    }
}
