//! Requests, cuts and checks.

use std::sync::Arc;

use ::kvell::format::{EXTENT_BYTES, SUPERBLOCK_SLOTS};
use ::kvell::partition::Durability;
use kreon_base::PAGE_BYTES;
use kreon_sim::{
    Call, Dice, Effect, Fault, Image, Keep, SECTOR_BYTES, SimDevice, SimOptions, Survival, Version,
};

use super::model::KeyModel;
use super::setting::Setting;
use super::store::Kvell;
use super::world::World;
use crate::Counts;
use crate::engines::Cut;

/// With so much memory no put is refused for lack of it.
const AMPLE_BYTES: usize = 2 << 20;

impl Cut for Kvell {
    /// Power cuts of a course, each with a crash state that is opened and compared.
    const STATES: u64 = 12;

    fn cuts(seed: u64) -> (Counts, Result<(), String>) {
        let mut counts = Counts::default();
        for _ in 0..Self::STATES {
            counts.count("crash states");
        }
        (counts, run(seed, Self::STATES))
    }
}

/// Opens, uses and cuts a store `rounds` times, all from `seed`. `Err` tells what was wrong, and in which round.
fn run(seed: u64, rounds: u64) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    let setting = Setting::new(&mut dice);
    let mut course = Course {
        image: used(setting.garbage_bytes, &mut dice),
        models: setting.keys.iter().map(|_| KeyModel::new(None)).collect(),
        events: 0,
        stamp: 0,
        setting,
        dice,
    };
    for round in 0..rounds {
        let setting = course.setting.clone();
        course
            .round()
            .map_err(|what| format!("seed {seed}, round {round}: {what}\n{setting:?}"))?;
    }
    Ok(())
}

/// A device that had other content: so many bytes of it behind the place of the superblocks.
fn used(len_bytes: usize, dice: &mut Dice) -> Image {
    let mut image = Image::default();
    if len_bytes == 0 {
        return image;
    }
    let words = (0..len_bytes.div_ceil(8)).map(|_| dice.roll().to_le_bytes());
    let bytes = words.flatten().collect::<Vec<u8>>();
    let start = (SUPERBLOCK_SLOTS * PAGE_BYTES) as u64;
    image.set_len((start + len_bytes as u64).max(EXTENT_BYTES as u64));
    image.write(start, &bytes[..len_bytes]);
    image
}

/// A store between two openings.
struct Course {
    setting: Setting,
    dice: Dice,
    /// What a power cut left.
    image: Image,
    /// What the keys may have after that cut, which was behind so many events.
    models: Vec<KeyModel>,
    events: usize,
    stamp: u64,
}

impl Course {
    fn round(&mut self) -> Result<(), String> {
        self.setting.vary(&mut self.dice);
        let options = SimOptions {
            block_bytes: 512,
            len_bytes_max: self.setting.len_bytes_max,
            ..SimOptions::default()
        };
        let device = Arc::new(SimDevice::from_image(self.image.clone(), options));
        if self.dice.below(8) == 0 {
            inject(&device, &self.setting, &mut self.dice, 12);
        }
        let mut world = match World::open(Arc::clone(&device), &self.setting) {
            Ok(world) => world,
            // What was there before is there still.
            Err(_) if device.faults_met() > 0 => {
                self.cut(&device);
                return Ok(());
            }
            Err(error) => return Err(error.to_string()),
        };
        device.clear_faults();
        // Before the first request: nothing is under way.
        world.verify(&self.setting)?;
        compare(&mut world, &self.setting, &self.models, self.events)?;
        let met_before = device.faults_met();
        if self.dice.below(4) == 0 {
            inject(&device, &self.setting, &mut self.dice, 60);
        }
        for _ in 0..20 + self.dice.below(200) {
            self.act(&mut world)?;
        }
        if device.faults_met() > met_before {
            // Every request is answered nonetheless.
            world.settle()?;
        } else if self.dice.below(4) == 0 {
            device.clear_faults();
            self.settle(&mut world)?;
            if self.dice.below(2) == 0 {
                self.close(&device, &mut world)?;
            }
        }
        world.check_memory(&self.setting)?;
        self.events = self.cut(&device);
        self.models = world.models;
        Ok(())
    }

    /// Closes the store, now and then on a device that fails meanwhile.
    fn close(&mut self, device: &SimDevice, world: &mut World) -> Result<(), String> {
        if self.dice.below(4) == 0 {
            inject(device, &self.setting, &mut self.dice, 8);
        }
        let met_before = device.faults_met();
        match world.close() {
            Err(error) if device.faults_met() == met_before => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    /// Takes a power cut's image behind any event, whose number it returns.
    fn cut(&mut self, device: &SimDevice) -> usize {
        let dice = &mut self.dice;
        let history = device.history();
        let events = match dice.below(4) {
            0 => device.events(),
            _ => dice.below(device.events() as u64 + 1) as usize,
        };
        let crash = history.crash_after(events);
        let seed = dice.roll();
        self.image = match dice.below(8) {
            _ if self.setting.is_lossless => crash.image(&mut Keep::All),
            0 => crash.image(&mut Keep::All),
            1 => crash.image(&mut Keep::Nothing),
            2 => crash.image(&mut Keep::SomeWrites { seed }),
            _ => crash.image(&mut some_units(seed, self.setting.atomic_bytes)),
        };
        events
    }

    /// Ends all that is under way, and compares every key. Now and then all keys are deleted, and get what they had once
    /// more: there was room for that.
    fn settle(&mut self, world: &mut World) -> Result<(), String> {
        settle(world, &self.setting)?;
        if self.setting.memory_bytes < AMPLE_BYTES || self.dice.below(2) == 0 {
            return Ok(());
        }
        let keys = &self.setting.keys;
        let last = world.models.iter().map(KeyModel::last);
        let last: Vec<_> = last.map(|value| value.map(<[u8]>::to_vec)).collect();
        for key in 0..keys.len() {
            world.change(keys, key, None, Durability::Sync);
        }
        settle(world, &self.setting)?;
        for (key, value) in last.iter().enumerate() {
            if value.is_some() {
                world.change(keys, key, value.clone(), Durability::Sync);
            }
        }
        settle(world, &self.setting)?;
        let is_back =
            |(model, value): (&KeyModel, &Option<Vec<u8>>)| model.last() == value.as_deref();
        match world.models.iter().zip(&last).all(is_back) {
            true => Ok(()),
            false => Err("after all keys were deleted there is less room than before".into()),
        }
    }

    fn act(&mut self, world: &mut World) -> Result<(), String> {
        let (setting, dice) = (&self.setting, &mut self.dice);
        let die = dice.below(100);
        if die < setting.requests {
            ask(world, setting, dice, &mut self.stamp);
            return world.judge_replies();
        }
        if die < setting.requests + setting.transfers {
            world.take_transfers(setting.depth);
            return world.end_transfer(dice);
        }
        match dice.below(12) {
            0 => world.mark(),
            1 => {
                world.ask_for_marks();
                world.flush(false)
            }
            _ => world.flush(dice.below(4) > 0),
        }
    }
}

/// A fault of one of the next `calls` calls of a kind, now and then of all from that one on.
fn inject(device: &SimDevice, setting: &Setting, dice: &mut Dice, calls: u64) {
    let call = [Call::Write, Call::Read, Call::Flush][dice.below(3) as usize];
    let effect = match dice.below(4) {
        0 => Effect::OutOfSpace,
        1 => Effect::Partial {
            sectors: dice.below(4) * (setting.atomic_bytes / SECTOR_BYTES) as u64,
        },
        _ => Effect::Io,
    };
    let fault = Fault::nth(1 + dice.below(calls), call, effect);
    device.inject(match dice.below(3) {
        0 => fault.for_ever(),
        _ => fault,
    });
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
