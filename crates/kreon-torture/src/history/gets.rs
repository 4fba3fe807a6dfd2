//! Single reads of the present: gets, whether a key is there, and several keys in one call.

use kreon_judge::Seen;

use super::session::{End, Session};
use super::values;

/// One get.
pub fn get(session: &mut Session<'_>) -> Result<(), End> {
    let (handle, key) = (session.any_region(), session.any_key());
    let (mut call, engine) = (session.call("get"), &session.world.engine);
    call.invoked = session.world.now();
    let outcome = engine.get(
        &handle.region,
        &session.world.keys[key],
        None,
        values::decode,
    );
    call.returned = Some(session.world.now());
    session.record_read(call, &handle, key, outcome)
}

/// Is a key there?
pub fn contains(session: &mut Session<'_>) -> Result<(), End> {
    let (handle, key) = (session.any_region(), session.any_key());
    let (mut call, engine) = (session.call("contains"), &session.world.engine);
    call.invoked = session.world.now();
    let outcome = engine.contains(&handle.region, &session.world.keys[key], None);
    call.returned = Some(session.world.now());
    let seen = outcome
        .as_ref()
        .map_or(Seen::Absent, |is_there| match is_there {
            true => Seen::Present,
            false => Seen::Absent,
        });
    session.record_seen(call, &handle, key, outcome.map(|_| seen))
}

/// Several gets in one call. Every key of it is a read by itself.
pub fn multi_get(session: &mut Session<'_>) -> Result<(), End> {
    let handle = session.any_region();
    let count = 1 + session.dice.below(10);
    let numbers: Vec<_> = (0..count).map(|_| session.any_key()).collect();
    let keys: Vec<_> = numbers
        .iter()
        .map(|number| session.world.keys[*number].as_slice())
        .collect();
    let mut found = vec![None; keys.len()];
    let mut call = session.call("multi_get");
    call.invoked = session.world.now();
    let show = |index: usize, value: Vec<u8>| found[index] = Some(values::decode(&value));
    let outcome = session.world.engine.multi_get(&handle.region, &keys, show);
    call.returned = Some(session.world.now());
    for (key, found) in numbers.into_iter().zip(found) {
        session.record_read(call.clone(), &handle, key, outcome.clone().map(|()| found))?;
    }
    Ok(())
}
