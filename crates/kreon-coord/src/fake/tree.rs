//! The nodes, with all their earlier contents: servers that lag behind read those.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::SessionId;
use crate::command::{Mode, Node, Operation, Reply, Version};

/// A node as it was from some write on; none: it did not exist.
type Content = Option<Node>;

/// Number of a write, from 1 on.
pub(super) type Moment = u64;

/// What happened to a node.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Made(String),
    Data(String),
    Deleted(String),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// The contents of each node, in the order of their writes.
    nodes: BTreeMap<String, Vec<(Moment, Content)>>,
    /// Which session made which ephemeral node.
    owners: BTreeMap<String, SessionId>,
    /// The last write.
    pub(super) last: Moment,
    /// How many nodes were ever made below each path: the next number of a sequential node there.
    made_below: BTreeMap<String, u64>,
}

/// What a write that is taken back has to restore.
pub(super) struct Before {
    owners: Vec<(String, Option<SessionId>)>,
    made_below: Vec<(String, Option<u64>)>,
}

/// The path above a path; of those directly below the root, and of that itself, the root.
pub(super) fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

impl Tree {
    /// A node as a server had it that knew all writes up to `at`.
    pub(super) fn get(&self, path: &str, at: Moment) -> Option<&Node> {
        let contents = self.nodes.get(path)?;
        let before = contents.partition_point(|(moment, _)| *moment <= at);
        contents[..before].last()?.1.as_ref()
    }

    /// Names below a path, as such a server had them. None: the path itself is not there.
    pub(super) fn children(&self, path: &str, at: Moment) -> Option<Vec<String>> {
        if !self.exists(path, at) {
            return None;
        }
        let all = self.nodes.keys().filter(|name| parent(name) == path);
        let there = all.filter(|name| self.get(name, at).is_some());
        let name = |path: &String| path.rsplit('/').next().unwrap_or_default().to_owned();
        Some(there.map(name).collect())
    }

    /// The root always does.
    fn exists(&self, path: &str, at: Moment) -> bool {
        path == "/" || self.get(path, at).is_some()
    }

    /// Begins the next write. What is returned undoes it.
    pub(super) fn begin(&mut self, operations: &[Operation]) -> Before {
        // One operation is carried out or changes nothing.
        let operations = match operations {
            [_] => &[],
            all => all,
        };
        let (mut owners, mut made_below) = (Vec::new(), Vec::new());
        for operation in operations {
            let (Operation::Check(path, _)
            | Operation::Set(path, ..)
            | Operation::Create(path, ..)
            | Operation::Delete(path, _)) = operation;
            owners.push((path.clone(), self.owners.get(path).copied()));
            for path in [path.as_str(), parent(path)] {
                made_below.push((path.to_owned(), self.made_below.get(path).copied()));
            }
        }
        self.last += 1;
        Before { owners, made_below }
    }

    /// Takes back the write that was begun last, which has changed these paths.
    pub(super) fn undo(&mut self, before: Before, changed: &[Change]) {
        for change in changed {
            let (Change::Data(path) | Change::Made(path) | Change::Deleted(path)) = change;
            if let Some(contents) = self.nodes.get_mut(path) {
                contents.retain(|(moment, _)| *moment < self.last);
            }
            self.owners.remove(path);
        }
        for (path, owner) in before.owners {
            if let Some(owner) = owner {
                self.owners.insert(path, owner);
            }
        }
        for (path, made) in before.made_below {
            match made {
                Some(made) => self.made_below.insert(path, made),
                None => self.made_below.remove(&path),
            };
        }
        self.last -= 1;
    }

    /// Forgets nodes that were gone after the write `seen`.
    pub(super) fn forget(&mut self, seen: Moment) {
        self.nodes.retain(|_, contents| {
            let last = contents.last();
            last.is_some_and(|(moment, content)| *moment > seen || content.is_some())
        });
    }

    /// Nodes that are there are as after the write `moment`, or gone.
    pub(super) fn restore(&mut self, moment: Moment) {
        self.nodes.retain(|_, contents| {
            let is_there = contents
                .last()
                .is_some_and(|(_, content)| content.is_some());
            contents.retain(|(written, _)| *written <= moment);
            is_there
                && contents
                    .last()
                    .is_some_and(|(_, content)| content.is_some())
        });
        self.last = moment;
    }

    fn put(&mut self, path: &str, content: Content) {
        let contents = self.nodes.entry(path.to_owned()).or_default();
        contents.push((self.last, content));
    }

    /// Carries out one operation of the write `last`; on a refusal nothing is changed. Appends what changed.
    pub(super) fn carry_out(
        &mut self,
        session: SessionId,
        operation: &Operation,
        changed: &mut Vec<Change>,
    ) -> Result<Reply, Reply> {
        match operation {
            Operation::Check(path, version) => self.check(path, *version).map(|()| Reply::Synced),
            Operation::Set(path, data, expected) => {
                self.check(path, *expected)?;
                let version = Version(expected.0 + 1);
                let data = Arc::clone(data);
                self.put(path, Some(Node { data, version }));
                changed.push(Change::Data(path.clone()));
                Ok(Reply::Written(version))
            }
            Operation::Create(path, data, mode) => {
                let path = self.name_free(path, *mode)?;
                let (data, version) = (Arc::clone(data), Version(0));
                self.put(&path, Some(Node { data, version }));
                if *mode != Mode::Persistent {
                    self.owners.insert(path.clone(), session);
                }
                changed.push(Change::Made(path.clone()));
                Ok(Reply::Created(path))
            }
            Operation::Delete(path, expected) => {
                self.check(path, *expected)?;
                if self
                    .children(path, self.last)
                    .is_some_and(|c| !c.is_empty())
                {
                    return Err(Reply::HasChildren);
                }
                self.delete(path);
                changed.push(Change::Deleted(path.clone()));
                Ok(Reply::Deleted)
            }
        }
    }

    /// The path under which a node can be made.
    fn name_free(&mut self, path: &str, mode: Mode) -> Result<String, Reply> {
        let above = parent(path).to_owned();
        if !self.exists(&above, self.last) {
            return Err(Reply::Missing);
        }
        if self.owners.contains_key(&above) {
            return Err(Reply::Childless);
        }
        let made = self.made_below.get(&above).copied().unwrap_or(0);
        let path = match mode {
            Mode::EphemeralSequential => format!("{path}{made:010}"),
            Mode::Persistent | Mode::Ephemeral => path.to_owned(),
        };
        if self.exists(&path, self.last) {
            return Err(Reply::Exists);
        }
        self.made_below.insert(above, made + 1);
        Ok(path)
    }

    fn check(&self, path: &str, expected: Version) -> Result<(), Reply> {
        match self.get(path, self.last) {
            None => Err(Reply::Missing),
            Some(node) if node.version != expected => Err(Reply::Conflict),
            Some(_) => Ok(()),
        }
    }

    fn delete(&mut self, path: &str) {
        self.put(path, None);
        self.owners.remove(path);
        self.made_below.remove(path);
    }

    /// Deletes what a session made; the paths.
    pub(super) fn delete_of(&mut self, session: SessionId) -> Vec<String> {
        let owned = self.owners.iter().filter(|(_, owner)| **owner == session);
        let owned: Vec<String> = owned.map(|(path, _)| path.clone()).collect();
        if !owned.is_empty() {
            self.last += 1;
        }
        for path in &owned {
            self.delete(path);
        }
        owned
    }
}
