//! Commands on lists.
//!
//! Elements lie under ascending indexes without gaps, from [`Head::first`](crate::keyspace::Head::first) on: both ends and any index cost
//! one record. What is taken out of the middle moves the elements on the shorter side.

use bytes::Bytes;
use kreon::Value;

use super::args::{arg, count, integer, rest, wait_time, window};
use crate::keyspace::{Access, Collection, End, Failure, Kind, element_key, index_bytes};
use crate::reply::{CommandError, Reply};

type Outcome = Result<Reply, Failure>;

/// Up to so many elements are read and deleted one by one, without a scan or a deletion of a range.
const SINGLY_MAX: u64 = 64;

fn open(access: &mut Access<'_>, args: &[Bytes]) -> Result<Option<Collection>, Failure> {
    access.collection(arg(args, 1)?, Kind::List)
}

/// The rest of the key of the element at `offset` from the first.
fn place(list: &Collection, offset: u64) -> [u8; 8] {
    index_bytes(list.head.first.wrapping_add_unsigned(offset))
}

fn element(access: &mut Access<'_>, list: &Collection, offset: u64) -> Result<Value, Failure> {
    let found = access.element(list, &[&place(list, offset)])?;
    found.ok_or_else(|| missing(list, offset))
}

fn missing(list: &Collection, offset: u64) -> Failure {
    let key = list.key.escape_ascii();
    kreon::Error::corruption(format!("list \"{key}\" lacks its element {offset}")).into()
}

/// The elements at `count` offsets from `start` on, all of them in the list. `is_reply`: see [`Access::gather`].
fn elements(
    access: &mut Access<'_>,
    list: &Collection,
    (start, count): (u64, u64),
    is_reply: bool,
) -> Result<Vec<Value>, Failure> {
    if count <= SINGLY_MAX {
        let single = |offset| {
            let value = element(access, list, offset)?;
            if is_reply {
                access.reply_grows(Reply::element_bytes(value.len()))?;
            }
            Ok(value)
        };
        return (start..start + count).map(single).collect();
    }
    let mut span = list.elements(&[]);
    let key = element_key(list.head.id, &[&place(list, start)]);
    span.start = std::ops::Bound::Included(key);
    span.limit = usize::try_from(count).ok();
    let mut found = Vec::new();
    access.gather(&span, is_reply, |_, value| {
        found.push(Value::from(value));
        Some(Reply::element_bytes(value.len()))
    })?;
    Ok(found)
}

/// Forgets `count` elements at one end; the head is not written.
fn cut(access: &mut Access<'_>, list: &mut Collection, end: End, count: u64) {
    let count = count.min(list.head.len);
    let start = match end {
        End::Left => 0,
        End::Right => list.head.len - count,
    };
    if count <= SINGLY_MAX {
        for offset in start..start + count {
            access.delete_element(list, &[&place(list, offset)]);
        }
    } else {
        let key = |offset| element_key(list.head.id, &[&place(list, offset)]);
        access.delete_range(list.db, key(start), key(start + count));
    }
    list.head.len -= count;
    if end == End::Left {
        list.head.first = list.head.first.wrapping_add_unsigned(count);
    }
}

/// Adds an element at one end; the head is not written.
fn grow(
    access: &mut Access<'_>,
    list: &mut Collection,
    end: End,
    value: &[u8],
) -> Result<(), Failure> {
    let offset = match end {
        End::Left => {
            list.head.first = list.head.first.wrapping_sub(1);
            0
        }
        End::Right => list.head.len,
    };
    list.head.len += 1;
    access.put_element(list, &[&place(list, offset)], value)
}

fn push(access: &mut Access<'_>, args: &[Bytes], end: End) -> Outcome {
    let mut list = access.collection_or_new(arg(args, 1)?, Kind::List)?;
    for value in rest(args, 2) {
        grow(access, &mut list, end, value)?;
    }
    access.save(&list)?;
    access.grow_list((list.db, list.key.clone()));
    Ok(len_reply(&list))
}

fn len_reply(list: &Collection) -> Reply {
    Reply::Int(i64::try_from(list.head.len).unwrap_or(i64::MAX))
}

pub(super) fn lpush(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    push(access, args, End::Left)
}

pub(super) fn rpush(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    push(access, args, End::Right)
}

/// Takes elements from one end of a list, in the order in which they go.
pub(super) fn take(
    access: &mut Access<'_>,
    mut list: Collection,
    end: End,
    count: u64,
) -> Result<Vec<Value>, Failure> {
    let count = count.min(list.head.len);
    let start = match end {
        End::Left => 0,
        End::Right => list.head.len - count,
    };
    let mut taken = elements(access, &list, (start, count), true)?;
    if end == End::Right {
        taken.reverse();
    }
    cut(access, &mut list, end, count);
    access.save(&list)?;
    Ok(taken)
}

/// The error of a pop with more than a count.
fn too_many(end: End) -> &'static str {
    match end {
        End::Left => "ERR wrong number of arguments for 'lpop' command",
        End::Right => "ERR wrong number of arguments for 'rpop' command",
    }
}

fn pop(access: &mut Access<'_>, args: &[Bytes], end: End) -> Outcome {
    let wanted = match args {
        [_, _] => None,
        [_, _, _] => Some(count(args, 2)?),
        _ => return Err(CommandError::new(too_many(end)).into()),
    };
    let list = open(access, args)?;
    match (list, wanted) {
        (None, None) => Ok(Reply::Nil),
        (None, Some(_)) => Ok(Reply::NilArray),
        (Some(_), Some(0)) => Ok(Reply::Array(Vec::new())),
        (Some(list), None) => {
            let taken = take(access, list, end, 1)?;
            Ok(taken.into_iter().next().map_or(Reply::Nil, Reply::value))
        }
        (Some(list), Some(wanted)) => {
            let taken = take(access, list, end, wanted as u64)?;
            Ok(Reply::Array(taken.into_iter().map(Reply::value).collect()))
        }
    }
}

pub(super) fn lpop(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    pop(access, args, End::Left)
}

pub(super) fn rpop(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    pop(access, args, End::Right)
}

pub(super) fn llen(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let list = open(access, args)?;
    Ok(list.map_or(Reply::Int(0), |list| len_reply(&list)))
}

pub(super) fn lrange(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let (start, stop) = (integer(args, 2)?, integer(args, 3)?);
    let Some(list) = open(access, args)? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let (start, count) = window(start, stop, list.head.len);
    let found = elements(access, &list, (start, count), true)?;
    Ok(Reply::Array(found.into_iter().map(Reply::value).collect()))
}

/// The offset of an index, which counts from the end if negative; `None` if it is out of range.
fn offset(list: &Collection, index: i64) -> Option<u64> {
    let from_end = list.head.len.checked_add_signed(index);
    let offset = if index < 0 {
        from_end?
    } else {
        index.unsigned_abs()
    };
    (offset < list.head.len).then_some(offset)
}

pub(super) fn lindex(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let Some(list) = open(access, args)? else {
        return Ok(Reply::Nil);
    };
    let index = integer(args, 2)?;
    match offset(&list, index) {
        Some(offset) => Ok(Reply::value(element(access, &list, offset)?)),
        None => Ok(Reply::Nil),
    }
}

pub(super) fn lset(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let list = open(access, args)?;
    let list = list.ok_or(CommandError::new("ERR no such key"))?;
    let index = integer(args, 2)?;
    let out_of_range = CommandError::new("ERR index out of range");
    let offset = offset(&list, index).ok_or(out_of_range)?;
    access.put_element(&list, &[&place(&list, offset)], arg(args, 3)?)?;
    Ok(Reply::Ok)
}

pub(super) fn ltrim(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let (start, stop) = (integer(args, 2)?, integer(args, 3)?);
    let Some(mut list) = open(access, args)? else {
        return Ok(Reply::Ok);
    };
    let (start, count) = window(start, stop, list.head.len);
    if count == list.head.len {
        return Ok(Reply::Ok);
    }
    if count == 0 {
        access.drop_collection(&list);
        return Ok(Reply::Ok);
    }
    let behind = list.head.len - start - count;
    cut(access, &mut list, End::Right, behind);
    cut(access, &mut list, End::Left, start);
    access.save(&list)?;
    Ok(Reply::Ok)
}

pub(super) fn lrem(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let (wanted, value) = (integer(args, 2)?, arg(args, 3)?);
    let Some(mut list) = open(access, args)? else {
        return Ok(Reply::Int(0));
    };
    let all = elements(access, &list, (0, list.head.len), false)?;
    let mut removed: Vec<usize> = Vec::new();
    let most = match wanted {
        0 => usize::MAX,
        _ => usize::try_from(wanted.unsigned_abs()).unwrap_or(usize::MAX),
    };
    let is_equal = |&(_, element): &(usize, &Value)| element[..] == value[..];
    let equal = all
        .iter()
        .enumerate()
        .filter(is_equal)
        .map(|(index, _)| index);
    match wanted < 0 {
        true => removed.extend(equal.rev().take(most)),
        false => removed.extend(equal.take(most)),
    }
    removed.sort_unstable();
    if !removed.is_empty() {
        close_gaps(access, &mut list, &all, &removed)?;
        access.save(&list)?;
    }
    Ok(Reply::Int(i64::try_from(removed.len()).unwrap_or(i64::MAX)))
}

/// Moves elements together over those at the offsets `removed`, from the side on which fewer are to be moved.
fn close_gaps(
    access: &mut Access<'_>,
    list: &mut Collection,
    all: &[Value],
    removed: &[usize],
) -> Result<(), Failure> {
    let (Some(&first), Some(&last)) = (removed.first(), removed.last()) else {
        return Ok(());
    };
    let stays = |&(offset, _): &(usize, &Value)| removed.binary_search(&offset).is_err();
    let kept = all.iter().enumerate().filter(stays);
    if all.len() - first <= last + 1 {
        let moved = kept.filter(|&(offset, _)| offset > first);
        for (to, (_, value)) in (first..).zip(moved) {
            access.put_element(list, &[&place(list, to as u64)], value)?;
        }
        cut(access, list, End::Right, removed.len() as u64);
    } else {
        let moved = kept.rev().filter(|&(offset, _)| offset < last);
        for (to, (_, value)) in (0..=last).rev().zip(moved) {
            access.put_element(list, &[&place(list, to as u64)], value)?;
        }
        cut(access, list, End::Left, removed.len() as u64);
    }
    Ok(())
}

/// `BLPOP` and `BRPOP` without the wait: from the first list that has elements.
fn pop_any(access: &mut Access<'_>, args: &[Bytes], end: End) -> Outcome {
    wait_time(args)?;
    let keys = args.len().saturating_sub(1);
    for key in args.get(1..keys).unwrap_or_default() {
        if let Some(list) = access.collection(key, Kind::List)? {
            let taken = take(access, list, end, 1)?;
            let taken = taken.into_iter().map(Reply::value);
            let key = std::iter::once(Reply::Bulk(key.clone()));
            return Ok(Reply::Array(key.chain(taken).collect()));
        }
    }
    Ok(Reply::NilArray)
}

pub(super) fn blpop(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    pop_any(access, args, End::Left)
}

pub(super) fn brpop(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    pop_any(access, args, End::Right)
}
