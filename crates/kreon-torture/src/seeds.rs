//! Hunts whose course is told by a seed: the verdict on one seed, and runs of many.

use std::time::Instant;

use kreon_base::Result;

use crate::Counts;
use crate::watchdog::{Watchdog, without_panic};

/// Counts a run of `hunt` with `seed` as one of `class`. An inner error of its outcome is what is wrong, an outer one what the
/// store said.
pub fn judged(
    (hunt, class): (&str, &str),
    seed: u64,
    outcome: Result<std::result::Result<(), String>>,
) -> Counts {
    let mut counts = Counts::default();
    counts.count(class);
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(what)) => counts.fail(format!("{hunt}: {what} with seed {seed}")),
        Err(error) => counts.fail(format!("{hunt}: {error} with seed {seed}")),
    }
    counts
}

/// Runs `hunt`, which is `one`, with `runs` seeds from `seed` on. A failure does not end it.
pub fn many(hunt: &str, runs: u64, seed: u64, one: impl Fn(u64) -> Counts) -> Counts {
    let started = Instant::now();
    let watchdog = Watchdog::start();
    let mut counts = Counts::default();
    for seed in seed..seed.saturating_add(runs) {
        watchdog.begin(format!("{hunt} --seed {seed}"));
        match without_panic(|| Ok(one(seed))) {
            Ok(tried) => counts.add(tried),
            Err(what) => counts.fail(format!("{hunt}: {what} with seed {seed}")),
        }
    }
    counts.elapsed = started.elapsed();
    counts
}
