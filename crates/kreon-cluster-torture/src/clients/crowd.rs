//! Many clients at once.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kreon_sim::Dice;

use super::actions;
use super::face::{Enter, Store};
use super::session::{Log, Session, Shared};

/// How many, and how fast.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// Clients that do everything.
    pub clients: u32,
    /// Mean time between two calls of one of them.
    pub pace: Duration,
    /// Time between two writes to one range of the clients that do nothing else: they tell how long nobody could write.
    pub probe: Duration,
    /// Limit of calls.
    pub limit: Duration,
}

/// Limit of the calls of clients that tell how long nobody could write: one that waits for a frozen server tells nothing.
const PROBE_LIMIT: Duration = Duration::from_millis(250);

/// Lets the clients work while `meanwhile` runs, and returns what all of them did. Each comes in by `enter`, again and again
/// until it is let in.
pub fn work<R>(
    crowd: Crowd,
    shared: &Shared,
    dice: &mut Dice,
    enter: &Enter<'_>,
    meanwhile: impl FnOnce() -> R,
) -> (Log, R) {
    shared.stop.store(false, Ordering::Relaxed);
    let ranges = shared.keys.ranges as u32;
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..crowd.clients + ranges)
            .map(|number| {
                let mut session = Session::new(shared, number, dice.roll());
                scope.spawn(move || {
                    match number.checked_sub(crowd.clients) {
                        None => wander(&mut session, enter, crowd),
                        Some(range) => probe(&mut session, enter, range as usize, crowd.probe),
                    }
                    session.log
                })
            })
            .collect();
        let outcome = meanwhile();
        shared.stop.store(true, Ordering::Relaxed);
        let mut log = Log::default();
        for client in running {
            match client.join() {
                Ok(own) => log.add(own),
                Err(_) => shared.fail("PANIC of a client".into()),
            }
        }
        (log, outcome)
    })
}

fn entered(session: &Session<'_>, enter: &Enter<'_>, limit: Duration) -> Option<Box<dyn Store>> {
    while !session.shared.is_over() {
        match enter(limit) {
            Ok(store) => return Some(store),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
    None
}

fn wander(session: &mut Session<'_>, enter: &Enter<'_>, crowd: Crowd) {
    let Some(mut store) = entered(session, enter, crowd.limit) else {
        return;
    };
    let ranges = session.shared.keys.ranges as u64;
    let home = session.dice.below(ranges);
    while !session.shared.is_over() {
        let range = match session.dice.below(3) {
            0 => session.dice.below(ranges),
            _ => home,
        };
        actions::any(session, store.as_mut(), range as usize);
        let wait_us = session.dice.below(2 * crowd.pace.as_micros() as u64 + 1);
        actions::rest(session, Instant::now() + Duration::from_micros(wait_us));
    }
}

fn probe(session: &mut Session<'_>, enter: &Enter<'_>, range: usize, every: Duration) {
    let Some(mut store) = entered(session, enter, PROBE_LIMIT) else {
        return;
    };
    while !session.shared.is_over() {
        let next = Instant::now() + every;
        actions::put(session, store.as_mut(), range);
        actions::rest(session, next);
    }
}
