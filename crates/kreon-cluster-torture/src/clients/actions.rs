//! What a client can do.

use std::time::{Duration, Instant};

use kreon_judge::{Register, Version, value};

use super::face::{Change, Said, Store};
use super::session::{Ack, Session};

/// Keys of a batch, at most.
const BATCH_KEYS_MAX: u64 = 6;

/// One in so many writes is durable everywhere when it returns.
const SYNC_EVERY: u64 = 8;

/// Does something with keys of a range.
pub fn any(session: &mut Session<'_>, store: &mut dyn Store, range: usize) {
    match session.dice.below(100) {
        0..28 => put(session, store, range),
        28..33 => delete(session, store, range),
        33..46 => batch(session, store, range),
        46..48 => delete_range(session, store, range),
        48..72 => get(session, store, range, 1),
        72..78 => get(session, store, range, 4),
        78..93 => scan(session, store, range),
        _ => snapshot(session, store, range),
    }
}

/// A value for any key.
pub fn put(session: &mut Session<'_>, store: &mut dyn Store, range: usize) {
    let number = any_key(session);
    let (change, version) = change_of(session, range, number);
    let writes = vec![(number as Register, Some(version))];
    write(session, store, range, "put", &[change], writes);
}

fn delete(session: &mut Session<'_>, store: &mut dyn Store, range: usize) {
    let number = any_key(session);
    let change = Change::Delete(session.shared.keys.key(range, number));
    let writes = vec![(number as Register, None)];
    write(session, store, range, "delete", &[change], writes);
}

fn batch(session: &mut Session<'_>, store: &mut dyn Store, range: usize) {
    let mut changes = Vec::new();
    let mut writes = Vec::new();
    for _ in 0..2 + session.dice.below(BATCH_KEYS_MAX - 1) {
        let number = any_key(session);
        if session.dice.below(8) == 0 {
            changes.push(Change::Delete(session.shared.keys.key(range, number)));
            writes.push((number as Register, None));
            continue;
        }
        let (change, version) = change_of(session, range, number);
        changes.push(change);
        writes.push((number as Register, Some(version)));
    }
    write(session, store, range, "batch", &changes, writes);
}

fn delete_range(session: &mut Session<'_>, store: &mut dyn Store, range: usize) {
    let (keys, low) = (session.shared.keys, any_key(session));
    let high = (low + 1 + session.dice.below(4) as usize).min(keys.each);
    let change = Change::DeleteRange(keys.bound(range, low), keys.bound(range, high));
    let writes = (low..high).map(|number| (number as Register, None));
    let writes = writes.collect();
    write(session, store, range, "delete range", &[change], writes);
}

fn write(
    session: &mut Session<'_>,
    store: &mut dyn Store,
    range: usize,
    what: &'static str,
    changes: &[Change],
    writes: Vec<(Register, Option<Version>)>,
) {
    let is_sync = session.dice.below(SYNC_EVERY) == 0;
    let begun_us = session.shared.now_us();
    let mut call = session.begin(what);
    call.writes = writes;
    match store.write(changes, is_sync) {
        Ok(()) => {
            call.is_durable = is_sync;
            session.done(range, call);
            session.log.acks.push(Ack {
                range,
                begun_us,
                ended_us: session.shared.now_us(),
            });
        }
        Err(said) => session.failed(range, call, said),
    }
}

fn get(session: &mut Session<'_>, store: &mut dyn Store, range: usize, count: usize) {
    let numbers: Vec<usize> = (0..count).map(|_| any_key(session)).collect();
    let keys = session.shared.keys;
    let names: Vec<Vec<u8>> = numbers.iter().map(|n| keys.key(range, *n)).collect();
    let call = session.begin("get");
    let found = match store.get_many(&names) {
        Ok(found) if found.len() == names.len() => found,
        Ok(found) => {
            let text = format!("{} answers for {} keys", found.len(), names.len());
            return session.failed(range, call, Said::Wrong(text));
        }
        Err(said) => return session.failed(range, call, said),
    };
    // Each key at a moment of its own: so many calls.
    let returned = session.shared.moment();
    for ((number, name), value) in numbers.iter().zip(&names).zip(&found) {
        if let Some(seen) = session.seen(name, value.as_deref()) {
            let mut one = call.clone();
            one.reads = vec![(*number as Register, seen)];
            one.returned = Some(returned);
            session.log.calls.push((range, one));
        }
    }
}

fn scan(session: &mut Session<'_>, store: &mut dyn Store, range: usize) {
    let keys = session.shared.keys;
    let (low, high) = match session.dice.below(2) {
        0 => (0, keys.each),
        _ => {
            let (one, other) = (any_key(session), any_key(session));
            (one.min(other), one.max(other) + 1)
        }
    };
    let is_reverse = session.dice.below(3) == 0;
    let mut call = session.begin("scan");
    let bounds = (keys.bound(range, low), keys.bound(range, high));
    match store.scan(&bounds.0, &bounds.1, is_reverse) {
        Ok(pairs) => {
            call.reads = session.scanned(range, (low, high), is_reverse, pairs);
            session.done(range, call);
        }
        Err(said) => session.failed(range, call, said),
    }
}

/// What is read of a snapshot, also much later, it held at one moment of the call that made it.
fn snapshot(session: &mut Session<'_>, store: &mut dyn Store, range: usize) {
    let keys = session.shared.keys;
    let mut call = session.begin("snapshot");
    let mut moment = match store.snapshot(&keys.bound(range, 0)) {
        Ok(moment) => moment,
        Err(said) => return session.failed(range, call, said),
    };
    call.returned = Some(session.shared.moment());
    for _ in 0..1 + session.dice.below(3) {
        std::thread::sleep(Duration::from_millis(session.dice.below(30)));
        let number = any_key(session);
        let key = keys.key(range, number);
        match moment.get(&key) {
            Ok(value) => {
                let seen = session.seen(&key, value.as_deref());
                call.reads
                    .extend(seen.map(|seen| (number as Register, seen)));
            }
            Err(said) => return session.failed(range, call, said),
        }
    }
    match moment.scan(&keys.bound(range, 0), &keys.bound(range, keys.each)) {
        Ok(pairs) => {
            let reads = session.scanned(range, (0, keys.each), false, pairs);
            let differs = |(register, seen): &&(Register, kreon_judge::Seen)| {
                !reads.contains(&(*register, *seen))
            };
            if let Some((register, seen)) = call.reads.iter().find(differs) {
                let text = format!(
                    "a snapshot of range {range} shows {seen:?} to a get of key {register}, and something else to a scan"
                );
                return session.failed(range, call, Said::Wrong(text));
            }
            call.reads = reads;
            session.log.calls.push((range, call));
        }
        Err(said) => session.failed(range, call, said),
    }
}

fn change_of(session: &mut Session<'_>, range: usize, number: usize) -> (Change, Version) {
    let version = session.shared.version();
    let len_bytes = match session.dice.below(20) {
        0 => 2000 + session.dice.below(60_000),
        1..6 => 200 + session.dice.below(1800),
        _ => 16 + session.dice.below(100),
    };
    let bytes = value::encode(version, len_bytes as usize);
    let key = session.shared.keys.key(range, number);
    (Change::Put(key, bytes), version)
}

/// Some keys are asked for more often than others.
fn any_key(session: &mut Session<'_>) -> usize {
    let each = session.shared.keys.each as u64;
    let among = if session.dice.below(2) == 0 {
        each.div_ceil(5)
    } else {
        each
    };
    session.dice.below(among) as usize
}

/// Sleeps until `until`, or everybody ends.
pub fn rest(session: &Session<'_>, until: Instant) {
    while !session.shared.is_over() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(20)));
    }
}
