//! What a store may hold after a power cut: what it held at its last commit, or at the one under way.

use kreon_judge::{Version, value};

use super::compare::difference;

/// What a key was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// Which write it was; 0 if the value is empty, which tells nothing.
    pub version: Version,
    pub len_bytes: usize,
}

/// What the keys have, by their numbers.
pub(super) type Pairs = Vec<Option<Written>>;

/// A commit, perhaps one that failed.
#[derive(Clone, Copy)]
struct Commit {
    /// Events of the device before it.
    began: usize,
    /// The same after it; `None`: it failed, and what it made durable is unknown.
    ended: Option<usize>,
    /// Changes that it made durable.
    changes: usize,
}

/// The changes and commits of one opening.
pub(super) struct Journal {
    /// What the store held when it was opened.
    start: Pairs,
    /// The key of each change, and what it has since.
    changes: Vec<(usize, Option<Written>)>,
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
    pub fn new(start: Pairs) -> Self {
        let opened = Commit {
            began: 0,
            ended: Some(0),
            changes: 0,
        };
        Self {
            start,
            changes: Vec::new(),
            commits: vec![opened],
        }
    }

    /// A change was made.
    pub fn change(&mut self, key: usize, written: Option<Written>) {
        self.changes.push((key, written));
    }

    /// A commit of all changes up to here.
    pub fn commit(&mut self, began: usize, ended: Option<usize>) {
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
    pub fn judge(&self, found: &Pairs, events: usize) -> Result<(), String> {
        let (mut pairs, mut made, mut told) = (self.start.clone(), 0, Vec::new());
        for commit in self.allowed(events) {
            for &(key, written) in self.changes.get(made..commit.changes).unwrap_or_default() {
                pairs[key] = written;
            }
            made = commit.changes;
            if *found == pairs {
                return Ok(());
            }
            told.push(difference(found, &pairs));
        }
        Err(format!("no commit: {}", told.join("; or ")))
    }

    /// The last commit that had ended, and those that had begun after it.
    fn allowed(&self, events: usize) -> impl Iterator<Item = &Commit> {
        let has_ended = |commit: &Commit| commit.ended.is_some_and(|at| at <= events);
        let last = self.commits.iter().rposition(has_ended).unwrap_or(0);
        let later = self.commits.iter().skip(last);
        later.filter(move |commit| commit.began <= events)
    }

    /// From when to when one of the commits took, by `number`; they are counted on and on.
    pub fn moments(&self, number: u64) -> (usize, usize) {
        let commit = self.commits[(number % self.commits.len() as u64) as usize];
        (commit.began, commit.ended.unwrap_or(commit.began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_commit_and_the_one_under_way_may_be_there() {
        let written = |version| Some(Written::new(version, 20));
        let mut journal = Journal::new(vec![written(1)]);
        for (version, began, ended) in [(2, 10, Some(20)), (3, 30, Some(40)), (4, 50, None)] {
            journal.change(0, written(version));
            journal.commit(began, ended);
        }
        let allowed = |events| -> Vec<u64> {
            let is_allowed =
                |version: &u64| journal.judge(&vec![written(*version)], events).is_ok();
            (1..6).filter(is_allowed).collect()
        };
        assert_eq!(allowed(9), [1]);
        assert_eq!(allowed(10), [1, 2]);
        assert_eq!(allowed(20), [2]);
        assert_eq!(allowed(35), [2, 3]);
        assert_eq!(allowed(45), [3]);
        assert_eq!(allowed(60), [3, 4]);
    }
}
