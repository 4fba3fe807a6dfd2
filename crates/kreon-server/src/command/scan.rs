//! `SCAN` and its like.
//!
//! A cursor is a number of [`Cursors`](crate::keyspace::Keyspace::cursors), which stands for the last record that was looked at. What
//! is there during the whole of a scan is shown exactly once, as all go in the order of keys.

use bytes::Bytes;

use super::args::{NOT_INTEGER, SYNTAX, arg, is, parse_integer, rest};
use super::glob::{literal_prefix, matches};
use super::whole::{INVALID_CURSOR, behind};
use crate::keyspace::{
    Access, COLLECTION, ELEMENT_PREFIX_BYTES, Failure, Head, Kind, STRING, Span, score_of,
};
use crate::reply::{CommandError, Reply, double_text};

type Outcome = Result<Reply, Failure>;

/// Records that a call looks at, unless it says otherwise.
const COUNT_DEFAULT: usize = 10;

const FORGOTTEN: CommandError =
    CommandError::new("ERR invalid cursor: unknown, or forgotten since; begin anew with 0");

struct Options {
    /// Behind which record to go on.
    place: Option<Vec<u8>>,
    pattern: Option<Bytes>,
    count: usize,
    kind: Option<Bytes>,
}

impl Options {
    /// `start` is the index of the cursor.
    fn parse(access: &Access<'_>, args: &[Bytes], start: usize) -> Result<Self, Failure> {
        let cursor = str::from_utf8(arg(args, start)?).ok();
        let cursor: u64 = cursor
            .and_then(|it| it.parse().ok())
            .ok_or(INVALID_CURSOR)?;
        let place = match cursor {
            0 => None,
            cursor => Some(access.keyspace().cursors().find(cursor).ok_or(FORGOTTEN)?),
        };
        let mut options = Self {
            place,
            pattern: None,
            count: COUNT_DEFAULT,
            kind: None,
        };
        let mut rest = rest(args, start + 1).iter();
        while let Some(option) = rest.next() {
            let value = rest.next().ok_or(SYNTAX)?;
            if is(option, "MATCH") {
                options.pattern = Some(value.clone());
            } else if is(option, "COUNT") {
                let count = parse_integer(value).ok_or(NOT_INTEGER)?;
                options.count = usize::try_from(count).unwrap_or(0);
                if options.count == 0 {
                    return Err(SYNTAX.into());
                }
            } else if is(option, "TYPE") && start == 1 {
                options.kind = Some(value.clone());
            } else {
                return Err(SYNTAX.into());
            }
        }
        Ok(options)
    }

    fn matches(&self, text: &[u8]) -> bool {
        let pattern = self.pattern.as_ref();
        pattern.is_none_or(|pattern| matches(pattern, text))
    }
}

fn answer(access: &Access<'_>, last: Option<Vec<u8>>, found: Vec<Reply>) -> Reply {
    let cursor = last.map_or(0, |last| access.keyspace().cursors().remember(last));
    let cursor = Reply::Bulk(cursor.to_string().into());
    Reply::Array(vec![cursor, Reply::Array(found)])
}

pub(super) fn scan(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let options = Options::parse(access, args, 1)?;
    let prefix = options
        .pattern
        .as_ref()
        .map(|pattern| literal_prefix(pattern));
    let prefix = prefix.unwrap_or_default();
    let (mut looked, mut last, mut found) = (0, None, Vec::new());
    let mut place = options.place.as_deref();
    for kind in [COLLECTION, STRING] {
        // A place among strings lies behind all collections.
        if place.is_some_and(|place| place.first().is_some_and(|&first| first > kind)) {
            continue;
        }
        let mut span = behind(access.db, kind, &prefix, place.take());
        span.is_keys = kind == STRING || options.kind.is_none();
        // One more tells whether there is any left.
        span.limit = Some(options.count - looked + 1);
        access.gather(&span, true, |record, value| {
            if looked == options.count {
                looked += 1;
                return None;
            }
            looked += 1;
            last = Some(record.to_vec());
            let key = record.get(1..).unwrap_or_default();
            if !is_of(options.kind.as_ref(), kind, value) || !options.matches(key) {
                return Some(0);
            }
            found.push(Reply::copied(key));
            Some(Reply::element_bytes(key.len()))
        })?;
        if looked > options.count {
            return Ok(answer(access, last, found));
        }
    }
    Ok(answer(access, None, found))
}

/// Whether a record is of the type that is asked for.
fn is_of(wanted: Option<&Bytes>, kind: u8, value: &[u8]) -> bool {
    let Some(wanted) = wanted else {
        return true;
    };
    match kind {
        STRING => is(wanted, "STRING"),
        _ => Head::decode(value).is_some_and(|head| is(wanted, head.kind.name())),
    }
}

/// Scans elements whose rest begins with `kind`; `show` adds what is told of one.
fn scan_elements(
    access: &mut Access<'_>,
    args: &[Bytes],
    (kind, part): (Kind, &[u8]),
    show: impl Fn(&mut Vec<Reply>, &[u8], &[u8]),
) -> Outcome {
    let options = Options::parse(access, args, 2)?;
    let Some(collection) = access.collection(arg(args, 1)?, kind)? else {
        return Ok(answer(access, None, Vec::new()));
    };
    let mut span: Span = collection.elements(part);
    if let Some(place) = &options.place {
        // The collection may be another one than at the call before.
        span = span.behind(place);
    }
    span.limit = Some(options.count.saturating_add(1));
    let skip = ELEMENT_PREFIX_BYTES + part.len();
    let (mut looked, mut last, mut found) = (0, None, Vec::new());
    access.gather(&span, true, |record, value| {
        looked += 1;
        if looked > options.count {
            return None;
        }
        last = Some(record.to_vec());
        let name = record.get(skip..).unwrap_or_default();
        if !options.matches(name) {
            return Some(0);
        }
        show(&mut found, name, value);
        Some(2 * Reply::element_bytes(0) + name.len() + value.len())
    })?;
    let last = last.filter(|_| looked > options.count);
    Ok(answer(access, last, found))
}

pub(super) fn hscan(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    scan_elements(access, args, (Kind::Hash, &[]), |found, field, value| {
        found.extend([Reply::copied(field), Reply::copied(value)]);
    })
}

pub(super) fn sscan(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    scan_elements(access, args, (Kind::Set, &[]), |found, member, _| {
        found.push(Reply::copied(member));
    })
}

pub(super) fn zscan(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    scan_elements(
        access,
        args,
        (Kind::SortedSet, b"m"),
        |found, member, value| {
            let score = value.first_chunk().map_or(0.0, |bytes| score_of(*bytes));
            found.extend([
                Reply::copied(member),
                Reply::Bulk(double_text(score).into()),
            ]);
        },
    )
}
