//! Regions that come and go. Each client owns one name, at most: it makes and drops the region.

use std::sync::Arc;

use kreon_base::ErrorKind;
use kreon_judge::Seen;

use super::handle::{Handle, name_register, name_version};
use super::session::{End, Session};
use super::world::World;

/// What stands in the mark of a region that was dropped.
const GONE: u64 = 1;

/// Makes or drops the region of this client; without one it looks up another's.
pub fn change_region(session: &mut Session<'_>) -> Result<(), End> {
    if session.number as usize >= session.world.passing.len() {
        return find_region(session);
    }
    let name = World::name(session.number);
    let known = session.world.passing[session.number as usize]
        .lock()
        .clone();
    let is_there = session.world.engine.existing_region(&name).is_ok();
    match known {
        Some(handle) if is_there => drop_region(session, &name, &handle),
        _ => make_region(session, &name),
    }
}

fn make_region(session: &mut Session<'_>, name: &str) -> Result<(), End> {
    let mut call = session.call("create region");
    call.invoked = session.world.now();
    let outcome = session.world.engine.region(name);
    call.returned = Some(session.world.now());
    let outcome = outcome.map(|region| {
        let version = Some(name_version(region.id));
        call.writes.push((name_register(session.number), version));
        let handle = Handle {
            region,
            may_go: true,
        };
        *session.world.passing[session.number as usize].lock() = Some(handle);
    });
    session.record(call, outcome)
}

fn drop_region(session: &mut Session<'_>, name: &str, handle: &Handle) -> Result<(), End> {
    let mut call = session.call("drop region");
    call.invoked = session.world.now();
    let outcome = session.world.engine.drop_region(name);
    call.returned = Some(session.world.now());
    // That handles say so and that the name is free are two things, in this order.
    let mut marked = call.clone();
    marked.writes.push((handle.mark(), Some(GONE)));
    call.writes.push((name_register(session.number), None));
    session.record(marked, outcome.clone())?;
    session.record(call, outcome)
}

/// Looks up the region of some client by its name. There is at least one name.
pub fn find_region(session: &mut Session<'_>) -> Result<(), End> {
    let names = session.world.passing.len() as u64;
    let number = session.dice.below(names) as u32;
    let mut call = session.call("find region");
    call.invoked = session.world.now();
    let outcome = session.world.engine.existing_region(&World::name(number));
    call.returned = Some(session.world.now());
    let outcome = match outcome {
        Ok(region) => Ok(Seen::Version(name_version(Arc::clone(&region).id))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Seen::Absent),
        Err(error) => Err(error),
    };
    let outcome = outcome.map(|seen| call.reads.push((name_register(number), seen)));
    session.record(call, outcome)
}
