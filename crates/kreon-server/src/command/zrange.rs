//! Ranges of sorted sets: by index, score, or member.

use std::ops::Bound;

use bytes::Bytes;

use super::args::{
    NOT_INTEGER, SYNTAX, arg, integer, is, parse_float, parse_integer, rest, window,
};
use crate::keyspace::{
    Access, Collection, ELEMENT_PREFIX_BYTES, Failure, Kind, Span, element_key, prefix_end,
    score_bytes, score_of,
};
use crate::reply::{CommandError, Reply};

type Outcome = Result<Reply, Failure>;

/// First byte of the rest of the element that has the score of a member.
pub(super) const MEMBER: &[u8] = b"m";
/// First byte of the rest of the element that is ordered by score.
pub(super) const SCORE: &[u8] = b"s";

const NOT_SCORES: CommandError = CommandError::new("ERR min or max is not a float");
const NOT_MEMBERS: CommandError = CommandError::new("ERR min or max not valid string range item");

/// A member and its score.
pub(super) type Scored = (Vec<u8>, f64);

/// What the key of an element tells: ordered by score its member and score, ordered by member the member alone, with 0.
fn scored(record: &[u8]) -> Scored {
    let rest = record.get(ELEMENT_PREFIX_BYTES..).unwrap_or_default();
    if let Some(member) = rest.strip_prefix(MEMBER) {
        return (member.to_vec(), 0.0);
    }
    match rest.get(SCORE.len()..).and_then(<[u8]>::split_first_chunk) {
        Some((score, member)) => (member.to_vec(), score_of(*score)),
        None => (Vec::new(), 0.0),
    }
}

/// An end of a range of scores.
fn score_bound(text: &[u8]) -> Result<Bound<f64>, Failure> {
    let (text, is_exclusive) = match text {
        [b'(', text @ ..] => (text, true),
        text => (text, false),
    };
    let score = parse_float(text).ok_or(NOT_SCORES)?;
    Ok(match is_exclusive {
        true => Bound::Excluded(score),
        false => Bound::Included(score),
    })
}

/// A range of scores.
pub(super) struct Scores {
    min: Bound<f64>,
    max: Bound<f64>,
}

impl Scores {
    /// # Errors
    /// One is no number.
    pub(super) fn parse(min: &[u8], max: &[u8]) -> Result<Self, Failure> {
        let (min, max) = (score_bound(min)?, score_bound(max)?);
        Ok(Self { min, max })
    }

    /// The elements of `set` with these scores, in their order.
    pub(super) fn span(&self, set: &Collection) -> Span {
        let key = |score| element_key(set.head.id, &[SCORE, &score_bytes(score)]);
        // Behind all members of a score.
        let after = |score| prefix_end(&key(score)).map_or(Bound::Unbounded, Bound::Included);
        let mut span = set.elements(SCORE).keys();
        span.start = match self.min {
            Bound::Included(score) => Bound::Included(key(score)),
            Bound::Excluded(score) => after(score),
            Bound::Unbounded => span.start,
        };
        span.end = match self.max {
            Bound::Included(score) => match after(score) {
                Bound::Included(end) => Bound::Excluded(end),
                other => other,
            },
            Bound::Excluded(score) => Bound::Excluded(key(score)),
            Bound::Unbounded => span.end,
        };
        span
    }
}

/// The elements with members from `min` to `max`, which were checked, in the order of members. `None` if there can be none.
fn by_member(set: &Collection, min: &[u8], max: &[u8]) -> Option<Span> {
    let mut span = set.elements(MEMBER);
    let key = |member: &[u8]| element_key(set.head.id, &[MEMBER, member]);
    match min {
        [b'[', member @ ..] => span.start = Bound::Included(key(member)),
        [b'(', member @ ..] => span.start = Bound::Excluded(key(member)),
        b"+" => return None,
        _ => (),
    }
    match max {
        [b'[', member @ ..] => span.end = Bound::Included(key(member)),
        [b'(', member @ ..] => span.end = Bound::Excluded(key(member)),
        b"-" => return None,
        _ => (),
    }
    Some(span)
}

/// Members of a span by score or by member, from `offset` on, at most `count`: see [`scored`] and, for `is_reply`,
/// [`Access::gather`].
pub(super) fn take(
    access: &mut Access<'_>,
    mut span: Span,
    (offset, count): (usize, usize),
    is_reply: bool,
) -> Result<Vec<Scored>, Failure> {
    let (mut passed, mut found) = (0, Vec::new());
    let most = offset.saturating_add(count);
    span.limit = (most != usize::MAX).then_some(most);
    access.gather(&span, is_reply, |record, _| {
        passed += 1;
        if passed <= offset {
            return Some(0);
        }
        found.push(scored(record));
        // Each with its score.
        Some(2 * Reply::element_bytes(0) + record.len())
    })?;
    Ok(found)
}

/// Members from index `start` to `stop`, negative ones from the end, counted from the lowest score, or from the highest if
/// reversed. Costs a step for each member between the nearer end and the last of them.
pub(super) fn by_index(
    access: &mut Access<'_>,
    set: &Collection,
    (start, stop): (i64, i64),
    is_reverse: bool,
    is_reply: bool,
) -> Result<Vec<Scored>, Failure> {
    let len = set.head.len;
    let (start, count) = window(start, stop, len);
    let behind = len.saturating_sub(start + count);
    let is_from_far = behind < start;
    let offset = if is_from_far { behind } else { start };
    let span = set
        .elements(SCORE)
        .keys()
        .reverse(is_reverse != is_from_far);
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut found = take(access, span, (offset as usize, count as usize), is_reply)?;
    if is_from_far {
        found.reverse();
    }
    Ok(found)
}

/// How the reply looks.
fn reply(found: Vec<Scored>, with_scores: bool) -> Reply {
    let found = found.into_iter();
    match with_scores {
        true => Reply::Pairs(
            found
                .map(|(member, score)| (Reply::Bulk(member.into()), Reply::Double(score)))
                .collect(),
        ),
        false => Reply::Array(
            found
                .map(|(member, _)| Reply::Bulk(member.into()))
                .collect(),
        ),
    }
}

/// What the ends of a range are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Index,
    Score,
    Member,
}

struct Options {
    by: By,
    is_reverse: bool,
    with_scores: bool,
    /// Offset and count.
    limit: Option<(i64, i64)>,
}

impl Options {
    /// Of `ZRANGE`; if `is_narrow`, of its forerunners, whose name says the rest.
    fn parse(args: &[Bytes], by: By, is_reverse: bool, is_narrow: bool) -> Result<Self, Failure> {
        let mut options = Self {
            by,
            is_reverse,
            with_scores: false,
            limit: None,
        };
        let mut rest = rest(args, 4).iter();
        let number = |argument: Option<&Bytes>| {
            let number = argument.ok_or(SYNTAX)?;
            parse_integer(number).ok_or(NOT_INTEGER)
        };
        while let Some(option) = rest.next() {
            match option {
                _ if is(option, "WITHSCORES") => options.with_scores = true,
                _ if is(option, "LIMIT") => {
                    options.limit = Some((number(rest.next())?, number(rest.next())?));
                }
                _ if is_narrow => return Err(SYNTAX.into()),
                _ if is(option, "REV") => options.is_reverse = true,
                _ if is(option, "BYSCORE") => options.by = By::Score,
                _ if is(option, "BYLEX") => options.by = By::Member,
                _ => return Err(SYNTAX.into()),
            }
        }
        if options.limit.is_some() && options.by == By::Index {
            return Err(CommandError::new(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            )
            .into());
        }
        if options.with_scores && options.by == By::Member {
            return Err(CommandError::new(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            )
            .into());
        }
        Ok(options)
    }

    /// Elements to pass over and to take; `None`: none at all.
    fn window(&self) -> Option<(usize, usize)> {
        let (offset, count) = self.limit.unwrap_or((0, -1));
        let offset = usize::try_from(offset).ok()?;
        Some((offset, usize::try_from(count).unwrap_or(usize::MAX)))
    }
}

/// The parsed ends of a range.
enum Ends<'a> {
    Indexes(i64, i64),
    Scores(Scores),
    Members(&'a [u8], &'a [u8]),
}

impl<'a> Ends<'a> {
    fn parse(args: &'a [Bytes], options: &Options) -> Result<Self, Failure> {
        let (first, second) = (arg(args, 2)?, arg(args, 3)?);
        let (min, max) = match options.is_reverse {
            true => (second, first),
            false => (first, second),
        };
        let is_member = |text: &[u8]| matches!(text, [b'[' | b'(', ..] | [b'-' | b'+']);
        match options.by {
            By::Index => Ok(Self::Indexes(integer(args, 2)?, integer(args, 3)?)),
            By::Score => Ok(Self::Scores(Scores::parse(min, max)?)),
            By::Member if is_member(min) && is_member(max) => Ok(Self::Members(min, max)),
            By::Member => Err(NOT_MEMBERS.into()),
        }
    }
}

fn range(access: &mut Access<'_>, args: &[Bytes], options: &Options) -> Outcome {
    let ends = Ends::parse(args, options)?;
    let set = access.collection(arg(args, 1)?, Kind::SortedSet)?;
    let (Some(set), Some((offset, count))) = (set, options.window()) else {
        return Ok(Reply::Array(Vec::new()));
    };
    let found = match ends {
        Ends::Indexes(start, stop) => {
            by_index(access, &set, (start, stop), options.is_reverse, true)?
        }
        Ends::Scores(scores) => {
            let span = scores.span(&set).reverse(options.is_reverse);
            take(access, span, (offset, count), true)?
        }
        Ends::Members(min, max) => match by_member(&set, min, max) {
            Some(span) => {
                let span = span.reverse(options.is_reverse).keys();
                take(access, span, (offset, count), true)?
            }
            None => Vec::new(),
        },
    };
    Ok(reply(found, options.with_scores))
}

pub(super) fn zrange(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    range(
        access,
        args,
        &Options::parse(args, By::Index, false, false)?,
    )
}

pub(super) fn zrangebyscore(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    range(access, args, &Options::parse(args, By::Score, false, true)?)
}

pub(super) fn zrevrange(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let options = Options::parse(args, By::Index, false, true)?;
    let indexes = (integer(args, 2)?, integer(args, 3)?);
    let Some(set) = access.collection(arg(args, 1)?, Kind::SortedSet)? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let found = by_index(access, &set, indexes, true, true)?;
    Ok(reply(found, options.with_scores))
}
