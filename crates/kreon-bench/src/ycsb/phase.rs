//! A phase: all clients of one workload, from the first request until nothing is left to do behind them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::choice::{Chooser, Distribution, Records};
use super::client::{Client, Done, Failures, Shared, latencies};
use super::mix::Mix;
use super::workload::Workload;
use crate::engine::Engine;

/// What is run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Phase {
    /// The workload.
    pub workload: Workload,
    /// Sizes.
    pub mix: Mix,
    /// Whom requests ask for; `None`: as YCSB does.
    pub distribution: Option<Distribution>,
    /// Records that are there when it starts.
    pub records: u64,
    /// Requests, by all clients together.
    pub requests: u64,
    /// It ends after so many seconds, however many requests are left.
    pub seconds_max: Option<f64>,
    /// Clients.
    pub threads: usize,
    /// Records that workload C asks for in one call.
    #[serde(default = "one")]
    pub reads_together: u32,
    /// Requests a second, by all clients together; `None`: as many as they can.
    #[serde(default)]
    pub ops_per_second: Option<u32>,
    /// Behind it nobody asks for anything for so long. What stores do then counts for it.
    #[serde(default)]
    pub rest_seconds: f64,
    /// Of all draws.
    pub seed: u64,
}

fn one() -> u32 {
    1
}

/// How it went.
pub struct Outcome {
    /// Requests that were made.
    pub requests: u64,
    /// Records that are there now.
    pub records: u64,
    /// From the first request to the last.
    pub seconds: f64,
    /// How long the background work went on behind them.
    pub settle_seconds: f64,
    /// Latencies in ns.
    pub latencies: Histogram<u64>,
    /// What went wrong.
    pub failures: Failures,
    /// Requests in each interval.
    pub series: Vec<u64>,
}

/// Length of an interval of [`Outcome::series`], in seconds.
pub const INTERVAL_SECONDS: f64 = 0.25;

/// Intervals of a second.
const SECOND_INTERVALS: usize = 4;

impl Outcome {
    /// Requests in the worst second, as a share of those in the median one: 1 is perfectly even. Seconds begin at each
    /// interval; the last interval is left out, because it is not whole. `None` of a phase that is too short.
    pub fn worst_second_share(&self) -> Option<f64> {
        let whole = self.series.split_last()?.1;
        let mut seconds: Vec<u64> = whole
            .windows(SECOND_INTERVALS)
            .map(|second| second.iter().sum())
            .collect();
        seconds.sort_unstable();
        let median = *seconds.get(seconds.len() / 2).filter(|n| **n > 0)?;
        let worst = seconds.first().filter(|_| seconds.len() > 2)?;
        Some(*worst as f64 / median as f64)
    }
}

impl Phase {
    /// Runs it; tells `progress` the requests so far and those of the last interval.
    ///
    /// # Errors
    /// If the background work fails. What clients meet is counted in the outcome.
    pub fn run(
        &self,
        engine: &dyn Engine,
        progress: &mut dyn FnMut(u64, u64),
    ) -> anyhow::Result<Outcome> {
        let distribution = self.distribution.unwrap_or(self.workload.distribution());
        let shared = Shared {
            engine,
            mix: self.mix,
            workload: self.workload,
            chooser: Chooser::new(distribution, self.records),
            records: Records::new(self.records, self.threads),
            reads_together: match self.workload {
                Workload::C => self.reads_together as usize,
                _ => 1,
            },
            gap: self.gap(),
            seed: self.seed,
            done: (0..self.threads).map(|_| Done::default()).collect(),
            stop: AtomicBool::new(false),
        };
        let started = Instant::now();
        let (mut merged, mut failures, mut series) =
            (latencies()?, Failures::default(), Vec::new());
        std::thread::scope(|scope| -> anyhow::Result<()> {
            let clients: Vec<_> = (0..self.threads)
                .map(|number| scope.spawn(move_into(&shared, number, self.share(number))))
                .collect();
            self.watch(&shared, started, &mut series, progress, || {
                clients.iter().all(|client| client.is_finished())
            });
            for client in clients {
                let ended = client
                    .join()
                    .map_err(|_| anyhow::anyhow!("a client panicked"))?;
                let client = ended?;
                merged.add(&client.latencies)?;
                failures.add(client.failures);
            }
            Ok(())
        })?;
        let seconds = started.elapsed().as_secs_f64();
        let settling = Instant::now();
        engine.settle()?;
        let settle_seconds = settling.elapsed().as_secs_f64();
        std::thread::sleep(Duration::from_secs_f64(self.rest_seconds));
        Ok(Outcome {
            requests: done(&shared),
            records: shared.records.there(),
            seconds,
            settle_seconds,
            latencies: merged,
            failures,
            series,
        })
    }

    /// From one request of a client to its next.
    fn gap(&self) -> Option<Duration> {
        let together = match self.workload {
            Workload::C => self.reads_together,
            _ => 1,
        };
        let per_second = f64::from(self.ops_per_second?.max(1));
        let requests = self.threads as f64 * f64::from(together);
        Some(Duration::from_secs_f64(requests / per_second))
    }

    /// Requests of client `number`.
    fn share(&self, number: usize) -> u64 {
        let threads = self.threads as u64;
        self.requests / threads + u64::from((number as u64) < self.requests % threads)
    }

    /// Notes the requests of each interval until the clients are done.
    fn watch(
        &self,
        shared: &Shared<'_>,
        started: Instant,
        series: &mut Vec<u64>,
        progress: &mut dyn FnMut(u64, u64),
        is_over: impl Fn() -> bool,
    ) {
        let mut before = 0;
        while !is_over() {
            let next = (series.len() + 1) as f64 * INTERVAL_SECONDS;
            while !is_over() && started.elapsed().as_secs_f64() < next {
                // Short, so that the end of a phase is seen soon; its CPU time is part of the harness's.
                std::thread::sleep(Duration::from_millis(5));
            }
            let now = done(shared);
            series.push(now - before);
            progress(now, now - before);
            before = now;
            if self
                .seconds_max
                .is_some_and(|max| started.elapsed().as_secs_f64() >= max)
            {
                shared.stop.store(true, Ordering::Relaxed);
            }
        }
    }
}

fn move_into<'a>(
    shared: &'a Shared<'a>,
    number: usize,
    requests: u64,
) -> impl FnOnce() -> anyhow::Result<Client<'a>> {
    move || {
        let mut client = Client::new(shared, number)?;
        client.run(requests);
        Ok(client)
    }
}

fn done(shared: &Shared<'_>) -> u64 {
    shared
        .done
        .iter()
        .map(|done| done.0.load(Ordering::Relaxed))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(series: &[u64]) -> Outcome {
        Outcome {
            requests: series.iter().sum(),
            records: 0,
            seconds: series.len() as f64 * INTERVAL_SECONDS,
            settle_seconds: 0.0,
            latencies: latencies().unwrap(),
            failures: Failures::default(),
            series: series.to_vec(),
        }
    }

    #[test]
    fn a_stall_shows_in_the_worst_second() {
        let even = outcome(&[10; 13]);
        assert_eq!(even.worst_second_share(), Some(1.0));
        let mut stalled = [10; 40];
        stalled[17..20].fill(0);
        assert_eq!(outcome(&stalled).worst_second_share(), Some(0.25));
        let mut short = [10; 12];
        short[11] = 1;
        assert_eq!(
            outcome(&short).worst_second_share(),
            Some(1.0),
            "the last one is not whole"
        );
        assert_eq!(outcome(&[10, 10, 10]).worst_second_share(), None);
        assert_eq!(outcome(&[]).worst_second_share(), None);
    }
}
