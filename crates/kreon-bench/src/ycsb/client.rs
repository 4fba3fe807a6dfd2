//! One client: makes requests one after the other, measures each, and checks every answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::choice::{Chooser, Records};
use super::mix::Mix;
use super::pace::Pace;
use super::record;
use super::workload::{Request, SCAN_RECORDS_MAX, Workload};
use crate::engine::Engine;
use crate::keys::hash;

/// What all clients of a phase share.
pub struct Shared<'a> {
    /// The store.
    pub engine: &'a dyn Engine,
    /// Sizes.
    pub mix: Mix,
    /// The shares of requests.
    pub workload: Workload,
    /// Whom requests ask for.
    pub chooser: Chooser,
    /// Who exists.
    pub records: Records,
    /// Reads that a client asks for in one call.
    pub reads_together: usize,
    /// From one request of a client to its next; `None`: as fast as it can.
    pub gap: Option<Duration>,
    /// Of the draws.
    pub seed: u64,
    /// Requests done, by client.
    pub done: Vec<Done>,
    /// The time is up.
    pub stop: AtomicBool,
}

/// A counter that no other client's shares a cache line with.
#[repr(align(128))]
#[derive(Default)]
pub struct Done(pub AtomicU64);

/// Answers that were not what they must be. Any makes the run fail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// Records that were loaded and not found.
    pub missing: u64,
    /// Values that were not written for their key.
    pub wrong: u64,
    /// Scans that were out of order, left the range, or ended before their count without reason.
    pub unsorted: u64,
    /// Requests that the store refused.
    pub errors: u64,
    /// The first of them in words.
    pub first: Option<String>,
}

impl Failures {
    /// How many.
    pub fn count(&self) -> u64 {
        self.missing + self.wrong + self.unsorted + self.errors
    }

    /// Adds those of another client.
    pub fn add(&mut self, other: Self) {
        self.missing += other.missing;
        self.wrong += other.wrong;
        self.unsorted += other.unsorted;
        self.errors += other.errors;
        self.first = self.first.take().or(other.first);
    }
}

/// Longest latency that is told apart, in ns.
const LATENCY_NS_MAX: u64 = 600_000_000_000;

/// An empty histogram of latencies in ns, to three digits.
pub fn latencies() -> anyhow::Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)?)
}

/// See the module's text.
pub struct Client<'a> {
    shared: &'a Shared<'a>,
    number: usize,
    draws: u64,
    key: Vec<u8>,
    value: Vec<u8>,
    pace: Option<Pace>,
    /// When the request under way was due, at a fixed rate.
    due: Option<Instant>,
    /// Latencies in ns.
    pub latencies: Histogram<u64>,
    /// What went wrong.
    pub failures: Failures,
}

impl<'a> Client<'a> {
    /// Client `number` of those of a phase.
    pub fn new(shared: &'a Shared<'a>, number: usize) -> anyhow::Result<Self> {
        Ok(Self {
            shared,
            number,
            draws: hash(shared.seed ^ (number as u64) << 48),
            key: Vec::new(),
            value: Vec::new(),
            pace: shared.gap.map(Pace::new),
            due: None,
            latencies: latencies()?,
            failures: Failures::default(),
        })
    }

    /// Makes `requests` requests, or fewer if the time is up.
    pub fn run(&mut self, requests: u64) {
        let mut done = 0;
        while done < requests && !self.shared.stop.load(Ordering::Relaxed) {
            self.due = self.pace.as_mut().map(Pace::wait);
            let together = (self.shared.reads_together as u64).min(requests - done);
            if together > 1 {
                self.read_together(together as usize);
            } else {
                let request = self.shared.workload.request(self.draw() % 100);
                self.request(request);
            }
            done += together.max(1);
            self.shared.done[self.number]
                .0
                .store(done, Ordering::Relaxed);
        }
    }

    fn request(&mut self, request: Request) {
        let outcome = match request {
            Request::Insert => self.insert(),
            _ => {
                let there = self.shared.records.there();
                let number = self.choose(there);
                match request {
                    Request::Read => self.timed(|client| client.read(number)),
                    Request::Update => self.update(number),
                    Request::Scan => self.scan(number, there),
                    Request::ReadModifyWrite | Request::Insert => self.read_modify_write(number),
                }
            }
        };
        if let Err(error) = outcome {
            self.refused(&error, 1);
        }
    }

    /// Reads `count` records in one call; each waits as long as the call takes.
    fn read_together(&mut self, count: usize) {
        let (there, mix) = (self.shared.records.there(), self.shared.mix);
        let numbers: Vec<u64> = (0..count).map(|_| self.choose(there)).collect();
        let mut keys = vec![Vec::new(); count];
        for (number, key) in numbers.iter().zip(&mut keys) {
            record::key(mix, *number, key);
        }
        let mut right = 0;
        let started = self.started();
        let outcome = self.shared.engine.get_many(&keys, &mut |at, value| {
            right += usize::from(record::is_value(mix, numbers[at], value));
        });
        let ns = started.elapsed().as_nanos() as u64;
        self.latencies.saturating_record_n(ns.max(1), count as u64);
        match outcome {
            Err(error) => self.refused(&error, count),
            Ok(found) if right < count => {
                self.failures.missing += (count - found) as u64;
                self.failures.wrong += (found - right) as u64;
                self.note(|| format!("of {count} records {found} were found, {right} right"));
            }
            Ok(_) => {}
        }
    }

    fn refused(&mut self, error: &anyhow::Error, requests: usize) {
        self.failures.errors += requests as u64;
        self.note(|| format!("{error:#}"));
    }

    fn choose(&mut self, there: u64) -> u64 {
        let uniform = self.uniform();
        self.shared.chooser.choose(there, uniform)
    }

    /// From when the latency of a request counts: now, or when it was due.
    fn started(&self) -> Instant {
        let now = Instant::now();
        self.due.map_or(now, |due| due.min(now))
    }

    /// Measures what the store does, not the making of the request.
    fn timed<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let started = self.started();
        let result = work(self);
        let ns = started.elapsed().as_nanos() as u64;
        self.latencies.saturating_record(ns.max(1));
        result
    }

    fn insert(&mut self) -> anyhow::Result<()> {
        let number = self.shared.records.begin(self.number);
        let outcome = self.update(number);
        self.shared.records.inserted(self.number);
        outcome
    }

    fn update(&mut self, number: u64) -> anyhow::Result<()> {
        self.make(number);
        self.timed(|client| client.shared.engine.put(&client.key, &client.value))
    }

    fn read_modify_write(&mut self, number: u64) -> anyhow::Result<()> {
        self.timed(|client| {
            client.read(number)?;
            client.make(number);
            client.shared.engine.put(&client.key, &client.value)
        })
    }

    fn read(&mut self, number: u64) -> anyhow::Result<()> {
        record::key(self.shared.mix, number, &mut self.key);
        let mut is_right = false;
        let found = self.shared.engine.get(&self.key, &mut |value| {
            is_right = record::is_value(self.shared.mix, number, value);
        })?;
        if !found {
            self.failures.missing += 1;
            self.note(|| format!("record {number} was not found"));
        } else if !is_right {
            self.failures.wrong += 1;
            self.note(|| format!("a wrong value of record {number}"));
        }
        Ok(())
    }

    fn scan(&mut self, number: u64, there: u64) -> anyhow::Result<()> {
        let count = 1 + self.draw() % SCAN_RECORDS_MAX;
        let mix = self.shared.mix;
        record::key(mix, number, &mut self.key);
        let (mut last, mut is_sorted, mut wrong) = (Vec::new(), true, 0);
        let shown = self.timed(|client| {
            client
                .shared
                .engine
                .scan(&client.key, count as usize, &mut |key, value| {
                    let follows = match last.is_empty() {
                        // The record that the scan starts at exists.
                        true => key == client.key,
                        false => key > last.as_slice(),
                    };
                    is_sorted &= follows;
                    wrong += u64::from(!record::fits(mix, key, value));
                    last.clear();
                    last.extend_from_slice(key);
                })
        })?;
        self.failures.wrong += wrong;
        // Only the end of all keys may end a scan early; with many records that is where few are left.
        let is_short = shown == 0 || (shown as u64) < count && !is_near_end(mix, &last, there);
        if !is_sorted || is_short {
            self.failures.unsorted += 1;
            self.note(|| format!("a scan of {count} from record {number} on: {shown} records, sorted: {is_sorted}"));
        } else if wrong > 0 {
            self.note(|| format!("{wrong} wrong values in a scan from record {number} on"));
        }
        Ok(())
    }

    fn make(&mut self, number: u64) {
        let (mix, version) = (self.shared.mix, self.draw() as u32);
        record::key(mix, number, &mut self.key);
        record::value(mix, number, version, &mut self.value);
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        self.failures.first.get_or_insert_with(what);
    }

    fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash(self.draws)
    }

    /// From 0 to below 1.
    fn uniform(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Whether so few of `there` records lie behind `key` that a scan may end there: the chance that it lies by a
/// thousandth more is nil.
fn is_near_end(mix: Mix, key: &[u8], there: u64) -> bool {
    record::digits_of(mix, key)
        .is_some_and(|digits| (u64::MAX - digits) as f64 / u64::MAX as f64 * (there as f64) < 40.0)
}
