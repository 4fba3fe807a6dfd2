//! Questions of the machines as commands to the coordinator, and its replies as answers.

use kreon_coord::{Command, Operation, Paths, Reply};
use kreon_wire::GroupId;

use crate::machine::{Answer, Ask, Known, Version};

/// The commands of a question about a group, to be sent in this order; the reply to the last one counts. None if no node can
/// hold what it wants to have written.
pub(super) fn commands(
    paths: &Paths,
    group: GroupId,
    ask: &Ask,
    watch: bool,
) -> Option<Vec<Command>> {
    let path = paths.group(group.0);
    match ask {
        Ask::Read { synced } => {
            let get = Command::Get { path, watch };
            Some(match synced {
                true => vec![Command::Sync, get],
                false => vec![get],
            })
        }
        Ask::Swap {
            expected,
            next,
            fence,
        } => {
            let bytes = next.to_node(group).ok()?.encode();
            let expected = kreon_coord::Version(expected.0);
            let mut parts = vec![Operation::Set(path, bytes.into(), expected)];
            if let Some(fence) = fence {
                let fence = kreon_coord::Version(fence.0);
                parts.push(Operation::Check(paths.master_fence(), fence));
            }
            Some(vec![Command::Multi(parts)])
        }
    }
}

/// What the reply to the last command of a question says.
pub fn answer(group: GroupId, reply: &Reply) -> Answer {
    match reply {
        Reply::Node(node) => {
            let known = Known::of_bytes(group, &node.data, Version(node.version.0));
            known.map_or(Answer::Unknown, Answer::Read)
        }
        Reply::Done(parts) => match parts.first() {
            Some(Reply::Written(version)) => Answer::Done(Version(version.0)),
            _ => Answer::Unknown,
        },
        Reply::Refused(0, _) => Answer::Conflict,
        Reply::Refused(..) => Answer::FenceLost,
        _ => Answer::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use kreon_coord::{Command as C, Mode, fake::Fake, fake::Fate};

    use super::*;
    use crate::machine::{Configuration, ServerId, Term};

    const GROUP: GroupId = GroupId(4);

    fn config(term: u64) -> Configuration {
        Configuration {
            term: Term(term),
            primary: None,
            in_sync: [].into(),
            servers: [ServerId(1)].into(),
            min_in_sync: 1,
            after_loss: false,
            loss_term: Term(0),
            all_needed: false,
            ranges: [].into(),
        }
    }

    fn swap(expected: u64, term: u64, fence: Option<u64>) -> Ask {
        Ask::Swap {
            expected: Version(expected),
            next: config(term),
            fence: fence.map(Version),
        }
    }

    #[test]
    fn a_swap_is_done_once_and_only_by_the_master_in_office() {
        let (mut fake, paths) = (Fake::new(), Paths::new("c"));
        let session = fake.begin();
        let bytes = config(1).to_node(GROUP).unwrap().encode().into();
        let folder = |path| C::Create(path, [].into(), Mode::Persistent);
        for create in paths.folders().into_iter().map(folder) {
            fake.carry_out(session, &create, Fate::Answered);
        }
        for create in [
            C::Create(paths.group(GROUP.0), bytes, Mode::Persistent),
            C::Create(paths.master_fence(), [].into(), Mode::Persistent),
        ] {
            fake.carry_out(session, &create, Fate::Answered);
        }
        let mut asked = |ask: &Ask| {
            let commands = commands(&paths, GROUP, ask, false).unwrap();
            let replies = commands
                .iter()
                .map(|c| fake.carry_out(session, c, Fate::Answered));
            answer(GROUP, &replies.last().unwrap())
        };
        assert_eq!(asked(&swap(0, 2, Some(7))), Answer::FenceLost);
        assert_eq!(asked(&swap(0, 2, Some(0))), Answer::Done(Version(1)));
        assert_eq!(asked(&swap(0, 2, None)), Answer::Conflict);
        let known = Known {
            version: Version(1),
            config: config(2),
        };
        assert_eq!(asked(&Ask::Read { synced: true }), Answer::Read(known));
        assert_eq!(answer(GROUP, &Reply::Expired), Answer::Unknown);
    }
}
