//! A table as its users see it.

use std::fmt;
use std::sync::Arc;

use kreon_wire::{Durability, KeyList, Reply, Request, SnapshotId, WriteBody};

use crate::call::Kind;
use crate::error::{Error, ErrorKind, Result, check_key};
use crate::handle::Handle;
use crate::parts::Changes;
use crate::range::{KeyRange, borrowed, prefix_bounds};
use crate::scan::Scan;
use crate::slot::{Slot, Value};
use crate::snapshot::Snapshot;
use crate::ticket::{GetTicket, Ticket, done, value};

/// A table of a cluster: ordered keys with values, in one group or cut into ranges over several. Clones are the same table.
///
/// Operations on one key and batches within a group are linearizable. Calls under way at the same time have no order: wait
/// for one before the next to order them.
#[derive(Clone)]
pub struct Region {
    handle: Handle,
    name: Arc<str>,
}

impl Region {
    pub(crate) fn new(handle: Handle, name: &str) -> Self {
        Self {
            handle,
            name: name.into(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of a key; `None` if it has none. One round trip.
    ///
    /// # Errors
    /// `Unavailable` if nobody answers in time; `InvalidArgument` for a key of more than 64 KiB; `NotFound` if the table
    /// was dropped; `Corruption` and `Io` of the server.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value>> {
        let key = key.as_ref();
        let body = self.body_of_get(key)?;
        value(&self.handle.answer(Kind::Read, (&self.name, key), body)?)
    }

    fn begin(&self, kind: Kind, key: &[u8], body: Vec<u8>) -> Result<Arc<Slot>> {
        self.handle.driver().begin(kind, (&self.name, key), body)
    }

    /// Whether a key has a value. Costs what [`get`](Self::get) costs.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }

    /// Begins a [`get`](Self::get). Waits only if too much is under way.
    ///
    /// # Errors
    /// As [`get`](Self::get); `Busy` if too much is under way for too long.
    pub fn get_later(&self, key: impl AsRef<[u8]>) -> Result<GetTicket> {
        let key = key.as_ref();
        let body = self.body_of_get(key)?;
        self.begin(Kind::Read, key, body).map(GetTicket)
    }

    fn body_of_get(&self, key: &[u8]) -> Result<Vec<u8>> {
        check_key(key)?;
        let request = Request::Get {
            table: &self.name,
            key,
            snapshot: SnapshotId(0),
        };
        let mut body = Vec::with_capacity(32 + self.name.len() + key.len());
        request.put(&mut body);
        Ok(body)
    }

    /// The values of many keys, in their order: one request for each group, all at once. They are not of one moment.
    ///
    /// # Errors
    /// As [`get`](Self::get); `TooLarge` if one value does not fit an answer.
    pub fn get_many(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Value>>> {
        let mut values = vec![None; keys.len()];
        let mut ranges = self.handle.ranges(&self.name);
        if ranges.is_empty() {
            self.handle.driver().refresh()?;
            ranges = self.handle.ranges(&self.name);
        }
        let mut parts = Vec::new();
        for (_, range) in &ranges {
            let here = |index: &usize| {
                keys.get(*index)
                    .is_some_and(|key| range.holds(key.as_ref()))
            };
            parts.push((0..keys.len()).filter(here).collect::<Vec<_>>());
        }
        if parts.iter().map(Vec::len).sum::<usize>() != keys.len() {
            let text = "no group is known to hold some of the keys";
            let unavailable = Error::new(ErrorKind::Unavailable, text);
            return Err(self.handle.why(&self.name, unavailable));
        }
        parts.retain(|part| !part.is_empty());
        let mut begun = Vec::new();
        for part in parts {
            begun.push((self.begin_get_many(keys, &part), part));
        }
        while let Some((slot, part)) = begun.pop() {
            let taken = slot.and_then(|slot| self.take_many(&slot, &part, &mut values));
            match taken {
                Err(error) if error.kind() == ErrorKind::TooLarge && part.len() > 1 => {
                    let (one, other) = part.split_at(part.len() / 2);
                    begun.push((self.begin_get_many(keys, one), one.to_vec()));
                    begun.push((self.begin_get_many(keys, other), other.to_vec()));
                }
                taken => taken?,
            }
        }
        Ok(values)
    }

    fn begin_get_many(&self, keys: &[impl AsRef<[u8]>], part: &[usize]) -> Result<Arc<Slot>> {
        let mut list = KeyList::new();
        let mut first = None;
        for key in part.iter().filter_map(|index| keys.get(*index)) {
            first.get_or_insert(key.as_ref());
            list.push(key.as_ref())
                .map_err(|violation| Error::refused(violation, "key"))?;
        }
        let request = Request::GetMany {
            table: &self.name,
            keys: list.keys(),
            snapshot: SnapshotId(0),
        };
        let place = (&*self.name, first.unwrap_or_default());
        self.handle
            .driver()
            .begin(Kind::Read, place, request.body())
    }

    fn take_many(&self, slot: &Slot, part: &[usize], values: &mut [Option<Value>]) -> Result<()> {
        let answer = self.handle.known(&self.name, slot.wait())?;
        let Reply::Values(found) = answer.reply()? else {
            return Err(Error::strange());
        };
        if found.len() != part.len() {
            return Err(Error::strange());
        }
        for (index, value) in part.iter().zip(found.iter()) {
            if let Some(place) = values.get_mut(*index) {
                *place = value.map(<[u8]>::to_vec);
            }
        }
        Ok(())
    }

    /// Gives a key a value. Returns when it is in the memory of all in-sync members of the group.
    ///
    /// # Errors
    /// `Unknown` if it may have been carried out; otherwise it was not: `Unavailable` if the group takes no writes in time;
    /// `InvalidArgument` for a key of more than 64 KiB or a value of more than 16 MiB; `OutOfSpace`; `NotFound` if the
    /// table was dropped.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, Durability::Replicated)
    }

    /// Gives a key a value. Returns when it is as safe as that says.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<()> {
        let key = key.as_ref();
        let body = self.body_of_put(key, value.as_ref(), durability)?;
        done(&self.handle.answer(Kind::Write, (&self.name, key), body)?)
    }

    /// Begins a put. Waits only if too much is under way.
    ///
    /// # Errors
    /// As [`put`](Self::put); `Busy` if too much is under way for too long.
    pub fn put_later(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        durability: Durability,
    ) -> Result<Ticket> {
        let key = key.as_ref();
        let body = self.body_of_put(key, value.as_ref(), durability)?;
        self.begin(Kind::Write, key, body).map(Ticket)
    }

    fn body_of_put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<Vec<u8>> {
        let room = 16 + key.len() + value.len() + self.name.len();
        let mut body = WriteBody::with_room(room);
        body.put(&self.name, key, value)
            .map_err(|violation| Error::refused(violation, "put"))?;
        Ok(body.finish(durability))
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// As [`put`](Self::put). A full device still takes deletions.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.delete_with(key, Durability::Replicated)
    }

    /// Deletes a key. Returns when that is as safe as that says.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    pub fn delete_with(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<()> {
        let key = key.as_ref();
        let body = self.body_of_delete(key, durability)?;
        done(&self.handle.answer(Kind::Write, (&self.name, key), body)?)
    }

    /// Begins a deletion. Waits only if too much is under way.
    ///
    /// # Errors
    /// As [`delete`](Self::delete); `Busy` if too much is under way for too long.
    pub fn delete_later(&self, key: impl AsRef<[u8]>, durability: Durability) -> Result<Ticket> {
        let key = key.as_ref();
        let body = self.body_of_delete(key, durability)?;
        self.begin(Kind::Write, key, body).map(Ticket)
    }

    fn body_of_delete(&self, key: &[u8], durability: Durability) -> Result<Vec<u8>> {
        let mut body = WriteBody::new();
        body.delete(&self.name, key)
            .map_err(|violation| Error::refused(violation, "deletion"))?;
        Ok(body.finish(durability))
    }

    /// Deletes all keys of a range, by one write in each group that holds a part of it. In a group all of it goes at once.
    ///
    /// # Errors
    /// As [`delete`](Self::delete). After an error other groups may have deleted their parts.
    pub fn delete_range(&self, range: impl KeyRange) -> Result<()> {
        self.delete_range_with(range, Durability::Replicated)
    }

    /// Deletes all keys of a range. Returns when that is as safe as that says.
    ///
    /// # Errors
    /// As [`delete_range`](Self::delete_range).
    pub fn delete_range_with(&self, range: impl KeyRange, durability: Durability) -> Result<()> {
        let bounds = range.into_bounds();
        let mut changes = Changes {
            is_split: true,
            ..Changes::default()
        };
        changes
            .body
            .delete_range(&self.name, &borrowed(&bounds))
            .map_err(|violation| Error::refused(violation, "deletion of a range"))?;
        changes.write(&self.handle, durability)
    }

    /// Deletes all keys that start with `prefix`.
    ///
    /// # Errors
    /// As [`delete_range`](Self::delete_range).
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.delete_range(prefix_bounds(prefix.as_ref()))
    }

    /// The entries of a range, ascending: of each group as it was when the scan came to it.
    pub fn scan(&self, range: impl KeyRange) -> Scan {
        Scan::new(&self.handle, &self.name, range.into_bounds(), false)
    }

    /// The entries of a range, descending.
    pub fn scan_rev(&self, range: impl KeyRange) -> Scan {
        Scan::new(&self.handle, &self.name, range.into_bounds(), true)
    }

    /// The entries whose keys start with `prefix`, ascending.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Scan {
        self.scan(prefix_bounds(prefix.as_ref()))
    }

    /// A snapshot of each group that holds a part of the table, all taken at about this moment.
    ///
    /// # Errors
    /// `Unavailable` if a group does not answer in time.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::take(&self.handle, &self.name)
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
