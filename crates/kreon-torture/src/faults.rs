//! Faults: every single call of the device fails once, or from then on, and the store must take it:
//! with a sensible error, without panic, hang, or loss of anything acknowledged.

use std::time::Instant;

use kreon_base::SEGMENT_BYTES;
use kreon_sim::{Call, Dice, Effect, Fault, Image, Keep};

use crate::check::{After, check, said};
use crate::content::Content;
use crate::counts::Counts;
use crate::script::{Shape, Taste, script};
use crate::store::{Store, progress_at};
use crate::trial::{Class, Outcome, Trial};
use crate::watchdog::{Watchdog, without_panic};

const CLASSES: [Class; 13] = [
    Class::once("read EIO", Call::Read, Effect::Io),
    Class::once("write EIO", Call::Write, Effect::Io),
    Class::once(
        "write cut short",
        Call::Write,
        Effect::Partial { sectors: 1 },
    ),
    Class::once("write ENOSPC", Call::Write, Effect::OutOfSpace),
    Class::from_then_on("write EIO from then on", Call::Write, Effect::Io),
    Class::once("flush EIO", Call::Flush, Effect::Io),
    Class::from_then_on("flush EIO from then on", Call::Flush, Effect::Io),
    Class::once("allocate EIO", Call::Allocate, Effect::Io),
    Class::once("allocate ENOSPC", Call::Allocate, Effect::OutOfSpace),
    Class::from_then_on(
        "allocate ENOSPC from then on",
        Call::Allocate,
        Effect::OutOfSpace,
    ),
    Class::once("grow EIO", Call::Grow, Effect::Io),
    Class::from_then_on("grow ENOSPC from then on", Call::Grow, Effect::OutOfSpace),
    Class::once("discard EIO", Call::Discard, Effect::Io),
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
            sweep(
                class,
                &start,
                (steps, seed, runs_max),
                &watchdog,
                &mut counts,
            );
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

fn run_small_disk(
    segments: u64,
    start: &(Image, Content),
    steps: usize,
    seed: u64,
) -> Result<Outcome, String> {
    let class = Class::from_then_on(SMALL_DISK, Call::Allocate, Effect::OutOfSpace);
    let mut trial = Trial {
        store: Store::on(start.0.clone(), &start.1, true),
        class,
        met_before: false,
        is_disk_small: true,
    };
    trial
        .store
        .device
        .set_space_bytes_max(segments * SEGMENT_BYTES);
    trial.open()?;
    let shape = Shape {
        giants_max: 40,
        keys: 14,
        taste: Taste::Giants,
        ..Shape::mixed(steps)
    };
    for (number, step) in script(seed ^ 0xd15c, shape, &[]).iter().enumerate() {
        trial
            .step(step)
            .map_err(|what| format!("step {number}: {what}"))?;
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
    let class = CLASSES
        .into_iter()
        .find(|known| known.name == class)
        .ok_or("no such class")?;
    let start = if is_new {
        (Image::default(), Content::new())
    } else {
        base(seed)?
    };
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
    let calls = without_panic(|| run(class, u64::MAX, start, steps, seed))
        .map_or(runs_max, |run| run.calls);
    let stride = calls.div_ceil(runs_max.max(1)).max(1);
    let mut dice = Dice::new(seed ^ calls);
    let mut n = 1;
    loop {
        let is_new = start.1.is_empty();
        let label = format!(
            "{:?} n {n} new {is_new} steps {steps} seed {seed}",
            class.name
        );
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
        n += if stride == 1 {
            1
        } else {
            1 + dice.below(2 * stride - 1)
        };
    }
}

fn run(
    class: Class,
    n: u64,
    start: &(Image, Content),
    steps: usize,
    seed: u64,
) -> Result<Outcome, String> {
    let (image, content) = start;
    let mut trial = Trial {
        store: Store::on(image.clone(), content, true),
        class,
        met_before: false,
        is_disk_small: false,
    };
    let fault = Fault::nth(n, class.call, class.effect);
    trial.store.device.inject(if class.for_ever {
        fault.for_ever()
    } else {
        fault
    });
    trial.open()?;
    let regions: Vec<_> = content.keys().cloned().collect();
    let shape = Shape::of(seed, steps);
    for (number, step) in script(seed ^ 0xfa17, shape, &regions).iter().enumerate() {
        trial
            .step(step)
            .map_err(|what| format!("step {number}: {what}"))?;
    }
    trial.finish()
}
