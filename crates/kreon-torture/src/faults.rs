//! Faults: every single call of the device fails once, or from then on, and the store must take it:
//! with a sensible error, without panic, hang, or loss of anything acknowledged.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use kreon_base::SEGMENT_BYTES;
use kreon_sim::{Call, Dice, Effect, Image, Keep};

use crate::check::{After, check, said};
use crate::class::{CLASSES, Class};
use crate::content::Content;
use crate::counts::Counts;
use crate::damage::Extent;
use crate::progress::progress_at;
use crate::script::{Shape, Taste, script};
use crate::store::Store;
use crate::trial::Trial;
use crate::watchdog::{Watchdog, without_panic};
use crate::workload::{self, Workload};

/// Name of the class of disks that are full.
const SMALL_DISK: &str = "small disk";

/// Too little to begin with: the head of the volume, two log segments, and the least reserve.
const LEAST_SEGMENTS: u64 = 10;

/// Enough for the script that is run on small disks.
const MOST_SEGMENTS: u64 = 128;

/// What all runs share.
struct Sweep {
    seed: u64,
    extent: Extent,
    /// What the stores that were cut off hold.
    base: (Image, Content),
    next: AtomicUsize,
    is_over: AtomicBool,
}

/// For every workload and class: fails call number n = 1, 2, 3, ... until a run meets no fault.
pub fn faults(seed: u64, extent: Extent) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    match base() {
        Ok(base) => {
            let sweep = Sweep {
                seed,
                extent,
                base,
                next: AtomicUsize::new(0),
                is_over: AtomicBool::new(false),
            };
            sweep.run(&mut counts);
        }
        Err(what) => counts.fail(format!("the store to start from: {what}")),
    }
    counts.elapsed = started.elapsed();
    counts
}

/// Tries one fault again.
///
/// # Errors
/// What is wrong.
pub fn replay(class: &str, workload: &str, n: u64, seed: u64) -> Result<(), String> {
    if class == SMALL_DISK {
        return run_small_disk(n, seed).map(drop);
    }
    let known = CLASSES.into_iter().find(|known| known.name == class);
    let class = known.ok_or("no such class")?;
    let workload = Workload::called(workload).ok_or("no such workload")?;
    run(class, workload, n, &base()?, seed).map(drop)
}

impl Sweep {
    fn run(&self, counts: &mut Counts) {
        std::thread::scope(|scope| {
            let threads = 0..self.extent.threads.max(1);
            let workers: Vec<_> = threads.map(|_| scope.spawn(|| self.work())).collect();
            for worker in workers {
                match worker.join() {
                    Ok(found) => counts.add(found),
                    Err(_) => counts.fail("a thread of the sweep panicked".to_owned()),
                }
            }
        });
    }

    /// Takes one workload and class after the other.
    fn work(&self) -> Counts {
        let watchdog = Watchdog::start();
        let mut counts = Counts::default();
        loop {
            let turn = self.next.fetch_add(1, Ordering::Relaxed);
            if self.is_over.load(Ordering::Relaxed) {
                return counts;
            }
            // Small disks first: they take longest.
            let Some(turn) = turn.checked_sub(1) else {
                self.small_disks(&watchdog, &mut counts);
                continue;
            };
            let (workload, class) = (turn % Workload::ALL.len(), turn / Workload::ALL.len());
            let Some(class) = CLASSES.get(class) else {
                return counts;
            };
            if Workload::ALL[workload].suits(class) {
                self.sweep(*class, Workload::ALL[workload], &watchdog, &mut counts);
            }
        }
    }

    /// Fails call after call until a run meets none.
    fn sweep(&self, class: Class, workload: Workload, watchdog: &Watchdog, counts: &mut Counts) {
        let stride = self.extent.stride.max(1) as u64;
        let mut n = 1 + Dice::new(self.seed ^ class.name.len() as u64).below(stride);
        while !self.is_over.load(Ordering::Relaxed) {
            let run = || run(class, workload, n, &self.base, self.seed);
            let outcome = self.judge(class.name, workload.name(), n, watchdog, counts, run);
            if !outcome {
                return;
            }
            n += stride;
        }
    }

    /// Disks from very small ones to one that a script does not fill.
    fn small_disks(&self, watchdog: &Watchdog, counts: &mut Counts) {
        let stride = self.extent.stride.clamp(1, 16);
        for segments in (LEAST_SEGMENTS..MOST_SEGMENTS).step_by(stride) {
            let run = || run_small_disk(segments, self.seed);
            if !self.judge(SMALL_DISK, "new", segments, watchdog, counts, run) {
                return;
            }
        }
    }

    /// Counts a run; whether to go on.
    fn judge(
        &self,
        class: &str,
        workload: &str,
        n: u64,
        watchdog: &Watchdog,
        counts: &mut Counts,
        run: impl FnOnce() -> Result<bool, String>,
    ) -> bool {
        let seed = self.seed;
        let replay = format!(
            "cargo xtask faults --class {class:?} --workload {workload} --n {n} --seed {seed}"
        );
        watchdog.begin(&replay);
        let outcome = without_panic(run);
        if let Ok(false) = outcome {
            return false;
        }
        counts.count(class);
        if let Err(what) = outcome {
            counts.fail(format!("{class}: {what}\n  {replay}"));
            if self.extent.stops_at_first {
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
        // A failure does not say whether there is a further call.
        counts.failed < 1000
    }
}

/// A store with content, cut off by a power cut: its open replays a log.
fn base() -> Result<(Image, Content), String> {
    let mut store = Store::on(Image::default(), &Content::new(), true);
    store.open().map_err(said("open"))?;
    for step in workload::base() {
        store.step(&step)?.map_err(said("a step"))?;
    }
    let image = store.device.history().crash().image(&mut Keep::All);
    let progress = progress_at(&store.timeline, store.device.events());
    let found = check(image.clone(), &store.model, progress, After::Nothing, false)?;
    Ok((image, found.content))
}

/// One run; whether it met the fault.
fn run(
    class: Class,
    workload: Workload,
    n: u64,
    base: &(Image, Content),
    seed: u64,
) -> Result<bool, String> {
    let nothing = (Image::default(), Content::new());
    let (image, content) = if workload.is_on_base() {
        base
    } else {
        &nothing
    };
    let mut trial = Trial::new(image.clone(), content, class, n);
    trial.store.device.inject(class.fault(n));
    trial.open()?;
    let regions: Vec<_> = content.keys().cloned().collect();
    trial.reads_meanwhile = workload != Workload::Space;
    trial.run(&workload.steps(seed, &regions))?;
    trial.finish()
}

fn run_small_disk(segments: u64, seed: u64) -> Result<bool, String> {
    let class = Class::from_then_on(SMALL_DISK, Call::Allocate, Effect::OutOfSpace);
    let mut trial = Trial::new(Image::default(), &Content::new(), class, segments);
    trial.is_disk_small = true;
    trial
        .store
        .device
        .set_space_bytes_max(segments * SEGMENT_BYTES);
    trial.open()?;
    let shape = Shape {
        giants_max: 30,
        keys: 12,
        taste: Taste::Giants,
        ..Shape::mixed(45)
    };
    trial.run(&script(seed ^ 0xd15c, shape, &[]))?;
    let met = trial.met_before;
    trial.empty()?;
    trial.put_again()?;
    trial.finish().map(|_| met)
}
