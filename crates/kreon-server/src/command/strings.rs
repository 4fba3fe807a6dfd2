//! Commands on strings.

use bytes::Bytes;

use super::args::{
    NOT_FLOAT, NOT_INTEGER, OVERFLOW, SYNTAX, arg, float, integer, is, pairs, parse_float,
    parse_integer, rest, window,
};
use super::deadline::{Deadline, Unit};
use super::decimal;
use crate::keyspace::{Access, Failure, Text, WRONG_TYPE};
use crate::reply::{CommandError, Reply};

type Outcome = Result<Reply, Failure>;

/// Longest string that `APPEND` and `SETRANGE` make, in bytes.
const TEXT_BYTES_MAX: usize = 512 << 20;
const TOO_LONG: CommandError =
    CommandError::new("ERR string exceeds maximum allowed size (proto-max-bulk-len)");

fn bulk(text: Option<Text>) -> Reply {
    text.map_or(Reply::Nil, |text| {
        let (value, skip) = text.into_parts();
        Reply::Value { value, skip }
    })
}

fn bytes(text: Option<&Text>) -> &[u8] {
    text.map_or(&[], Text::bytes)
}

fn length(bytes: usize) -> Reply {
    Reply::Int(i64::try_from(bytes).unwrap_or(i64::MAX))
}

pub(super) fn get(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    Ok(bulk(access.text(arg(args, 1)?)?))
}

/// When a `SET` sets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    Absent,
    Present,
}

pub(super) fn set(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let (key, value) = (arg(args, 1)?, arg(args, 2)?);
    let options = rest(args, 3);
    if options.is_empty() {
        access.put_text(access.db, key, &[value], None)?;
        return Ok(Reply::Ok);
    }
    let (mut when, mut is_get, mut deadline) = (When::Always, false, Deadline::Never);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if is(option, "GET") {
            is_get = true;
        } else if is(option, "NX") && when != When::Present {
            when = When::Absent;
        } else if is(option, "XX") && when != When::Absent {
            when = When::Present;
        } else if deadline != Deadline::Never {
            return Err(SYNTAX.into());
        } else if is(option, "KEEPTTL") {
            deadline = Deadline::Same;
        } else {
            let unit = Unit::of(option).ok_or(SYNTAX)?;
            let number = options.next().ok_or(SYNTAX)?;
            deadline = Deadline::parse(access, unit, number, "set")?;
        }
    }
    let before = match is_get || deadline == Deadline::Same {
        true => access.item(access.db, key)?,
        false => None,
    };
    let (text, deadline_before) = match before {
        Some(item) if is_get && !item.is_text() => return Err(WRONG_TYPE.into()),
        Some(item) => {
            let deadline_ms = item.deadline_ms();
            (item.into_text(), deadline_ms)
        }
        None => (None, None),
    };
    let is_set = match when {
        When::Always => true,
        When::Absent => !access.exists(access.db, key)?,
        When::Present => access.exists(access.db, key)?,
    };
    if is_set {
        put(access, key, value, deadline, deadline_before)?;
    }
    Ok(match (is_get, is_set) {
        (true, _) => bulk(text),
        (false, true) => Reply::Ok,
        (false, false) => Reply::Nil,
    })
}

/// Sets a string until `deadline`; one that has passed leaves nothing.
fn put(
    access: &mut Access<'_>,
    key: &Bytes,
    value: &[u8],
    deadline: Deadline,
    before_ms: Option<u64>,
) -> Result<(), Failure> {
    let deadline_ms = match deadline {
        Deadline::Never => None,
        Deadline::Same => before_ms,
        Deadline::At(ms) => Some(ms),
    };
    match deadline_ms {
        Some(ms) if ms <= access.now_ms() => access.remove(access.db, key).map(drop),
        _ => access.put_text(access.db, key, &[value], deadline_ms),
    }
}

pub(super) fn setnx(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let (key, value) = (arg(args, 1)?, arg(args, 2)?);
    if access.exists(access.db, key)? {
        return Ok(Reply::Int(0));
    }
    access.write_text(access.db, key, &[value], None)?;
    Ok(Reply::Int(1))
}

pub(super) fn setex(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let deadline = Deadline::parse(access, Unit::SECONDS, arg(args, 2)?, "setex")?;
    put(access, arg(args, 1)?, arg(args, 3)?, deadline, None)?;
    Ok(Reply::Ok)
}

pub(super) fn psetex(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let deadline = Deadline::parse(access, Unit::MILLISECONDS, arg(args, 2)?, "psetex")?;
    put(access, arg(args, 1)?, arg(args, 3)?, deadline, None)?;
    Ok(Reply::Ok)
}

pub(super) fn getset(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let key = arg(args, 1)?;
    let before = access.text(key)?;
    access.write_text(access.db, key, &[arg(args, 2)?], None)?;
    Ok(bulk(before))
}

pub(super) fn getdel(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let key = arg(args, 1)?;
    let before = access.text(key)?;
    if before.is_some() {
        access.remove(access.db, key)?;
    }
    Ok(bulk(before))
}

pub(super) fn getex(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let key = arg(args, 1)?;
    let options = rest(args, 2);
    let unit = match options {
        [] => None,
        [option] if is(option, "PERSIST") => None,
        [option, _] => Some(Unit::of(option).ok_or(SYNTAX)?),
        _ => return Err(SYNTAX.into()),
    };
    let Some(text) = access.text(key)? else {
        return Ok(Reply::Nil);
    };
    match (unit, options) {
        (Some(unit), [_, number]) => {
            let deadline = Deadline::parse(access, unit, number, "getex")?;
            put(access, key, text.bytes(), deadline, None)?;
        }
        (None, [_persist]) if text.deadline_ms.is_some() => {
            access.write_text(access.db, key, &[text.bytes()], None)?;
        }
        _ => (),
    }
    Ok(bulk(Some(text)))
}

pub(super) fn mget(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let mut values = Vec::with_capacity(args.len());
    for key in rest(args, 1) {
        let value = match access.text(key) {
            Ok(text) => bulk(text),
            Err(Failure::Refused(_)) => Reply::Nil,
            Err(failure) => return Err(failure),
        };
        access.reply_grows(Reply::element_bytes(value.bytes()))?;
        values.push(value);
    }
    Ok(Reply::Array(values))
}

pub(super) fn mset(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let odd = || CommandError::new("ERR wrong number of arguments for 'mset' command");
    for [key, value] in pairs(rest(args, 1), odd)? {
        access.put_text(access.db, key, &[value], None)?;
    }
    Ok(Reply::Ok)
}

pub(super) fn msetnx(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let odd = || CommandError::new("ERR wrong number of arguments for 'msetnx' command");
    let pairs = pairs(rest(args, 1), odd)?;
    for [key, _] in pairs {
        if access.exists(access.db, key)? {
            return Ok(Reply::Int(0));
        }
    }
    for [key, value] in pairs {
        access.write_text(access.db, key, &[value], None)?;
    }
    Ok(Reply::Int(1))
}

pub(super) fn append(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let (key, tail) = (arg(args, 1)?, arg(args, 2)?);
    let before = access.text(key)?;
    let head = bytes(before.as_ref());
    let total = head.len() + tail.len();
    if total > TEXT_BYTES_MAX {
        return Err(TOO_LONG.into());
    }
    if !tail.is_empty() || before.is_none() {
        let deadline_ms = before.as_ref().and_then(|text| text.deadline_ms);
        access.write_text(access.db, key, &[head, tail], deadline_ms)?;
    }
    Ok(length(total))
}

pub(super) fn strlen(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let text = access.text(arg(args, 1)?)?;
    Ok(length(bytes(text.as_ref()).len()))
}

pub(super) fn setrange(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let (key, value) = (arg(args, 1)?, arg(args, 3)?);
    let out_of_range = CommandError::new("ERR offset is out of range");
    let offset = usize::try_from(integer(args, 2)?).map_err(|_| out_of_range)?;
    let before = access.text(key)?;
    let old = bytes(before.as_ref());
    if value.is_empty() {
        return Ok(length(old.len()));
    }
    let end = offset.saturating_add(value.len());
    if end > TEXT_BYTES_MAX {
        return Err(TOO_LONG.into());
    }
    let gap_bytes = offset.saturating_sub(old.len());
    access.grows(gap_bytes)?;
    let gap = vec![0; gap_bytes];
    let front = old.get(..offset).unwrap_or(old);
    let back = old.get(end..).unwrap_or_default();
    let deadline_ms = before.as_ref().and_then(|text| text.deadline_ms);
    access.write_text(access.db, key, &[front, &gap, value, back], deadline_ms)?;
    Ok(length(end.max(old.len())))
}

pub(super) fn getrange(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let (start, stop) = (integer(args, 2)?, integer(args, 3)?);
    let text = access.text(arg(args, 1)?)?;
    let bytes = bytes(text.as_ref());
    // An end before the first byte counts as the first one, unless the start lies behind it.
    let len = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let is_backwards = start < 0 && stop < 0 && start > stop;
    let stop = if stop < 0 { stop.max(-len) } else { stop };
    let (first, count) = window(start, stop, bytes.len() as u64);
    let (first, count) = (first as usize, count as usize);
    let part = bytes.get(first..first + count).filter(|_| !is_backwards);
    Ok(Reply::copied(part.unwrap_or_default()))
}

fn add(access: &mut Access<'_>, key: &Bytes, by: i64) -> Outcome {
    let before = access.text(key)?;
    let (number, deadline_ms) = match &before {
        None => (0, None),
        Some(text) => (
            parse_integer(text.bytes()).ok_or(NOT_INTEGER)?,
            text.deadline_ms,
        ),
    };
    let sum = number.checked_add(by).ok_or(OVERFLOW)?;
    let text = sum.to_string();
    access.write_text(access.db, key, &[text.as_bytes()], deadline_ms)?;
    Ok(Reply::Int(sum))
}

pub(super) fn incr(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    add(access, arg(args, 1)?, 1)
}

pub(super) fn decr(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    add(access, arg(args, 1)?, -1)
}

pub(super) fn incrby(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    add(access, arg(args, 1)?, integer(args, 2)?)
}

pub(super) fn decrby(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let overflow = CommandError::new("ERR decrement would overflow");
    let by = integer(args, 2)?.checked_neg().ok_or(overflow)?;
    add(access, arg(args, 1)?, by)
}

pub(super) fn incrbyfloat(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let (key, by) = (arg(args, 1)?, arg(args, 2)?);
    let before = access.text(key)?;
    let (number, deadline_ms) = match &before {
        None => (b"0".as_slice(), None),
        Some(text) => (text.bytes(), text.deadline_ms),
    };
    parse_float(number).ok_or(NOT_FLOAT)?;
    float(args, 2)?;
    let sum = decimal::sum(number, by)?;
    access.write_text(access.db, key, &[sum.as_bytes()], deadline_ms)?;
    Ok(Reply::Bulk(sum.into()))
}
