//! Commands on keys of any type.

use std::cmp::Ordering;

use bytes::Bytes;

use super::args::{NOT_INTEGER, SYNTAX, arg, integer, is, parse_integer, rest};
use super::deadline::{Unit, invalid};
use crate::keyspace::{
    Access, Collection, ELEMENT_PREFIX_BYTES, Failure, Item, Kind, STRING, Text, record_key,
};
use crate::reply::{CommandError, Reply};

type Outcome = Result<Reply, Failure>;

const NO_SUCH_KEY: CommandError = CommandError::new("ERR no such key");

pub(super) fn del(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let mut deleted = 0;
    for key in rest(args, 1) {
        deleted += i64::from(access.remove(access.db, key)?);
    }
    Ok(Reply::Int(deleted))
}

/// `EXISTS` and `TOUCH`: a key that is named twice counts twice.
pub(super) fn exists(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let mut existing = 0;
    for key in rest(args, 1) {
        existing += i64::from(access.exists(access.db, key)?);
    }
    Ok(Reply::Int(existing))
}

pub(super) fn type_of(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let key = arg(args, 1)?;
    if access.contains(access.db, &record_key(STRING, key))? {
        return Ok(Reply::Simple("string"));
    }
    let head = access.head(access.db, key)?;
    Ok(Reply::Simple(head.map_or("none", |head| head.kind.name())))
}

/// `OBJECT ENCODING`: the names that Redis has for the general form of a type.
pub(super) fn object(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let [_, what, key] = args else {
        return Err(SYNTAX.into());
    };
    if !is(what, "ENCODING") {
        let text = format!("ERR unknown subcommand '{}'", what.escape_ascii());
        return Err(CommandError::of(text).into());
    }
    Ok(match access.item(access.db, key)? {
        None => Reply::Nil,
        Some(Item::Text(text)) => Reply::constant(match text.bytes() {
            bytes if parse_integer(bytes).is_some() => "int",
            bytes if bytes.len() <= 44 => "embstr",
            _ => "raw",
        }),
        Some(Item::Collection(collection)) => Reply::constant(match collection.head.kind {
            Kind::Hash | Kind::Set => "hashtable",
            Kind::List => "quicklist",
            Kind::SortedSet => "skiplist",
        }),
    })
}

/// What `TTL` and its like tell of the time that is left, or of the deadline.
fn tell_deadline(
    access: &mut Access<'_>,
    args: &[Bytes],
    tell: impl FnOnce(u64, u64) -> u64,
) -> Outcome {
    let now_ms = access.now_ms();
    Ok(Reply::Int(match access.item(access.db, arg(args, 1)?)? {
        None => -2,
        Some(item) => match item.deadline_ms() {
            None => -1,
            Some(deadline_ms) => i64::try_from(tell(deadline_ms, now_ms)).unwrap_or(i64::MAX),
        },
    }))
}

/// Rounded as Redis does it.
fn seconds(ms: u64) -> u64 {
    ms.saturating_add(500) / 1000
}

pub(super) fn ttl(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    tell_deadline(access, args, |end, now| seconds(end.saturating_sub(now)))
}

pub(super) fn pttl(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    tell_deadline(access, args, u64::saturating_sub)
}

pub(super) fn expiretime(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    tell_deadline(access, args, |end, _| seconds(end))
}

pub(super) fn pexpiretime(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    tell_deadline(access, args, |end, _| end)
}

/// When `EXPIRE` and its like change a deadline.
#[derive(Default)]
struct Conditions {
    /// There is none yet.
    nx: bool,
    /// There is one.
    xx: bool,
    /// The new one is later; a key without one never ends.
    gt: bool,
    lt: bool,
}

impl Conditions {
    fn parse(options: &[Bytes]) -> Result<Self, CommandError> {
        let mut conditions = Self::default();
        for option in options {
            let flag = match option {
                _ if is(option, "NX") => &mut conditions.nx,
                _ if is(option, "XX") => &mut conditions.xx,
                _ if is(option, "GT") => &mut conditions.gt,
                _ if is(option, "LT") => &mut conditions.lt,
                _ => {
                    let option = option.escape_ascii();
                    return Err(CommandError::of(format!("ERR Unsupported option {option}")));
                }
            };
            *flag = true;
        }
        let Self { nx, xx, gt, lt } = conditions;
        if nx && (xx || gt || lt) {
            return Err(CommandError::new(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if gt && lt {
            return Err(CommandError::new(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        Ok(conditions)
    }

    fn hold(&self, before_ms: Option<u64>, new_ms: i64) -> bool {
        let order = before_ms.map_or(Ordering::Less, |before| {
            new_ms.cmp(&i64::try_from(before).unwrap_or(i64::MAX))
        });
        (!self.nx || before_ms.is_none())
            && (!self.xx || before_ms.is_some())
            && (!self.gt || order == Ordering::Greater)
            && (!self.lt || order == Ordering::Less)
    }
}

fn set_deadline(access: &mut Access<'_>, args: &[Bytes], unit: Unit, name: &str) -> Outcome {
    let key = arg(args, 1)?;
    let conditions = Conditions::parse(rest(args, 3))?;
    let number = integer(args, 2)?;
    let now_ms = access.now_ms();
    let new_ms = unit
        .moment_ms(now_ms, number)
        .ok_or_else(|| invalid(name))?;
    let Some(item) = access.item(access.db, key)? else {
        return Ok(Reply::Int(0));
    };
    if !conditions.hold(item.deadline_ms(), new_ms) {
        return Ok(Reply::Int(0));
    }
    match u64::try_from(new_ms) {
        Ok(new_ms) if new_ms > now_ms => save_deadline(access, key, item, Some(new_ms))?,
        _ => drop(access.remove(access.db, key)?),
    }
    Ok(Reply::Int(1))
}

fn save_deadline(
    access: &mut Access<'_>,
    key: &Bytes,
    item: Item,
    deadline_ms: Option<u64>,
) -> Result<(), Failure> {
    match item {
        Item::Text(text) => access.write_text(access.db, key, &[text.bytes()], deadline_ms),
        Item::Collection(mut collection) => access.save_deadline(&mut collection, deadline_ms),
    }
}

pub(super) fn expire(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    set_deadline(access, args, Unit::SECONDS, "expire")
}

pub(super) fn pexpire(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    set_deadline(access, args, Unit::MILLISECONDS, "pexpire")
}

pub(super) fn expireat(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    set_deadline(access, args, Unit::SECONDS_AT, "expireat")
}

pub(super) fn pexpireat(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    set_deadline(access, args, Unit::MILLISECONDS_AT, "pexpireat")
}

pub(super) fn persist(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let key = arg(args, 1)?;
    let item = access.item(access.db, key)?;
    let Some(item) = item.filter(|item| item.deadline_ms().is_some()) else {
        return Ok(Reply::Int(0));
    };
    save_deadline(access, key, item, None)?;
    Ok(Reply::Int(1))
}

pub(super) fn rename(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    move_key(access, args, true)?;
    Ok(Reply::Ok)
}

pub(super) fn renamenx(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    Ok(Reply::Int(i64::from(move_key(access, args, false)?)))
}

fn move_key(access: &mut Access<'_>, args: &[Bytes], is_over: bool) -> Result<bool, Failure> {
    let (db, from, to) = (access.db, arg(args, 1)?, arg(args, 2)?);
    let item = access.item(db, from)?.ok_or(NO_SUCH_KEY)?;
    if from == to {
        return Ok(is_over);
    }
    if access.exists(db, to)? {
        if !is_over {
            return Ok(false);
        }
        access.remove(db, to)?;
    }
    match item {
        Item::Text(text) => {
            access.remove(db, from)?;
            access.write_text(db, to, &[text.bytes()], text.deadline_ms)?;
        }
        Item::Collection(collection) => {
            access.drop_head(&collection);
            let deadline_ms = collection.head.deadline_ms;
            let mut moved = Collection {
                key: to.clone(),
                ..collection
            };
            moved.head.deadline_ms = None;
            arrive(access, moved, deadline_ms)?;
        }
    }
    Ok(true)
}

/// Writes the head of a collection under a new key.
fn arrive(
    access: &mut Access<'_>,
    mut collection: Collection,
    deadline_ms: Option<u64>,
) -> Result<(), Failure> {
    access.save_deadline(&mut collection, deadline_ms)?;
    if collection.head.kind == Kind::List {
        access.grow_list((collection.db, collection.key));
    }
    Ok(())
}

pub(super) fn copy(access: &mut Access<'_>, args: &[Bytes]) -> Outcome {
    let (from, to) = (arg(args, 1)?, arg(args, 2)?);
    let (mut db, mut is_over) = (access.db, false);
    let mut options = rest(args, 3).iter();
    while let Some(option) = options.next() {
        if is(option, "REPLACE") {
            is_over = true;
        } else if is(option, "DB") {
            let number = options.next().ok_or(SYNTAX)?;
            let number = parse_integer(number).ok_or(NOT_INTEGER)?;
            db = usize::try_from(number).unwrap_or(usize::MAX);
            access.keyspace().database(db)?;
        } else {
            return Err(SYNTAX.into());
        }
    }
    if db == access.db && from == to {
        let same = CommandError::new("ERR source and destination objects are the same");
        return Err(same.into());
    }
    let Some(item) = access.item(access.db, from)? else {
        return Ok(Reply::Int(0));
    };
    if access.exists(db, to)? {
        if !is_over {
            return Ok(Reply::Int(0));
        }
        access.remove(db, to)?;
    }
    match item {
        Item::Text(text) => copy_text(access, db, to, &text)?,
        Item::Collection(collection) => copy_collection(access, db, to, &collection)?,
    }
    Ok(Reply::Int(1))
}

fn copy_text(access: &mut Access<'_>, db: usize, to: &Bytes, text: &Text) -> Result<(), Failure> {
    access.write_text(db, to, &[text.bytes()], text.deadline_ms)
}

/// All elements are in memory at once, and in one batch: they count.
fn copy_collection(
    access: &mut Access<'_>,
    db: usize,
    to: &Bytes,
    from: &Collection,
) -> Result<(), Failure> {
    let mut elements = Vec::new();
    access.gather(&from.elements(&[]), false, |key, value| {
        let rest = key.get(ELEMENT_PREFIX_BYTES..).unwrap_or_default();
        elements.push((rest.to_vec(), value.to_vec()));
        Some(2 * (Reply::element_bytes(key.len()) + value.len()))
    })?;
    let mut copy = from.clone();
    copy.db = db;
    copy.key = to.clone();
    copy.head.id = access.keyspace().ids().next()?;
    copy.head.deadline_ms = None;
    for (rest, value) in &elements {
        access.put_element(&copy, &[rest], value)?;
    }
    arrive(access, copy, from.head.deadline_ms)
}
