//! Transactions of both isolations, and updates of one key.
//!
//! What a transaction reads is of one moment, that of its beginning, whatever becomes of it. Its commit is one more call:
//! what it writes, and what it has read and nobody may have changed by then, all at one moment.

use std::collections::BTreeMap;

use kreon_base::{ErrorKind, Result as Said};
use kreon_engine::{Durability, Isolation, Own, Transaction, Update};
use kreon_judge::{Register, Seen, Version};

use super::handle::Handle;
use super::moment::Moment;
use super::reader::any_bounds;
use super::session::{End, Session};
use super::values;

const BYTES_MAX: usize = 16 << 20;

/// What a transaction has read and is to write.
struct Course {
    transaction: Transaction,
    moment: Moment,
    own: BTreeMap<Register, Option<Version>>,
    /// What must not have changed at the commit.
    kept: BTreeMap<Register, Seen>,
    isolation: Isolation,
}

/// Some reads and writes, and a commit, now and then a rollback instead.
pub fn transaction(session: &mut Session<'_>) -> Result<(), End> {
    let world = session.world;
    // Held to the end: no load takes a key meanwhile that is written here.
    world
        .reserved
        .beside(|allowed| run(session, &|handle, key| allowed(handle, key)))
}

fn run(session: &mut Session<'_>, allowed: &dyn Fn(&Handle, usize) -> usize) -> Result<(), End> {
    let isolation = match session.dice.below(3) {
        0 => Isolation::Snapshot,
        _ => Isolation::Serializable,
    };
    let invoked = session.world.now();
    let transaction = session.world.engine.transaction(isolation, BYTES_MAX);
    let mut course = Course {
        transaction,
        // Named as other moments of the log's order.
        moment: Moment::new("snapshot", invoked, session.world.now()),
        own: BTreeMap::new(),
        kept: BTreeMap::new(),
        isolation,
    };
    let mut outcome = Ok(());
    for _ in 0..2 + session.dice.below(7) {
        outcome = step(session, &mut course, allowed);
        if outcome.is_err() {
            break;
        }
        if session.dice.below(4) == 0 {
            std::thread::yield_now();
        }
    }
    let Course {
        transaction,
        moment,
        own,
        kept,
        ..
    } = course;
    session.calls.push(moment.into_call(session.number));
    outcome?;
    if session.dice.below(10) == 0 {
        return Ok(());
    }
    commit(session, transaction, own, kept)
}

fn commit(
    session: &mut Session<'_>,
    transaction: Transaction,
    own: BTreeMap<Register, Option<Version>>,
    kept: BTreeMap<Register, Seen>,
) -> Result<(), End> {
    let has_writes = !own.is_empty();
    let durability = match session.dice.below(session.sync_every) {
        0 => Durability::Sync,
        _ => Durability::Buffered,
    };
    let mut call = session.call("commit of a transaction");
    call.writes = own.into_iter().collect();
    call.reads = kept.into_iter().collect();
    call.invoked = session.world.now();
    let outcome = session.world.engine.commit(transaction, durability);
    call.returned = Some(session.world.now());
    call.is_durable = outcome.is_ok() && durability == Durability::Sync;
    match outcome {
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
        // Without writes nothing was to be kept.
        Ok(()) if !has_writes => Ok(()),
        outcome => session.record(call, outcome),
    }
}

fn step(
    session: &mut Session<'_>,
    course: &mut Course,
    allowed: &dyn Fn(&Handle, usize) -> usize,
) -> Result<(), End> {
    let handle = session.any_fixed_region();
    match session.dice.below(10) {
        0..4 => get(session, course, &handle),
        4..6 => scan(session, course, &handle),
        _ => {
            let key = allowed(&handle, session.any_key());
            let is_put = session.dice.below(5) > 0;
            let said = write(session, course, &handle, key, is_put);
            said.map_err(|error| session.refused("write of a transaction", &error))
        }
    }
}

fn write(
    session: &mut Session<'_>,
    course: &mut Course,
    handle: &Handle,
    key: usize,
    is_put: bool,
) -> Said<()> {
    let bytes = &session.world.keys[key];
    let register = handle.register(key);
    let version = is_put.then(|| session.world.next_version());
    match version {
        Some(version) => {
            let len_bytes = session.world.taste.len_bytes(&mut session.dice);
            let value = values::encode(version, len_bytes);
            course.transaction.put(&handle.region, bytes, &value)?;
        }
        None => course.transaction.delete(&handle.region, bytes)?,
    }
    course.own.insert(register, version);
    // Whoever has changed it since it was read came first.
    if let Some(seen) = course.moment.known(register) {
        course.kept.insert(register, seen);
    }
    Ok(())
}

fn get(session: &mut Session<'_>, course: &mut Course, handle: &Handle) -> Result<(), End> {
    let key = session.any_key();
    let bytes = &session.world.keys[key];
    let is_for_update = session.dice.below(3) == 0;
    let said = match is_for_update {
        true => course
            .transaction
            .get_for_update(&handle.region, bytes, Own),
        false => course.transaction.get(&handle.region, bytes, Own),
    };
    let value = said.map_err(|error| session.refused("get of a transaction", &error))?;
    let version = value.map(|value| values::decode(&value)).transpose()?;
    let seen = version.map_or(Seen::Absent, Seen::Version);
    course.learn(handle.register(key), seen, is_for_update)?;
    Ok(())
}

/// Takes some pairs or all, from one end.
fn scan(session: &mut Session<'_>, course: &mut Course, handle: &Handle) -> Result<(), End> {
    let (bounds, mut front, mut back) = any_bounds(session);
    let is_from_front = session.dice.below(2) == 0;
    let pairs = match session.dice.below(2) {
        0 => session.dice.below(6) as usize,
        _ => usize::MAX,
    };
    let mut seen = Vec::new();
    let said = course.transaction.scan(&handle.region, bounds);
    let refused = |error| session.refused("scan of a transaction", &error);
    let mut scan = said.map_err(refused)?;
    for _ in 0..pairs {
        let Some((key, value)) = scan.next(is_from_front).map_err(refused)? else {
            seen.extend((front..back).map(|key| (key, Seen::Absent)));
            break;
        };
        let key = session.world.key_number(&key)?;
        if !(front..back).contains(&key) {
            return Err(End::Failed(format!(
                "a transaction's scan shows {key} again"
            )));
        }
        let passed = match is_from_front {
            true => front..key,
            false => key + 1..back,
        };
        seen.extend(passed.map(|key| (key, Seen::Absent)));
        seen.push((key, Seen::Version(values::decode(&value)?)));
        match is_from_front {
            true => front = key + 1,
            false => back = key,
        }
    }
    drop(scan);
    for (key, seen) in seen {
        course.learn(handle.register(key), seen, false)?;
    }
    Ok(())
}

impl Course {
    /// A read says this: of an own write, or of the moment of the beginning.
    fn learn(&mut self, register: Register, seen: Seen, is_for_update: bool) -> Result<(), String> {
        if let Some(own) = self.own.get(&register) {
            let own = own.map_or(Seen::Absent, Seen::Version);
            return match own == seen {
                true => Ok(()),
                false => Err(format!("a transaction wrote {own:?} and reads {seen:?}")),
            };
        }
        self.moment.learn(register, seen)?;
        if is_for_update || self.isolation == Isolation::Serializable {
            self.kept.insert(register, seen);
        }
        Ok(())
    }
}

/// A swap of whatever a key has, as one step.
pub fn update(session: &mut Session<'_>) -> Result<(), End> {
    let world = session.world;
    world.reserved.beside(|allowed| {
        let handle = session.any_fixed_region();
        let key = allowed(&handle, session.any_key());
        let version = world.next_version();
        let value = values::encode(version, world.taste.len_bytes(&mut session.dice));
        let durability = match session.dice.below(session.sync_every) {
            0 => Durability::Sync,
            _ => Durability::Buffered,
        };
        let mut call = session.call("update");
        call.writes.push((handle.register(key), Some(version)));
        call.invoked = world.now();
        let mut before = None;
        let outcome = world
            .engine
            .update(&handle.region, &world.keys[key], durability, |old| {
                before = Some(old.map(values::decode));
                Ok(Update::Put(value.clone()))
            });
        call.returned = Some(world.now());
        call.is_durable = outcome.is_ok() && durability == Durability::Sync;
        let before = before.flatten().transpose()?;
        let seen = before.map_or(Seen::Absent, Seen::Version);
        call.reads.push((handle.register(key), seen));
        session.record(call, outcome.map(drop))
    })
}
