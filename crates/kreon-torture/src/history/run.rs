//! Lives of stores until the time is over or something is wrong.

use std::time::{Duration, Instant};

use super::crowd::Crowd;
use super::life::Life;
use crate::counts::Counts;
use crate::watchdog::{Watchdog, without_panic};

/// Runs the lives of stores from `seed` on for `time`, and stops at the first failure. The options and
/// the calls of each life follow from its seed; how its threads meet does not.
pub fn history(time: Duration, seed: u64) -> Counts {
    history_of(Crowd::default(), time, seed)
}

/// The same of this crowd; ends earlier if as many transactions were judged as it is to do.
pub fn history_of(crowd: Crowd, time: Duration, seed: u64) -> Counts {
    let started = Instant::now();
    let end = started + time;
    let watchdog = Watchdog::start();
    let mut counts = Counts::default();
    for seed in seed.. {
        watchdog.begin(format!("history --seed {seed}"));
        let mut tried = Counts::default();
        let outcome = without_panic(|| Life::new(seed, end, crowd)?.run(&mut tried));
        counts.add(tried);
        if let Err(what) = outcome {
            counts.fail(format!("--seed {seed}: {what}"));
        }
        if counts.failed > 0 || Instant::now() >= end || crowd.is_content(&counts) {
            break;
        }
    }
    counts.elapsed = started.elapsed();
    counts
}
