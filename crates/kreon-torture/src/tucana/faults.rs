//! Each call of the device fails in turn, while a store of Tucana is opened, used, verified and closed.
//!
//! Whatever fails: no call panics or hangs, the error is one of a failing device, reads are right or say that they failed, and the
//! next opening finds the last commit that ended, or the one that failed, whatever a power cut keeps of the rest.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use kreon_judge::Version;
use kreon_sim::{Call, Dice, Effect, Fault, Image, Keep, SimDevice};

use super::compare::{Wrong, contents};
use super::model::{Journal, Pairs};
use super::pattern::Pattern;
use super::session::{Moment, Session, excused};
use super::setting::Setting;
use crate::watchdog::{Watchdog, without_panic};
use crate::{Counts, Extent};

/// What befalls calls.
const EFFECTS: [(&str, Effect, bool); 5] = [
    ("io", Effect::Io, false),
    ("io for ever", Effect::Io, true),
    ("no space", Effect::OutOfSpace, false),
    ("no space for ever", Effect::OutOfSpace, true),
    ("cut short", Effect::Partial { sectors: 3 }, false),
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
            "tucana faults --seed {seed}, without a fault: {what}"
        )),
        Ok(starts) => {
            for case in starts.cases().into_iter().step_by(extent.stride.max(1)) {
                let label = format!("tucana faults --seed {seed}: {case}");
                watchdog.begin(label.clone());
                match without_panic(|| starts.run(seed, case)) {
                    Ok(true) => counts.count(&format!("{:?}: {}", case.call, case.effect.0)),
                    Ok(false) => counts.fail(format!("{label}: the call did not come")),
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
struct Start {
    image: Image,
    pairs: Pairs,
    version: Version,
}

/// The two of them, and the calls of the script on each without a fault.
struct Starts {
    setting: Setting,
    new: Start,
    used: Start,
    calls: [Vec<(Call, u64)>; 2],
}

impl Starts {
    fn new(seed: u64) -> Result<Self, Wrong> {
        let setting = Setting::of_faults();
        let count = |device: &SimDevice| CALLS.map(|call| (call, device.calls(call))).to_vec();
        let new = Start {
            image: Image::default(),
            pairs: vec![None; setting.keys.len()],
            version: 0,
        };
        let first = setting.device(Image::default(), true);
        script(&first, &setting, &new, seed)?;
        let image = first.image();
        let store = setting.open(&setting.device(image.clone(), false));
        let store = store.map_err(|error| error.to_string())?;
        let pairs = contents(&store, &setting.keys).map_err(|error| error.to_string())??;
        drop(store);
        let used = Start {
            image,
            pairs,
            version: 1 << 40,
        };
        let second = setting.device(used.image.clone(), true);
        script(&second, &setting, &used, seed)?;
        Ok(Self {
            calls: [count(&first), count(&second)],
            setting,
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

    /// Whether the call came.
    fn run(&self, seed: u64, case: Case) -> Result<bool, Wrong> {
        let (_, effect, lasts) = case.effect;
        let fault = Fault::nth(case.n, case.call, effect);
        let fault = if lasts { fault.for_ever() } else { fault };
        let start = if case.is_new { &self.new } else { &self.used };
        let device = self.setting.device(start.image.clone(), true);
        device.inject(fault);
        let journal = script(&device, &self.setting, start, seed)?;
        let was_met = device.faults_met() > 0;
        device.clear_faults();
        let mut dice = Dice::new(seed ^ case.n);
        let seed = dice.roll();
        for keep in [
            Keep::Nothing,
            Keep::All,
            Keep::SomeWrites { seed },
            Keep::SomeSectors { seed },
        ] {
            self.check(&device, &journal, keep)?;
        }
        Ok(was_met)
    }

    /// Opens what a power cut now leaves.
    fn check(&self, device: &SimDevice, journal: &Journal, mut keep: Keep) -> Result<(), Wrong> {
        let history = device.history();
        let events = history.events.len();
        let image = history.crash_after(events).image(&mut keep);
        let again = self.setting.device(image, false);
        let within = |error: ::tucana::Error| format!("after {keep:?}: {error}");
        let store = self.setting.open(&again).map_err(within)?;
        let found = contents(&store, &self.setting.keys).map_err(within)??;
        let outcome = journal.judge(&found, events);
        outcome.map_err(|what| format!("after {keep:?}: {what}"))?;
        store.verify().map_err(within)?;
        store.put(&self.setting.keys[0], b"").map_err(within)?;
        store.close().map_err(within)
    }
}

/// Opens a store, uses it, and closes it, on a device that may fail. What may be there afterwards.
fn script(
    device: &Arc<SimDevice>,
    setting: &Setting,
    start: &Start,
    seed: u64,
) -> Result<Journal, Wrong> {
    let mut dice = Dice::new(seed);
    let store = match setting.open(device) {
        Ok(store) => store,
        Err(error) => {
            excused("an opening", &error, device, setting)?;
            return Ok(Journal::new(start.pairs.clone()));
        }
    };
    let held = (start.pairs.clone(), start.version);
    let mut session = Session::new(&store, device, setting, held);
    session.compare_all(&mut dice)?;
    if start.version == 0 {
        session.fill(&mut dice)?;
    }
    let mut pattern = Pattern::new(&mut dice, setting.keys.len());
    for _ in 0..setting.steps {
        session.step(&mut dice, &mut pattern)?;
    }
    session.commit()?;
    session.verify()?;
    session.compare_all(&mut dice)?;
    let (mut journal, _, _) = session.end(&mut dice)?;
    let begin = Moment::of(device);
    let outcome = store.close();
    begin.note(device, outcome.is_ok(), &mut journal);
    outcome.or_else(|error| excused("a close", &error, device, setting))?;
    Ok(journal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_call_is_told_and_no_commit_of_tucana_is_lost() {
        let extent = Extent {
            stride: 67,
            ..Extent::default()
        };
        let counts = faults(1, extent);
        assert_eq!(counts.failures, Vec::<String>::new());
        assert!(counts.total() >= 10, "{counts}");
    }
}
