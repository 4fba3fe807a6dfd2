//! Each call of the device fails in turn, while a store of KVell is opened, used, verified and closed.
//!
//! Whatever fails: no call panics or hangs, the error is one of a failing device, a get has the last value or says that it
//! failed, and what was acknowledged as durable is there at the next opening, whatever a power cut keeps of the rest.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use ::kvell::{Durability, Options, Region, Store};
use kreon_base::{Error, ErrorKind};
use kreon_device::Device;
use kreon_sim::{Call, Dice, Effect, Fault, Image, Keep, SimDevice, SimOptions, Survival};

use super::model::KeyModel;
use crate::watchdog::{Watchdog, without_panic};
use crate::{Counts, Extent};

/// Keys of the script.
const KEYS: u8 = 24;

/// Changes of the script.
const CHANGES: u64 = 60;

/// What befalls calls.
const EFFECTS: [(&str, Effect, bool); 5] = [
    ("io", Effect::Io, false),
    ("io for ever", Effect::Io, true),
    ("no space", Effect::OutOfSpace, false),
    ("no space for ever", Effect::OutOfSpace, true),
    ("cut short", Effect::Partial { sectors: 1 }, false),
];

const CALLS: [Call; 6] = [
    Call::Read,
    Call::Write,
    Call::Flush,
    Call::Grow,
    Call::Allocate,
    Call::Discard,
];

/// A run of the script, and what befalls it.
#[derive(Clone, Copy)]
struct Case {
    /// On a new volume, or on one that the script has run on.
    is_new: bool,
    call: Call,
    effect: (&'static str, Effect, bool),
    n: u64,
}

/// Fails one in `extent.stride` of all calls of the script, on a new volume and on one with content.
pub fn faults(seed: u64, extent: Extent) -> Counts {
    let started = Instant::now();
    let watchdog = Watchdog::start();
    let mut counts = Counts::default();
    match without_panic(|| Starts::new(seed)) {
        Err(what) => counts.fail(format!(
            "kvell faults --seed {seed}, without a fault: {what}"
        )),
        Ok(starts) => {
            for case in starts.cases().into_iter().step_by(extent.stride.max(1)) {
                let label = format!("kvell faults --seed {seed}: {case}");
                watchdog.begin(label.clone());
                match without_panic(|| starts.run(seed, case)) {
                    Ok(true) => counts.count(&format!("{:?}: {}", case.call, case.effect.0)),
                    // The workers have taken another course, with fewer calls.
                    Ok(false) => counts.note("calls that did not come"),
                    Err(what) => counts.fail(format!("{label}: {what}")),
                }
                if counts.failed > 0 && extent.stops_at_first {
                    break;
                }
            }
        }
    }
    counts.elapsed = started.elapsed();
    counts
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let volume = if self.is_new {
            "a new volume"
        } else {
            "a volume"
        };
        let (call, n, effect) = (self.call, self.n, self.effect.0);
        write!(f, "{call:?} {n} of {volume}: {effect}")
    }
}

/// What the script runs on.
struct Starts {
    /// A volume that it ran on, and what its keys have.
    image: Image,
    models: Vec<KeyModel>,
    /// Calls of the script without a fault, on a new volume and on that one.
    calls: [Vec<(Call, u64)>; 2],
}

impl Starts {
    fn new(seed: u64) -> Result<Self, String> {
        let count = |device: &SimDevice| CALLS.map(|call| (call, device.calls(call))).to_vec();
        let mut first = Trial::new(seed, Image::default(), blank());
        first.script()?;
        let image = first.device.image();
        let models: Vec<KeyModel> = first.models.iter().map(KeyModel::again).collect();
        let again = models.iter().map(KeyModel::again).collect();
        let mut second = Trial::new(seed, image.clone(), again);
        second.script()?;
        Ok(Self {
            calls: [count(&first.device), count(&second.device)],
            image,
            models,
        })
    }

    /// Every effect on every call.
    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for (is_new, calls) in [true, false].into_iter().zip(&self.calls) {
            for &(call, count) in calls {
                for n in 1..=count {
                    cases.extend(EFFECTS.map(|effect| Case {
                        is_new,
                        call,
                        effect,
                        n,
                    }));
                }
            }
        }
        cases
    }

    /// `false`: the call did not come.
    fn run(&self, seed: u64, case: Case) -> Result<bool, String> {
        let (_, effect, lasts) = case.effect;
        let fault = Fault::nth(case.n, case.call, effect);
        let fault = if lasts { fault.for_ever() } else { fault };
        let (image, models) = match case.is_new {
            true => (Image::default(), blank()),
            false => {
                let models = self.models.iter().map(KeyModel::again);
                (self.image.clone(), models.collect())
            }
        };
        Trial::new(seed, image, models).run(fault)
    }
}

fn blank() -> Vec<KeyModel> {
    (0..KEYS).map(|_| KeyModel::new(None)).collect()
}

/// A run of the script under a fault.
struct Trial {
    device: Arc<SimDevice>,
    models: Vec<KeyModel>,
    dice: Dice,
    stamp: u64,
}

impl Trial {
    fn new(seed: u64, image: Image, models: Vec<KeyModel>) -> Self {
        let options = SimOptions {
            queue_seed: seed,
            ..SimOptions::default()
        };
        Self {
            device: Arc::new(SimDevice::from_image(image, options)),
            models,
            dice: Dice::new(seed),
            stamp: seed << 32,
        }
    }

    /// Runs the script under `fault`, then opens what power cuts may leave. `false`: nothing failed.
    fn run(mut self, fault: Fault) -> Result<bool, String> {
        self.device.inject(fault);
        self.script()?;
        let was_met = self.device.faults_met() > 0;
        self.device.clear_faults();
        let seed = self.dice.roll();
        for keep in [Keep::Nothing, Keep::All, Keep::SomeWrites { seed }] {
            self.check(keep)?;
        }
        Ok(was_met)
    }

    /// Opens the store, changes and reads, verifies and closes it. What fails must be the device's fault.
    fn script(&mut self) -> Result<(), String> {
        let store = match open(&self.device) {
            Ok(store) => store,
            Err(error) => return self.excused("the opening", &error),
        };
        let region = match store.region("r") {
            Ok(region) => region,
            Err(error) => return self.excused("the region", &error),
        };
        for _ in 0..CHANGES {
            self.change(&region)?;
            self.get(&region)?;
        }
        let outcomes = [
            ("a sync", store.sync()),
            ("a verification", store.verify().map(drop)),
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

    fn change(&mut self, region: &Region) -> Result<(), String> {
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
        let outcome = match value {
            Some(value) => region.put([key], value, durability),
            None => region.delete([key], durability),
        };
        match outcome {
            Ok(()) => {
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

    fn get(&mut self, region: &Region) -> Result<(), String> {
        let key = self.dice.below(KEYS.into()) as u8;
        let model = &self.models[usize::from(key)];
        match region.get([key]) {
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

    /// Opens what a power cut now leaves, and compares every key.
    fn check(&self, mut keep: Keep) -> Result<(), String> {
        let history = self.device.history();
        let mut crash = history.crash();
        while crash.advance() {}
        let image = crash.image(&mut keep as &mut dyn Survival);
        let device = Arc::new(SimDevice::from_image(image, SimOptions::default()));
        let within = |what: &str, error: Error| format!("{what} after {keep:?}: {error}");
        let store = open(&device).map_err(|error| within("an opening", error))?;
        let region = store
            .region("r")
            .map_err(|error| within("a region", error))?;
        for (key, model) in (0..KEYS).zip(&self.models) {
            let found = region.get([key]).map_err(|error| within("a get", error))?;
            if !model.may_survive(self.device.events(), found.as_deref()) {
                let bytes = found.map(|found| found.len());
                return Err(format!(
                    "key {key} has {bytes:?} bytes after {keep:?}: {model:?}"
                ));
            }
        }
        let report = store
            .verify()
            .map_err(|error| within("a verification", error))?;
        match report.damage.first() {
            None => store.close().map_err(|error| within("a close", error)),
            Some(damage) => Err(format!("damage after {keep:?}: {damage}")),
        }
    }
}

fn open(device: &Arc<SimDevice>) -> kreon_base::Result<Store> {
    let options = Options {
        memory_bytes: 400 << 10,
        partitions: 2,
        workers: Some(1),
        ..Options::default()
    };
    options.open_on(Arc::clone(device) as Arc<dyn Device>)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_call_is_told_and_nothing_durable_is_lost() {
        let counts = faults(
            1,
            Extent {
                stride: 83,
                ..Extent::default()
            },
        );
        assert_eq!(counts.failures, Vec::<String>::new());
        assert!(counts.total() >= 10, "{counts}");
    }
}
