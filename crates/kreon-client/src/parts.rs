//! Changes by the groups that they touch.

use std::collections::BTreeMap;
use std::ops::Bound;

use kreon_wire::{Bounds, Durability, GroupId, KeyRange as Held, Operation, WriteBody};

use crate::call::Kind;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::{Handle, no_table};
use crate::range::clip;
use crate::ticket::done;

/// Changes that are carried out together, or by groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) body: WriteBody,
    /// They may be carried out group by group.
    pub(crate) is_split: bool,
}

impl Changes {
    pub(crate) fn write(self, handle: &Handle, durability: Durability) -> Result<()> {
        if self.body.is_empty() {
            return Ok(());
        }
        let mut places = self.places(handle);
        if places.is_err()
            || (places.as_ref().is_ok_and(|places| places.len() > 1) && !self.is_split)
        {
            handle.driver().refresh()?;
            places = self.places(handle);
        }
        let mut places = places?.into_iter();
        let (Some(first), second) = (places.next(), places.next()) else {
            return Ok(()); // a deletion of no keys
        };
        match second {
            None => {
                let (_, (table, key)) = first;
                let body = self.body.finish(durability);
                done(&handle.answer(Kind::Write, (&table, &key), body)?)
            }
            Some(_) if !self.is_split => {
                let text = "the keys of the batch lie in several groups";
                Err(Error::new(ErrorKind::CrossGroup, text))
            }
            Some(_) => self.write_parts(handle, durability),
        }
    }

    /// The groups that its changes touch, each with a table and a key that lie there.
    fn places(&self, handle: &Handle) -> Result<BTreeMap<GroupId, (String, Vec<u8>)>> {
        let mut places = BTreeMap::new();
        self.each(handle, |table, (group, range), operation| {
            let key = match operation {
                Operation::Put { key, .. } | Operation::Delete { key, .. } => *key,
                Operation::DeleteRange { .. } => range.start.as_slice(),
            };
            places
                .entry(group)
                .or_insert_with(|| (table.to_owned(), key.to_vec()));
            Ok(())
        })?;
        Ok(places)
    }

    /// Shows each change, clipped to each range that it touches.
    fn each(
        &self,
        handle: &Handle,
        mut show: impl FnMut(&str, (GroupId, &Held), &Operation<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut tables: BTreeMap<u8, Vec<(GroupId, Held)>> = BTreeMap::new();
        for operation in self.body.operations().iter() {
            let number = operation.table();
            let table = self.body.table(number).unwrap_or_default();
            let ranges = tables.entry(number).or_insert_with(|| handle.ranges(table));
            let mut touches = ranges
                .iter()
                .filter(|(_, range)| in_range(&operation, range))
                .peekable();
            let is_range = matches!(operation, Operation::DeleteRange { .. });
            if ranges.is_empty() {
                return Err(no_table(table));
            }
            if touches.peek().is_none() && !is_range {
                let text = "no group is known to hold the key";
                return Err(Error::new(ErrorKind::Unavailable, text));
            }
            for (group, range) in touches {
                show(table, (*group, range), &operation)?;
            }
        }
        Ok(())
    }

    fn write_parts(&self, handle: &Handle, durability: Durability) -> Result<()> {
        let mut parts: BTreeMap<GroupId, (String, Vec<u8>, WriteBody)> = BTreeMap::new();
        self.each(handle, |table, (group, range), operation| {
            let place = || (table.to_owned(), range.start.clone(), WriteBody::new());
            let (_, _, body) = parts.entry(group).or_insert_with(place);
            let added = match operation {
                Operation::Put { key, value, .. } => body.put(table, key, value),
                Operation::Delete { key, .. } => body.delete(table, key),
                Operation::DeleteRange { bounds, .. } => {
                    let clipped = clip(bounds, range).unwrap_or(NOTHING);
                    body.delete_range(table, &clipped)
                }
            };
            added.map_err(|violation| Error::refused(violation, "part of a batch"))
        })?;
        let begin = |(table, key, body): (String, Vec<u8>, WriteBody)| {
            let body = body.finish(durability);
            handle.driver().begin(Kind::Write, (&table, &key), body)
        };
        let begun: Vec<_> = parts.into_values().map(begin).collect();
        let ended: Vec<_> = begun.into_iter().map(|slot| done(&slot?.wait()?)).collect();
        let mut errors = ended.into_iter().filter_map(Result::err);
        let Some(first) = errors.next() else {
            return Ok(());
        };
        // What may have been carried out matters more.
        let is_unknown = |error: &Error| error.kind() == ErrorKind::Unknown;
        match is_unknown(&first) {
            true => Err(first),
            false => Err(errors.find(is_unknown).unwrap_or(first)),
        }
    }
}

/// Bounds between which no key lies.
const NOTHING: Bounds<'_> = Bounds {
    start: Bound::Excluded(b""),
    end: Bound::Excluded(b""),
};

/// Whether a change touches a range.
fn in_range(operation: &Operation<'_>, range: &Held) -> bool {
    match operation {
        Operation::Put { key, .. } | Operation::Delete { key, .. } => range.holds(key),
        Operation::DeleteRange { bounds, .. } => clip(bounds, range).is_some(),
    }
}
