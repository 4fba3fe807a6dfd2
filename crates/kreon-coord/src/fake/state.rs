//! The coordinator with its sessions.

use std::collections::BTreeMap;

use super::tree::{Change, Moment, Tree, parent};
use crate::command::{Command, Operation, Reply};
use crate::coordinator::Event;

/// Number of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// What becomes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It is carried out and answered.
    Answered,
    /// It is carried out, and the answer is lost.
    AnswerLost,
    /// It never arrives. (One that arrives later is carried out then.)
    CommandLost,
}

#[derive(Clone, Debug, Default)]
struct Session {
    /// Its server knows all writes up to this.
    seen: Moment,
    nodes_watched: Vec<String>,
    children_watched: Vec<String>,
    /// What fired and was not taken.
    fired: Vec<String>,
}

/// The coordinator.
#[derive(Clone, Debug, Default)]
pub struct Fake {
    tree: Tree,
    sessions: BTreeMap<SessionId, Session>,
    sessions_begun: u64,
}

impl Fake {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a session. Its server has everything that was written so far.
    pub fn begin(&mut self) -> SessionId {
        self.sessions_begun += 1;
        let id = SessionId(self.sessions_begun);
        let session = Session {
            seen: self.tree.last,
            ..Session::default()
        };
        self.sessions.insert(id, session);
        id
    }

    /// Ends a session: its ephemeral nodes go. Whoever had it learns that by the answer to its next command.
    pub fn expire(&mut self, session: SessionId) {
        if self.sessions.remove(&session).is_some() {
            let gone = self.tree.delete_of(session);
            let gone: Vec<_> = gone.into_iter().map(Change::Deleted).collect();
            self.fire(&gone);
            let seen = self.sessions.values().map(|session| session.seen).min();
            self.tree.forget(seen.unwrap_or(self.tree.last));
        }
    }

    /// The last write, to [restore](Self::restore) later.
    pub fn moment(&self) -> u64 {
        self.tree.last
    }

    /// The coordinator is restored from a copy that was made after the write `moment`: nodes of sessions are gone, and
    /// so are the sessions; numbers of versions are given once more.
    pub fn restore(&mut self, moment: u64) {
        let sessions: Vec<SessionId> = self.sessions.keys().copied().collect();
        sessions
            .into_iter()
            .for_each(|session| self.expire(session));
        self.tree.restore(moment);
    }

    /// Whether a session has not ended.
    pub fn is_alive(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// The server of a session learns of the next `writes` writes.
    pub fn catch_up(&mut self, session: SessionId, writes: u64) {
        let last = self.tree.last;
        if let Some(session) = self.sessions.get_mut(&session) {
            session.seen = session.seen.saturating_add(writes).min(last);
        }
    }

    /// The paths whose watches fired for a session since this was last asked.
    pub fn take_fired(&mut self, session: SessionId) -> Vec<Event> {
        let session = self.sessions.get_mut(&session);
        let fired = session.map(|session| std::mem::take(&mut session.fired));
        fired.into_iter().flatten().map(Event::Changed).collect()
    }

    /// Carries out a command, as `fate` has it.
    pub fn carry_out(&mut self, session: SessionId, command: &Command, fate: Fate) -> Reply {
        if !self.is_alive(session) {
            return Reply::Expired;
        }
        if fate == Fate::CommandLost {
            return Reply::Unknown;
        }
        let seen = self.sessions.get(&session).map(|session| session.seen);
        let reply = self.answer(session, command);
        if fate == Fate::Answered {
            return reply;
        }
        // Who got no answer turns to another server, which may not even know what this session wrote.
        if let (Some(session), Some(seen)) = (self.sessions.get_mut(&session), seen) {
            session.seen = seen;
        }
        Reply::Unknown
    }

    fn answer(&mut self, id: SessionId, command: &Command) -> Reply {
        let last = self.tree.last;
        let Some(session) = self.sessions.get_mut(&id) else {
            return Reply::Expired;
        };
        match command {
            Command::Sync => {
                session.seen = last;
                Reply::Synced
            }
            Command::Get { path, watch } => {
                if *watch {
                    session.nodes_watched.push(path.clone());
                }
                let seen = session.seen;
                let node = self.tree.get(path, seen).cloned();
                if *watch && node != self.tree.get(path, last).cloned() {
                    self.fire_node(path); // it will see the change as soon as it catches up
                }
                node.map_or(Reply::Missing, Reply::Node)
            }
            Command::Children { path, watch } => {
                let seen = session.seen;
                let Some(children) = self.tree.children(path, seen) else {
                    return Reply::Missing;
                };
                if *watch {
                    session.children_watched.push(path.clone());
                    if self.tree.children(path, last).as_ref() != Some(&children) {
                        self.fire_children(path);
                    }
                }
                Reply::Children(children)
            }
            Command::Create(path, data, mode) => self.write(
                id,
                &[Operation::Create(path.clone(), data.clone(), *mode)],
                true,
            ),
            Command::Set(path, data, expected) => self.write(
                id,
                &[Operation::Set(path.clone(), data.clone(), *expected)],
                true,
            ),
            Command::Delete(path, expected) => {
                self.write(id, &[Operation::Delete(path.clone(), *expected)], true)
            }
            Command::Multi(operations) => self.write(id, operations, false),
        }
    }

    /// All operations in one write, or none.
    fn write(&mut self, id: SessionId, operations: &[Operation], single: bool) -> Reply {
        let before = self.tree.begin(operations);
        let (mut replies, mut changed) = (Vec::new(), Vec::new());
        for (number, operation) in operations.iter().enumerate() {
            match self.tree.carry_out(id, operation, &mut changed) {
                Ok(reply) => replies.push(reply),
                Err(why) => {
                    self.tree.undo(before, &changed);
                    return match single {
                        true => why,
                        false => Reply::Refused(number, Box::new(why)),
                    };
                }
            }
        }
        if let Some(session) = self.sessions.get_mut(&id) {
            session.seen = self.tree.last; // a session sees its own writes
        }
        self.fire(&changed);
        match single {
            true => replies.pop().unwrap_or(Reply::Synced),
            false => Reply::Done(replies),
        }
    }

    fn fire(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Data(path) => self.fire_node(path),
                Change::Made(path) => {
                    self.fire_node(path);
                    self.fire_children(parent(path));
                }
                Change::Deleted(path) => {
                    self.fire_node(path);
                    self.fire_children(path);
                    self.fire_children(parent(path));
                }
            }
        }
    }

    fn fire_node(&mut self, path: &str) {
        for session in self.sessions.values_mut() {
            let before = session.nodes_watched.len();
            session.nodes_watched.retain(|watched| watched != path);
            if session.nodes_watched.len() < before {
                session.fired.push(path.to_owned());
            }
        }
    }

    fn fire_children(&mut self, path: &str) {
        for session in self.sessions.values_mut() {
            let before = session.children_watched.len();
            session.children_watched.retain(|watched| watched != path);
            if session.children_watched.len() < before {
                session.fired.push(path.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Mode, Node, Version};

    fn set(version: u64, data: u8) -> Command {
        Command::Set("/g".into(), [data].into(), Version(version))
    }

    fn get(watch: bool) -> Command {
        Command::Get {
            path: "/g".into(),
            watch,
        }
    }

    fn node(version: u64, data: u8) -> Reply {
        Reply::Node(Node {
            data: [data].into(),
            version: Version(version),
        })
    }

    /// A coordinator with the node `/g` of version 0, and two sessions.
    fn two() -> (Fake, SessionId, SessionId) {
        let mut fake = Fake::new();
        let (one, two) = (fake.begin(), fake.begin());
        let create = Command::Create("/g".into(), [0].into(), Mode::Persistent);
        fake.carry_out(one, &create, Fate::Answered);
        fake.carry_out(two, &Command::Sync, Fate::Answered);
        (fake, one, two)
    }

    #[test]
    fn a_read_without_sync_lags_behind() {
        let (mut fake, one, two) = two();
        assert_eq!(
            fake.carry_out(one, &set(0, 1), Fate::Answered),
            Reply::Written(Version(1))
        );
        assert_eq!(fake.carry_out(one, &get(false), Fate::Answered), node(1, 1));
        assert_eq!(fake.carry_out(two, &get(false), Fate::Answered), node(0, 0));
        fake.carry_out(two, &Command::Sync, Fate::Answered);
        assert_eq!(fake.carry_out(two, &get(false), Fate::Answered), node(1, 1));
    }

    #[test]
    fn of_two_swaps_at_one_version_one_wins() {
        let (mut fake, one, two) = two();
        assert_eq!(
            fake.carry_out(two, &set(0, 2), Fate::Answered),
            Reply::Written(Version(1))
        );
        assert_eq!(
            fake.carry_out(one, &set(0, 1), Fate::Answered),
            Reply::Conflict
        );
    }

    #[test]
    fn a_lost_reply_says_nothing_of_the_write() {
        let (mut fake, one, _) = two();
        assert_eq!(
            fake.carry_out(one, &set(0, 1), Fate::CommandLost),
            Reply::Unknown
        );
        assert_eq!(fake.carry_out(one, &get(false), Fate::Answered), node(0, 0));
        assert_eq!(
            fake.carry_out(one, &set(0, 1), Fate::AnswerLost),
            Reply::Unknown
        );
        // The next server may not know of it.
        assert_eq!(fake.carry_out(one, &get(false), Fate::Answered), node(0, 0));
        fake.carry_out(one, &Command::Sync, Fate::Answered);
        assert_eq!(fake.carry_out(one, &get(false), Fate::Answered), node(1, 1));
    }

    #[test]
    fn a_multi_whose_check_fails_changes_nothing() {
        let (mut fake, one, _) = two();
        let multi = |fence| {
            let write = Operation::Set("/g".into(), [7].into(), Version(0));
            Command::Multi(vec![write, Operation::Check("/g".into(), Version(fence))])
        };
        let refused = Reply::Refused(1, Box::new(Reply::Conflict));
        assert_eq!(fake.carry_out(one, &multi(0), Fate::Answered), refused);
        assert_eq!(fake.carry_out(one, &get(false), Fate::Answered), node(0, 0));
        let done = fake.carry_out(one, &multi(1), Fate::Answered);
        assert_eq!(
            done,
            Reply::Done(vec![Reply::Written(Version(1)), Reply::Synced])
        );
    }

    #[test]
    fn a_multi_that_is_refused_late_leaves_nothing_behind() {
        let (mut fake, one, two) = two();
        let above = Command::Create("/live".into(), [].into(), Mode::Persistent);
        fake.carry_out(one, &above, Fate::Answered);
        let before = fake.moment();
        let create = Operation::Create("/live/x".into(), [].into(), Mode::EphemeralSequential);
        let write = Operation::Set("/g".into(), [7].into(), Version(0));
        let check = Operation::Check("/g".into(), Version(5));
        let multi = Command::Multi(vec![create, write, check]);
        let refused = Reply::Refused(2, Box::new(Reply::Conflict));
        assert_eq!(fake.carry_out(one, &multi, Fate::Answered), refused);
        assert_eq!(fake.carry_out(one, &get(false), Fate::Answered), node(0, 0));
        assert_eq!(fake.moment(), before);
        fake.expire(one);
        assert_eq!(fake.moment(), before, "the session had made nothing");
        assert_eq!(fake.carry_out(two, &get(false), Fate::Answered), node(0, 0));
        let create = Command::Create("/live/x".into(), [].into(), Mode::EphemeralSequential);
        let made = fake.carry_out(two, &create, Fate::Answered);
        assert_eq!(made, Reply::Created("/live/x0000000000".into()));
    }

    #[test]
    fn a_restored_coordinator_gives_versions_once_more() {
        let (mut fake, one, _) = two();
        let above = Command::Create("/live".into(), [].into(), Mode::Persistent);
        fake.carry_out(one, &above, Fate::Answered);
        fake.carry_out(one, &set(0, 1), Fate::Answered);
        let moment = fake.moment();
        let create = Command::Create("/live/x".into(), [].into(), Mode::Ephemeral);
        fake.carry_out(one, &create, Fate::Answered);
        fake.carry_out(one, &set(1, 2), Fate::Answered);
        fake.restore(moment);
        let sync = fake.carry_out(one, &Command::Sync, Fate::Answered);
        assert_eq!(sync, Reply::Expired);
        let three = fake.begin();
        assert_eq!(
            fake.carry_out(three, &get(false), Fate::Answered),
            node(1, 1)
        );
        let live = Command::Children {
            path: "/live".into(),
            watch: false,
        };
        let nobody = Reply::Children(Vec::new());
        assert_eq!(fake.carry_out(three, &live, Fate::Answered), nobody);
        let again = fake.carry_out(three, &set(1, 3), Fate::Answered);
        assert_eq!(again, Reply::Written(Version(2)));
    }

    #[test]
    fn ephemeral_nodes_go_with_their_session_and_watches_fire_once() {
        let (mut fake, one, two) = two();
        let above = Command::Create("/live".into(), [].into(), Mode::Persistent);
        fake.carry_out(one, &above, Fate::Answered);
        let create = Command::Create("/live/x".into(), [].into(), Mode::EphemeralSequential);
        let Reply::Created(path) = fake.carry_out(one, &create, Fate::Answered) else {
            panic!("not made");
        };
        assert_eq!(path, "/live/x0000000000");
        let children = Command::Children {
            path: "/live".into(),
            watch: true,
        };
        fake.carry_out(two, &Command::Sync, Fate::Answered);
        let listed = fake.carry_out(two, &children, Fate::Answered);
        assert_eq!(listed, Reply::Children(vec!["x0000000000".into()]));
        fake.expire(one);
        assert_eq!(
            fake.carry_out(one, &get(false), Fate::Answered),
            Reply::Expired
        );
        assert_eq!(fake.take_fired(two), vec![Event::Changed("/live".into())]);
        assert_eq!(fake.take_fired(two), vec![]);
    }

    #[test]
    fn a_watch_set_by_a_lagging_read_fires_for_the_change_it_missed() {
        let (mut fake, one, two) = two();
        fake.carry_out(one, &set(0, 1), Fate::Answered);
        assert_eq!(fake.carry_out(two, &get(true), Fate::Answered), node(0, 0));
        assert_eq!(fake.take_fired(two), vec![Event::Changed("/g".into())]);
    }
}
