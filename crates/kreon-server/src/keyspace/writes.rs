//! Writes of records, before they are applied together: of one command, or of several that run as a group.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::mem;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kreon::{Durability, WriteBatch};

use super::failure::Failure;
use super::key_hash::{Hashed, key_hash};
use super::state::Keyspace;
use super::target::Target;

/// So many writes are searched one by one.
const SEARCHED_MAX: usize = 16;

/// For so many writes memory is kept.
const KEPT_MAX: usize = 1024;

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

    fn bytes(&self) -> usize {
        match self {
            Self::Put { key, value, .. } => key.len() + value.len(),
            Self::Delete { key, .. } => key.len(),
            Self::DeleteRange { start, end, .. } => start.len() + end.len(),
        }
    }

    fn is_of(&self, db: usize, key: &[u8]) -> bool {
        self.record() == Some((db, key))
    }
}

/// Writes in an order that has the effect of the one in which they came. A later write of a record takes the place of an
/// earlier one: the head of a collection that grows by many commands is written once.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    list: Vec<Write>,
    /// The last write of each record by the hash of the record; empty up to [`SEARCHED_MAX`] writes. Of two records with one
    /// hash it has either.
    last: HashMap<u64, usize, BuildHasherDefault<Hashed>>,
    /// Writes from here on may be replaced where they are: the last deletion of a range lies in front of them.
    replaceable: usize,
    /// Of keys and values.
    bytes: usize,
}

impl Writes {
    pub(crate) fn add(&mut self, write: Write) {
        self.bytes += write.bytes();
        let Some((db, key)) = write.record() else {
            self.list.push(write);
            self.replaceable = self.list.len();
            return;
        };
        let hash = match self.list.len() {
            ..SEARCHED_MAX => None,
            _ => Some(key_hash(db, key)),
        };
        let before = self.place(hash, db, key);
        if let Some(before) = before.filter(|&place| place >= self.replaceable)
            && let Some(slot) = self.list.get_mut(before)
        {
            self.bytes -= slot.bytes();
            *slot = write;
            return;
        }
        self.list.push(write);
        if let Some(hash) = hash {
            if self.last.is_empty() {
                self.index_all();
            }
            self.last.insert(hash, self.list.len() - 1);
        }
    }

    /// Moves the writes of another command behind these.
    pub(crate) fn append(&mut self, others: &mut Self) {
        if self.list.is_empty() {
            return mem::swap(self, others);
        }
        for write in others.list.drain(..) {
            self.add(write);
        }
        others.clear();
    }

    /// Forgets them, and keeps the memory of few.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.list.shrink_to(KEPT_MAX);
        self.last.clear();
        self.last.shrink_to(KEPT_MAX);
        self.replaceable = 0;
        self.bytes = 0;
    }

    fn index_all(&mut self) {
        for (place, write) in self.list.iter().enumerate() {
            if let Some((db, key)) = write.record() {
                self.last.insert(key_hash(db, key), place);
            }
        }
    }

    /// Where the last write of a record is. `hash`: that of the record, if it is known already.
    fn place(&self, hash: Option<u64>, db: usize, key: &[u8]) -> Option<usize> {
        if !self.last.is_empty() {
            let hash = hash.unwrap_or_else(|| key_hash(db, key));
            let place = *self.last.get(&hash)?;
            if self.list.get(place)?.is_of(db, key) {
                return Some(place);
            }
        }
        self.list.iter().rposition(|write| write.is_of(db, key))
    }

    /// The last write of a record. Deletions of ranges do not count.
    pub(crate) fn find(&self, db: usize, key: &[u8]) -> Option<&Write> {
        self.list.get(self.place(None, db, key)?)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Of keys and values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Applies them at once, for readers and in the log.
    ///
    /// # Errors
    /// As [`kreon::Store::write`]: nothing was applied.
    pub(crate) fn apply(&self, keyspace: &Keyspace) -> Result<(), Failure> {
        match &self.list[..] {
            [] => Ok(()),
            [
                Write::Put {
                    db,
                    key,
                    value,
                    deadline_ms: None,
                },
            ] => {
                let region = &keyspace.database(*db)?.region;
                Ok(region.put_with(key, value, Durability::Buffered)?)
            }
            _ => {
                let mut batch = WriteBatch::new();
                self.add_to(keyspace, &mut batch)?;
                Ok(keyspace.store().write(batch, Durability::Buffered)?)
            }
        }
    }

    /// Adds them to what `target` is to write.
    ///
    /// # Errors
    /// As those of `target`.
    pub(super) fn add_to(
        &self,
        keyspace: &Keyspace,
        target: &mut impl Target,
    ) -> Result<(), Failure> {
        for write in &self.list {
            match write {
                Write::Put {
                    db,
                    key,
                    value,
                    deadline_ms,
                } => {
                    let region = &keyspace.database(*db)?.region;
                    target.put(region, key, value, deadline_ms.map(moment))?;
                }
                Write::Delete { db, key } => {
                    target.delete(&keyspace.database(*db)?.region, key)?;
                }
                Write::DeleteRange { db, start, end } => {
                    target.delete_range(&keyspace.database(*db)?.region, start, end)?;
                }
            }
        }
        Ok(())
    }
}

fn moment(ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, value: &str) -> Write {
        Write::Put {
            db: 1,
            key: key.into(),
            value: value.into(),
            deadline_ms: None,
        }
    }

    fn filled(count: usize) -> Writes {
        let mut writes = Writes::default();
        for number in 0..count {
            writes.add(put(&format!("other {number}"), "x"));
        }
        writes
    }

    #[test]
    fn last_write_of_a_record_is_found_and_the_only_one() {
        for before in [0, 15, 16, 17, 40] {
            let mut writes = filled(before);
            writes.add(put("a", "1"));
            writes.add(put("a", "2"));
            assert_eq!(writes.find(1, b"a"), Some(&put("a", "2")));
            let deletion = Write::Delete {
                db: 1,
                key: b"a".to_vec(),
            };
            writes.add(deletion.clone());
            assert_eq!(writes.find(1, b"a"), Some(&deletion));
            assert_eq!(writes.find(0, b"a"), None, "another database");
            assert_eq!(writes.find(1, b"b"), None);
            assert_eq!(writes.list.len(), before + 1);
        }
    }

    #[test]
    fn write_behind_the_deletion_of_a_range_stays_behind_it() {
        for before in [0, 40] {
            let mut writes = filled(before);
            writes.add(put("a", "1"));
            let deletion = Write::DeleteRange {
                db: 1,
                start: b"a".to_vec(),
                end: b"b".to_vec(),
            };
            writes.add(deletion.clone());
            let mut others = Writes::default();
            others.add(put("a", "2"));
            others.add(put("a", "3"));
            writes.append(&mut others);
            let last = [put("a", "1"), deletion, put("a", "3")];
            assert_eq!(writes.list[before..], last);
            assert_eq!(writes.find(1, b"a"), Some(&put("a", "3")));
        }
    }
}
