//! Changes by the groups that they touch.
//!
//! What lies where may change while a batch is on its way. A server that has not all of its keys says so, and has appended
//! nothing: then this part is cut anew, as the map says by then. Until the time of a call is over.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use kreon_wire::{
    Bounds, Durability, FailureKind, GroupId, KeyRange as Held, Operation, Reply, WriteBody,
};

use crate::error::{Error, ErrorKind, Result};
use crate::handle::{Handle, no_table};
use crate::moment::Moment;
use crate::range::clip;
use crate::slot::{Answer, Slot};
use crate::ticket::done;

/// Changes that are carried out together, or by groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) body: WriteBody,
    /// They may be carried out group by group.
    pub(crate) is_split: bool,
}

/// Groups, each with a table and a key that lie there.
type Groups = BTreeMap<GroupId, (String, Vec<u8>)>;

/// The changes of one group.
struct Part {
    /// A table and a key that lie there.
    place: (String, Vec<u8>),
    body: WriteBody,
}

/// A part that is under way.
struct Begun {
    table: String,
    body: Arc<Vec<u8>>,
    slot: Result<Arc<Slot>>,
}

impl Changes {
    pub(crate) fn write(self, handle: &Handle, durability: Durability) -> Result<()> {
        let driver = handle.driver();
        let (since, until) = (driver.now(), Instant::now() + driver.limit());
        let is_split = self.is_split;
        let mut worst = None;
        let mut left = vec![self.body];
        loop {
            let mut begun = Vec::new();
            for body in left.drain(..) {
                match (Self { body, is_split }).begin(handle, durability, since) {
                    Ok(parts) => begun.extend(parts),
                    Err(error) => note(&mut worst, error),
                }
            }
            let mut misplaced = None;
            for part in begun {
                match part.end(handle) {
                    Ok(None) => {}
                    Ok(Some((body, error))) => {
                        left.push(body);
                        misplaced = Some(error);
                    }
                    Err(error) => note(&mut worst, error),
                }
            }
            let Some(error) = misplaced else { break };
            if Instant::now() + driver.rest() >= until {
                note(&mut worst, error);
                break;
            }
            std::thread::sleep(driver.rest());
            driver.refresh()?;
        }
        worst.map_or(Ok(()), Err)
    }

    /// Sends its parts.
    fn begin(self, handle: &Handle, durability: Durability, since: Moment) -> Result<Vec<Begun>> {
        if self.body.is_empty() {
            return Ok(Vec::new());
        }
        let mut groups = self.groups(handle);
        let is_refused = |groups: &Groups| groups.len() > 1 && !self.is_split;
        if groups
            .as_ref()
            .map_or(true, |(groups, _)| is_refused(groups))
        {
            handle.driver().refresh()?;
            groups = self.groups(handle);
        }
        let (mut groups, is_whole) = groups?;
        if is_refused(&groups) {
            let text = "the keys of the batch lie in several groups";
            return Err(Error::new(ErrorKind::CrossGroup, text));
        }
        let parts = match groups.pop_first() {
            Some((_, place)) if is_whole && groups.is_empty() => vec![Part {
                place,
                body: self.body,
            }],
            _ => self.parts(handle)?,
        };
        let begin = |part: Part| part.begin(handle, durability, since);
        Ok(parts.into_iter().map(begin).collect())
    }

    /// The groups that its changes touch, each with a table and a key that lie there; and whether each change lies in one
    /// range, so that none is to be cut.
    fn groups(&self, handle: &Handle) -> Result<(Groups, bool)> {
        let (mut groups, mut is_whole) = (BTreeMap::new(), true);
        self.each(handle, |table, (group, range), operation| {
            let key = match operation {
                Operation::Put { key, .. } | Operation::Delete { key, .. } => *key,
                Operation::DeleteRange { bounds, .. } => {
                    is_whole &= clip(bounds, range).as_ref() == Some(bounds);
                    range.start.as_slice()
                }
            };
            groups
                .entry(group)
                .or_insert_with(|| (table.to_owned(), key.to_vec()));
            Ok(())
        })?;
        Ok((groups, is_whole))
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

    /// The changes, cut by groups.
    fn parts(&self, handle: &Handle) -> Result<Vec<Part>> {
        let mut parts: BTreeMap<GroupId, Part> = BTreeMap::new();
        self.each(handle, |table, (group, range), operation| {
            let new = || Part {
                place: (table.to_owned(), range.start.clone()),
                body: WriteBody::new(),
            };
            let body = &mut parts.entry(group).or_insert_with(new).body;
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
        Ok(parts.into_values().collect())
    }
}

impl Part {
    fn begin(self, handle: &Handle, durability: Durability, since: Moment) -> Begun {
        let (table, key) = self.place;
        let body = Arc::new(self.body.finish(durability));
        let slot = handle
            .driver()
            .begin_part(since, (&table, &key), body.clone());
        Begun { table, body, slot }
    }
}

impl Begun {
    /// How it ended; the changes and what was said if nothing was done, as its keys do not all lie where it was sent.
    fn end(self, handle: &Handle) -> Result<Option<(WriteBody, Error)>> {
        let answer = handle.known(&self.table, self.slot.and_then(|slot| slot.wait()))?;
        match misplaced(&answer)? {
            None => done(&answer).map(|()| None),
            Some(error) => {
                let body = Arc::unwrap_or_clone(self.body);
                let body = WriteBody::reopened(body).map_err(Error::corrupt)?;
                Ok(Some((body, error)))
            }
        }
    }
}

/// What an answer says if it says that keys do not lie there.
fn misplaced(answer: &Answer) -> Result<Option<Error>> {
    let frame = answer.frame()?;
    match Reply::decode(&frame).map_err(Error::corrupt)? {
        Reply::Failed(failure)
            if matches!(failure.kind, FailureKind::Moved | FailureKind::CrossGroup) =>
        {
            let text = format!("not carried out in time; last: {}", failure.text);
            Ok(Some(Error::new(ErrorKind::Unavailable, text)))
        }
        _ => Ok(None),
    }
}

/// Of several errors that counts which says that something may have been carried out, else the first.
fn note(worst: &mut Option<Error>, error: Error) {
    let is_unknown = |error: &Error| error.kind() == ErrorKind::Unknown;
    if worst
        .as_ref()
        .is_none_or(|worst| is_unknown(&error) && !is_unknown(worst))
    {
        *worst = Some(error);
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
