//! The records of databases, as one command sees and changes them.

use std::collections::HashSet;
use std::mem;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use kreon::{KEY_BYTES_MAX, Scan, Snapshot, Transaction, Value};

use super::failure::Failure;
use super::records::{COLLECTION, NAME_BYTES_MAX, STRING};
use super::room::{Filled, Room};
use super::span::Span;
use super::state::Keyspace;
use super::watch::{DbKey, Emptied};
use super::writes::{Write, Writes};
use crate::reply::CommandError;

/// Where a command reads.
#[derive(Debug)]
pub(crate) enum Source<'a> {
    /// What is in memory now; what is not ends in [`Failure::Misses`].
    Memory,
    /// As [`Memory`](Self::Memory), with what the commands before have written on top.
    Group(&'a Changes),
    /// The store now, waiting for the device.
    Device,
    /// What was there at the snapshot and is in memory; what is not ends in [`Failure::Misses`].
    MemoryAt(&'a Snapshot),
    At(&'a Snapshot),
    /// `EXEC`: what the commands before have written, too.
    Within(&'a mut Transaction),
}

/// What a command changes, or several that run as a group, before it is applied.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    writes: Writes,
    effects: Effects,
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
    changes: Changes,
    room: Room,
}

impl<'a> Access<'a> {
    pub(crate) fn new(keyspace: &'a Keyspace, db: usize, source: Source<'a>) -> Self {
        Self {
            keyspace,
            db,
            now_ms: None,
            source,
            changes: Changes::default(),
            room: Room::default(),
        }
    }

    /// A command of a group, at the group's time. `changes`, which are none, are given back by
    /// [`into_changes`](Self::into_changes).
    pub(crate) fn of_group(mut self, now_ms: u64, changes: Changes) -> Self {
        self.now_ms = Some(now_ms);
        self.changes = changes;
        self
    }

    /// With what the commands before in a transaction have gathered.
    pub(crate) fn in_room(mut self, room: Room) -> Self {
        self.room = room;
        self
    }

    /// What it has gathered.
    pub(crate) fn take_room(&mut self) -> Room {
        mem::take(&mut self.room)
    }

    /// Counts `bytes` that the reply grows by.
    ///
    /// # Errors
    /// As [`Room::reply_grows`].
    pub(crate) fn reply_grows(&mut self, bytes: usize) -> Result<(), Failure> {
        Ok(self.room.reply_grows(self.keyspace.rooms(), bytes)?)
    }

    /// Counts `bytes` that are gathered for something else than the reply.
    ///
    /// # Errors
    /// As [`Room::grows`].
    pub(crate) fn grows(&mut self, bytes: usize) -> Result<(), Failure> {
        Ok(self.room.grows(self.keyspace.rooms(), bytes)?)
    }

    /// How much it has gathered.
    pub(crate) fn filled(&self) -> Filled {
        self.room.filled()
    }

    /// Gives up what it has gathered since.
    pub(crate) fn back_to(&mut self, before: Filled) {
        self.room.back_to(before);
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
        if let Some(written) = self.written(db, key) {
            return Ok(written.map(Value::from));
        }
        if key.len() > KEY_BYTES_MAX {
            return Ok(None);
        }
        let region = &self.keyspace.database(db)?.region;
        Ok(match &mut self.source {
            Source::Memory | Source::Group(_) => at_once(region.get_async(key))?,
            Source::MemoryAt(snapshot) => at_once(snapshot.get_async(region, key))?,
            Source::Device => region.get(key)?,
            Source::At(snapshot) => snapshot.get(region, key)?,
            Source::Within(transaction) => transaction.get(region, key)?,
        })
    }

    /// What this command or one before it in its group has written to a record: `Some(None)` if it was deleted, or has expired.
    fn written(&mut self, db: usize, key: &[u8]) -> Option<Option<&[u8]>> {
        let now_ms = self.now_ms;
        let own = self.changes.writes.find(db, key);
        let write = own.or_else(|| match &self.source {
            Source::Group(before) => before.writes.find(db, key),
            _ => None,
        });
        Some(match write? {
            Write::Put {
                value, deadline_ms, ..
            } => {
                let has_ended = deadline_ms.is_some_and(|end| now_ms.is_some_and(|now| end <= now));
                (!has_ended).then_some(value)
            }
            _ => None,
        })
    }

    /// Whether there is a record of `key`.
    pub(crate) fn contains(&mut self, db: usize, key: &[u8]) -> Result<bool, Failure> {
        if let Some(written) = self.written(db, key) {
            return Ok(written.is_some());
        }
        if key.len() <= KEY_BYTES_MAX {
            let region = &self.keyspace.database(db)?.region;
            match &self.source {
                Source::Device => return Ok(region.contains(key)?),
                Source::At(snapshot) => return Ok(snapshot.contains(region, key)?),
                _ => (),
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
            Source::Memory | Source::Group(_) | Source::MemoryAt(_) => return Err(Failure::Misses),
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

    /// As [`scan`](Self::scan), where `keep` says how many bytes it kept of a record; `None`: it wants no more. They count as
    /// bytes of the reply, or, if `is_reply` is unset, only for all connections together.
    ///
    /// # Errors
    /// As [`Room::reply_grows`].
    pub(crate) fn gather(
        &mut self,
        span: &Span,
        is_reply: bool,
        mut keep: impl FnMut(&[u8], &[u8]) -> Option<usize>,
    ) -> Result<(), Failure> {
        let rooms = self.keyspace.rooms();
        let (mut room, mut outcome) = (mem::take(&mut self.room), Ok(()));
        let scanned = self.scan(span, |key, value| {
            let Some(bytes) = keep(key, value) else {
                return false;
            };
            outcome = match is_reply {
                true => room.reply_grows(rooms, bytes),
                false => room.grows(rooms, bytes),
            };
            outcome.is_ok()
        });
        self.room = room;
        scanned?;
        Ok(outcome?)
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
        self.changes.writes.add(Write::Put {
            db,
            key,
            value,
            deadline_ms,
        });
        Ok(())
    }

    pub(crate) fn delete(&mut self, db: usize, key: Vec<u8>) {
        self.changes.writes.add(Write::Delete { db, key });
    }

    /// Deletes the records from `start` on, below `end`.
    pub(crate) fn delete_range(&mut self, db: usize, start: Vec<u8>, end: Vec<u8>) {
        self.changes
            .writes
            .add(Write::DeleteRange { db, start, end });
    }

    /// Notes that what a user sees at `key` changes.
    pub(crate) fn touch(&mut self, key: DbKey) {
        self.changes.effects.touch(key);
    }

    /// Notes that all keys of a range change that are there. Keys that get watched from now on count as such: whether they are
    /// there is not known, and who watches may have read them already.
    pub(crate) fn touch_range(
        &mut self,
        db: usize,
        start: Bytes,
        end: Option<Bytes>,
    ) -> Result<(), Failure> {
        let mut emptied = Emptied {
            db,
            start,
            end,
            absent: HashSet::new(),
        };
        for key in self.keyspace.watched().watched() {
            if emptied.has(&key) && !self.exists(db, &key.1)? {
                emptied.absent.insert(key.1);
            }
        }
        self.changes.effects.emptied.push(emptied);
        Ok(())
    }

    /// Notes that the list at `key` got elements.
    pub(crate) fn grow_list(&mut self, key: DbKey) {
        self.changes.effects.lists.push(key);
    }

    /// Applies the changes at once; within a transaction they go into it. Returns what is to be told of them.
    pub(crate) fn apply(self) -> Result<Effects, Failure> {
        let Changes { writes, effects } = self.changes;
        match self.source {
            Source::Within(transaction) => writes.add_to(self.keyspace, transaction)?,
            _ => writes.apply(self.keyspace)?,
        }
        Ok(effects)
    }

    /// Whether nothing is to be written.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.changes.is_empty()
    }

    /// The changes, to be applied later.
    pub(crate) fn into_changes(self) -> Changes {
        self.changes
    }
}

impl Changes {
    /// Whether nothing is to be written.
    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Bytes of keys and values that are to be written.
    pub(crate) fn bytes(&self) -> usize {
        self.writes.bytes()
    }

    pub(crate) fn effects(&self) -> &Effects {
        &self.effects
    }

    /// Moves the changes of another command behind these.
    pub(crate) fn append(&mut self, others: &mut Self) {
        self.writes.append(&mut others.writes);
        self.effects.append(&mut others.effects);
    }

    /// Forgets them, and keeps some of their memory.
    pub(crate) fn clear(&mut self) {
        self.writes.clear();
        self.effects.clear();
    }

    /// Applies them at once.
    ///
    /// # Errors
    /// As [`Writes::apply`].
    pub(crate) fn apply(&self, keyspace: &Keyspace) -> Result<(), Failure> {
        self.writes.apply(keyspace)
    }
}

/// What others are told of a command that was applied.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    touched: Vec<DbKey>,
    emptied: Vec<Emptied>,
    /// Lists that got elements.
    pub lists: Vec<DbKey>,
}

impl Effects {
    fn touch(&mut self, key: DbKey) {
        if self.touched.last() != Some(&key) {
            self.touched.push(key);
        }
    }

    /// Moves the effects of another command behind these.
    pub(crate) fn append(&mut self, others: &mut Self) {
        let Self {
            touched,
            emptied,
            lists,
        } = others;
        for key in touched.drain(..) {
            self.touch(key);
        }
        self.emptied.append(emptied);
        self.lists.append(lists);
    }

    fn clear(&mut self) {
        self.touched.clear();
        self.emptied.clear();
        self.lists.clear();
    }

    /// Tells those who watch keys that these have changed; called after the change, with their locks.
    pub(crate) fn tell_watchers(&self, keyspace: &Keyspace) {
        for key in &self.touched {
            keyspace.watched().touch(key);
        }
        for emptied in &self.emptied {
            keyspace.watched().touch_emptied(emptied);
        }
    }
}

/// What `get` finds in memory.
///
/// # Errors
/// As the get; [`Failure::Misses`] if it waits for the device.
fn at_once(
    get: impl Future<Output = kreon::Result<Option<Value>>>,
) -> Result<Option<Value>, Failure> {
    match pin!(get).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => Ok(found?),
        Poll::Pending => Err(Failure::Misses),
    }
}
