//! The course of the overwriting: samples as the time goes by.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::engine::{Engine, Inside};
use crate::machine::disk::Disk;
use crate::machine::usage::{Usage, space_bytes};
use crate::ycsb::client::Done;

/// Readings at one moment; all but the space count from the first overwrite on.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Since the first overwrite.
    pub seconds: f64,
    /// Overwrites so far.
    pub operations: u64,
    /// Overwrites a second since the sample before.
    pub ops_per_second: f64,
    /// Blocks that the store's files take.
    pub space_bytes: u64,
    /// Over the keys and values that live.
    pub space_amplification: f64,
    /// CPU time, transfers.
    pub used: Usage,
    /// What the store says of its space; of what it wrote, since the first overwrite.
    pub inside: Option<Inside>,
}

/// Watches a store that others write to.
pub struct Watch<'a> {
    engine: &'a dyn Engine,
    dir: &'a Path,
    disk: Option<Disk>,
    live_bytes: u64,
    started: Instant,
    used_before: Usage,
    inside_before: Option<Inside>,
    /// In the order of time.
    pub samples: Vec<Sample>,
    /// Overwrites so far by the seconds that they took, noted more often than samples.
    marks: Vec<(f64, u64)>,
}

impl<'a> Watch<'a> {
    /// Begins with a sample, now.
    pub fn begin(engine: &'a dyn Engine, dir: &'a Path, live_bytes: u64) -> Self {
        let disk = Disk::under(dir).ok();
        let mut watch = Self {
            engine,
            dir,
            used_before: Usage::now(disk.as_ref()),
            disk,
            live_bytes,
            started: Instant::now(),
            inside_before: engine.inside(),
            samples: Vec::new(),
            marks: Vec::new(),
        };
        watch.sample(0);
        watch
    }

    /// Takes a sample.
    pub fn sample(&mut self, operations: u64) -> Sample {
        let seconds = self.started.elapsed().as_secs_f64();
        let space_bytes = space_bytes(self.dir);
        let before = self.samples.last().copied().unwrap_or_default();
        let sample = Sample {
            seconds,
            operations,
            ops_per_second: (operations - before.operations) as f64
                / (seconds - before.seconds).max(1e-9),
            space_bytes,
            space_amplification: space_bytes as f64 / self.live_bytes.max(1) as f64,
            used: Usage::now(self.disk.as_ref()).since(&self.used_before),
            inside: self.engine.inside().map(|now| {
                let before = self.inside_before.unwrap_or_default();
                Inside {
                    write_bytes: now.write_bytes - before.write_bytes,
                    page_write_bytes: now.page_write_bytes - before.page_write_bytes,
                    ..now
                }
            }),
        };
        self.samples.push(sample);
        sample
    }

    /// Samples until all is done, and tells each to `tell`; when the time is up it stops the writers.
    pub fn until(
        &mut self,
        (interval_seconds, seconds_max): (f64, Option<f64>),
        (done, stop): (&[Done], &AtomicBool),
        tell: &mut dyn FnMut(&Sample),
        is_over: impl Fn() -> bool,
    ) {
        let mut next = interval_seconds;
        while !is_over() {
            std::thread::sleep(Duration::from_millis(5));
            let (seconds, operations) = (self.started.elapsed().as_secs_f64(), sum(done));
            self.marks.push((seconds, operations));
            if seconds >= next {
                tell(&self.sample(operations));
                // Those that a stall of this thread missed are gone.
                next = (seconds / interval_seconds).floor() * interval_seconds + interval_seconds;
            }
            if seconds_max.is_some_and(|max| seconds >= max) {
                stop.store(true, Ordering::Relaxed);
            }
        }
        self.marks
            .push((self.started.elapsed().as_secs_f64(), sum(done)));
    }

    /// Overwrites a second in each tenth of the overwrites.
    pub fn tenths(&self) -> Vec<f64> {
        tenths(&self.marks)
    }
}

/// Overwrites of all writers.
pub fn sum(done: &[Done]) -> u64 {
    done.iter().map(|one| one.0.load(Ordering::Relaxed)).sum()
}

fn tenths(marks: &[(f64, u64)]) -> Vec<f64> {
    let all = marks.last().map_or(0, |mark| mark.1) as f64;
    // When so many were done, between two marks by their shares.
    let when = |count: f64| {
        let at = marks.partition_point(|mark| (mark.1 as f64) < count);
        let (to, from) = (
            marks.get(at).copied().unwrap_or_default(),
            at.checked_sub(1).map_or((0.0, 0), |at| marks[at]),
        );
        let share = (count - from.1 as f64) / (to.1 as f64 - from.1 as f64).max(1e-9);
        from.0 + (to.0 - from.0) * share
    };
    (0..10)
        .map(|tenth| {
            let (from, to) = (
                all * f64::from(tenth) / 10.0,
                all * f64::from(tenth + 1) / 10.0,
            );
            let begin = if tenth == 0 { 0.0 } else { when(from) };
            (to - from) / (when(to) - begin).max(1e-9)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenths_are_of_the_overwrites_not_of_the_time() {
        // 500 in 5 seconds, then 500 in 50.
        let mut marks: Vec<(f64, u64)> = (1..=10).map(|n| (n as f64 / 2.0, n * 50)).collect();
        marks.extend((1..=5).map(|n| (5.0 + n as f64 * 10.0, 500 + n * 100)));
        let rates = tenths(&marks);
        assert_eq!(rates.len(), 10);
        for (at, rate) in rates.iter().enumerate() {
            let expected = if at < 5 { 100.0 } else { 10.0 };
            assert!((rate / expected - 1.0).abs() < 1e-6, "{rates:?}");
        }
    }
}
