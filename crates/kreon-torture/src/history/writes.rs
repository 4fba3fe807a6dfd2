//! Puts, deletions, batches, and calls that make what was written durable.

use kreon_base::{Result as Said, Timestamp};
use kreon_engine::{DeletedRange, Durability, Operation, Terms};
use kreon_judge::Seen;

use super::handle::Handle;
use super::reader::few_keys;
use super::session::{End, Session};
use super::tasks;
use super::values;
use super::world::World;

/// One put.
pub fn put(session: &mut Session<'_>) -> Result<(), End> {
    let (handle, key) = (session.any_region(), session.any_key());
    write(session, "put", &[(handle, key, true)])
}

/// One deletion.
pub fn delete(session: &mut Session<'_>) -> Result<(), End> {
    let (handle, key) = (session.any_region(), session.any_key());
    write(session, "delete", &[(handle, key, false)])
}

/// Several changes at once, of several regions.
pub fn batch(session: &mut Session<'_>) -> Result<(), End> {
    let passing = session.any_region();
    // A long one takes long enough for others to look on.
    let count = 2 + match session.dice.below(12) {
        0 | 1 => 60 + session.dice.below(400),
        _ => session.dice.below(7),
    };
    let mut changes = Vec::new();
    for _ in 0..count {
        let fixed = session.any_fixed_region();
        // At most one region that may be gone: its error says which one it was.
        let handle = if session.dice.below(3) == 0 {
            passing.clone()
        } else {
            fixed
        };
        changes.push((handle, session.any_key(), session.dice.below(5) > 0));
    }
    write(session, "batch", &changes)
}

/// The deletion of a range, unless some of its keys belong to a load.
pub fn delete_range(session: &mut Session<'_>) -> Result<(), End> {
    let world = session.world;
    world.reserved.beside(|allowed| {
        let handle = session.any_fixed_region();
        let (bounds, front, back) = few_keys(session);
        let range = DeletedRange::of(bounds);
        let range = range.map_err(|error| session.refused("deletion of a range", &error))?;
        let is_free = (front..back).all(|key| allowed(&handle, key) == key);
        let Some(range) = range.filter(|_| is_free) else {
            return Ok(());
        };
        let mut call = session.call("deletion of a range");
        let deleted = (front..back).map(|key| (handle.register(key), None));
        call.writes.extend(deleted);
        let durability = session.any_durability();
        call.invoked = world.now();
        let outcome = tasks::apply(session, &[range.operation(&handle.region)], durability);
        call.returned = Some(world.now());
        call.is_durable = outcome.is_ok() && durability == Durability::Sync;
        session.record(call, outcome)
    })
}

fn write(
    session: &mut Session<'_>,
    what: &'static str,
    changes: &[(Handle, usize, bool)],
) -> Result<(), End> {
    let world = session.world;
    world.reserved.beside(|allowed| {
        let allowed = changes
            .iter()
            .map(|(handle, key, is_put)| (handle.clone(), allowed(handle, *key), *is_put));
        write_allowed(session, what, &allowed.collect::<Vec<_>>())
    })
}

fn write_allowed(
    session: &mut Session<'_>,
    what: &'static str,
    changes: &[(Handle, usize, bool)],
) -> Result<(), End> {
    let mut call = session.call(what);
    let mut values = Vec::with_capacity(changes.len());
    for (handle, key, is_put) in changes {
        let version = is_put.then(|| session.world.next_version());
        let len_bytes = match changes.len() {
            0..20 => session.world.taste.len_bytes(&mut session.dice),
            _ => session.dice.below(100) as usize,
        };
        // A value that ends far ahead, and one that has ended: a deletion.
        let is_short_lived = session.dice.below(8) == 0;
        let expires = is_short_lived.then_some(match version {
            Some(_) => Timestamp::MAX,
            None => Timestamp::MIN,
        });
        let ended = (version.is_none() && is_short_lived).then_some(0);
        let value = version
            .or(ended)
            .map(|version| values::encode(version, len_bytes));
        values.push((value, expires));
        call.writes.push((handle.register(*key), version));
        if handle.may_go {
            call.reads.push((handle.mark(), Seen::Absent));
        }
    }
    call.reads.dedup();
    let with_values = changes.iter().zip(&values);
    let operations: Vec<_> = with_values
        .map(|((handle, key, _), (value, expires))| Operation {
            region: &handle.region,
            key: &session.world.keys[*key],
            value: value.as_deref(),
            is_range: false,
            terms: Terms::until(*expires),
        })
        .collect();
    let durability = session.any_durability();
    call.invoked = session.world.now();
    let outcome = tasks::apply(session, &operations, durability);
    call.returned = Some(session.world.now());
    call.is_durable = outcome.is_ok() && durability == Durability::Sync;
    session.record(call, outcome)
}

/// Everything that returned before is durable afterwards.
pub fn settle(
    session: &mut Session<'_>,
    what: &'static str,
    settle: impl Fn(&World) -> Said<()>,
) -> Result<(), End> {
    let mut call = session.call(what);
    call.invoked = session.world.now();
    let outcome = settle(session.world);
    call.returned = Some(session.world.now());
    call.is_durable = outcome.is_ok();
    session.record(call, outcome)
}
