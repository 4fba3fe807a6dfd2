//! Loads beside everything else, of keys that nobody else writes meanwhile. All of them appear at one moment, for all
//! readers.

use kreon_base::Result as Said;
use kreon_engine::Pairs;
use kreon_judge::Register;

use super::session::{End, Session};
use super::values;

/// Pairs to load, with pauses in which others go on.
struct Loaded<'a> {
    rest: &'a [(Vec<u8>, Vec<u8>)],
}

impl Pairs for Loaded<'_> {
    fn next(&mut self) -> Said<Option<(&[u8], &[u8])>> {
        std::thread::yield_now();
        let Some(((key, value), rest)) = self.rest.split_first() else {
            return Ok(None);
        };
        self.rest = rest;
        Ok(Some((key, value)))
    }
}

/// Loads about every second of the keys that it may have, unless another load is under way.
pub fn ingest(session: &mut Session<'_>) -> Result<(), End> {
    let (handle, rest) = (session.any_fixed_region(), session.dice.below(2) as usize);
    let mut call = session.call("load");
    let mut pairs = Vec::new();
    for key in (rest..session.world.keys.len()).step_by(2) {
        if session.dice.below(4) == 0 {
            continue;
        }
        let version = session.world.next_version();
        let len_bytes = session.world.taste.len_bytes(&mut session.dice);
        pairs.push((
            session.world.keys[key].clone(),
            values::encode(version, len_bytes),
        ));
        let register: Register = handle.register(key);
        call.writes.push((register, Some(version)));
    }
    let world = session.world;
    let loaded = world.reserved.load(handle.region.id.0, rest, || {
        call.invoked = world.now();
        let outcome = world
            .engine
            .ingest(&handle.region, &mut Loaded { rest: &pairs });
        call.returned = Some(world.now());
        outcome
    });
    match loaded {
        // Another one is under way.
        None => Ok(()),
        Some(outcome) => {
            call.is_durable = outcome.is_ok();
            session.record(call, outcome.map(drop))
        }
    }
}
