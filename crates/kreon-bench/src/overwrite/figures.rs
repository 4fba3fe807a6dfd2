//! What came of one store: the schema of a run in `overwrite.json`.

use serde::{Deserialize, Serialize};

use super::cleaning;
use super::course::Sample;
use super::job::Job;
use crate::engine::Kind;
use crate::report::summary::median;
use crate::ycsb::choice::Distribution;
use crate::ycsb::client::Failures;
use crate::ycsb::mix::Mix;

/// One store, loaded and overwritten. Bytes and times count until the background work has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The store.
    pub engine: Kind,
    /// Which records were overwritten how often.
    pub distribution: Distribution,
    /// Sizes of the pairs.
    pub mix: Mix,
    /// What was asked of the store, if anything.
    pub space_target: Option<f64>,
    /// Memory of the store, in bytes.
    pub memory_bytes: u64,
    /// A limit on the process enforced it.
    pub is_limited: bool,
    /// Records.
    pub records: u64,
    /// Bytes of their keys and values.
    pub live_bytes: u64,
    /// Overwrites.
    pub operations: u64,
    /// Fewer than asked for: the time was up.
    pub is_cut: bool,
    /// Bytes of the keys and values that were overwritten.
    pub given_bytes: u64,
    /// From the first overwrite to the last.
    pub seconds: f64,
    /// How long background work went on behind them.
    pub settle_seconds: f64,
    /// Overwrites a second in each tenth of them.
    pub tenths: Vec<f64>,
    /// Space over live bytes, the highest of all samples.
    pub space_amplification_max: f64,
    /// The median of all samples.
    pub space_amplification_median: f64,
    /// When all background work had ended.
    pub space_amplification_end: f64,
    /// Written by this process for each byte given, the index included.
    pub written_per_byte: f64,
    /// Written at the device for each byte given, by whomever.
    pub device_written_per_byte: f64,
    /// Read by this process for each byte given.
    pub read_per_byte: f64,
    /// Of [`Self::written_per_byte`], pages of the index; `None` of stores that cannot tell.
    pub pages_written_per_byte: Option<f64>,
    /// CPU time of the process for an overwrite, in us, the harness included.
    pub cpu_us_per_op: f64,
    /// Latencies in us: the median.
    pub p50_us: f64,
    /// 99.9 % are below.
    pub p999_us: f64,
    /// 99.99 % are below.
    pub p9999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Cores that other processes kept busy meanwhile, on average.
    pub other_load_cores: f64,
    /// Samples; the last one when all background work had ended.
    pub samples: Vec<Sample>,
    /// Answers that were not what they must be, of all kinds.
    pub failures: u64,
    /// Of which kinds.
    pub failed: Failures,
}

/// What the child has measured.
pub struct Measured {
    /// See [`Run::live_bytes`].
    pub live_bytes: u64,
    /// See [`Run::given_bytes`].
    pub given_bytes: u64,
    /// See [`Run::seconds`].
    pub seconds: f64,
    /// See [`Run::settle_seconds`].
    pub settle_seconds: f64,
    /// See [`Run::tenths`].
    pub tenths: Vec<f64>,
    /// See [`Run::samples`].
    pub samples: Vec<Sample>,
    /// In ns.
    pub latencies: hdrhistogram::Histogram<u64>,
    /// See [`Run::failed`].
    pub failed: Failures,
}

impl Run {
    /// The run of `job`.
    pub fn new(job: &Job, measured: Measured) -> Self {
        let last = measured.samples.last().copied().unwrap_or_default();
        let spaces = || measured.samples.iter().map(|s| s.space_amplification);
        let per_byte = |bytes: u64| bytes as f64 / measured.given_bytes.max(1) as f64;
        let us = |percentile| measured.latencies.value_at_percentile(percentile) as f64 / 1e3;
        let wall = measured.seconds + measured.settle_seconds;
        let others = last.used.machine_cpu_seconds - last.used.cpu_seconds;
        Self {
            engine: job.engine,
            distribution: job.distribution,
            mix: job.means.mix,
            space_target: job.means.space_amplification,
            memory_bytes: job.means.memory_bytes,
            is_limited: job.door.is_some(),
            records: job.records,
            live_bytes: measured.live_bytes,
            operations: last.operations,
            is_cut: last.operations < job.overwrites,
            given_bytes: measured.given_bytes,
            seconds: measured.seconds,
            settle_seconds: measured.settle_seconds,
            tenths: measured.tenths,
            space_amplification_max: spaces().fold(0.0, f64::max),
            space_amplification_median: median(spaces()),
            space_amplification_end: last.space_amplification,
            written_per_byte: per_byte(last.used.process_write_bytes),
            device_written_per_byte: per_byte(last.used.device_write_bytes),
            read_per_byte: per_byte(last.used.process_read_bytes),
            pages_written_per_byte: last.inside.map(|inside| per_byte(inside.page_write_bytes)),
            cpu_us_per_op: last.used.cpu_seconds * 1e6 / last.operations.max(1) as f64,
            p50_us: us(50.0),
            p999_us: us(99.9),
            p9999_us: us(99.99),
            max_us: us(100.0),
            other_load_cores: (others / wall.max(1e-9)).max(0.0),
            samples: measured.samples,
            failures: measured.failed.count(),
            failed: measured.failed,
        }
    }

    /// Overwrites a second.
    pub fn ops_per_second(&self) -> f64 {
        self.operations as f64 / self.seconds.max(1e-9)
    }

    /// The rate of the last tenth over that of the second: below 1 the store became slower. The first tenth is not
    /// compared with, because the memory that the load left empty makes it fast.
    pub fn last_over_second_tenth(&self) -> f64 {
        let rate = |at: usize| self.tenths.get(at).copied().unwrap_or(0.0);
        rate(9) / rate(1).max(1e-9)
    }

    /// What the log wrote for each byte given, where the store tells its pages apart.
    pub fn log_written_per_byte(&self) -> Option<f64> {
        let pages = self.pages_written_per_byte?;
        Some((self.written_per_byte - pages).max(0.0))
    }

    /// What the log must write at this space by analysis, if overwrites are uniform.
    pub fn analytic(&self, space_amplification: f64) -> Option<f64> {
        let is_uniform = self.distribution == Distribution::Uniform;
        is_uniform.then(|| cleaning::written_per_byte(space_amplification))?
    }
}
