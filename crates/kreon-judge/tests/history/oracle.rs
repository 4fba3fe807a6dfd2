//! Histories from a generator, and a search through all their orders.

use std::collections::HashMap;

use kreon_judge::{Call, History, Register, Seen, State};
use proptest::prelude::*;

/// Whether there is an order, by trying all.
pub fn has_an_order(history: &History) -> bool {
    let is_found = history.recovered.is_none();
    go(history, &history.before, 0, is_found)
}

fn go(history: &History, state: &State, done: u32, was_recovered: bool) -> bool {
    let all = || history.calls.iter().enumerate();
    let is_done = |number: usize| done >> number & 1 == 1;
    let durable_done = all().all(|(number, call)| !call.is_durable || is_done(number));
    let was_recovered = was_recovered || durable_done && history.recovered.as_ref() == Some(state);
    if was_recovered && all().all(|(number, call)| call.returned.is_none() || is_done(number)) {
        return true;
    }
    for (number, call) in all().filter(|(number, _)| !is_done(*number)) {
        let mut others = all().filter(|(other, _)| *other != number && !is_done(*other));
        if others.any(|(_, other)| other.precedes(call)) || !fits(state, call) {
            continue;
        }
        let mut next = state.clone();
        for (register, version) in &call.writes {
            match version {
                Some(version) => next.insert(*register, *version),
                None => next.remove(register),
            };
        }
        if go(history, &next, done | 1 << number, was_recovered) {
            return true;
        }
    }
    false
}

fn fits(state: &State, call: &Call) -> bool {
    call.reads.iter().all(|(register, seen)| {
        let held = state.get(register);
        match seen {
            Seen::Absent => held.is_none(),
            Seen::Present => held.is_some(),
            Seen::Version(version) => held == Some(version),
        }
    })
}

/// What a call is like: kind, register, and how long before and after its moment it lasts.
type Seed = (u8, u8, u8, u8);

/// Few calls on few registers.
pub fn small_history() -> impl Strategy<Value = History> {
    (any_history(6, 2, 6), any::<[u8; 3]>()).prop_map(|(mut history, [what, at, durable])| {
        let count = history.calls.len();
        if let Some(call) = history.calls.get_mut(usize::from(at) % count.max(1))
            && what & 1 == 1
        {
            call.returned = None;
        }
        for (number, call) in history.calls.iter_mut().enumerate() {
            let is_write = call.returned.is_some() && !call.writes.is_empty();
            call.is_durable = is_write && durable >> number & 1 == 1;
        }
        if what & 2 == 2 {
            // Some state that was there once, or never.
            let mut state = State::new();
            for call in history.calls.iter().take(usize::from(what >> 4)) {
                apply(&mut state, call);
            }
            history.recovered = Some(state);
        }
        history
    })
}

/// Calls that have an order.
pub fn any_history(calls: usize, registers: u64, longest: u64) -> impl Strategy<Value = History> {
    let seeds = prop::collection::vec(any::<Seed>(), 0..=calls);
    seeds.prop_map(move |seeds| in_order(&seeds, registers, longest))
}

fn apply(state: &mut State, call: &Call) {
    for (register, version) in &call.writes {
        match version {
            Some(version) => state.insert(*register, *version),
            None => state.remove(register),
        };
    }
}

/// The calls take effect in the order of `seeds`.
fn in_order(seeds: &[Seed], registers: u64, longest: u64) -> History {
    let mut history = History::default();
    let mut state: State = HashMap::new();
    for (number, &(kind, place, before, after)) in (0..).zip(seeds) {
        // Moments lie 2 apart, so that calls of length 2 to `longest` meet each other.
        let moment = 100 + number * 2;
        let register: Register = u64::from(place) % registers;
        let other = (register + 1) % registers;
        let invoked = moment - u64::from(before) % longest;
        let mut call = Call::read("call", invoked, moment + u64::from(after) % longest);
        let see = |register| match state.get(&register) {
            Some(version) => (register, Seen::Version(*version)),
            None => (register, Seen::Absent),
        };
        let version = Some(1000 + number * 10);
        match kind % 9 {
            0 | 1 => call.writes = vec![(register, version)],
            2 => call.writes = vec![(register, None)],
            3 => call.writes = vec![(register, version), (other, Some(1001 + number * 10))],
            4 => call.writes = vec![(register, version), (other, None)],
            5 => {
                call.reads = vec![see(other)];
                call.writes = vec![(register, version)];
            }
            6 => call.reads = vec![see(register), see(other)],
            7 if state.contains_key(&register) => call.reads = vec![(register, Seen::Present)],
            _ => call.reads = vec![see(register)],
        }
        apply(&mut state, &call);
        history.calls.push(call);
    }
    history
}

/// `history` with one thing changed: most often it has no order then.
pub fn moved(mut history: History, [what, at, by, value]: [u8; 4]) -> History {
    let versions: Vec<_> = history
        .calls
        .iter()
        .flat_map(|call| &call.writes)
        .copied()
        .collect();
    let count = history.calls.len().max(1);
    let Some(call) = history.calls.get_mut(usize::from(at) % count) else {
        return history;
    };
    match what % 4 {
        0 => call.invoked = (call.invoked + u64::from(by) % 8).min(call.returned.unwrap_or(0)),
        1 => {
            let earliest = call.invoked;
            call.returned = call
                .returned
                .map(|end| (end - u64::from(by) % 8).max(earliest));
        }
        2 if !call.writes.is_empty() => {
            call.writes.pop();
            call.is_durable &= !call.writes.is_empty();
        }
        _ => {
            if let Some((register, seen)) = call.reads.first_mut() {
                let known: Vec<_> = versions.iter().filter(|(r, _)| r == register).collect();
                *seen = match known.get(usize::from(value) % (known.len() + 2)) {
                    Some((_, Some(version))) => Seen::Version(*version),
                    Some((_, None)) => Seen::Absent,
                    None => Seen::Present,
                };
            }
        }
    }
    history
}
