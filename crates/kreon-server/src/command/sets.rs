//! Commands on sets: a member is an element without a value.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::args::{SYNTAX, arg, count, integer, rest};
use super::chance::{self, Choice};
use crate::keyspace::{Access, Collection, ELEMENT_PREFIX_BYTES, Failure, Kind};
use crate::reply::Reply;

type Outcome = Result<Reply, Failure>;

fn open(access: &mut Access<'_>, args: &[Bytes]) -> Result<Option<Collection>, Failure> {
    access.collection(arg(args, 1)?, Kind::Set)
}

fn number(count: u64) -> Reply {
    Reply::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

pub(super) fn sadd(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let mut set = access.collection_or_new(arg(args, 1)?, Kind::Set)?;
    let before = set.head.len;
    for member in rest(args, 2) {
        if !access.has_element(&set, &[member])? {
            access.put_element(&set, &[member], &[])?;
            set.head.len += 1;
        }
    }
    if set.head.len != before {
        access.save(&set)?;
    }
    Ok(number(set.head.len - before))
}

/// Removes members that are there.
fn remove<'a>(
    access: &mut Access<'_>,
    mut set: Collection,
    members: impl Iterator<Item = &'a [u8]>,
) -> Result<(), Failure> {
    let before = set.head.len;
    for member in members {
        access.delete_element(&set, &[member]);
        set.head.len = set.head.len.saturating_sub(1);
    }
    if set.head.len != before {
        access.save(&set)?;
    }
    Ok(())
}

pub(super) fn srem(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let Some(set) = open(access, args)? else {
        return Ok(Reply::Int(0));
    };
    let mut there = BTreeSet::new();
    for member in rest(args, 2) {
        if access.has_element(&set, &[member])? {
            there.insert(&member[..]);
        }
    }
    let removed = there.len() as u64;
    remove(access, set, there.into_iter())?;
    Ok(number(removed))
}

fn has(access: &mut Access<'_>, set: Option<&Collection>, member: &[u8]) -> Result<bool, Failure> {
    match set {
        Some(set) => access.has_element(set, &[member]),
        None => Ok(false),
    }
}

pub(super) fn sismember(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let set = open(access, args)?;
    let is_member = has(access, set.as_ref(), arg(args, 2)?)?;
    Ok(Reply::Int(i64::from(is_member)))
}

pub(super) fn smismember(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let set = open(access, args)?;
    let members = rest(args, 2).iter();
    let found = members.map(|member| {
        let is_member = has(access, set.as_ref(), member)?;
        access.reply_grows(Reply::element_bytes(0))?;
        Ok(Reply::Int(i64::from(is_member)))
    });
    Ok(Reply::Array(found.collect::<Result<_, Failure>>()?))
}

pub(super) fn scard(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let set = open(access, args)?;
    Ok(number(set.map_or(0, |set| set.head.len)))
}

fn name(record: &[u8]) -> &[u8] {
    record.get(ELEMENT_PREFIX_BYTES..).unwrap_or_default()
}

/// All members. `is_reply`: see [`Access::gather`].
fn members(
    access: &mut Access<'_>,
    set: &Collection,
    is_reply: bool,
) -> Result<Vec<Vec<u8>>, Failure> {
    let mut members = Vec::new();
    access.gather(&set.elements(&[]).keys(), is_reply, |record, _| {
        let member = name(record);
        members.push(member.to_vec());
        Some(Reply::element_bytes(member.len()))
    })?;
    Ok(members)
}

fn reply(members: impl IntoIterator<Item = Vec<u8>>) -> Vec<Reply> {
    let members = members.into_iter();
    members.map(|member| Reply::Bulk(member.into())).collect()
}

pub(super) fn smembers(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let set = open(access, args)?;
    let set = set.map(|set| members(access, &set, true)).transpose()?;
    Ok(Reply::Set(reply(set.unwrap_or_default())))
}

pub(super) fn srandmember(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let choice = match args {
        [_, _] => None,
        [_, _, _] => Some(Choice::parse(integer(args, 2)?, false)?),
        _ => return Err(SYNTAX.into()),
    };
    let set = open(access, args)?;
    let found = chance::choose(access, set.as_ref(), choice.unwrap_or(Choice::ONE))?;
    let mut found = reply(found);
    Ok(match choice {
        Some(_) => Reply::Array(found),
        None => found.pop().unwrap_or(Reply::Nil),
    })
}

pub(super) fn spop(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let wanted = match args {
        [_, _] => None,
        [_, _, _] => Some(count(args, 2)? as u64),
        _ => return Err(SYNTAX.into()),
    };
    let set = open(access, args)?;
    let count = wanted.unwrap_or(1);
    let choice = Choice {
        count,
        is_repeated: false,
    };
    let found = chance::choose(access, set.as_ref(), choice)?;
    match set {
        Some(set) if found.len() as u64 >= set.head.len => access.drop_collection(&set),
        Some(set) => remove(access, set, found.iter().map(Vec::as_slice))?,
        None => (),
    }
    let mut found = reply(found);
    Ok(match wanted {
        Some(_) => Reply::Set(found),
        None => found.pop().unwrap_or(Reply::Nil),
    })
}

/// The sets at all keys of a command, `None` where there is none.
fn all(access: &mut Access<'_>, args: &[Bytes]) -> Result<Vec<Option<Collection>>, Failure> {
    let keys = rest(args, 1).iter();
    keys.map(|key| access.collection(key, Kind::Set)).collect()
}

/// All members are in memory at once.
pub(super) fn sunion(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let mut union = BTreeSet::new();
    for set in all(access, args)?.into_iter().flatten() {
        access.gather(&set.elements(&[]).keys(), true, |record, _| {
            let member = name(record);
            let is_new = union.insert(member.to_vec());
            Some(if is_new {
                Reply::element_bytes(member.len())
            } else {
                0
            })
        })?;
    }
    Ok(Reply::Set(reply(union)))
}

/// Looks up the members of the smallest set in all others.
pub(super) fn sinter(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let sets = all(access, args)?;
    let Some(mut sets) = sets.into_iter().collect::<Option<Vec<_>>>() else {
        return Ok(Reply::Set(Vec::new()));
    };
    sets.sort_by_key(|set| set.head.len);
    let Some((smallest, others)) = sets.split_first() else {
        return Ok(Reply::Set(Vec::new()));
    };
    let mut common = Vec::new();
    'members: for member in members(access, smallest, false)? {
        for other in others {
            if !access.has_element(other, &[&member])? {
                continue 'members;
            }
        }
        access.reply_grows(Reply::element_bytes(member.len()))?;
        common.push(member);
    }
    Ok(Reply::Set(reply(common)))
}

/// Looks up the members of the first set in all others.
pub(super) fn sdiff(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let sets = all(access, args)?;
    let Some((Some(first), others)) = sets.split_first() else {
        return Ok(Reply::Set(Vec::new()));
    };
    let mut left = Vec::new();
    'members: for member in members(access, first, false)? {
        for other in others.iter().flatten() {
            if access.has_element(other, &[&member])? {
                continue 'members;
            }
        }
        access.reply_grows(Reply::element_bytes(member.len()))?;
        left.push(member);
    }
    Ok(Reply::Set(reply(left)))
}
