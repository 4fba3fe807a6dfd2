//! Standing for the office of the master, as a machine without I/O: it asks one command at a time.

use crate::command::{Command, Mode, Operation, Reply, Version};
use crate::election::{Standing, first_of, standing};
use crate::paths::Paths;

/// What a candidate does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask this, and hand in the reply.
    Ask(Command),
    /// Wait for a change of what was watched.
    Wait,
    /// It is in office, under this version of the fence. Each of its writes checks that version, so a master that does
    /// not know yet that its session is over changes nothing.
    InOffice(Version),
}

/// What the next reply answers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    Sync,
    Candidates,
    Creation,
    /// The node before `own` in the line is watched.
    Before(String),
    /// The version of the fence, for who is first as `own`.
    Fence(String),
    Raise(Version),
}

/// One process in one session, until that is over; another session needs another one.
#[derive(Clone, Debug)]
pub struct Candidacy {
    paths: Paths,
    process: u128,
    asked: Asked,
    watched: Option<String>,
}

impl Candidacy {
    /// A candidate, and its first question.
    pub fn new(paths: Paths, process: u128) -> (Self, Step) {
        let mut candidacy = Self {
            paths,
            process,
            asked: Asked::Nothing,
            watched: None,
        };
        let step = candidacy.look();
        (candidacy, step)
    }

    /// After [`Event::Changed`](crate::Event::Changed).
    pub fn on_changed(&mut self, path: &str) -> Option<Step> {
        let is_next = self.asked == Asked::Nothing && self.watched.as_deref() == Some(path);
        is_next.then(|| self.look())
    }

    /// After the reply to what was asked. Whoever gets no answer looks again, and does nothing twice that may have been
    /// done: a node that was made is found by its name, and a fence may be raised twice.
    pub fn on_reply(&mut self, reply: Reply) -> Step {
        let asked = std::mem::replace(&mut self.asked, Asked::Nothing);
        match (asked, reply) {
            (Asked::Sync, Reply::Synced) => self.ask_candidates(),
            (Asked::Candidates, Reply::Children(names)) => self.on_candidates(&names),
            (Asked::Before(before), Reply::Node(_)) => {
                self.watched = Some(before);
                Step::Wait
            }
            (Asked::Fence(own), Reply::Node(fence)) => self.raise(&own, fence.version),
            (Asked::Raise(next), Reply::Done(_)) => Step::InOffice(next),
            _ => self.look(),
        }
    }

    fn ask(&mut self, asked: Asked, command: Command) -> Step {
        self.asked = asked;
        Step::Ask(command)
    }

    fn look(&mut self) -> Step {
        self.watched = None;
        self.ask(Asked::Sync, Command::Sync)
    }

    fn ask_candidates(&mut self) -> Step {
        let path = self.paths.master();
        self.ask(Asked::Candidates, Command::Children { path, watch: false })
    }

    fn on_candidates(&mut self, names: &[String]) -> Step {
        let below = |name: &str| format!("{}/{name}", self.paths.master());
        let Some(own) = first_of(&Paths::candidate(self.process), names) else {
            let path = self.paths.master_candidate(self.process);
            let create = Command::Create(path, [].into(), Mode::EphemeralSequential);
            return self.ask(Asked::Creation, create);
        };
        let own_path = below(own);
        let (asked, path, watch) = match standing(own, names) {
            Standing::Behind(before) => (Asked::Before(below(&before)), below(&before), true),
            Standing::First | Standing::Gone => {
                (Asked::Fence(own_path), self.paths.master_fence(), false)
            }
        };
        self.ask(asked, Command::Get { path, watch })
    }

    /// The node of a candidate that is first stays first, so the fence is raised only by who is first right then.
    fn raise(&mut self, own: &str, fence: Version) -> Step {
        let check = Operation::Check(own.to_owned(), Version(0));
        let raise = Operation::Set(self.paths.master_fence(), [].into(), fence);
        let next = Version(fence.0 + 1);
        self.ask(Asked::Raise(next), Command::Multi(vec![check, raise]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::Event;
    use crate::fake::{Fake, Fate, SessionId};

    struct Office {
        fake: Fake,
        paths: Paths,
    }

    impl Office {
        fn new() -> Self {
            let (mut fake, paths) = (Fake::new(), Paths::new("c"));
            let session = fake.begin();
            for path in paths.folders().into_iter().chain([paths.master_fence()]) {
                let create = Command::Create(path, [].into(), Mode::Persistent);
                assert!(matches!(
                    fake.carry_out(session, &create, Fate::Answered),
                    Reply::Created(_)
                ));
            }
            Self { fake, paths }
        }

        /// Asks until the candidate waits or is in office; `fate` of each question in turn.
        fn run(
            &mut self,
            session: SessionId,
            candidate: &mut Candidacy,
            mut step: Step,
            mut fate: impl FnMut(&Command) -> Fate,
        ) -> Step {
            while let Step::Ask(command) = &step {
                let fate = fate(command);
                let reply = self.fake.carry_out(session, command, fate);
                step = candidate.on_reply(reply);
            }
            step
        }
    }

    #[test]
    fn the_next_in_line_and_nobody_else_is_woken() {
        let mut office = Office::new();
        let mut candidates = Vec::new();
        for process in 1..=3 {
            let session = office.fake.begin();
            let (mut candidate, step) = Candidacy::new(office.paths.clone(), process);
            let step = office.run(session, &mut candidate, step, |_| Fate::Answered);
            let first = process == 1;
            let expected = if first {
                Step::InOffice(Version(1))
            } else {
                Step::Wait
            };
            assert_eq!(step, expected);
            candidates.push((session, candidate));
        }
        office.fake.expire(candidates[0].0);
        assert_eq!(office.fake.take_fired(candidates[2].0), vec![]);
        let (session, candidate) = &mut candidates[1];
        let fired = office.fake.take_fired(*session);
        let [Event::Changed(path)] = fired.as_slice() else {
            panic!("{fired:?}");
        };
        let step = candidate.on_changed(path).expect("it waits for this");
        let step = office.run(*session, candidate, step, |_| Fate::Answered);
        assert_eq!(step, Step::InOffice(Version(2)));
    }

    #[test]
    fn a_candidate_whose_answers_are_lost_comes_into_office_once() {
        for lost in [Fate::AnswerLost, Fate::CommandLost] {
            for nth in 0..8 {
                let mut office = Office::new();
                let session = office.fake.begin();
                let (mut candidate, step) = Candidacy::new(office.paths.clone(), 7);
                let mut asked = 0;
                let step = office.run(session, &mut candidate, step, |_| {
                    asked += 1;
                    if asked == nth + 1 {
                        lost
                    } else {
                        Fate::Answered
                    }
                });
                assert!(
                    matches!(step, Step::InOffice(_)),
                    "{lost:?} {nth}: {step:?}"
                );
                let path = office.paths.master();
                let children = Command::Children { path, watch: false };
                let listed = office.fake.carry_out(session, &children, Fate::Answered);
                assert!(matches!(listed, Reply::Children(names) if names.len() == 1));
            }
        }
    }

    #[test]
    fn who_lost_its_node_before_it_raises_the_fence_does_not_raise_it() {
        let mut office = Office::new();
        let (one, two) = (office.fake.begin(), office.fake.begin());
        let (mut first, step) = Candidacy::new(office.paths.clone(), 1);
        // It stops when it is about to raise the fence.
        let mut step = step;
        let raise = loop {
            match step {
                Step::Ask(Command::Multi(parts)) => break Command::Multi(parts),
                Step::Ask(command) => {
                    let reply = office.fake.carry_out(one, &command, Fate::Answered);
                    step = first.on_reply(reply);
                }
                other => panic!("{other:?}"),
            }
        };
        let (mut second, step) = Candidacy::new(office.paths.clone(), 2);
        assert_eq!(
            office.run(two, &mut second, step, |_| Fate::Answered),
            Step::Wait
        );
        office.fake.expire(one);
        // Its order arrives late, by way of a session that the coordinator still knows.
        let late = office.fake.begin();
        let reply = office.fake.carry_out(late, &raise, Fate::Answered);
        assert_eq!(reply, Reply::Refused(0, Box::new(Reply::Missing)));
    }
}
