//! Faults: every single call of the device fails once, or from then on, and the store must take it:
//! with a sensible error, without panic, hang, or loss of anything acknowledged.

use std::time::Instant;

use kreon_base::{Error, ErrorKind, SEGMENT_BYTES};
use kreon_engine::Engine;
use kreon_sim::{Call, Dice, Effect, Fault, Image, Keep};

use crate::check::{After, check, is_sound, said};
use crate::content::{self, Content};
use crate::counts::Counts;
use crate::script::{Change, Shape, Step, Taste, Value, script};
use crate::store::{Store, progress_at};
use crate::watchdog::{Watchdog, without_panic};

/// What a sweep fails.
#[derive(Clone, Copy)]
struct Class {
    name: &'static str,
    call: Call,
    effect: Effect,
    /// All calls from the n-th on, not this one alone.
    for_ever: bool,
}

const CLASSES: [Class; 13] = [
    Class { name: "read EIO", call: Call::Read, effect: Effect::Io, for_ever: false },
    Class { name: "write EIO", call: Call::Write, effect: Effect::Io, for_ever: false },
    Class { name: "write cut short", call: Call::Write, effect: Effect::Partial { sectors: 1 }, for_ever: false },
    Class { name: "write ENOSPC", call: Call::Write, effect: Effect::OutOfSpace, for_ever: false },
    Class { name: "write EIO from then on", call: Call::Write, effect: Effect::Io, for_ever: true },
    Class { name: "flush EIO", call: Call::Flush, effect: Effect::Io, for_ever: false },
    Class { name: "flush EIO from then on", call: Call::Flush, effect: Effect::Io, for_ever: true },
    Class { name: "allocate EIO", call: Call::Allocate, effect: Effect::Io, for_ever: false },
    Class { name: "allocate ENOSPC", call: Call::Allocate, effect: Effect::OutOfSpace, for_ever: false },
    Class { name: "allocate ENOSPC from then on", call: Call::Allocate, effect: Effect::OutOfSpace, for_ever: true },
    Class { name: "grow EIO", call: Call::Grow, effect: Effect::Io, for_ever: false },
    Class { name: "grow ENOSPC from then on", call: Call::Grow, effect: Effect::OutOfSpace, for_ever: true },
    Class { name: "discard EIO", call: Call::Discard, effect: Effect::Io, for_ever: false },
];

/// Sweeps all classes over a script of `steps` steps: n = 1, 2, 3, ... until a run meets no fault, but
/// at most `runs_max` runs of each class, evenly.
pub fn faults(steps: usize, seed: u64, runs_max: u64) -> Counts {
    let started = Instant::now();
    let watchdog = Watchdog::start();
    let mut counts = Counts::default();
    let base = match base(seed) {
        Ok(base) => base,
        Err(what) => {
            counts.fail(format!("the store to start from: {what}"));
            return counts;
        }
    };
    for class in CLASSES {
        for is_new in [true, false] {
            let start = match is_new {
                true => (Image::default(), Content::new()),
                false => base.clone(),
            };
            sweep(class, &start, (steps, seed, runs_max), &watchdog, &mut counts);
        }
    }
    sweep_disks(seed, runs_max, &watchdog, &mut counts);
    counts.elapsed = started.elapsed();
    counts
}

/// Disks from very small ones to one that a script does not fill.
fn sweep_disks(seed: u64, runs_max: u64, watchdog: &Watchdog, counts: &mut Counts) {
    let stride = (60 / runs_max.max(1)).max(1);
    for segments in (LEAST_SEGMENTS..).step_by(stride as usize) {
        let label = format!("{SMALL_DISK:?} n {segments} new true steps 90 seed {seed}");
        watchdog.begin(&label);
        let start = (Image::default(), Content::new());
        match without_panic(|| run_small_disk(segments, &start, 90, seed)) {
            Ok(outcome) if !outcome.met => return,
            Ok(_) => counts.count(SMALL_DISK),
            Err(what) => {
                counts.count(SMALL_DISK);
                counts.fail(format!("{label}: {what}"));
            }
        }
        if segments > 128 {
            return;
        }
    }
}

/// Name of the class of disks that are full.
const SMALL_DISK: &str = "small disk";

/// Too little to begin with: the head of the volume, two log segments, and the least reserve.
const LEAST_SEGMENTS: u64 = 10;

fn run_small_disk(segments: u64, start: &(Image, Content), steps: usize, seed: u64) -> Result<Outcome, String> {
    let class = Class {
        name: SMALL_DISK,
        call: Call::Allocate,
        effect: Effect::OutOfSpace,
        for_ever: true,
    };
    let mut trial = Trial {
        store: Store::on(start.0.clone(), &start.1, true),
        class,
        met_before: false,
        is_disk_small: true,
    };
    trial.store.device.set_space_bytes_max(segments * SEGMENT_BYTES);
    trial.open()?;
    let shape = Shape { giants_max: 40, keys: 14, taste: Taste::Giants, ..Shape::mixed(steps) };
    for (number, step) in script(seed ^ 0xd15c, shape, &[]).iter().enumerate() {
        trial.step(step).map_err(|what| format!("step {number}: {what}"))?;
    }
    let met = trial.met_before;
    trial.empty()?;
    trial.put_again()?;
    trial.finish().map(|outcome| Outcome { met, ..outcome })
}

/// Tries one fault again. `class` is its name, `is_new` whether the store is new.
///
/// # Errors
/// What is wrong.
pub fn replay(class: &str, n: u64, is_new: bool, steps: usize, seed: u64) -> Result<(), String> {
    if class == SMALL_DISK {
        return run_small_disk(n, &(Image::default(), Content::new()), steps, seed).map(drop);
    }
    let class = CLASSES.into_iter().find(|known| known.name == class).ok_or("no such class")?;
    let start = if is_new { (Image::default(), Content::new()) } else { base(seed)? };
    run(class, n, &start, steps, seed).map(drop)
}

/// A store with content, cut off by a power cut: its open replays a log.
fn base(seed: u64) -> Result<(Image, Content), String> {
    let mut store = Store::on(Image::default(), &Content::new(), true);
    store.open().map_err(said("open"))?;
    let shape = Shape::mixed(80);
    for step in script(seed ^ 0xba5e, shape, &[]) {
        store.step(&step)?.map_err(said("a step"))?;
    }
    let image = store.device.history().crash().image(&mut Keep::All);
    let progress = progress_at(&store.timeline, store.device.events());
    let found = check(image.clone(), &store.model, progress, After::Nothing, false)?;
    Ok((image, found.content))
}

fn sweep(
    class: Class,
    start: &(Image, Content),
    (steps, seed, runs_max): (usize, u64, u64),
    watchdog: &Watchdog,
    counts: &mut Counts,
) {
    // How many calls there are without any fault, to spread the runs over them.
    let calls = without_panic(|| run(class, u64::MAX, start, steps, seed)).map_or(runs_max, |run| run.calls);
    let stride = calls.div_ceil(runs_max.max(1)).max(1);
    let mut dice = Dice::new(seed ^ calls);
    let mut n = 1;
    loop {
        let is_new = start.1.is_empty();
        let label = format!("{:?} n {n} new {is_new} steps {steps} seed {seed}", class.name);
        watchdog.begin(&label);
        match without_panic(|| run(class, n, start, steps, seed)) {
            Ok(run) if !run.met => return,
            Ok(_) => counts.count(class.name),
            Err(what) => {
                counts.count(class.name);
                counts.fail(format!("{label}: {what}"));
                if n > calls * 2 + 100 {
                    return;
                }
            }
        }
        n += if stride == 1 { 1 } else { 1 + dice.below(2 * stride - 1) };
    }
}

/// What a run met.
struct Outcome {
    met: bool,
    calls: u64,
}

fn run(class: Class, n: u64, start: &(Image, Content), steps: usize, seed: u64) -> Result<Outcome, String> {
    let (image, content) = start;
    let mut trial = Trial {
        store: Store::on(image.clone(), content, true),
        class,
        met_before: false,
        is_disk_small: false,
    };
    let fault = Fault::nth(n, class.call, class.effect);
    trial.store.device.inject(if class.for_ever { fault.for_ever() } else { fault });
    trial.open()?;
    let regions: Vec<_> = content.keys().cloned().collect();
    let shape = Shape::of(seed, steps);
    for (number, step) in script(seed ^ 0xfa17, shape, &regions).iter().enumerate() {
        trial.step(step).map_err(|what| format!("step {number}: {what}"))?;
    }
    trial.finish()
}

/// A store under a fault.
struct Trial {
    store: Store,
    class: Class,
    /// A fault was met on a device that is no longer in use.
    met_before: bool,
    /// No call is made to fail: there is just little space.
    is_disk_small: bool,
}

impl Trial {
    fn has_met(&self) -> bool {
        self.met_before || self.store.device.faults_met() > 0
    }

    /// Opens; an open that meets the fault may fail, but not once more. After a failed flush a device
    /// may show what it will never keep: a power cut comes in between.
    fn open(&mut self) -> Result<(), String> {
        let before = self.store.device.faults_met();
        let Err(error) = self.store.open().map(drop) else { return Ok(()) };
        self.is_sensible(&error).map_err(|what| format!("open: {what}"))?;
        if self.store.device.faults_met() == before {
            return Err(format!("open failed without a fault: {error}"));
        }
        self.store.device.clear_faults();
        if self.class.call == Call::Flush {
            self.met_before = true;
            self.store.power_cycle();
        }
        self.store.open().map(drop).map_err(|again| format!("open after a failed open ({error}): {again}"))
    }

    fn is_sensible(&self, error: &Error) -> Result<(), String> {
        let is_expected = match error.kind() {
            ErrorKind::Io | ErrorKind::Poisoned => true,
            ErrorKind::OutOfSpace => self.class.effect == Effect::OutOfSpace,
            _ => false,
        };
        let is_expected = is_expected && (!self.is_disk_small || error.kind() == ErrorKind::OutOfSpace);
        match is_expected && (self.has_met() || self.is_disk_small) {
            true => Ok(()),
            false => Err(format!("unexpected error {error}")),
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        if self.is_moot(step) {
            return Ok(());
        }
        let Err(error) = self.store.step(step)? else { return Ok(()) };
        self.is_sensible(&error).map_err(|what| format!("{step:?}: {what}"))?;
        match step {
            Step::Write(..) => self.settle_write(&error)?,
            Step::Create(_) | Step::Drop(_) => self.settle_region_change(&error)?,
            Step::Reopen => return self.reopen(),
            _ => {}
        }
        if error.kind() == ErrorKind::OutOfSpace {
            self.met_before |= self.is_disk_small;
            return self.check_deletions();
        }
        Ok(())
    }

    /// The step names a region that is not there, because its making failed.
    fn is_moot(&self, step: &Step) -> bool {
        match step {
            Step::Write(changes, _) => changes.iter().any(|c| !self.store.model.has_region(&c.region)),
            Step::Drop(name) => !self.store.model.has_region(name),
            _ => false,
        }
    }

    fn engine(&self) -> Result<&Engine, String> {
        self.store.engine().map_err(said("engine"))
    }

    /// A write failed: whether readers see it is for the store to say, but it is one or the other.
    fn settle_write(&mut self, error: &Error) -> Result<(), String> {
        let found = content::read(self.engine()?).map_err(said("read after a failed write"))?;
        let end = self.store.model.end();
        if error.kind() != ErrorKind::OutOfSpace && found == self.store.model.content(end) {
            return Ok(());
        }
        self.store.undo_write();
        let expected = self.store.model.content(self.store.model.end());
        if found == expected {
            return Ok(());
        }
        let text = content::difference(&expected, &found);
        Err(format!("after a write that failed with {error}: {text}"))
    }

    fn settle_region_change(&mut self, error: &Error) -> Result<(), String> {
        let found = self.engine()?.region_names();
        let names = |store: &Store| store.model.content(store.model.end()).into_keys().collect::<Vec<_>>();
        if found == names(&self.store) {
            return Ok(());
        }
        // In doubt it stays begun: a reopened store may have it.
        let expected = self.store.model.clone();
        self.store.undo_region_change();
        if found != names(&self.store) {
            return Err(format!("regions {found:?} after a change that failed with {error}"));
        }
        if error.kind() != ErrorKind::OutOfSpace {
            self.store.model = expected;
            self.store.progress.begun_region_changes += 1;
            // No later step relies on either.
            return self.reopen();
        }
        Ok(())
    }

    /// Ends the store, which may be poisoned, and opens what a power cut leaves, without faults.
    fn reopen(&mut self) -> Result<(), String> {
        self.met_before = self.has_met();
        self.store.abandon();
        self.store.power_cycle();
        self.open()?;
        let progress = self.store.progress;
        let found = content::read(self.engine()?).map_err(said("read"))?;
        let units = progress.durable_units..=progress.begun_units;
        let changes = progress.durable_region_changes..=progress.begun_region_changes;
        if self.store.model.find(&found, units, changes).is_none() {
            let expected = self.store.model.content(self.store.model.end());
            return Err(format!("reopened, {progress:?}: {}", content::difference(&expected, &found)));
        }
        self.store.rebase(&found);
        Ok(())
    }

    /// A full store takes deletions.
    fn check_deletions(&mut self) -> Result<(), String> {
        let content = self.store.model.content(self.store.model.end());
        let all = content.iter().flat_map(|(name, pairs)| pairs.keys().map(move |key| (name, key)));
        let victims: Vec<_> = all.step_by(7).take(5).map(|(n, k)| (n.clone(), k.clone())).collect();
        for (region, key) in victims {
            let change = Change { region, key, value: None };
            let step = Step::Write(vec![change], kreon_engine::Durability::Sync);
            if let Err(error) = self.store.step(&step)? {
                if error.kind() == ErrorKind::Poisoned && self.class.call == Call::Write {
                    return self.settle_write(&error);
                }
                return Err(format!("a deletion on a full device: {error}"));
            }
        }
        Ok(())
    }

    /// Deletes everything and makes that durable.
    fn empty(&mut self) -> Result<(), String> {
        let content = self.store.model.content(self.store.model.end());
        for (region, pairs) in content {
            for key in pairs.into_keys() {
                let change = Change { region: region.clone(), key, value: None };
                let step = Step::Write(vec![change], kreon_engine::Durability::Buffered);
                self.store.step(&step)?.map_err(|error| format!("emptying a full store: {error}"))?;
            }
        }
        let outcome = self.store.step(&Step::Checkpoint)?;
        outcome.map_err(|error| format!("a checkpoint of an emptied store: {error}"))
    }

    /// Without faults: what is there now, what a reopen finds, what power cuts leave; and that the
    /// store works again.
    fn finish(mut self) -> Result<Outcome, String> {
        let outcome = Outcome {
            met: self.has_met(),
            calls: self.store.device.calls(self.class.call),
        };
        self.store.device.clear_faults();
        let found = content::read(self.engine()?).map_err(said("the last read"))?;
        let expected = self.store.model.content(self.store.model.end());
        if found != expected {
            return Err(format!("at the end: {}", content::difference(&expected, &found)));
        }
        self.check_is_poisoned_or_works()?;
        let progress = self.store.progress;
        let history = self.store.device.history();
        let crash = history.crash();
        for mut keep in [Keep::Nothing, Keep::All, Keep::SomeSectors { seed: 5 }] {
            check(crash.image(&mut keep), &self.store.model, progress, After::Checkpoint, false)
                .map_err(|what| format!("power cut at the end, {keep:?}: {what}"))?;
        }
        self.reopen()?;
        let content = self.store.model.content(self.store.model.end());
        is_sound(self.engine()?, &content)?;
        self.put_again()?;
        Ok(outcome)
    }

    /// A store that had no room and is not poisoned takes new data when there is room again.
    fn check_is_poisoned_or_works(&mut self) -> Result<(), String> {
        match self.put_again() {
            Err(what) if what.contains("poisoned") && self.has_met() && !self.must_go_on() => Ok(()),
            outcome => outcome,
        }
    }

    /// Faults of these classes never stop a store.
    fn must_go_on(&self) -> bool {
        match self.class.call {
            Call::Allocate | Call::Grow => self.class.effect == Effect::OutOfSpace,
            Call::Discard => true,
            _ => false,
        }
    }

    fn put_again(&mut self) -> Result<(), String> {
        let value = Some(Value { len_bytes: 3000, seed: 8 });
        let change = Change { region: "again".to_owned(), key: b"key".to_vec(), value };
        let durability = kreon_engine::Durability::Sync;
        for step in [
            Step::Create("again".to_owned()),
            Step::Write(vec![change], durability),
            Step::Checkpoint,
        ] {
            if let Err(error) = self.store.step(&step)? {
                return Err(format!("{step:?} without a fault: {error}"));
            }
        }
        let content = self.store.model.content(self.store.model.end());
        is_sound(self.engine()?, &content)
    }
}
