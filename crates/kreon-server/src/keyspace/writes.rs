//! The writes of one command, before they are applied together.

use std::collections::HashMap;

/// So many writes are searched one by one.
const SEARCHED_MAX: usize = 16;

/// A change of a record. Deadlines are in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Put {
        db: usize,
        key: Vec<u8>,
        value: Vec<u8>,
        deadline_ms: Option<u64>,
    },
    Delete {
        db: usize,
        key: Vec<u8>,
    },
    /// Of keys from `start` on, below `end`.
    DeleteRange {
        db: usize,
        start: Vec<u8>,
        end: Vec<u8>,
    },
}

impl Write {
    fn record(&self) -> Option<(usize, &[u8])> {
        match self {
            Self::Put { db, key, .. } | Self::Delete { db, key } => Some((*db, key)),
            Self::DeleteRange { .. } => None,
        }
    }
}

/// The writes in their order.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    list: Vec<Write>,
    /// The last write of each record; empty up to [`SEARCHED_MAX`] writes.
    last: HashMap<(usize, Vec<u8>), usize>,
}

impl Writes {
    pub(crate) fn add(&mut self, write: Write) {
        self.list.push(write);
        let unindexed = match self.list.len() {
            ..=SEARCHED_MAX => return,
            len if self.last.is_empty() => 0..len,
            len => len - 1..len,
        };
        for (write, index) in self.list.iter().skip(unindexed.start).zip(unindexed) {
            if let Some((db, key)) = write.record() {
                self.last.insert((db, key.to_vec()), index);
            }
        }
    }

    /// What was written to a record: `Some(None)` if it was deleted. Deletions of ranges do not count.
    pub(crate) fn find(&self, db: usize, key: &[u8]) -> Option<Option<&[u8]>> {
        let write = match self.last.is_empty() {
            true => self
                .list
                .iter()
                .rfind(|write| write.record() == Some((db, key))),
            false => {
                let index = self.last.get(&(db, key.to_vec()));
                index.and_then(|&index| self.list.get(index))
            }
        };
        Some(match write? {
            Write::Put { value, .. } => Some(value),
            _ => None,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn list(&self) -> &[Write] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_write_of_a_record_is_found() {
        for writes_before in [0, 40] {
            let mut writes = Writes::default();
            let put = |key: &str, value: &str| Write::Put {
                db: 1,
                key: key.into(),
                value: value.into(),
                deadline_ms: None,
            };
            for number in 0..writes_before {
                writes.add(put(&format!("other {number}"), "x"));
            }
            writes.add(put("a", "1"));
            writes.add(put("a", "2"));
            assert_eq!(writes.find(1, b"a"), Some(Some(b"2".as_slice())));
            writes.add(Write::Delete {
                db: 1,
                key: b"a".to_vec(),
            });
            assert_eq!(writes.find(1, b"a"), Some(None));
            assert_eq!(writes.find(0, b"a"), None, "another database");
            assert_eq!(writes.find(1, b"b"), None);
        }
    }
}
