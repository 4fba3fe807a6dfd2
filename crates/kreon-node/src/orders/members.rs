//! Servers become members of groups, and cease to be.

use kreon_wire::limits::MEMBERS_MAX;
use kreon_wire::{FailureKind, GroupId, ServerId};

use super::configs::Office;
use super::{Outcome, Refusal};

fn refused(text: String) -> Refusal {
    Refusal::new(FailureKind::InvalidArgument, text)
}

impl Office<'_> {
    /// Makes a server a member. It joins by itself.
    pub fn add_member(&mut self, group: GroupId, server: ServerId) -> Outcome {
        let path = self.paths.server(server.0);
        if self.talk.read(&path, false)?.is_none() {
            return Err(refused(format!("server {} has never run", server.0)));
        }
        self.change(group, |mut config| {
            if config.members.contains(&server) {
                return Ok(None);
            }
            if config.members.len() >= MEMBERS_MAX {
                return Err(refused(format!("group {} has 16 members", group.0)));
            }
            config.members.push(server);
            config.members.sort_unstable();
            Ok(Some(config))
        })
    }

    /// Removes a member that is not in the set: the primary removes those that are. Whether it was, or is none.
    pub fn remove_outsider(&mut self, group: GroupId, server: ServerId) -> Outcome<bool> {
        let (config, _) = self.config(group)?;
        if config.in_sync.iter().any(|member| member.server == server) {
            return Ok(false);
        }
        self.change(group, |mut config| {
            if config.in_sync.iter().any(|member| member.server == server) {
                let text = "the member came into the set meanwhile: give the order again";
                return Err(Refusal::new(FailureKind::Busy, text));
            }
            if !config.members.contains(&server) {
                return Ok(None);
            }
            config.members.retain(|member| *member != server);
            if config.members.len() < usize::from(config.min_in_sync) {
                let text = format!(
                    "group {} would have fewer members than its writes need: add one before",
                    group.0
                );
                return Err(refused(text));
            }
            Ok(Some(config))
        })?;
        Ok(true)
    }
}
