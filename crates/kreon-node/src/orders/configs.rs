//! Configurations of groups, read and replaced by the server in office.

use kreon_coord::{Command, Operation, Paths, Reply, Version};
use kreon_wire::{FailureKind, GroupConfig, GroupId};

use super::{Outcome, Refusal};
use crate::talk::Talk;

/// A compare-and-set is tried so often: others that write the same node are few.
const ATTEMPTS: usize = 100;

/// The coordinator, as the server in the master's office talks to it.
pub struct Office<'a> {
    pub talk: &'a mut Talk,
    pub paths: &'a Paths,
    /// Version of the node of the office.
    pub fence: Version,
}

fn deposed() -> Refusal {
    Refusal::new(FailureKind::Unavailable, "another server became the master")
}

impl Office<'_> {
    /// Carries out `operation`, if this server is still in office. The reply to it.
    pub fn carry_out(&mut self, operation: Operation) -> Outcome<Reply> {
        let check = Operation::Check(self.paths.master_fence(), self.fence);
        match self.talk.call(Command::Multi(vec![check, operation]))? {
            Reply::Done(mut replies) if replies.len() == 2 => Ok(replies.remove(1)),
            Reply::Refused(0, _) => Err(deposed()),
            Reply::Refused(_, why) => Ok(*why),
            other => Err(crate::talk::unexpected(&other).into()),
        }
    }

    /// The groups of the cluster, ascending.
    pub fn groups(&mut self) -> Outcome<Vec<GroupId>> {
        let names = self.talk.children(&self.paths.groups(), false)?;
        let names = names.unwrap_or_default();
        let mut groups: Vec<GroupId> = names
            .iter()
            .filter_map(|name| name.parse().ok().map(GroupId))
            .collect();
        groups.sort_unstable();
        Ok(groups)
    }

    /// The configuration of a group.
    pub fn config(&mut self, group: GroupId) -> Outcome<(GroupConfig, Version)> {
        let node = self.talk.read(&self.paths.group(group.0), false)?;
        let Some(node) = node else {
            let text = format!("there is no group {}", group.0);
            return Err(Refusal::new(FailureKind::InvalidArgument, text));
        };
        Ok((GroupConfig::decode(&node.data)?, node.version))
    }

    /// Replaces the configuration of a group by what `change` makes of it; nothing to be done if that is none.
    pub fn change(
        &mut self,
        group: GroupId,
        change: impl Fn(GroupConfig) -> Outcome<Option<GroupConfig>>,
    ) -> Outcome {
        for _ in 0..ATTEMPTS {
            let (config, version) = self.config(group)?;
            let Some(next) = change(config)? else {
                return Ok(());
            };
            if next.check().is_err() {
                let text = format!("the configuration of group {} has no room for it", group.0);
                return Err(Refusal::new(FailureKind::TooLarge, text));
            }
            let path = self.paths.group(group.0);
            let set = Operation::Set(path, next.encode().into(), version);
            match self.carry_out(set)? {
                Reply::Written(_) => return Ok(()),
                Reply::Conflict => {}
                other => return Err(crate::talk::unexpected(&other).into()),
            }
        }
        let text = format!(
            "the configuration of group {} changes all the time",
            group.0
        );
        Err(Refusal::new(FailureKind::Busy, text))
    }
}
