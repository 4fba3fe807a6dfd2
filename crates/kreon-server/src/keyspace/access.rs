//! The records of databases, as one command sees and changes them.

use std::ops::Bound;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, UNIX_EPOCH};

use kreon::{Durability, KEY_BYTES_MAX, Scan, Snapshot, Transaction, Value, WriteBatch};

use super::failure::Failure;
use super::records::{COLLECTION, NAME_BYTES_MAX, STRING};
use super::state::Keyspace;
use super::watch::DbKey;
use super::writes::{Write, Writes};
use crate::reply::CommandError;

/// Where a command reads.
#[derive(Debug)]
pub(crate) enum Source<'a> {
    /// What is in memory now; what is not ends in [`Failure::Misses`].
    Memory,
    /// The store now, waiting for the device.
    Device,
    At(&'a Snapshot),
    /// `EXEC`: what the commands before have written, too.
    Within(&'a mut Transaction),
}

/// One command: what it reads, and what it will have written. Own writes are seen by reads of records, not by scans.
#[derive(Debug)]
pub(crate) struct Access<'a> {
    keyspace: &'a Keyspace,
    /// Number of the selected database.
    pub db: usize,
    /// The time of the command, once it was asked for.
    now_ms: Option<u64>,
    source: Source<'a>,
    writes: Writes,
    touched: Vec<DbKey>,
    lists: Vec<DbKey>,
}

/// Records to scan.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub db: usize,
    pub start: Bound<Vec<u8>>,
    pub end: Bound<Vec<u8>>,
    /// From the last to the first.
    pub is_reverse: bool,
    /// Values are not read, and shown empty.
    pub is_keys: bool,
    /// The scan ends after so many.
    pub limit: Option<usize>,
}

impl<'a> Access<'a> {
    pub(crate) fn new(keyspace: &'a Keyspace, db: usize, source: Source<'a>) -> Self {
        Self {
            keyspace,
            db,
            now_ms: None,
            source,
            writes: Writes::default(),
            touched: Vec::new(),
            lists: Vec::new(),
        }
    }

    pub(crate) fn keyspace(&self) -> &'a Keyspace {
        self.keyspace
    }

    /// The time of the command, in milliseconds since 1970.
    pub(crate) fn now_ms(&mut self) -> u64 {
        let keyspace = self.keyspace;
        *self.now_ms.get_or_insert_with(|| keyspace.now_ms())
    }

    /// The record of `key`.
    pub(crate) fn get(&mut self, db: usize, key: &[u8]) -> Result<Option<Value>, Failure> {
        if !self.writes.is_empty()
            && let Some(written) = self.writes.find(db, key)
        {
            return Ok(written.map(Value::from));
        }
        if key.len() > KEY_BYTES_MAX {
            return Ok(None);
        }
        let region = &self.keyspace.database(db)?.region;
        Ok(match &mut self.source {
            Source::Memory => {
                let get = pin!(region.get_async(key));
                match get.poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(found) => found?,
                    Poll::Pending => return Err(Failure::Misses),
                }
            }
            Source::Device => region.get(key)?,
            Source::At(snapshot) => snapshot.get(region, key)?,
            Source::Within(transaction) => transaction.get(region, key)?,
        })
    }

    /// Whether there is a record of `key`.
    pub(crate) fn contains(&mut self, db: usize, key: &[u8]) -> Result<bool, Failure> {
        if self.writes.is_empty() && key.len() <= KEY_BYTES_MAX {
            let region = &self.keyspace.database(db)?.region;
            match &self.source {
                Source::Device => return Ok(region.contains(key)?),
                Source::At(snapshot) => return Ok(snapshot.contains(region, key)?),
                Source::Memory | Source::Within(_) => (),
            }
        }
        Ok(self.get(db, key)?.is_some())
    }

    /// Shows records in the order of keys until `show` returns `false`. Own writes are not among them: scans come first.
    pub(crate) fn scan(
        &mut self,
        span: &Span,
        mut show: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Failure> {
        let region = &self.keyspace.database(span.db)?.region;
        if span.limit == Some(0) || span.is_empty() {
            return Ok(());
        }
        let range = (span.start.as_ref(), span.end.as_ref());
        let scan = match &mut self.source {
            Source::Memory => return Err(Failure::Misses),
            Source::Device => region.range(range),
            Source::At(snapshot) => snapshot.range(region, range),
            Source::Within(transaction) => {
                let mut scan = transaction.range(region, range)?;
                for _ in 0..span.limit.unwrap_or(usize::MAX) {
                    let pair = match span.is_reverse {
                        true => scan.next_back(),
                        false => scan.next(),
                    };
                    match pair.transpose()? {
                        Some((key, value)) if show(&key, &value) => (),
                        _ => break,
                    }
                }
                return Ok(());
            }
        };
        Self::show_all(scan, span, show)
    }

    fn show_all(
        scan: Scan,
        span: &Span,
        mut show: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Failure> {
        let mut scan = match span.limit {
            Some(limit) => scan.limit(limit),
            None => scan,
        };
        if span.is_keys {
            let mut keys = scan.keys();
            let mut next = || match span.is_reverse {
                true => keys.next_back_with(|key| show(key, &[])),
                false => keys.next_with(|key| show(key, &[])),
            };
            while next()? == Some(true) {}
            return Ok(());
        }
        let mut next = || match span.is_reverse {
            true => scan.next_back_with(&mut show),
            false => scan.next_with(&mut show),
        };
        while next()? == Some(true) {}
        Ok(())
    }

    /// Sets a record. Its value ends at `deadline_ms`, or with its next write.
    pub(crate) fn put(
        &mut self,
        db: usize,
        key: Vec<u8>,
        value: Vec<u8>,
        deadline_ms: Option<u64>,
    ) -> Result<(), Failure> {
        let most = match key.first() {
            Some(&(STRING | COLLECTION)) => 1 + NAME_BYTES_MAX,
            _ => KEY_BYTES_MAX,
        };
        if key.len() > most {
            return Err(
                CommandError::new("ERR key, field or member is longer than 65504 bytes").into(),
            );
        }
        self.writes.add(Write::Put {
            db,
            key,
            value,
            deadline_ms,
        });
        Ok(())
    }

    pub(crate) fn delete(&mut self, db: usize, key: Vec<u8>) {
        self.writes.add(Write::Delete { db, key });
    }

    /// Deletes the records from `start` on, below `end`.
    pub(crate) fn delete_range(&mut self, db: usize, start: Vec<u8>, end: Vec<u8>) {
        self.writes.add(Write::DeleteRange { db, start, end });
    }

    /// Notes that what a user sees at `key` changes.
    pub(crate) fn touch(&mut self, key: DbKey) {
        if self.touched.last() != Some(&key) {
            self.touched.push(key);
        }
    }

    /// Notes that the list at `key` got elements.
    pub(crate) fn grow_list(&mut self, key: DbKey) {
        self.lists.push(key);
    }

    /// Applies the writes at once; within a transaction they go into it. Returns what is to be told of them.
    pub(crate) fn apply(self) -> Result<Effects, Failure> {
        let writes = self.writes.list();
        match (self.source, writes) {
            (_, []) => (),
            (Source::Within(transaction), _) => {
                for write in writes {
                    apply_within(self.keyspace, transaction, write)?;
                }
            }
            (
                _,
                [
                    Write::Put {
                        db,
                        key,
                        value,
                        deadline_ms: None,
                    },
                ],
            ) => {
                let region = &self.keyspace.database(*db)?.region;
                region.put_with(key, value, Durability::Buffered)?;
            }
            _ => self
                .keyspace
                .store()
                .write(batch(self.keyspace, writes)?, Durability::Buffered)?,
        }
        Ok(Effects {
            touched: self.touched,
            lists: self.lists,
        })
    }

    /// Whether nothing is to be written.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.writes.is_empty()
    }
}

/// What others are told of a command that was applied.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub touched: Vec<DbKey>,
    /// Lists that got elements.
    pub lists: Vec<DbKey>,
}

impl Span {
    /// All records whose keys begin with `prefix`.
    pub(crate) fn prefix(db: usize, prefix: &[u8]) -> Self {
        Self {
            db,
            start: Bound::Included(prefix.to_vec()),
            end: super::records::prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded),
            is_reverse: false,
            is_keys: false,
            limit: None,
        }
    }

    pub(crate) fn keys(mut self) -> Self {
        self.is_keys = true;
        self
    }

    pub(crate) fn reverse(mut self, is_reverse: bool) -> Self {
        self.is_reverse = is_reverse;
        self
    }

    pub(crate) fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Whether it holds no key: its start lies behind its end.
    fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end))
            | (Bound::Excluded(start), Bound::Included(end)) => start >= end,
            _ => false,
        }
    }
}

fn batch(keyspace: &Keyspace, writes: &[Write]) -> Result<WriteBatch, Failure> {
    let mut batch = WriteBatch::new();
    for write in writes {
        match write {
            Write::Put {
                db,
                key,
                value,
                deadline_ms,
            } => {
                let region = &keyspace.database(*db)?.region;
                match deadline_ms {
                    None => batch.put(region, key, value),
                    Some(ms) => batch.put_until(region, key, value, moment(*ms)),
                }
            }
            Write::Delete { db, key } => batch.delete(&keyspace.database(*db)?.region, key),
            Write::DeleteRange { db, start, end } => {
                batch.delete_range(&keyspace.database(*db)?.region, start..end)?;
            }
        }
    }
    Ok(batch)
}

fn apply_within(
    keyspace: &Keyspace,
    transaction: &mut Transaction,
    write: &Write,
) -> Result<(), Failure> {
    match write {
        Write::Put {
            db,
            key,
            value,
            deadline_ms,
        } => {
            let region = &keyspace.database(*db)?.region;
            match deadline_ms {
                None => transaction.put(region, key, value)?,
                Some(ms) => transaction.put_until(region, key, value, moment(*ms))?,
            }
        }
        Write::Delete { db, key } => transaction.delete(&keyspace.database(*db)?.region, key)?,
        Write::DeleteRange { db, start, end } => {
            transaction.delete_range(&keyspace.database(*db)?.region, start..end)?;
        }
    }
    Ok(())
}

fn moment(ms: u64) -> std::time::SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms)
}
