//! Commands on sorted sets: each member has two elements, one by its name with the score, one in the order of scores.

use bytes::Bytes;

use super::args::{NOT_FLOAT, SYNTAX, arg, count, integer, is, parse_float, rest};
use super::zrange::{MEMBER, SCORE, Scored, Scores, by_index, take};
use crate::keyspace::{Access, Collection, Failure, Kind, element_key, score_bytes, score_of};
use crate::reply::{CommandError, Reply};

type Outcome = Result<Reply, Failure>;

const NAN: CommandError = CommandError::new("ERR resulting score is not a number (NaN)");

fn open(access: &mut Access<'_>, args: &[Bytes]) -> Result<Option<Collection>, Failure> {
    access.collection(arg(args, 1)?, Kind::SortedSet)
}

fn number(count: u64) -> Reply {
    Reply::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn score(access: &mut Access<'_>, set: &Collection, member: &[u8]) -> Result<Option<f64>, Failure> {
    let value = access.element(set, &[MEMBER, member])?;
    let score = |value: &kreon::Value| value.first_chunk().map(|bytes| score_of(*bytes));
    Ok(value.as_ref().and_then(score))
}

/// Gives a member a score; the head is not written.
fn put(
    access: &mut Access<'_>,
    set: &mut Collection,
    member: &[u8],
    (before, score): (Option<f64>, f64),
) -> Result<(), Failure> {
    match before {
        Some(before) => access.delete_element(set, &[SCORE, &score_bytes(before), member]),
        None => set.head.len += 1,
    }
    access.put_element(set, &[MEMBER, member], &score_bytes(score))?;
    access.put_element(set, &[SCORE, &score_bytes(score), member], &[])
}

/// Removes members that are there, with the set if none is left.
fn remove(access: &mut Access<'_>, mut set: Collection, members: &[Scored]) -> Result<(), Failure> {
    if members.is_empty() {
        return Ok(());
    }
    if members.len() as u64 >= set.head.len {
        access.drop_collection(&set);
        return Ok(());
    }
    for (member, score) in members {
        access.delete_element(&set, &[MEMBER, member]);
        access.delete_element(&set, &[SCORE, &score_bytes(*score), member]);
    }
    set.head.len -= members.len() as u64;
    access.save(&set)
}

/// Options of `ZADD`.
#[derive(Default)]
struct Options {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
    ch: bool,
    incr: bool,
}

impl Options {
    /// The options, and the pairs of scores and members behind them.
    fn parse(args: &[Bytes]) -> Result<(Self, &[Bytes]), Failure> {
        let mut options = Self::default();
        let mut pairs = rest(args, 2);
        while let [option, rest @ ..] = pairs {
            let flag = match option {
                _ if is(option, "NX") => &mut options.nx,
                _ if is(option, "XX") => &mut options.xx,
                _ if is(option, "GT") => &mut options.gt,
                _ if is(option, "LT") => &mut options.lt,
                _ if is(option, "CH") => &mut options.ch,
                _ if is(option, "INCR") => &mut options.incr,
                _ => break,
            };
            *flag = true;
            pairs = rest;
        }
        if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
            return Err(SYNTAX.into());
        }
        let Self { nx, xx, gt, lt, .. } = options;
        let error = match () {
            () if nx && xx => "ERR XX and NX options at the same time are not compatible",
            () if gt && lt || nx && (gt || lt) => {
                "ERR GT, LT, and/or NX options at the same time are not compatible"
            }
            () if options.incr && pairs.len() > 2 => {
                "ERR INCR option supports a single increment-element pair"
            }
            () => return Ok((options, pairs)),
        };
        Err(CommandError::new(error).into())
    }

    /// The score that a member gets; `None` if it keeps what it has.
    fn score(&self, before: Option<f64>, given: f64) -> Result<Option<f64>, CommandError> {
        let Some(before) = before else {
            return Ok((!self.xx).then_some(given));
        };
        if self.nx {
            return Ok(None);
        }
        let score = if self.incr { before + given } else { given };
        if score.is_nan() {
            return Err(NAN);
        }
        let is_refused = self.gt && score <= before || self.lt && score >= before;
        Ok((!is_refused).then_some(score))
    }
}

pub(super) fn zadd(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let (options, pairs) = Options::parse(args)?;
    let mut given = Vec::with_capacity(pairs.len() / 2);
    for pair in pairs.chunks_exact(2) {
        if let [score, member] = pair {
            given.push((parse_float(score).ok_or(NOT_FLOAT)?, member));
        }
    }
    let mut set = access.collection_or_new(arg(args, 1)?, Kind::SortedSet)?;
    let (before_len, mut changed, mut last) = (set.head.len, 0, None);
    for (given, member) in given {
        let before = score(access, &set, member)?;
        last = options.score(before, given)?;
        let Some(new) = last.filter(|&new| before != Some(new)) else {
            continue;
        };
        changed += u64::from(before.is_some());
        put(access, &mut set, member, (before, new))?;
    }
    let added = set.head.len - before_len;
    if added > 0 {
        access.save(&set)?;
    }
    Ok(match options {
        Options { incr: true, .. } => last.map_or(Reply::Nil, Reply::Double),
        Options { ch: true, .. } => number(added + changed),
        _ => number(added),
    })
}

pub(super) fn zincrby(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let by = parse_float(arg(args, 2)?).ok_or(NOT_FLOAT)?;
    let member = arg(args, 3)?;
    let mut set = access.collection_or_new(arg(args, 1)?, Kind::SortedSet)?;
    let before = score(access, &set, member)?;
    let sum = before.unwrap_or(0.0) + by;
    if sum.is_nan() {
        return Err(NAN.into());
    }
    put(access, &mut set, member, (before, sum))?;
    if before.is_none() {
        access.save(&set)?;
    }
    Ok(Reply::Double(sum))
}

pub(super) fn zrem(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let Some(set) = open(access, args)? else {
        return Ok(Reply::Int(0));
    };
    let mut found: Vec<Scored> = Vec::new();
    let mut members: Vec<&Bytes> = rest(args, 2).iter().collect();
    members.sort_unstable();
    members.dedup();
    for member in members {
        if let Some(score) = score(access, &set, member)? {
            found.push((member.to_vec(), score));
        }
    }
    remove(access, set, &found)?;
    Ok(number(found.len() as u64))
}

pub(super) fn zscore(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let found = match open(access, args)? {
        Some(set) => score(access, &set, arg(args, 2)?)?,
        None => None,
    };
    Ok(found.map_or(Reply::Nil, Reply::Double))
}

pub(super) fn zmscore(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let set = open(access, args)?;
    let mut scores = Vec::with_capacity(args.len());
    for member in rest(args, 2) {
        let found = match &set {
            Some(set) => score(access, set, member)?,
            None => None,
        };
        access.reply_grows(Reply::element_bytes(0))?;
        scores.push(found.map_or(Reply::Nil, Reply::Double));
    }
    Ok(Reply::Array(scores))
}

pub(super) fn zcard(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let set = open(access, args)?;
    Ok(number(set.map_or(0, |set| set.head.len)))
}

/// Counts members one by one.
pub(super) fn zcount(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let scores = Scores::parse(arg(args, 2)?, arg(args, 3)?)?;
    let Some(set) = open(access, args)? else {
        return Ok(Reply::Int(0));
    };
    let mut count = 0;
    access.scan(&scores.span(&set), |_, _| {
        count += 1;
        true
    })?;
    Ok(number(count))
}

/// The index of a member: counts those before it one by one.
fn rank(access: &mut Access<'_>, args: &[Bytes], is_reverse: bool) -> Outcome {
    let Some(set) = open(access, args)? else {
        return Ok(Reply::Nil);
    };
    let member = arg(args, 2)?;
    let Some(score) = score(access, &set, member)? else {
        return Ok(Reply::Nil);
    };
    let own = element_key(set.head.id, &[SCORE, &score_bytes(score), member]);
    let mut before = set.elements(SCORE).keys();
    match is_reverse {
        true => before.start = std::ops::Bound::Excluded(own),
        false => before.end = std::ops::Bound::Excluded(own),
    }
    let mut count = 0;
    access.scan(&before, |_, _| {
        count += 1;
        true
    })?;
    Ok(number(count))
}

pub(super) fn zrank(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    rank(access, args, false)
}

pub(super) fn zrevrank(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    rank(access, args, true)
}

fn pop(access: &mut Access<'_>, args: &[Bytes], is_reverse: bool) -> Outcome {
    let wanted = match args {
        [_, _] => None,
        [_, _, _] => Some(count(args, 2)?),
        _ => return Err(SYNTAX.into()),
    };
    let Some(set) = open(access, args)? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let found = match wanted.unwrap_or(1) {
        0 => Vec::new(),
        count => {
            let span = set.elements(SCORE).keys().reverse(is_reverse);
            take(access, span, (0, count), true)?
        }
    };
    remove(access, set, &found)?;
    let pairs = found
        .into_iter()
        .map(|(member, score)| (Reply::Bulk(member.into()), Reply::Double(score)));
    Ok(match wanted {
        Some(_) => Reply::Pairs(pairs.collect()),
        None => Reply::Array(pairs.flat_map(|(member, score)| [member, score]).collect()),
    })
}

pub(super) fn zpopmin(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    pop(access, args, false)
}

pub(super) fn zpopmax(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    pop(access, args, true)
}

pub(super) fn zremrangebyscore(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let scores = Scores::parse(arg(args, 2)?, arg(args, 3)?)?;
    let Some(set) = open(access, args)? else {
        return Ok(Reply::Int(0));
    };
    let found = take(access, scores.span(&set), (0, usize::MAX), false)?;
    remove(access, set, &found)?;
    Ok(number(found.len() as u64))
}

pub(super) fn zremrangebyrank(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let indexes = (integer(args, 2)?, integer(args, 3)?);
    let Some(set) = open(access, args)? else {
        return Ok(Reply::Int(0));
    };
    let found = by_index(access, &set, indexes, false, false)?;
    remove(access, set, &found)?;
    Ok(number(found.len() as u64))
}
