//! Transactions of both isolations, and updates of one key.
//!
//! What a transaction reads is of one moment, that of its beginning, whatever becomes of it. Its commit is one more call:
//! what it writes, and what it has read and nobody may have changed by then, all at one moment.

use std::sync::atomic::Ordering;

use kreon_base::ErrorKind;
use kreon_engine::{Durability, Update};
use kreon_judge::Seen;

use super::course::{Allowed, Course};
use super::crowd::commit_of;
use super::session::{End, Session};
use super::values;

/// Some reads and writes, and a commit, now and then a rollback instead.
pub fn transaction(session: &mut Session<'_>) -> Result<(), End> {
    let world = session.world;
    // Held to the end: no load takes a key meanwhile that is written here.
    world
        .reserved
        .beside(|allowed| run(session, &|handle, key| allowed(handle, key)))
}

fn run(session: &mut Session<'_>, allowed: Allowed<'_>) -> Result<(), End> {
    let mut course = Course::begin(session);
    let mut outcome = Ok(());
    for _ in 0..2 + session.dice.below(7) {
        outcome = course.step(session, allowed);
        if outcome.is_err() {
            break;
        }
        if session.dice.below(4) == 0 {
            std::thread::yield_now();
        }
    }
    let is_rolled_back = outcome.is_ok() && session.dice.below(10) == 0;
    match outcome {
        Ok(()) if !is_rolled_back => commit(session, course),
        outcome => {
            session.calls.push(course.moment.into_call(session.number));
            outcome
        }
    }
}

fn commit(session: &mut Session<'_>, course: Course) -> Result<(), End> {
    let (own, kept) = course.settled();
    let has_writes = !own.is_empty();
    let durability = session.any_durability();
    let mut call = session.call(commit_of(course.isolation));
    call.writes = own.into_iter().collect();
    call.reads = kept.into_iter().collect();
    let Course {
        transaction,
        moment,
        ..
    } = course;
    session.calls.push(moment.into_call(session.number));
    call.invoked = session.world.now();
    let outcome = session.world.engine.commit(transaction, durability);
    call.returned = Some(session.world.now());
    call.is_durable = outcome.is_ok() && durability == Durability::Sync;
    match outcome {
        Err(error) if error.kind() == ErrorKind::Conflict => {
            session.world.conflicts.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        // Without writes nothing was to be kept.
        Ok(()) if !has_writes => Ok(()),
        outcome => session.record(call, outcome),
    }
}

/// Makes another value or nothing of whatever a key has, or leaves it, as one step.
pub fn update(session: &mut Session<'_>) -> Result<(), End> {
    let world = session.world;
    world.reserved.beside(|allowed| {
        let handle = session.any_fixed_region();
        let key = allowed(&handle, session.any_key());
        let version = world.next_version();
        let value = values::encode(version, world.taste.len_bytes(&mut session.dice));
        let durability = session.any_durability();
        // Odd versions stay as they are, as a comparison would have it that fails.
        let (keeps_odd, deletes) = (session.dice.below(4) == 0, session.dice.below(8) == 0);
        let mut call = session.call("update");
        call.invoked = world.now();
        let (mut before, mut is_kept) = (None, false);
        let outcome = world
            .engine
            .update(&handle.region, &world.keys[key], durability, |old| {
                let old = old.map(|old| values::decode(old.value));
                is_kept = keeps_odd && matches!(old, Some(Ok(version)) if version % 2 == 1);
                before = Some(old);
                Ok(match (is_kept, deletes) {
                    (true, _) => Update::Keep,
                    (_, true) => Update::Delete,
                    _ => Update::Put(value.clone()),
                })
            });
        call.returned = Some(world.now());
        match is_kept {
            true => call.what = "update that keeps",
            false => call
                .writes
                .push((handle.register(key), (!deletes).then_some(version))),
        }
        call.is_durable = outcome.is_ok() && !is_kept && durability == Durability::Sync;
        let before = before.flatten().transpose()?;
        let seen = before.map_or(Seen::Absent, Seen::Version);
        call.reads.push((handle.register(key), seen));
        session.record(call, outcome.map(drop))
    })
}
