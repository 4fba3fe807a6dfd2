//! Commands on hashes: a field is an element of its own.

use bytes::Bytes;
use kreon::Value;

use super::args::{
    NOT_FLOAT, OVERFLOW, SYNTAX, arg, integer, is, pairs, parse_float, parse_integer, rest,
};
use super::chance::{self, Choice};
use super::decimal;
use crate::keyspace::{Access, Collection, ELEMENT_PREFIX_BYTES, Failure, Kind};
use crate::reply::{CommandError, Reply};

type Outcome = Result<Reply, Failure>;

fn bulk(value: Option<Value>) -> Reply {
    value.map_or(Reply::Nil, Reply::value)
}

fn open(access: &mut Access<'_>, args: &[Bytes]) -> Result<Option<Collection>, Failure> {
    access.collection(arg(args, 1)?, Kind::Hash)
}

fn get(
    access: &mut Access<'_>,
    hash: Option<&Collection>,
    field: &Bytes,
) -> Result<Option<Value>, Failure> {
    match hash {
        Some(hash) => access.element(hash, &[field]),
        None => Ok(None),
    }
}

/// Sets fields; returns how many of them are new.
fn set_all(access: &mut Access<'_>, args: &[Bytes], name: &str) -> Result<i64, Failure> {
    let odd = || {
        CommandError::of(format!(
            "ERR wrong number of arguments for '{name}' command"
        ))
    };
    let pairs = pairs(rest(args, 2), odd)?;
    let mut hash = access.collection_or_new(arg(args, 1)?, Kind::Hash)?;
    let before = hash.head.len;
    for [field, value] in pairs {
        hash.head.len += u64::from(access.set_element(&hash, field, value)?);
    }
    if hash.head.len != before {
        access.save(&hash)?;
    }
    Ok(i64::try_from(hash.head.len - before).unwrap_or(i64::MAX))
}

pub(super) fn hset(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::Int(set_all(access, args, "hset")?))
}

pub(super) fn hmset(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    set_all(access, args, "hmset")?;
    Ok(Reply::Ok)
}

/// Sets one field of a hash that may be new.
fn set(
    access: &mut Access<'_>,
    mut hash: Collection,
    (field, value): (&Bytes, &[u8]),
    is_new: bool,
) -> Result<(), Failure> {
    access.put_element(&hash, &[field], value)?;
    if is_new {
        hash.head.len += 1;
        access.save(&hash)?;
    }
    Ok(())
}

pub(super) fn hsetnx(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let (field, value) = (arg(args, 2)?, arg(args, 3)?);
    let hash = access.collection_or_new(arg(args, 1)?, Kind::Hash)?;
    if access.has_element(&hash, &[field])? {
        return Ok(Reply::Int(0));
    }
    set(access, hash, (field, value), true)?;
    Ok(Reply::Int(1))
}

pub(super) fn hget(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let hash = open(access, args)?;
    Ok(bulk(get(access, hash.as_ref(), arg(args, 2)?)?))
}

pub(super) fn hmget(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let hash = open(access, args)?;
    let fields = rest(args, 2).iter();
    let values = fields.map(|field| {
        let value = bulk(get(access, hash.as_ref(), field)?);
        access.reply_grows(Reply::element_bytes(value.bytes()))?;
        Ok(value)
    });
    Ok(Reply::Array(values.collect::<Result<_, Failure>>()?))
}

pub(super) fn hdel(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let Some(mut hash) = open(access, args)? else {
        return Ok(Reply::Int(0));
    };
    let mut deleted = 0;
    for field in rest(args, 2) {
        if access.has_element(&hash, &[field])? {
            access.delete_element(&hash, &[field]);
            deleted += 1;
        }
    }
    if deleted > 0 {
        hash.head.len = hash.head.len.saturating_sub(deleted);
        access.save(&hash)?;
    }
    Ok(Reply::Int(i64::try_from(deleted).unwrap_or(i64::MAX)))
}

pub(super) fn hlen(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let hash = open(access, args)?;
    let len = hash.map_or(0, |hash| hash.head.len);
    Ok(Reply::Int(i64::try_from(len).unwrap_or(i64::MAX)))
}

pub(super) fn hexists(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let is_there = match open(access, args)? {
        Some(hash) => access.has_element(&hash, &[arg(args, 2)?])?,
        None => false,
    };
    Ok(Reply::Int(i64::from(is_there)))
}

pub(super) fn hstrlen(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let hash = open(access, args)?;
    let value = get(access, hash.as_ref(), arg(args, 2)?)?;
    let len = value.map_or(0, |value| value.len());
    Ok(Reply::Int(i64::try_from(len).unwrap_or(i64::MAX)))
}

/// All fields with their values, the latter empty if only keys are asked for; `show` says what it kept of each.
fn all(
    access: &mut Access<'_>,
    args: &[Bytes],
    is_keys: bool,
    mut show: impl FnMut(&[u8], &[u8]) -> usize,
) -> Result<(), Failure> {
    let Some(hash) = open(access, args)? else {
        return Ok(());
    };
    let mut span = hash.elements(&[]);
    span.is_keys = is_keys;
    access.gather(&span, true, |record, value| {
        let field = record.get(ELEMENT_PREFIX_BYTES..).unwrap_or_default();
        Some(show(field, value))
    })
}

pub(super) fn hgetall(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let mut found = Vec::new();
    all(access, args, false, |field, value| {
        found.push((Reply::copied(field), Reply::copied(value)));
        2 * Reply::element_bytes(0) + field.len() + value.len()
    })?;
    Ok(Reply::Map(found))
}

pub(super) fn hkeys(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let mut found = Vec::new();
    all(access, args, true, |field, _| {
        found.push(Reply::copied(field));
        Reply::element_bytes(field.len())
    })?;
    Ok(Reply::Array(found))
}

pub(super) fn hvals(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let mut found = Vec::new();
    all(access, args, false, |_, value| {
        found.push(Reply::copied(value));
        Reply::element_bytes(value.len())
    })?;
    Ok(Reply::Array(found))
}

pub(super) fn hincrby(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let (field, by) = (arg(args, 2)?, integer(args, 3)?);
    let hash = access.collection_or_new(arg(args, 1)?, Kind::Hash)?;
    let before = access.element(&hash, &[field])?;
    let not_integer = CommandError::new("ERR hash value is not an integer");
    let number = match &before {
        Some(value) => parse_integer(value).ok_or(not_integer)?,
        None => 0,
    };
    let sum = number.checked_add(by).ok_or(OVERFLOW)?;
    set(
        access,
        hash,
        (field, sum.to_string().as_bytes()),
        before.is_none(),
    )?;
    Ok(Reply::Int(sum))
}

pub(super) fn hincrbyfloat(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let (field, by) = (arg(args, 2)?, arg(args, 3)?);
    let increment = parse_float(by).ok_or(NOT_FLOAT)?;
    if increment.is_infinite() {
        return Err(CommandError::new("ERR value is NaN or Infinity").into());
    }
    let hash = access.collection_or_new(arg(args, 1)?, Kind::Hash)?;
    let before = access.element(&hash, &[field])?;
    let number: &[u8] = before.as_deref().unwrap_or(b"0");
    parse_float(number).ok_or(CommandError::new("ERR hash value is not a float"))?;
    let sum = decimal::sum(number, by)?;
    set(access, hash, (field, sum.as_bytes()), before.is_none())?;
    Ok(Reply::Bulk(sum.into()))
}

pub(super) fn hrandfield(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let with_values = match rest(args, 3) {
        [] => false,
        [option] if is(option, "WITHVALUES") => true,
        _ => return Err(SYNTAX.into()),
    };
    let choice = match args.len() {
        2 => None,
        _ => Some(Choice::parse(integer(args, 2)?, with_values)?),
    };
    let hash = open(access, args)?;
    let Some(choice) = choice else {
        let found = chance::choose(access, hash.as_ref(), Choice::ONE)?;
        return Ok(found
            .into_iter()
            .next()
            .map_or(Reply::Nil, |field| Reply::Bulk(field.into())));
    };
    let fields = chance::choose(access, hash.as_ref(), choice)?;
    if !with_values {
        let fields = fields.into_iter().map(|field| Reply::Bulk(field.into()));
        return Ok(Reply::Array(fields.collect()));
    }
    let mut pairs = Vec::with_capacity(fields.len());
    for field in fields.into_iter().map(Bytes::from) {
        let value = bulk(get(access, hash.as_ref(), &field)?);
        access.reply_grows(Reply::element_bytes(value.bytes()))?;
        pairs.push((Reply::Bulk(field), value));
    }
    Ok(Reply::Pairs(pairs))
}
