//! `kreon cluster verify`.

use clap::Args;
use kreon::Error;
use kreon_client::{Cluster, GroupId};

use super::survey::Surveyor;
use crate::failure::{Failure, Result, tell};
use crate::interrupt::Interrupt;
use crate::sink::Sink;

/// Have the primary of each group read its whole store and check it; exit code 3 if something is wrong
///
/// The first line of standard output is OK or DAMAGED. Backups are not read.
#[derive(Debug, Args)]
pub struct Verify {
    /// Only this group
    #[arg(long, value_name = "GROUP")]
    group: Option<u32>,
}

impl Verify {
    pub fn run(
        &self,
        cluster: &Cluster,
        surveyor: &mut Surveyor,
        interrupt: &Interrupt,
        out: &mut Sink,
    ) -> Result<()> {
        let groups: Vec<GroupId> = match self.group {
            Some(group) => vec![GroupId(group)],
            None => surveyor
                .groups()?
                .iter()
                .map(|(_, config)| config.group)
                .collect(),
        };
        let (mut lines, mut problems) = (Vec::new(), 0);
        for (at, group) in groups.iter().enumerate() {
            interrupt.check()?;
            tell(&format!(
                "kreon: group {}, {} of {}",
                group.0,
                at + 1,
                groups.len()
            ));
            let verified = cluster.verify(*group)?;
            problems += verified.problems;
            lines.push(format!(
                "group {}: {} tree pages, {} log records, {} problems",
                group.0, verified.pages, verified.records, verified.problems
            ));
        }
        out.line(match problems {
            0 => "OK",
            _ => "DAMAGED",
        })?;
        for line in lines {
            out.line(&line)?;
        }
        match problems {
            0 => Ok(()),
            _ => Err(Failure::from(Error::corruption(format!("{problems} problems found")))
                .with_advice("a copy on another server may be whole: make it the primary by `kreon cluster move-group`")),
        }
    }
}
