//! Standing for the office of the master: a node with a number, the lowest is first, and who is first raises the version of the
//! fence before it acts.

use kreon_coord::{Command, Mode, Paths, Reply, Standing, Version, standing};

/// What the reply to a command of an election is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The own node was made.
    Entered,
    /// Who stands.
    Candidates,
    /// The candidate before this one.
    Before,
    /// The fence.
    Fence,
    /// It was made.
    FenceMade,
    /// It was raised.
    Raised,
}

/// One candidate in one session.
#[derive(Debug)]
pub(super) struct Election {
    paths: Paths,
    own: Option<String>,
    is_first: bool,
}

type Next = (Step, Vec<Command>);

impl Election {
    pub fn new(paths: &Paths) -> Self {
        Self {
            paths: paths.clone(),
            own: None,
            is_first: false,
        }
    }

    /// Stands, or stands anew.
    pub fn enter(&mut self) -> Next {
        self.is_first = false;
        let path = self.paths.master_candidate();
        let create = Command::Create(path, [].into(), Mode::EphemeralSequential);
        let leave = self.own.take().map(|own| {
            let path = format!("{}/{own}", self.paths.master());
            Command::Delete(path, Version(0))
        });
        (Step::Entered, leave.into_iter().chain([create]).collect())
    }

    /// A node of the election has changed.
    pub fn look(&self) -> Next {
        let path = self.paths.master();
        let children = Command::Children { path, watch: false };
        (Step::Candidates, vec![Command::Sync, children])
    }

    fn look_at_fence(&self) -> Next {
        let path = self.paths.master_fence();
        let get = Command::Get { path, watch: false };
        (Step::Fence, vec![Command::Sync, get])
    }

    /// The reply to the last command of a step; the version of the fence if this candidate is in office now.
    pub fn on(&mut self, step: Step, reply: &Reply) -> Result<Option<Next>, Version> {
        let fence = self.paths.master_fence();
        Ok(match (step, reply) {
            (Step::Entered, Reply::Created(path)) => {
                self.own = path.rsplit('/').next().map(str::to_owned);
                Some(self.look())
            }
            (Step::Candidates, Reply::Children(names)) => {
                let own = self.own.clone().unwrap_or_default();
                match standing(&own, names) {
                    Standing::First if self.is_first => None,
                    Standing::First => Some(self.look_at_fence()),
                    Standing::Gone => Some(self.enter()),
                    Standing::Behind(name) => {
                        let path = format!("{}/{name}", self.paths.master());
                        let get = Command::Get { path, watch: true };
                        Some((Step::Before, vec![Command::Sync, get]))
                    }
                }
            }
            (Step::Before, Reply::Missing) => Some(self.look()),
            (Step::Fence, Reply::Node(node)) => {
                let raise = Command::Set(fence, [].into(), node.version);
                Some((Step::Raised, vec![raise]))
            }
            (Step::Fence, Reply::Missing) => {
                let create = Command::Create(fence, [].into(), Mode::Persistent);
                Some((Step::FenceMade, vec![create]))
            }
            // Another one raised it, which has lost its session since or will.
            (Step::Raised, Reply::Conflict) | (Step::FenceMade, _) => Some(self.look()),
            (Step::Raised, Reply::Written(version)) => {
                self.is_first = true;
                return Err(*version);
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use kreon_coord::fake::{Fake, Fate, SessionId};

    use super::*;

    /// Carries out steps until nothing follows; the fence if there is an office.
    fn run(
        election: &mut Election,
        mut next: Next,
        fake: &mut Fake,
        session: SessionId,
    ) -> Option<Version> {
        loop {
            let commands = next.1.iter();
            let replies = commands.map(|c| fake.carry_out(session, c, Fate::Answered));
            let reply = replies.last().unwrap();
            match election.on(next.0, &reply) {
                Ok(Some(following)) => next = following,
                Ok(None) => return None,
                Err(fence) => return Some(fence),
            }
        }
    }

    #[test]
    fn the_second_candidate_is_in_office_when_the_first_is_gone_and_has_a_higher_fence() {
        let (mut fake, paths) = (Fake::new(), Paths::new("c"));
        let sessions = [fake.begin(), fake.begin()];
        let mut elections = [Election::new(&paths), Election::new(&paths)];
        let enter = elections[0].enter();
        let first = run(&mut elections[0], enter, &mut fake, sessions[0]);
        let enter = elections[1].enter();
        assert_eq!(run(&mut elections[1], enter, &mut fake, sessions[1]), None);
        fake.expire(sessions[0]);
        assert!(
            !fake.take_fired(sessions[1]).is_empty(),
            "it watches the one before it"
        );
        let look = elections[1].look();
        let second = run(&mut elections[1], look, &mut fake, sessions[1]);
        assert!(first.is_some() && second > first, "{first:?} {second:?}");
        let look = elections[1].look();
        assert_eq!(
            run(&mut elections[1], look, &mut fake, sessions[1]),
            None,
            "it is so already"
        );
    }
}
