//! Commands on all keys of a database.

use std::cmp::Ordering;
use std::ops::Bound;

use bytes::Bytes;

use super::args::{NOT_INTEGER, SYNTAX, arg, is, parse_integer, rest};
use super::glob::{literal_prefix, matches};
use crate::keyspace::{Access, COLLECTION, Failure, STRING, Span, Text, record_key};
use crate::reply::{CommandError, Reply};

type Outcome = Result<Reply, Failure>;

/// Up to so many keys `RANDOMKEY` chooses each with the same probability.
const CHOSEN_EVENLY_MAX: usize = 4096;

/// The keys of a database that begin with `prefix`, of one kind of record.
fn keys_with(db: usize, kind: u8, prefix: &[u8]) -> Span {
    Span::prefix(db, &record_key(kind, prefix)).keys()
}

/// The key of a user in the key of its record.
fn user_key(record: &[u8]) -> &[u8] {
    record.get(1..).unwrap_or_default()
}

pub(super) fn keys(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let pattern = arg(args, 1)?;
    let prefix = literal_prefix(pattern);
    let mut found = Vec::new();
    for kind in [COLLECTION, STRING] {
        access.gather(&keys_with(access.db, kind, &prefix), true, |record, _| {
            let key = user_key(record);
            if !matches(pattern, key) {
                return Some(0);
            }
            found.push(Reply::copied(key));
            Some(Reply::element_bytes(key.len()))
        })?;
    }
    Ok(Reply::Array(found))
}

fn count_in(access: &mut Access<'_>, span: &Span) -> Result<i64, Failure> {
    let mut count = 0;
    access.scan(span, |_, _| {
        count += 1;
        true
    })?;
    Ok(count)
}

/// Counts the keys one by one: the store keeps no number of them, so that a `SET` need not ask whether its key is new.
pub(super) fn dbsize(access: &mut Access<'_>, _args: &[Bytes]) -> Outcome {
    let mut count = 0;
    for kind in [COLLECTION, STRING] {
        count += count_in(access, &keys_with(access.db, kind, &[]))?;
    }
    Ok(Reply::Int(count))
}

pub(super) fn randomkey(access: &mut Access<'_>, _args: &[Bytes]) -> Outcome {
    let mut some = Vec::new();
    for kind in [COLLECTION, STRING] {
        let left = CHOSEN_EVENLY_MAX + 1 - some.len();
        let span = keys_with(access.db, kind, &[]).limit(left);
        access.gather(&span, false, |record, _| {
            some.push(record.to_vec());
            Some(record.len())
        })?;
    }
    let random = access.keyspace().random();
    if some.len() <= CHOSEN_EVENLY_MAX {
        let chosen = some.get(random.index(some.len()));
        return Ok(chosen.map_or(Reply::Nil, |record| Reply::copied(user_key(record))));
    }
    let first_choice = random.index(2);
    for choice in [first_choice, 1 - first_choice] {
        let kind = if choice == 0 { COLLECTION } else { STRING };
        if let Some(record) = seek_any(access, &keys_with(access.db, kind, &[]))? {
            return Ok(Reply::copied(user_key(&record)));
        }
    }
    Ok(Reply::Nil)
}

/// The first record of `span`.
fn first(access: &mut Access<'_>, span: Span) -> Result<Option<Vec<u8>>, Failure> {
    let mut found = None;
    access.scan(&span.limit(1), |record, _| {
        found = Some(record.to_vec());
        false
    })?;
    Ok(found)
}

/// The record behind a random key between the first and the last of `span`; `None` if there is none.
pub(super) fn seek_any(access: &mut Access<'_>, span: &Span) -> Result<Option<Vec<u8>>, Failure> {
    let low = first(access, span.clone())?;
    let high = first(access, span.clone().reverse(true))?;
    let (Some(low), Some(high)) = (low, high) else {
        return Ok(None);
    };
    let start = access.keyspace().random().key_between(&low, &high);
    let mut behind = span.clone();
    behind.start = Bound::Included(start);
    Ok(first(access, behind)?.or(Some(high)))
}

pub(super) fn flushdb(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    check_mode(args)?;
    flush(access, access.db)?;
    Ok(Reply::Ok)
}

pub(super) fn flushall(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    check_mode(args)?;
    for db in 0..access.keyspace().databases() {
        flush(access, db)?;
    }
    Ok(Reply::Ok)
}

/// `SYNC` and `ASYNC` are the same: space comes back later in any case.
fn check_mode(args: &[Bytes]) -> Result<(), Failure> {
    match rest(args, 1) {
        [] => Ok(()),
        [mode] if is(mode, "SYNC") || is(mode, "ASYNC") => Ok(()),
        _ => Err(SYNTAX.into()),
    }
}

fn flush(access: &mut Access<'_>, db: usize) -> Result<(), Failure> {
    access.touch_range(db, Bytes::new(), None)?;
    access.delete_range(db, vec![0], vec![u8::MAX]);
    Ok(())
}

/// The keys of a user from `start` on, below `end`; `-` and `+` are open.
struct Range<'a> {
    start: Option<&'a Bytes>,
    end: Option<&'a Bytes>,
}

impl<'a> Range<'a> {
    fn parse(args: &'a [Bytes]) -> Result<Self, Failure> {
        let (start, end) = (arg(args, 1)?, arg(args, 2)?);
        Ok(Self {
            start: (start != "-").then_some(start),
            end: (end != "+").then_some(end),
        })
    }

    /// Its records of one kind.
    fn span(&self, db: usize, kind: u8) -> Span {
        let (start, end) = self.bounds(kind);
        let mut span = keys_with(db, kind, &[]);
        span.start = Bound::Included(start);
        span.end = Bound::Excluded(end);
        span
    }

    fn bounds(&self, kind: u8) -> (Vec<u8>, Vec<u8>) {
        let start = record_key(kind, self.start.map_or(&[], |start| start));
        let end = match self.end {
            Some(end) => record_key(kind, end),
            // Kinds are letters: there is a byte behind each.
            None => vec![kind + 1],
        };
        (start, end)
    }
}

/// `KREON.RANGE start end [REV] [LIMIT n] [KEYS]`: keys in order, each with its value; collections have none.
pub(super) fn range(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let range = Range::parse(args)?;
    let (mut is_reverse, mut is_keys, mut limit) = (false, false, usize::MAX);
    let mut options = rest(args, 3).iter();
    while let Some(option) = options.next() {
        if is(option, "REV") {
            is_reverse = true;
        } else if is(option, "KEYS") {
            is_keys = true;
        } else if is(option, "LIMIT") {
            let number = options.next().ok_or(SYNTAX)?;
            let number = parse_integer(number).ok_or(NOT_INTEGER)?;
            limit = usize::try_from(number).unwrap_or(usize::MAX);
        } else {
            return Err(SYNTAX.into());
        }
    }
    let mut found = Vec::new();
    for kind in [COLLECTION, STRING] {
        let mut span = range.span(access.db, kind).reverse(is_reverse);
        span.is_keys = is_keys || kind == COLLECTION;
        span.limit = (limit != usize::MAX).then_some(limit);
        access.gather(&span, true, |record, value| {
            let value = (kind == STRING).then(|| value.to_vec());
            let bytes = record.len() + value.as_ref().map_or(0, Vec::len);
            found.push((user_key(record).to_vec(), value));
            Some(2 * Reply::element_bytes(0) + bytes)
        })?;
    }
    found.sort_by(|(a, _), (b, _)| if is_reverse { b.cmp(a) } else { a.cmp(b) });
    found.truncate(limit);
    let mut replies = Vec::with_capacity(found.len() * 2);
    for (key, record) in found {
        replies.push(Reply::Bulk(key.into()));
        if !is_keys {
            let text = record.and_then(|record| Text::decode(record.into()));
            replies.push(text.map_or(Reply::Nil, |text| {
                let (value, skip) = text.into_parts();
                Reply::Value { value, skip }
            }));
        }
    }
    Ok(Reply::Array(replies))
}

/// `KREON.COUNT start end`: counts the keys one by one.
pub(super) fn count(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let range = Range::parse(args)?;
    let mut count = 0;
    for kind in [COLLECTION, STRING] {
        count += count_in(access, &range.span(access.db, kind))?;
    }
    Ok(Reply::Int(count))
}

/// `KREON.DELRANGE start end`: one write for all strings, and a few for each collection.
pub(super) fn delrange(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let range = Range::parse(args)?;
    let db = access.db;
    let (start, end) = range.bounds(STRING);
    if start.cmp(&end) != Ordering::Less {
        return Ok(Reply::Ok);
    }
    let mut collections = Vec::new();
    access.gather(&range.span(db, COLLECTION), false, |record, _| {
        collections.push(Bytes::copy_from_slice(user_key(record)));
        Some(size_of::<Bytes>() + record.len())
    })?;
    let first = range.start.cloned().unwrap_or_default();
    access.touch_range(db, first, range.end.cloned())?;
    for key in &collections {
        access.remove(db, key)?;
    }
    access.delete_range(db, start, end);
    Ok(Reply::Ok)
}

/// The keys behind `place` of one kind of record that begin with `prefix`.
pub(super) fn behind(db: usize, kind: u8, prefix: &[u8], place: Option<&[u8]>) -> Span {
    let span = keys_with(db, kind, prefix);
    match place {
        Some(place) => span.behind(place),
        None => span,
    }
}

/// The error of a cursor that is none.
pub(super) const INVALID_CURSOR: CommandError = CommandError::new("ERR invalid cursor");
