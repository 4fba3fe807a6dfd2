//! What a store may hold after a power cut: what it held at its last commit, or at the one under way; if the log is replayed, what
//! it held after any change that had begun, from the last one on that was durable.

use ::tucana::Recovery;
use kreon_judge::{Version, value};

use super::compare::difference;
use crate::engines::changes_kept;

/// What a key was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Which write it was; 0 if the value is empty, which tells nothing.
    pub version: Version,
    pub len_bytes: usize,
}

/// What the keys have, by their numbers.
pub type Pairs = Vec<Option<Written>>;

/// A commit, or what else makes changes durable; perhaps one that failed.
#[derive(Clone, Copy)]
struct Commit {
    /// Events of the device before it.
    began: usize,
    /// The same after it; `None`: it failed, and what it made durable is unknown.
    ended: Option<usize>,
    /// Changes that it made durable.
    changes: usize,
}

/// A change of a key.
#[derive(Clone, Copy)]
struct Change {
    key: usize,
    /// What it has since.
    written: Option<Written>,
    /// Events of the device before it.
    began: usize,
}

/// The changes and commits of one opening.
pub struct Journal {
    recovery: Recovery,
    /// What the store held when it was opened.
    start: Pairs,
    changes: Vec<Change>,
    commits: Vec<Commit>,
}

impl Written {
    /// A value of about so many bytes: an empty one, or one that tells its version.
    pub fn new(version: Version, len_bytes: usize) -> Self {
        match len_bytes {
            0 => Self {
                version: 0,
                len_bytes: 0,
            },
            _ => Self {
                version,
                len_bytes: len_bytes.max(value::HEAD_BYTES),
            },
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        match self.len_bytes {
            0 => Vec::new(),
            len_bytes => value::encode(self.version, len_bytes),
        }
    }

    /// What a value says of itself.
    ///
    /// # Errors
    /// It is not whole.
    pub fn of(bytes: &[u8]) -> Result<Self, String> {
        let version = match bytes.is_empty() {
            true => 0,
            false => value::decode(bytes)?,
        };
        Ok(Self {
            version,
            len_bytes: bytes.len(),
        })
    }
}

impl Journal {
    /// Of a store that held this when it was opened.
    pub(super) fn new(recovery: Recovery, start: Pairs) -> Self {
        let opened = Commit {
            began: 0,
            ended: Some(0),
            changes: 0,
        };
        Self {
            recovery,
            start,
            changes: Vec::new(),
            commits: vec![opened],
        }
    }

    /// A change was made, which began after so many events.
    pub(super) fn change(&mut self, key: usize, written: Option<Written>, began: usize) {
        self.changes.push(Change {
            key,
            written,
            began,
        });
    }

    /// A change was refused. Its record may be in the log until something else makes the log durable; the key has `known` still.
    pub(super) fn refused(
        &mut self,
        key: usize,
        (written, known): (Option<Written>, Option<Written>),
        began: usize,
    ) {
        self.change(key, written, began);
        self.change(key, known, began);
    }

    /// All changes up to here were made durable.
    pub(super) fn commit(&mut self, began: usize, ended: Option<usize>) {
        let changes = self.changes.len();
        self.commits.push(Commit {
            began,
            ended,
            changes,
        });
    }

    /// Whether this may be there after a power cut behind so many events.
    ///
    /// # Errors
    /// How it differs from what may be there.
    pub(super) fn judge(&self, found: &Pairs, events: usize) -> Result<(), String> {
        match self.recovery {
            Recovery::LastCommit => self.judge_commits(found, events),
            Recovery::ReplayLog => self.judge_prefix(found, events),
        }
    }

    fn judge_commits(&self, found: &Pairs, events: usize) -> Result<(), String> {
        let (mut pairs, mut made, mut told) = (self.start.clone(), 0, Vec::new());
        for commit in self.allowed(events) {
            self.apply(&mut pairs, made..commit.changes);
            made = commit.changes;
            if *found == pairs {
                return Ok(());
            }
            told.push(difference(found, &pairs));
        }
        Err(format!("no commit: {}", told.join("; or ")))
    }

    /// Of the changes a prefix is there, with all that were durable.
    fn judge_prefix(&self, found: &Pairs, events: usize) -> Result<(), String> {
        let ended = |commit: &&Commit| commit.ended.is_some_and(|at| at <= events);
        let durable = self.commits.iter().filter(ended);
        let least = durable.map(|commit| commit.changes).max().unwrap_or(0);
        let begun = self.changes.iter().filter(|change| change.began < events);
        let most = begun.count().max(least);
        let change = |number: u64| {
            let Change { key, written, .. } = self.changes[number as usize - 1];
            (key, written)
        };
        let kept = changes_kept(found, &self.start, (least as u64, most as u64), change);
        kept.map(drop).map_err(|different| {
            let mut pairs = self.start.clone();
            self.apply(&mut pairs, 0..least);
            let durable = difference(found, &pairs);
            self.apply(&mut pairs, least..most);
            let begun = difference(found, &pairs);
            format!(
                "not the state after {least} changes, which were durable, to {most}: first {durable}; last {begun}, and {different} keys differ"
            )
        })
    }

    fn apply(&self, pairs: &mut Pairs, changes: std::ops::Range<usize>) {
        for change in self.changes.get(changes).unwrap_or_default() {
            pairs[change.key] = change.written;
        }
    }

    /// The last commit that had ended, and those that had begun after it.
    fn allowed(&self, events: usize) -> impl Iterator<Item = &Commit> {
        let has_ended = |commit: &Commit| commit.ended.is_some_and(|at| at <= events);
        let last = self.commits.iter().rposition(has_ended).unwrap_or(0);
        let later = self.commits.iter().skip(last);
        later.filter(move |commit| commit.began <= events)
    }

    /// From when to when one of the commits took, by `number`; they are counted on and on.
    pub(super) fn moments(&self, number: u64) -> (usize, usize) {
        let commit = self.commits[(number % self.commits.len() as u64) as usize];
        (commit.began, commit.ended.unwrap_or(commit.began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(recovery: Recovery, events: usize) -> Vec<u64> {
        let written = |version| Some(Written::new(version, 20));
        let mut journal = Journal::new(recovery, vec![written(1)]);
        for (version, began, ended) in [(2, 10, Some(20)), (3, 30, Some(40)), (4, 50, None)] {
            journal.change(0, written(version), began - 5);
            journal.commit(began, ended);
        }
        journal.refused(0, (written(5), written(4)), 60);
        let is_allowed = |version: &u64| journal.judge(&vec![written(*version)], events).is_ok();
        (1..7).filter(is_allowed).collect()
    }

    #[test]
    fn only_the_last_commit_and_the_one_under_way_may_be_there() {
        let allowed = |events| allowed(Recovery::LastCommit, events);
        assert_eq!(allowed(9), [1]);
        assert_eq!(allowed(10), [1, 2]);
        assert_eq!(allowed(20), [2]);
        assert_eq!(allowed(35), [2, 3]);
        assert_eq!(allowed(45), [3]);
        assert_eq!(allowed(60), [3, 4]);
    }

    #[test]
    fn a_replay_may_find_all_changes_from_the_last_durable_one_on_and_one_that_was_refused() {
        let allowed = |events| allowed(Recovery::ReplayLog, events);
        assert_eq!(allowed(5), [1]);
        assert_eq!(allowed(9), [1, 2]);
        assert_eq!(allowed(20), [2]);
        assert_eq!(allowed(30), [2, 3]);
        assert_eq!(allowed(45), [3]);
        assert_eq!(allowed(60), [3, 4]);
        assert_eq!(allowed(61), [3, 4, 5]);
    }
}
