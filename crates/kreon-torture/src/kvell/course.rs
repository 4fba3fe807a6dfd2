//! Requests, cuts and checks.

use std::sync::Arc;

use ::kvell::partition::Durability;
use kreon_sim::{
    Call, Dice, Effect, Fault, Image, Keep, SECTOR_BYTES, SimDevice, SimOptions, Survival, Version,
};

use super::model::KeyModel;
use super::setting::Setting;
use super::world::World;

/// Opens, uses and cuts a store `rounds` times, all from `seed`. `Err` tells what was wrong, and in which round.
pub(super) fn run(seed: u64, rounds: u64) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    let setting = Setting::new(&mut dice);
    let mut image = Image::default();
    let mut models: Vec<KeyModel> = setting.keys.iter().map(|_| KeyModel::new(None)).collect();
    let mut events = 0;
    let mut stamp = 0;
    for round in 0..rounds {
        let within = |what: String| format!("seed {seed}, round {round}: {what}\n{setting:?}");
        let options = SimOptions {
            block_bytes: 512,
            len_bytes_max: setting.len_bytes_max,
            ..SimOptions::default()
        };
        let device = Arc::new(SimDevice::from_image(image.clone(), options));
        let open =
            |device| World::open(device, &setting).map_err(|error| within(error.to_string()));
        let mut world = open(Arc::clone(&device))?;
        compare(&mut world, &setting, &models, events).map_err(within)?;
        if dice.below(4) == 0 {
            let call = [Call::Write, Call::Read, Call::Flush][dice.below(3) as usize];
            let effect = match dice.below(4) {
                0 => Effect::OutOfSpace,
                1 => Effect::Partial {
                    sectors: dice.below(4) * (setting.atomic_bytes / SECTOR_BYTES) as u64,
                },
                _ => Effect::Io,
            };
            device.inject(Fault::nth(1 + dice.below(60), call, effect));
        }
        let actions = 20 + dice.below(200);
        for _ in 0..actions {
            act(&mut world, &setting, &mut dice, &mut stamp).map_err(within)?;
        }
        if device.faults_met() > 0 {
            // Every request is answered nonetheless.
            world.settle().map_err(within)?;
        } else if dice.below(4) == 0 {
            device.clear_faults();
            settle(&mut world, &setting).map_err(within)?;
        }
        world.check_memory(&setting).map_err(within)?;
        let history = device.history();
        let mut crash = history.crash();
        events = match dice.below(4) {
            0 => device.events(),
            _ => dice.below(device.events() as u64 + 1) as usize,
        };
        for _ in 0..events {
            crash.advance();
        }
        let cut = dice.roll();
        image = match dice.below(8) {
            0 => crash.image(&mut Keep::All),
            1 => crash.image(&mut Keep::Nothing),
            2 => crash.image(&mut Keep::SomeWrites { seed: cut }),
            _ => crash.image(&mut some_units(cut, setting.atomic_bytes)),
        };
        models = world.models;
    }
    Ok(())
}

/// Each atomic unit has any of its contents.
fn some_units(seed: u64, atomic_bytes: usize) -> impl Survival {
    let sectors = (atomic_bytes / SECTOR_BYTES) as u64;
    move |sector: u64, versions: &[Version]| {
        // The sectors of a unit were written together, so they have as many contents each.
        let die = Dice::new(seed ^ (sector / sectors).rotate_left(32)).roll();
        (die % (versions.len() as u64 + 1))
            .checked_sub(1)
            .map(|choice| choice as usize)
    }
}

/// Compares an open store with what its keys may have, and goes on from what they have.
fn compare(
    world: &mut World,
    setting: &Setting,
    models: &[KeyModel],
    events: usize,
) -> Result<(), String> {
    for (key, model) in models.iter().enumerate() {
        let found = world
            .look(&setting.keys, key)
            .map_err(|error| format!("key {key}: {error}"))?;
        if !model.may_survive(events, found.as_deref()) {
            let told = found.map(|value| value.len());
            return Err(format!(
                "key {key} has {told:?} bytes after event {events}: {model:?}"
            ));
        }
        world.models.push(KeyModel::new(found));
    }
    Ok(())
}

fn settle(world: &mut World, setting: &Setting) -> Result<(), String> {
    world.settle()?;
    for key in 0..setting.keys.len() {
        let found = world
            .look(&setting.keys, key)
            .map_err(|error| format!("key {key}: {error}"))?;
        if world.models[key].last() != found.as_deref() {
            return Err(format!(
                "key {key} is not the last: {:?}",
                world.models[key]
            ));
        }
    }
    world.check_slots()
}

fn act(
    world: &mut World,
    setting: &Setting,
    dice: &mut Dice,
    stamp: &mut u64,
) -> Result<(), String> {
    let die = dice.below(100);
    if die < setting.requests {
        ask(world, setting, dice, stamp);
        return world.judge_replies();
    }
    if die < setting.requests + setting.transfers {
        world.take_transfers(setting.depth);
        return world.end_transfer(dice);
    }
    match dice.below(12) {
        0 => world.mark(),
        _ => world.flush(dice.below(4) > 0),
    }
}

fn ask(world: &mut World, setting: &Setting, dice: &mut Dice, stamp: &mut u64) {
    let key = dice.below(setting.keys.len() as u64) as usize;
    if dice.below(4) == 0 {
        return world.get(&setting.keys, key);
    }
    let durability = match dice.below(100) < setting.buffered {
        true => Durability::Buffered,
        false => Durability::Sync,
    };
    if dice.below(100) < setting.deletes {
        return world.change(&setting.keys, key, None, durability);
    }
    *stamp += 1;
    let mut len_bytes = setting.value_bytes[dice.below(setting.value_bytes.len() as u64) as usize];
    if dice.below(3) == 0 {
        len_bytes += dice.below(50) as usize;
    }
    let mut value = vec![*stamp as u8; len_bytes];
    for (to, from) in value.iter_mut().zip(stamp.to_le_bytes()) {
        *to = from;
    }
    world.change(&setting.keys, key, Some(value), durability);
}
