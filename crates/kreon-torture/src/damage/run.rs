//! A sweep, by two threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use super::atlas::Atlas;
use super::fixture;
use super::hurt::Hurt;
use super::judge::Case;
use super::live::live;
use super::sweep::hurts;
use crate::counts::Counts;
use crate::watchdog::{Watchdog, without_panic};

/// How much a sweep does.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Of all damage one in so many is done; 1: all.
    pub stride: usize,
    /// Ends with the first failure.
    pub stops_at_first: bool,
    /// Threads that do it.
    pub threads: usize,
}

impl Default for Extent {
    fn default() -> Self {
        Self {
            stride: 1,
            stops_at_first: false,
            threads: 2,
        }
    }
}

/// Damages every structure of every fixture and checks what the store says.
pub fn damage(extent: Extent) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    for name in fixture::NAMES {
        if extent.stops_at_first && counts.failed > 0 {
            break;
        }
        match without_panic(|| case(name)) {
            Ok(case) => {
                counts.add(sweep(&case, extent));
                if let Err(what) = without_panic(|| live(&case, extent, &mut counts)) {
                    counts.fail(format!("fixture {name}, open: {what}"));
                }
            }
            Err(what) => counts.fail(format!("fixture {name}: {what}")),
        }
    }
    counts.elapsed = started.elapsed();
    counts
}

/// Does one damage again: `hurt` as a failure says it.
///
/// # Errors
/// What is wrong.
pub fn replay(name: &str, hurt: &str) -> Result<(), String> {
    let hurt: Hurt = hurt.parse()?;
    let outcome = case(name)?.judge(&hurt)?;
    eprintln!("{outcome:?}");
    Ok(())
}

/// The fixture called `name`, and its atlas.
///
/// # Errors
/// The store could not be made, or nothing but the store can read it.
pub fn case(name: &str) -> Result<Case, String> {
    let fixture = fixture::make(name).map_err(|error| error.to_string())?;
    let atlas = Atlas::read(&fixture.image).map_err(|error| format!("atlas: {error}"))?;
    Ok(Case { fixture, atlas })
}

fn sweep(case: &Case, extent: Extent) -> Counts {
    let all = hurts(case, case.fixture.name == fixture::NAMES[0]);
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        let watchdog = Watchdog::start();
        let mut counts = Counts::default();
        loop {
            let turn = next.fetch_add(1, Ordering::Relaxed);
            if turn * extent.stride.max(1) >= all.len() || is_over.load(Ordering::Relaxed) {
                return counts;
            }
            let (class, hurt) = &all[nth(turn, all.len())];
            try_one(case, class, hurt, &watchdog, &mut counts);
            if counts.failed > 0 && extent.stops_at_first {
                is_over.store(true, Ordering::Relaxed);
            }
        }
    };
    let mut counts = Counts::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..extent.threads.max(1))
            .map(|_| scope.spawn(work))
            .collect();
        for worker in workers {
            match worker.join() {
                Ok(found) => counts.add(found),
                Err(_) => counts.fail("a thread of the sweep panicked".to_owned()),
            }
        }
    });
    counts
}

/// The turns go all over the list, so that the first few have something of everything.
fn nth(turn: usize, len: usize) -> usize {
    const STEP: usize = 1_000_003;
    // A prime that does not divide the length visits every place once.
    match len.is_multiple_of(STEP) {
        true => turn % len,
        false => turn * STEP % len,
    }
}

fn try_one(case: &Case, class: &str, hurt: &Hurt, watchdog: &Watchdog, counts: &mut Counts) {
    watchdog.begin(replay_command(case, hurt));
    match without_panic(|| case.judge(hurt)) {
        Ok(outcome) => counts.count(&format!("{class}: {}", outcome.name())),
        Err(what) => {
            counts.count(&format!("{class}: VIOLATION"));
            let (hurt, what) = smallest(case, hurt, what);
            counts.fail(format!(
                "{class}: {what}\n  {}",
                replay_command(case, &hurt)
            ));
        }
    }
}

/// A single one of the changes that fails too, if there is one.
fn smallest(case: &Case, hurt: &Hurt, what: String) -> (Hurt, String) {
    for edit in &hurt.0 {
        let one = Hurt::one(*edit);
        if let Err(what) = without_panic(|| case.judge(&one)) {
            return (one, what);
        }
    }
    (hurt.clone(), what)
}

fn replay_command(case: &Case, hurt: &Hurt) -> String {
    format!(
        "cargo xtask damage --fixture {} --hurt {hurt}",
        case.fixture.name
    )
}
