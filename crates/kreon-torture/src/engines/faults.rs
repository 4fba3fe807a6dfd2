//! Each call of the device fails in turn, while a store is opened, used, verified and closed.
//!
//! Whatever fails: no call panics or hangs, the error is one of a failing device, reads are right or say that they failed, and the
//! next opening finds what was durable, whatever a power cut keeps of the rest.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use kreon_sim::{Call, Dice, Effect, Fault, Image, Keep, SimDevice};

use super::engine::Engine;
use crate::watchdog::{Watchdog, without_panic};
use crate::{Counts, Extent};

/// What befalls a call, and whether it befalls all later ones of its kind, too.
type Befalls = (&'static str, Effect, bool);

const CALLS: [Call; 6] = [
    Call::Read,
    Call::Write,
    Call::Flush,
    Call::Grow,
    Call::Allocate,
    Call::Discard,
];

/// An engine with a script that faults befall.
pub(crate) trait Scripted: Engine {
    /// Sectors that a call moves which is cut short.
    const PARTIAL_SECTORS: u64;

    /// Every run of a script makes the same calls.
    const IS_REPEATABLE: bool;

    /// A volume, and what it holds.
    type Volume;

    /// What may be there after a run.
    type Model;

    /// A volume without a store, for the script by `seed`.
    fn new_volume(seed: u64) -> Self::Volume;

    /// The volume that a run on `volume` without a fault has left.
    fn used_volume(
        volume: &Self::Volume,
        image: Image,
        model: &Self::Model,
    ) -> Result<Self::Volume, String>;

    /// A device with the volume.
    fn device(volume: &Self::Volume, seed: u64) -> Arc<SimDevice>;

    /// Opens a store, uses it, and closes it, on a device that may fail.
    fn script(
        volume: &Self::Volume,
        device: &Arc<SimDevice>,
        seed: u64,
    ) -> Result<Self::Model, String>;

    /// Opens what a power cut now leaves, and compares it with what may be there.
    fn check(
        volume: &Self::Volume,
        model: &Self::Model,
        device: &SimDevice,
        keep: Keep,
    ) -> Result<(), String>;
}

/// A run of the script, and what befalls it.
#[derive(Clone, Copy)]
struct Case {
    /// On a new volume, or on one that the script has run on.
    is_new: bool,
    call: Call,
    befalls: Befalls,
    n: u64,
}

/// Fails one in `extent.stride` of all calls of the script, on a new volume and on one with content.
pub(crate) fn faults<E: Scripted>(seed: u64, extent: Extent) -> Counts {
    let started = Instant::now();
    let watchdog = Watchdog::start();
    let mut counts = Counts::default();
    let told = format!("{} faults --seed {seed}", E::NAME);
    match without_panic(|| Volumes::<E>::new(seed)) {
        Err(what) => counts.fail(format!("{told}, without a fault: {what}")),
        Ok(volumes) => {
            for case in volumes.cases().into_iter().step_by(extent.stride.max(1)) {
                let label = format!("{told}: {case}");
                watchdog.begin(label.clone());
                match without_panic(|| volumes.run(seed, case)) {
                    Ok(true) => counts.count(&format!("{:?}: {}", case.call, case.befalls.0)),
                    Ok(false) if E::IS_REPEATABLE => {
                        counts.fail(format!("{label}: the call did not come"));
                    }
                    // Threads of the store have taken another course, with fewer calls.
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
        let (call, n, effect) = (self.call, self.n, self.befalls.0);
        write!(f, "{call:?} {n} of {volume}: {effect}")
    }
}

fn effects(sectors: u64) -> [Befalls; 5] {
    [
        ("io", Effect::Io, false),
        ("io for ever", Effect::Io, true),
        ("no space", Effect::OutOfSpace, false),
        ("no space for ever", Effect::OutOfSpace, true),
        ("cut short", Effect::Partial { sectors }, false),
    ]
}

/// What the script runs on, and its calls on each without a fault.
struct Volumes<E: Scripted> {
    new: E::Volume,
    used: E::Volume,
    calls: [Vec<(Call, u64)>; 2],
}

impl<E: Scripted> Volumes<E> {
    fn new(seed: u64) -> Result<Self, String> {
        let count = |device: &SimDevice| CALLS.map(|call| (call, device.calls(call))).to_vec();
        let new = E::new_volume(seed);
        let first = E::device(&new, seed);
        let model = E::script(&new, &first, seed)?;
        let used = E::used_volume(&new, first.image(), &model)?;
        let second = E::device(&used, seed);
        E::script(&used, &second, seed)?;
        Ok(Self {
            calls: [count(&first), count(&second)],
            new,
            used,
        })
    }

    /// Every effect on every call.
    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for (is_new, calls) in [true, false].into_iter().zip(&self.calls) {
            for &(call, count) in calls {
                for n in 1..=count {
                    cases.extend(effects(E::PARTIAL_SECTORS).map(|befalls| Case {
                        is_new,
                        call,
                        befalls,
                        n,
                    }));
                }
            }
        }
        cases
    }

    /// Runs the script under a fault, then opens what power cuts may leave. Whether the call came.
    fn run(&self, seed: u64, case: Case) -> Result<bool, String> {
        let (_, effect, lasts) = case.befalls;
        let fault = Fault::nth(case.n, case.call, effect);
        let volume = if case.is_new { &self.new } else { &self.used };
        let device = E::device(volume, seed);
        device.inject(if lasts { fault.for_ever() } else { fault });
        let model = E::script(volume, &device, seed)?;
        let was_met = device.faults_met() > 0;
        device.clear_faults();
        let seed = Dice::new(seed ^ case.n).roll();
        for keep in [
            Keep::Nothing,
            Keep::All,
            Keep::SomeWrites { seed },
            Keep::SomeSectors { seed },
        ] {
            E::check(volume, &model, &device, keep)?;
        }
        Ok(was_met)
    }
}
