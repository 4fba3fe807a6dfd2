//! Random elements of hashes and sets.
//!
//! Of up to 4,096 elements each is as likely as any other. Of more, those behind larger gaps in the order of their bytes are likelier: the
//! choice is that of a random key between the first and the last. A choice of more than a quarter of all reads all, and is even again.

use std::collections::HashSet;

use super::whole::seek_any;
use crate::keyspace::{Access, Collection, ELEMENT_PREFIX_BYTES, Failure};
use crate::reply::{CommandError, Reply};

/// Up to so many elements are read to choose from them.
const CHOSEN_EVENLY_MAX: u64 = 4096;

/// So many elements may be repeated ones: no collection is that large that all would be wanted.
const REPEATED_MAX: i64 = 1 << 24;

/// How many elements are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub count: u64,
    /// The same element may be chosen again.
    pub is_repeated: bool,
}

impl Choice {
    pub(super) const ONE: Self = Self {
        count: 1,
        is_repeated: false,
    };

    /// Of an argument: below zero, elements may be repeated. `is_double`: each gives two replies.
    ///
    /// # Errors
    /// There would be too many replies.
    pub(super) fn parse(count: i64, is_double: bool) -> Result<Self, CommandError> {
        let is_too_large = is_double && count > i64::MAX / 2;
        if is_too_large || count < -REPEATED_MAX {
            return Err(CommandError::new("ERR value is out of range"));
        }
        Ok(Self {
            count: count.unsigned_abs(),
            is_repeated: count < 0,
        })
    }
}

/// The names of random elements of a hash or a set; none of a collection that is not there. Distinct ones are at most as many as there
/// are.
pub(super) fn choose(
    access: &mut Access<'_>,
    collection: Option<&Collection>,
    choice: Choice,
) -> Result<Vec<Vec<u8>>, Failure> {
    let Some(collection) = collection.filter(|_| choice.count > 0) else {
        return Ok(Vec::new());
    };
    let len = collection.head.len;
    if len > CHOSEN_EVENLY_MAX && choice.count < len / 4 {
        let before = access.filled();
        if let Some(chosen) = seek(access, collection, choice)? {
            return Ok(chosen);
        }
        access.back_to(before);
    }
    let random = access.keyspace().random();
    let mut all = Vec::new();
    access.gather(&collection.elements(&[]).keys(), false, |record, _| {
        let name = name(record);
        all.push(name.to_vec());
        Some(Reply::element_bytes(name.len()))
    })?;
    if choice.is_repeated {
        let mut chosen = Vec::new();
        for _ in 0..choice.count {
            if let Some(name) = all.get(random.index(all.len())) {
                access.reply_grows(Reply::element_bytes(name.len()))?;
                chosen.push(name.clone());
            }
        }
        return Ok(chosen);
    }
    // The first steps of a shuffle.
    let count = usize::try_from(choice.count)
        .unwrap_or(usize::MAX)
        .min(all.len());
    for index in 0..count {
        let left = all.len() - index;
        all.swap(index, index + random.index(left));
    }
    all.truncate(count);
    let bytes = all.iter().map(|name| Reply::element_bytes(name.len()));
    access.reply_grows(bytes.sum())?;
    Ok(all)
}

fn name(record: &[u8]) -> &[u8] {
    record.get(ELEMENT_PREFIX_BYTES..).unwrap_or_default()
}

/// Elements behind random keys. Distinct ones: who comes again is passed over by those that follow it. `None`: so many came
/// again, as most keys have the same few elements behind them, that it costs less to read all.
fn seek(
    access: &mut Access<'_>,
    collection: &Collection,
    choice: Choice,
) -> Result<Option<Vec<Vec<u8>>>, Failure> {
    let span = collection.elements(&[]).keys();
    let (mut chosen, mut seen) = (Vec::new(), HashSet::new());
    let mut steps_left = collection.head.len;
    while (chosen.len() as u64) < choice.count {
        let Some(record) = seek_any(access, &span)? else {
            break;
        };
        access.reply_grows(Reply::element_bytes(record.len()))?;
        if choice.is_repeated {
            chosen.push(name(&record).to_vec());
            continue;
        }
        let unseen = next_unseen(access, collection, record, (&seen, &mut steps_left))?;
        let Some(record) = unseen else {
            return Ok(None);
        };
        chosen.push(name(&record).to_vec());
        seen.insert(record);
    }
    Ok(Some(chosen))
}

/// `record` or the first one behind it that is not in `seen`, from the first on again behind the last. `None`: that would take
/// more than `steps_left`, from which it takes its steps.
fn next_unseen(
    access: &mut Access<'_>,
    collection: &Collection,
    record: Vec<u8>,
    (seen, steps_left): (&HashSet<Vec<u8>>, &mut u64),
) -> Result<Option<Vec<u8>>, Failure> {
    if !seen.contains(&record) {
        return Ok(Some(record));
    }
    let mut behind = collection.elements(&[]).keys();
    behind.start = std::ops::Bound::Excluded(record);
    for span in [behind, collection.elements(&[]).keys()] {
        let mut found = None;
        access.scan(&span, |record, _| {
            if !seen.contains(record) {
                found = Some(record.to_vec());
            }
            *steps_left = steps_left.saturating_sub(1);
            found.is_none() && *steps_left > 0
        })?;
        if found.is_some() || *steps_left == 0 {
            return Ok(found);
        }
    }
    Ok(None)
}
