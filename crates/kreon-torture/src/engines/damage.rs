//! Damage to a volume: every sector of it is changed, and the store must tell or be right. All changes, by several threads.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use kreon_base::{PAGE_BYTES, Result};
use kreon_sim::{Image, SECTOR_BYTES};

use super::engine::Engine;
use crate::damage::hurt::{Edit, Hurt};
use crate::watchdog::{Watchdog, without_panic};
use crate::{Counts, Extent};

/// A sector as a number of bytes.
const SECTOR: u64 = SECTOR_BYTES as u64;

/// A page as a number of bytes.
const PAGE: u64 = PAGE_BYTES as u64;

/// When damage came, for people, and how the store took it; an error is what it must not do.
pub(crate) type Judged<O> = (&'static str, std::result::Result<O, String>);

/// An engine whose volumes are damaged.
pub(crate) trait Damaged: Engine {
    /// The volumes.
    const FIXTURES: &'static [&'static str];

    /// Pages are changed as a whole, too.
    const HAS_PAGES: bool;

    /// A volume and what it holds.
    type Fixture: Sync;

    /// What a thread keeps for all changes that it does to a volume.
    type Kept;

    /// How a store took damage, as it may.
    type Outcome: Debug;

    /// Makes the volume called `name`.
    fn make(name: &str) -> Result<Self::Fixture>;

    /// The volume, and the same at an earlier moment.
    fn images(fixture: &Self::Fixture) -> (&Image, &Image);

    /// Makes it.
    fn keep(fixture: &Self::Fixture) -> Result<Self::Kept>;

    /// Does a change, and judges what the store says; once or more often, at different moments.
    fn judge(fixture: &Self::Fixture, kept: &Self::Kept, hurt: &Hurt)
    -> Vec<Judged<Self::Outcome>>;
}

/// Does one in `extent.stride` of all changes to every fixture.
pub(crate) fn damage<E: Damaged>(extent: Extent) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    for name in E::FIXTURES {
        if extent.stops_at_first && counts.failed > 0 {
            break;
        }
        match without_panic(|| sweep::<E>(name, extent)) {
            Ok(swept) => counts.add(swept),
            Err(what) => counts.fail(format!("fixture {name}: {what}")),
        }
    }
    counts.elapsed = started.elapsed();
    counts
}

/// Does one change again: `hurt` as a failure says it.
pub(crate) fn replay<E: Damaged>(name: &str, hurt: &str) -> std::result::Result<(), String> {
    let told = |error: kreon_base::Error| error.to_string();
    let fixture = E::make(name).map_err(told)?;
    let kept = E::keep(&fixture).map_err(told)?;
    for (when, outcome) in E::judge(&fixture, &kept, &hurt.parse()?) {
        eprintln!("{:?}{when}", outcome?);
    }
    Ok(())
}

fn sweep<E: Damaged>(name: &str, extent: Extent) -> std::result::Result<Counts, String> {
    let fixture = E::make(name).map_err(|error| error.to_string())?;
    let (image, older) = E::images(&fixture);
    let sweep = Sweep::<E> {
        name,
        all: hurts(image, older, E::HAS_PAGES),
        fixture: &fixture,
        extent,
        next: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..extent.threads.max(1))
            .map(|_| scope.spawn(|| sweep.work()))
            .collect();
        let mut counts = Counts::default();
        for thread in threads {
            match thread
                .join()
                .unwrap_or_else(|_| Err("a thread panicked".into()))
            {
                Ok(of_thread) => counts.add(of_thread),
                Err(what) => counts.fail(what),
            }
        }
        Ok(counts)
    })
}

/// What the threads of a sweep share.
struct Sweep<'a, E: Damaged> {
    name: &'a str,
    fixture: &'a E::Fixture,
    all: Vec<(&'static str, Hurt)>,
    extent: Extent,
    /// Counts the changes that threads have begun.
    next: AtomicUsize,
    is_over: AtomicBool,
}

impl<E: Damaged> Sweep<'_, E> {
    /// Does one change after the other.
    fn work(&self) -> std::result::Result<Counts, String> {
        let watchdog = Watchdog::start();
        let mut counts = Counts::default();
        let kept = E::keep(self.fixture).map_err(|error| error.to_string())?;
        while !self.is_over.load(Ordering::Relaxed) {
            let turn = self.next.fetch_add(1, Ordering::Relaxed) * self.extent.stride.max(1);
            if turn >= self.all.len() {
                break;
            }
            // All over the list, so that the first few have something of everything.
            let (class, hurt) = &self.all[turn * 1_000_003 % self.all.len()];
            let (engine, name) = (E::NAME, self.name);
            let command = format!("{engine} damage --fixture {name:?} --hurt {hurt}");
            watchdog.begin(command.clone());
            let judged = without_panic(|| Ok(E::judge(self.fixture, &kept, hurt)));
            for (when, outcome) in judged.unwrap_or_else(|what| vec![("", Err(what))]) {
                match outcome {
                    Ok(outcome) => counts.count(&format!("{class}{when}: {outcome:?}")),
                    Err(what) => counts.fail(format!("{class}{when}: {what}\n  {command}")),
                }
            }
            if self.extent.stops_at_first && counts.failed > 0 {
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
        Ok(counts)
    }
}

/// All changes: of each sector that is not blank each byte, all of it, and what stands elsewhere in its place; with
/// `has_pages` the same for its page.
fn hurts(image: &Image, older: &Image, has_pages: bool) -> Vec<(&'static str, Hurt)> {
    let sectors: Vec<u64> = (0..image.len_bytes() / SECTOR)
        .map(|number| number * SECTOR)
        .filter(|&at| image.bytes(at, SECTOR_BYTES) != [0; SECTOR_BYTES])
        .collect();
    let is_older = |at, len_bytes: u64| {
        image.bytes(at, len_bytes as usize) != older.bytes(at, len_bytes as usize)
    };
    let mut all = Vec::new();
    for (rank, &at) in sectors.iter().enumerate() {
        let mut add = |class, edit| all.push((class, Hurt::one(edit)));
        for byte in 0..SECTOR {
            add("bit", Edit::Flip(at + byte, 1 << (byte * 5 % 8)));
        }
        let page = at / PAGE * PAGE;
        // Several times: a sweep of a few changes is to have some of these.
        for _ in 0..SECTOR / 32 {
            add("zeroes", Edit::Zero(at, SECTOR));
            if is_older(at, SECTOR) {
                add("older", Edit::Older(at, SECTOR));
            }
            if has_pages {
                add("blank page", Edit::Zero(page, PAGE));
            }
            if has_pages && is_older(page, PAGE) {
                add("older page", Edit::Older(page, PAGE));
            }
        }
        for step in [1, 2, 7, 31, 64, 97, 150, 211] {
            let from = sectors[(rank + step) % sectors.len()];
            if from != at {
                add("elsewhere", Edit::Copy(from, at, SECTOR));
            }
            let from = from / PAGE * PAGE;
            if has_pages && from != page {
                add("page elsewhere", Edit::Copy(from, page, PAGE));
            }
        }
    }
    all
}
