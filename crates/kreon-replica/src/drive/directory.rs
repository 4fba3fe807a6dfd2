//! What the coordinator tells of servers: where they are, and which of their starts have a session.

use kreon_coord::{Command, Paths};
use kreon_fabric::Address;
use kreon_wire::{Member, ProcessId, ServerId, ServerNode};

/// Starts of servers that have a session, in the order in which they were first seen.
#[derive(Debug, Default)]
pub(super) struct Live(Vec<Member>);

impl Live {
    /// These are the names of their nodes now; each server in its latest start. Of two starts of which nobody knows which is
    /// the later one, one is told; when the session of the earlier one ends, only the later one is left.
    pub fn learn(&mut self, names: &[String]) -> Vec<Member> {
        let member = |name: &String| {
            let (server, process) = Paths::live_of(name)?;
            Some(Member {
                server: ServerId(server),
                process: ProcessId(process.to_be_bytes()),
            })
        };
        let now: Vec<Member> = names.iter().filter_map(member).collect();
        self.0.retain(|held| now.contains(held));
        let new = now.iter().filter(|member| !self.0.contains(member));
        let new: Vec<Member> = new.copied().collect();
        self.0.extend(new);
        let mut latest: Vec<Member> = Vec::new();
        for member in &self.0 {
            latest.retain(|other| other.server != member.server);
            latest.push(*member);
        }
        latest
    }
}

/// A number for a start of a server, as nodes are named by it.
pub(super) fn process_number(me: Member) -> u128 {
    u128::from_be_bytes(me.process.0)
}

/// The node of a start of a server that has a session.
pub(super) fn live_node(paths: &Paths, me: Member) -> String {
    paths.live_process(me.server.0, process_number(me))
}

/// The question where a server is.
pub(super) fn whereabouts(paths: &Paths, server: u32) -> Vec<Command> {
    let path = paths.server(server);
    vec![Command::Sync, Command::Get { path, watch: true }]
}

/// Where it is, as its node says.
pub(super) fn address_of(bytes: &[u8]) -> Option<(ServerId, Address)> {
    let node = ServerNode::decode(bytes).ok()?;
    Some((node.server, Address::new(&node.peer_address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_starts_of_a_server_the_one_that_was_seen_later_counts() {
        let paths = Paths::new("c");
        let start = |server: u32, salt: u8| Member {
            server: ServerId(server),
            process: ProcessId([salt; 16]),
        };
        let name = |member: Member| {
            let path = live_node(&paths, member);
            path.rsplit('/').next().unwrap().to_owned()
        };
        let mut live = Live::default();
        let (old, new, other) = (start(1, 9), start(1, 3), start(2, 5));
        assert_eq!(live.learn(&[name(old), name(other)]), [old, other]);
        let both = [name(new), name(old), name(other), "junk".to_owned()];
        assert_eq!(live.learn(&both), [other, new]);
        assert_eq!(live.learn(&[name(new)]), [new]);
    }
}
