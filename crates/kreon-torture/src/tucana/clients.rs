//! How clients use stores of Tucana.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ::tucana::{Direction, Maintenance, Options, Recovery, ScanRange};
use kreon_base::Result;
use kreon_judge::Register;
use kreon_sim::{Dice, SimDevice, SimOptions};

use super::log_order;
use super::setting::options;
use super::store::Tucana;
use crate::engines::{Shared, World, seen};

/// What all openings of a store have in common.
pub struct Manner {
    memory_bytes: usize,
    /// What a write of the device takes: others come between the steps of a commit.
    write_time: Duration,
    recovery: Recovery,
}

/// What is wrong.
type Outcome = std::result::Result<(), String>;

impl Shared for Tucana {
    const SITTINGS: u64 = 3;
    const HAS_ONE_ORDER: bool = true;
    const NEIGHBOURS: usize = 2;
    const BUFFERED: [u64; 3] = [85, 98, 100];
    type Manner = Manner;

    fn manner(dice: &mut Dice) -> Manner {
        Manner {
            memory_bytes: [512 << 10, 512 << 10, 4 << 20][dice.below(3) as usize],
            write_time: Duration::from_micros([0, 0, 60, 400][dice.below(4) as usize]),
            recovery: [Recovery::LastCommit, Recovery::ReplayLog][dice.below(2) as usize],
        }
    }

    fn device(manner: &Manner, _dice: &mut Dice) -> SimOptions {
        SimOptions {
            write_time: manner.write_time,
            ..SimOptions::default()
        }
    }

    /// With or without the threads of the store.
    fn open(manner: &Manner, device: &Arc<SimDevice>, dice: &mut Dice) -> Result<Self> {
        let options = Options {
            maintenance: [Maintenance::Callers, Maintenance::Thread][dice.below(2) as usize],
            commit_interval: Duration::from_millis([1, 10, 1000][dice.below(3) as usize]),
            ..options(manner.memory_bytes, 1 << 30, manner.recovery)
        };
        Self::on(device, &options)
    }

    fn own_call(world: &World<'_, Self>, client: u32, dice: &mut Dice) -> Outcome {
        match dice.below(24) {
            0 => world.makes_durable(|| world.store.store.verify()).map(drop),
            1..=3 => commit(world),
            4..=10 => snapshot(world, client, dice),
            _ => scan(world, client, dice),
        }
    }

    fn beside() -> Outcome {
        log_order::race()
    }
}

fn commit(world: &World<'_, Tucana>) -> Outcome {
    world.makes_durable(|| world.store.store.commit()).map(drop)
}

/// A scan shows each key at a moment of its own.
fn scan(world: &World<'_, Tucana>, client: u32, dice: &mut Dice) -> Outcome {
    let first = dice.below(world.keys.len() as u64) as usize;
    let end = (first + 1 + dice.below(3) as usize).min(world.keys.len());
    let range = ScanRange {
        low: world.keys[first].clone(),
        high: world.keys.get(end).cloned(),
    };
    let direction = match dice.below(2) {
        0 => Direction::Forward,
        _ => Direction::Reverse,
    };
    let mut call = world.begin(client, "scan");
    let found: Result<Vec<_>> = world.store.scan(&range, direction).collect();
    let Some(found) = world.well(found)? else {
        return Ok(());
    };
    world.end(&mut call);
    let is_next = |pair: &[(Vec<u8>, Vec<u8>)]| match direction {
        Direction::Forward => pair[0].0 < pair[1].0,
        Direction::Reverse => pair[0].0 > pair[1].0,
    };
    if !found.windows(2).all(is_next) {
        return Err(format!("a {direction:?} scan is not in order"));
    }
    let found: BTreeMap<_, _> = found.into_iter().collect();
    let shown = (first..end).map(|key| {
        let found = found.get(&world.keys[key]).cloned();
        seen(found).map(|shown| (key as Register, shown))
    });
    let shown = shown.collect::<std::result::Result<Vec<_>, String>>()?;
    world.record_each(&call, shown);
    Ok(())
}

/// A snapshot, which shows one moment, however late it is read.
fn snapshot(world: &World<'_, Tucana>, client: u32, dice: &mut Dice) -> Outcome {
    let mut call = world.begin(client, "snapshot");
    let snapshot = world.well(world.store.store.snapshot())?;
    world.end(&mut call);
    let Some(snapshot) = snapshot else {
        return Ok(());
    };
    for _ in 0..dice.below(12) {
        match dice.below(6) {
            0 => commit(world)?,
            1 => std::thread::sleep(Duration::from_micros(dice.below(2000))),
            _ => world.change(client, dice)?,
        }
    }
    for (key, bytes) in (0..).zip(world.keys) {
        let Some(found) = world.well(world.store.get_in(&snapshot, bytes))? else {
            return Ok(());
        };
        call.reads.push((key, seen(found)?));
    }
    let range = ScanRange::default();
    let all = world.store.scan_in(&snapshot, &range, Direction::Forward);
    let all: Result<BTreeMap<_, _>> = all.collect();
    let Some(all) = world.well(all)? else {
        return Ok(());
    };
    for (key, known) in &call.reads {
        let bytes = &world.keys[*key as usize];
        if seen(all.get(bytes).cloned())? != *known {
            return Err("a scan of a snapshot shows another value than a get".into());
        }
    }
    world.record(call);
    Ok(())
}
