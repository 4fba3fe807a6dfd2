//! What stores of KVell do while calls of the device fail.
//!
//! A get has the last value or says that it failed, and what was acknowledged as durable is there at the next opening.

use std::sync::Arc;

use ::kvell::Options;
use kreon_base::{Error, ErrorKind};
use kreon_sim::{Dice, Image, Keep, SimDevice, SimOptions};

use super::model::KeyModel;
use super::store::Kvell;
use crate::engines::{Durability, Engine, Scripted};

/// Keys of the script.
const KEYS: u8 = 24;

/// Changes of the script.
const CHANGES: u64 = 60;

/// A volume, and what its keys have.
pub struct Volume {
    image: Image,
    models: Vec<KeyModel>,
}

impl Scripted for Kvell {
    const PARTIAL_SECTORS: u64 = 1;
    /// Its workers take another course every time.
    const IS_REPEATABLE: bool = false;
    type Volume = Volume;
    type Model = Vec<KeyModel>;

    fn new_volume(_seed: u64) -> Volume {
        Volume {
            image: Image::default(),
            models: (0..KEYS).map(|_| KeyModel::new(None)).collect(),
        }
    }

    fn used_volume(_: &Volume, image: Image, models: &Vec<KeyModel>) -> Result<Volume, String> {
        let models = again(models);
        Ok(Volume { image, models })
    }

    fn device(volume: &Volume, seed: u64) -> Arc<SimDevice> {
        let options = SimOptions {
            queue_seed: seed,
            ..SimOptions::default()
        };
        Arc::new(SimDevice::from_image(volume.image.clone(), options))
    }

    fn script(
        volume: &Volume,
        device: &Arc<SimDevice>,
        seed: u64,
    ) -> Result<Vec<KeyModel>, String> {
        let mut run = Run {
            device,
            models: again(&volume.models),
            dice: Dice::new(seed),
            stamp: seed << 32,
        };
        run.script().map(|()| run.models)
    }

    fn check(
        _: &Volume,
        models: &Vec<KeyModel>,
        device: &SimDevice,
        mut keep: Keep,
    ) -> Result<(), String> {
        let history = device.history();
        let events = history.events.len();
        let image = history.crash_after(events).image(&mut keep);
        let device = Arc::new(SimDevice::from_image(image, SimOptions::default()));
        let within = |error: Error| format!("after {keep:?}: {error}");
        let store = open(&device).map_err(within)?;
        for (key, model) in (0..KEYS).zip(models) {
            let found = store.get(&[key]).map_err(within)?;
            if !model.may_survive(events, found.as_deref()) {
                let bytes = found.map(|found| found.len());
                return Err(format!(
                    "key {key} has {bytes:?} bytes after {keep:?}: {model:?}"
                ));
            }
        }
        store.verify().map_err(within)?;
        store.close().map_err(within)
    }
}

/// The same keys at a later opening.
fn again(models: &[KeyModel]) -> Vec<KeyModel> {
    models.iter().map(KeyModel::again).collect()
}

/// A run of the script, perhaps under a fault.
struct Run<'a> {
    device: &'a Arc<SimDevice>,
    models: Vec<KeyModel>,
    dice: Dice,
    stamp: u64,
}

impl Run<'_> {
    /// Opens the store, changes and reads, verifies and closes it. What fails must be the device's fault.
    fn script(&mut self) -> Result<(), String> {
        let store = match open(self.device) {
            Ok(store) => store,
            Err(error) => return self.excused("the opening", &error),
        };
        for _ in 0..CHANGES {
            self.change(&store)?;
            self.get(&store)?;
        }
        let outcomes = [
            ("a sync", store.sync()),
            // What it says of damage is of the failing device.
            ("a verification", store.store().verify().map(drop)),
            ("the close", store.close()),
        ];
        let failed = outcomes
            .into_iter()
            .filter_map(|(what, it)| Some((what, it.err()?)));
        for (what, error) in failed {
            self.excused(what, &error)?;
        }
        Ok(())
    }

    fn change(&mut self, store: &Kvell) -> Result<(), String> {
        let key = self.dice.below(KEYS.into()) as u8;
        let durability = match self.dice.below(4) {
            0 => Durability::Buffered,
            _ => Durability::Sync,
        };
        self.stamp += 1;
        let len_bytes = [20, 300, 900, 20_000][self.dice.below(4) as usize];
        let value = (self.dice.below(4) > 0).then(|| {
            let mut value = self.stamp.to_le_bytes().to_vec();
            value.resize(len_bytes, key);
            value
        });
        let model = &mut self.models[usize::from(key)];
        let number = model.begin(value.clone());
        match store.change(&[key], value.as_deref(), durability) {
            Ok(_) => {
                let events = self.device.events();
                model.done(number, (durability == Durability::Sync).then_some(events));
                Ok(())
            }
            Err(error) => {
                if error.kind() == ErrorKind::OutOfSpace {
                    model.refused(number);
                }
                self.excused("a change", &error)
            }
        }
    }

    fn get(&mut self, store: &Kvell) -> Result<(), String> {
        let key = self.dice.below(KEYS.into()) as u8;
        let model = &self.models[usize::from(key)];
        match store.get(&[key]) {
            Ok(value) if model.may_see(model.floor(), value.as_deref()) => Ok(()),
            Ok(value) => {
                let bytes = value.map(|value| value.len());
                Err(format!(
                    "a get of key {key} gave {bytes:?} bytes: {model:?}"
                ))
            }
            Err(error) => self.excused("a get", &error),
        }
    }

    /// `Ok` if a failure of the device explains the error.
    fn excused(&self, what: &str, error: &Error) -> Result<(), String> {
        let is_of_device = matches!(
            error.kind(),
            ErrorKind::Io | ErrorKind::OutOfSpace | ErrorKind::Poisoned
        );
        match is_of_device && self.device.faults_met() > 0 {
            true => Ok(()),
            false => Err(format!("{what} failed: {error} ({:?})", error.kind())),
        }
    }
}

fn open(device: &Arc<SimDevice>) -> kreon_base::Result<Kvell> {
    let options = Options {
        memory_bytes: 400 << 10,
        partitions: 2,
        workers: Some(1),
        ..Options::default()
    };
    Kvell::on(device, &options)
}
