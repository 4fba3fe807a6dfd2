//! A round: several clients at once, and maybe a power cut among them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kreon_judge::Call;
use kreon_sim::{Dice, SimDevice};

use super::client::Client;
use super::mix::Mix;
use super::world::World;

/// Calls of one client, at most.
const CALLS_MAX: u64 = 900;

/// When the power was cut.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// It was still there.
    pub after: u64,
    /// It was gone.
    pub before: u64,
}

impl Cut {
    /// It was not.
    pub const NEVER: Self = Self {
        after: u64::MAX,
        before: u64::MAX,
    };
}

/// Runs the clients of one round to their end. With `device`, its power is cut meanwhile.
///
/// # Errors
/// What a client should not have seen.
pub fn calls_of_clients(
    world: &World,
    dice: &mut Dice,
    device: Option<&SimDevice>,
) -> Result<(Vec<Call>, Option<Cut>), String> {
    let any_number = 2 + dice.below(5) as u32;
    let clients = world.crowd.clients.unwrap_or(any_number);
    let calls_each = 100 + dice.below(CALLS_MAX - 100);
    // A load that had not returned may survive without the buffered writes beside it: no prefix has that.
    let mix = Mix::of(dice, device.is_none());
    let mix = match world.crowd.transactions {
        Some(_) => mix.with_transactions(),
        None => mix,
    };
    let begun = world.calls.load(Ordering::Relaxed);
    let cut_at = begun + dice.below(u64::from(clients) * calls_each);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..clients)
            .map(|number| {
                let client = Client::new(world, number, mix.clone(), dice.roll());
                scope.spawn(move || {
                    let outcome = client.run(calls_each);
                    if outcome.is_err() {
                        world.stop.store(true, Ordering::Relaxed);
                    }
                    outcome
                })
            })
            .collect();
        let cut = device.map(|device| {
            let is_over = || running.iter().all(|client| client.is_finished());
            while world.calls.load(Ordering::Relaxed) < cut_at && !is_over() {
                std::thread::sleep(Duration::from_micros(50));
            }
            cut_power(world, device)
        });
        let mut calls = Vec::new();
        for client in running {
            let outcome = client.join().map_err(|_| "PANIC of a client".to_owned());
            calls.extend(outcome.and_then(|outcome| outcome)?);
        }
        Ok((calls, cut))
    })
}

fn cut_power(world: &World, device: &SimDevice) -> Cut {
    let after = world.now();
    world.cut.store(after, Ordering::SeqCst);
    device.power_off();
    Cut {
        after,
        before: world.now(),
    }
}

/// The calls that tell what a recovery may find: writes in the order of the log, and snapshots, which
/// are moments of that order. Single reads may see two writes that were made at the same time in
/// another order than the log has them.
pub fn up_to_the_cut(calls: &[Call], cut: Cut) -> Vec<Call> {
    let has_returned = |call: &&Call| call.returned.is_some_and(|at| at < cut.after);
    let settled = calls
        .iter()
        .filter(|call| call.is_durable && call.writes.is_empty())
        .filter(has_returned)
        .map(|call| call.invoked)
        .max()
        .unwrap_or(0);
    let mut told = Vec::new();
    for call in calls.iter().filter(|call| call.invoked <= cut.before) {
        if call.writes.is_empty() && !matches!(call.what, "snapshot" | "scan") {
            continue;
        }
        let mut call = call.clone();
        if !has_returned(&&call) {
            (call.returned, call.is_durable) = (None, false);
        }
        call.is_durable |= call.returned.is_some_and(|at| at < settled);
        told.push(call);
    }
    told
}
