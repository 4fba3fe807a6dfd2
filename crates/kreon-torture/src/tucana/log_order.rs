//! The order of the log is that of the tree: of all records of a key the newest is the one that a replay finds, and it must be
//! the one that the store showed at last.
//!
//! Threads write the same keys at the same moment. Each appends its record and then waits for a slow device: the record that the
//! leaf points at must be read, to compare its key. So records come to leaves in any order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use ::tucana::Recovery;
use kreon_base::Error;
use kreon_judge::{Version, value};
use kreon_sim::{Call, Effect, Fault, Image, Keep, SimDevice, SimOptions};

use super::setting::options;
use super::store::Tucana;
use crate::engines::{Durability, Engine};
use crate::watchdog::without_panic;

/// Threads that race.
const RACERS: u64 = 4;

/// Races, each in an opening and in keys of its own.
const RACES: u64 = 4;

/// Keys of a race.
const KEYS: u64 = 24;

/// So long that each record has pages of its own.
const VALUE_BYTES: usize = 5000;

/// What a read of the device takes.
const READ_TIME: Duration = Duration::from_micros(400);

/// Has threads write the same keys at the same moments, and compares what they left with what a replay of the log finds.
///
/// # Errors
/// What is wrong.
pub(super) fn race() -> Result<(), String> {
    let told = |error: Error| format!("a race of writers: {error}");
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let key = |number: u64| (number as u32).to_be_bytes().to_vec();
    let keys: Vec<Vec<u8>> = (0..RACES * KEYS).map(key).collect();
    let store = open(&device).map_err(told)?;
    let first = value::encode(1, VALUE_BYTES);
    let put = |key: &Vec<u8>| store.change(key, Some(&first), Durability::Buffered);
    let mut puts = keys.iter().map(put);
    puts.try_for_each(|it| it.map(drop)).map_err(told)?;
    store.close().map_err(told)?;
    for (number, of_race) in (0..).zip(keys.chunks(KEYS as usize)) {
        // It has nothing in memory.
        let store = open(&device).map_err(told)?;
        device.inject(Fault::nth(1, Call::Read, Effect::Slow { time: READ_TIME }).for_ever());
        race_in(&store, of_race, 2 + number * KEYS * RACERS)?;
        device.clear_faults();
        let shown = store.contents(&keys).map_err(told)?;
        store.sync().map_err(told)?;
        let image = device.history().crash().image(&mut Keep::Nothing);
        compare(&shown, &replayed(image, &keys).map_err(told)?)?;
        store.close().map_err(told)?;
    }
    Ok(())
}

fn compare(shown: &[Option<Vec<u8>>], replayed: &[Option<Vec<u8>>]) -> Result<(), String> {
    match (0..shown.len()).find(|&key| shown[key] != replayed[key]) {
        None => Ok(()),
        Some(key) => {
            let version = |of: &[Option<Vec<u8>>]| of[key].as_deref().map(value::decode);
            let (shown, replayed) = (version(shown), version(replayed));
            Err(format!(
                "key {key} has {shown:?} after a race, a replay of the log finds {replayed:?}"
            ))
        }
    }
}

fn open(device: &Arc<SimDevice>) -> kreon_base::Result<Tucana> {
    Tucana::on(device, &options(1 << 20, 1 << 30, Recovery::ReplayLog))
}

/// What the next opening finds.
fn replayed(image: Image, keys: &[Vec<u8>]) -> kreon_base::Result<Vec<Option<Vec<u8>>>> {
    let device = Arc::new(SimDevice::from_image(image, SimOptions::default()));
    open(&device)?.contents(keys)
}

/// Each thread changes all keys, each key together with the others. Versions are those from `version` on.
fn race_in(store: &Tucana, keys: &[Vec<u8>], version: Version) -> Result<(), String> {
    let arrived = AtomicU64::new(0);
    let racer = |racer: u64| -> Result<(), String> {
        for (number, key) in (0..).zip(keys) {
            arrived.fetch_add(1, SeqCst);
            while arrived.load(SeqCst) < (number + 1) * RACERS {
                std::thread::yield_now();
            }
            let value = value::encode(version + number * RACERS + racer, 20);
            // A few deletions, which find a leaf without the key.
            let is_put = !(number + racer).is_multiple_of(7);
            let outcome = store.change(key, is_put.then_some(&value[..]), Durability::Buffered);
            outcome.map_err(|error| format!("a write in a race failed: {error}"))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let (racer, arrived) = (&racer, &arrived);
        let racers: Vec<_> = (0..RACERS)
            .map(|number| {
                scope.spawn(move || {
                    // The others do not wait for one that has failed.
                    without_panic(|| racer(number)).inspect_err(|_| {
                        arrived.fetch_add(u64::MAX / 2, SeqCst);
                    })
                })
            })
            .collect();
        let mut ends = racers.into_iter().map(|it| it.join());
        ends.try_for_each(|end| end.unwrap_or_else(|_| Err("PANIC of a racer".into())))
    })
}
