//! A line of the results: one phase of one store in one round. The fields are the schema of `results.json`.

use serde::{Deserialize, Serialize};

use crate::engine::{Kind, Searches};
use crate::machine::usage::Usage;
use crate::randomness::Randomness;
use crate::ycsb::client::Failures;
use crate::ycsb::mix::Mix;
use crate::ycsb::phase::{INTERVAL_SECONDS, Outcome, Phase};
use crate::ycsb::workload::Workload;

/// See the module's text. Bytes and times per operation count everything until the background work has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The store.
    pub engine: Kind,
    /// The preset.
    pub preset: String,
    /// Point of a sweep; empty if there is none.
    pub variant: String,
    /// Sizes of the pairs.
    pub mix: Mix,
    /// The workload.
    pub workload: Workload,
    /// From 1.
    pub round: u32,
    /// Clients.
    pub threads: usize,
    /// Every write was durable when it returned.
    pub is_sync: bool,
    /// Requests.
    pub operations: u64,
    /// The time was up before all requests were made. A load that was cut short left fewer records to the
    /// workloads behind it.
    pub is_cut: bool,
    /// From the first request to the last.
    pub seconds: f64,
    /// How long background work went on behind them.
    pub settle_seconds: f64,
    /// Requests a second.
    pub ops_per_second: f64,
    /// CPU time of the process, background threads included, in us.
    pub cpu_us_per_op: f64,
    /// Of this, in the kernel.
    pub system_us_per_op: f64,
    /// Estimated cycles: CPU time times clock rate (`Kreon 4.1`); 0 if the rate is not known.
    pub cycles_per_op: f64,
    /// Read at the device, by whomever.
    pub device_read_bytes_per_op: f64,
    /// Written at the device, by whomever.
    pub device_write_bytes_per_op: f64,
    /// Read for this process.
    pub process_read_bytes_per_op: f64,
    /// Written for this process.
    pub process_write_bytes_per_op: f64,
    /// Bytes moved by the device in both directions for each byte of keys and values that requests wrote
    /// (`Tebis 3`); `None` where they wrote none.
    pub io_amplification: Option<f64>,
    /// How random the device transfers were (`Kreon 4.4`); `None` of stores that cannot tell and without `--trace`.
    pub randomness: Option<Randomness>,
    /// What searches in leaves read of keys; `None` of stores whose leaves have keys.
    #[serde(default)]
    pub searches: Option<Searches>,
    /// Mean bytes of a device read.
    pub device_read_bytes_mean: f64,
    /// Mean bytes of a device write.
    pub device_write_bytes_mean: f64,
    /// Median latency in us.
    pub p50_us: f64,
    /// 99 % are below.
    pub p99_us: f64,
    /// 99.9 % are below.
    pub p999_us: f64,
    /// 99.99 % are below.
    pub p9999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Latency in us at each of [`PERCENTILES`].
    pub latency_curve_us: Vec<f64>,
    /// Requests in the worst second over those in the median one; `None` of a phase that is too short.
    pub worst_second_share: Option<f64>,
    /// Requests a second in each interval of [`Record::interval_seconds`].
    pub series: Vec<f64>,
    /// Length of an interval of the series.
    pub interval_seconds: f64,
    /// Disk space at the end.
    pub space_bytes: u64,
    /// Bytes of keys and values that the store holds at the end.
    pub live_bytes: u64,
    /// Most memory resident at once; page cache does not count here.
    pub peak_rss_bytes: u64,
    /// The memory limit of the process was enforced.
    pub is_limited: bool,
    /// Cores that other processes kept busy meanwhile, on average.
    pub other_load_cores: f64,
    /// Answers that were not what they must be, of all kinds.
    pub failures: u64,
    /// Of which kinds.
    pub failed: Failures,
}

/// Where [`Record::latency_curve_us`] is sampled.
pub const PERCENTILES: [f64; 16] = [
    0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.8, 99.9, 99.95, 99.99, 99.999,
    100.0,
];

/// What a record says beside the outcome of its phase.
pub struct Circumstances<'a> {
    /// The job.
    pub job: &'a super::job::Job,
    /// What was used.
    pub used: Usage,
    /// Clock rate.
    pub mhz: f64,
    /// Disk space at the end.
    pub space_bytes: u64,
    /// See [`Record::peak_rss_bytes`].
    pub peak_rss_bytes: u64,
    /// See [`Record::randomness`].
    pub randomness: Option<Randomness>,
    /// See [`Record::searches`].
    pub searches: Option<Searches>,
}

impl Record {
    /// The record of `phase`.
    pub fn new(phase: &Phase, outcome: &Outcome, about: &Circumstances<'_>) -> Self {
        let (job, used) = (about.job, about.used);
        let operations = outcome.requests.max(1) as f64;
        let per_op = |sum: f64| sum / operations;
        let us = |percentile: f64| outcome.latencies.value_at_percentile(percentile) as f64 / 1e3;
        let pair_bytes = phase.mix.pair_bytes_mean();
        let cpu_us_per_op = per_op(used.cpu_seconds * 1e6);
        let moved_bytes = used.device_read_bytes + used.device_write_bytes;
        let written_bytes = phase.workload.writes_share() * operations * pair_bytes;
        let wall = outcome.seconds + outcome.settle_seconds;
        Self {
            engine: job.engine,
            preset: job.preset.clone(),
            variant: job.variant.clone(),
            mix: phase.mix,
            workload: phase.workload,
            round: job.round,
            threads: phase.threads,
            is_sync: job.means.is_sync,
            operations: outcome.requests,
            is_cut: outcome.requests < phase.requests,
            seconds: outcome.seconds,
            settle_seconds: outcome.settle_seconds,
            ops_per_second: operations / outcome.seconds.max(1e-9),
            cpu_us_per_op,
            system_us_per_op: per_op(used.system_seconds * 1e6),
            cycles_per_op: cpu_us_per_op * about.mhz,
            device_read_bytes_per_op: per_op(used.device_read_bytes as f64),
            device_write_bytes_per_op: per_op(used.device_write_bytes as f64),
            process_read_bytes_per_op: per_op(used.process_read_bytes as f64),
            process_write_bytes_per_op: per_op(used.process_write_bytes as f64),
            io_amplification: (written_bytes > 0.0).then(|| moved_bytes as f64 / written_bytes),
            randomness: about.randomness,
            searches: about.searches,
            device_read_bytes_mean: used.device_read_bytes as f64 / used.device_reads.max(1) as f64,
            device_write_bytes_mean: used.device_write_bytes as f64
                / used.device_writes.max(1) as f64,
            p50_us: us(50.0),
            p99_us: us(99.0),
            p999_us: us(99.9),
            p9999_us: us(99.99),
            max_us: us(100.0),
            latency_curve_us: PERCENTILES.map(us).to_vec(),
            worst_second_share: outcome.worst_second_share(),
            series: outcome
                .series
                .iter()
                .map(|n| *n as f64 / INTERVAL_SECONDS)
                .collect(),
            interval_seconds: INTERVAL_SECONDS,
            space_bytes: about.space_bytes,
            live_bytes: (outcome.records as f64 * pair_bytes) as u64,
            peak_rss_bytes: about.peak_rss_bytes,
            is_limited: job.door.is_some(),
            other_load_cores: ((used.machine_cpu_seconds - used.cpu_seconds) / wall.max(1e-9))
                .max(0.0),
            failures: outcome.failures.count(),
            failed: outcome.failures.clone(),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::engine::tuning::Means;
    use crate::run::job::Job;
    use crate::ycsb::client::latencies;

    pub fn record() -> Record {
        let phase = Phase {
            workload: Workload::A,
            mix: Mix::K,
            distribution: None,
            records: 1000,
            requests: 500,
            seconds_max: None,
            threads: 2,
            reads_together: 1,
            ops_per_second: None,
            rest_seconds: 0.0,
            seed: 1,
        };
        let mut latencies = latencies().unwrap();
        for us in 1..=100 {
            latencies.record(us * 1000).unwrap();
        }
        let outcome = Outcome {
            requests: 100,
            records: 1000,
            seconds: 2.0,
            settle_seconds: 1.0,
            latencies,
            failures: Failures {
                missing: 3,
                ..Failures::default()
            },
            series: vec![50, 50],
        };
        let job = Job {
            engine: Kind::Kreon,
            dir: "x".into(),
            means: Means::default(),
            phases: vec![phase],
            door: None,
            preset: "small".to_owned(),
            round: 2,
            variant: String::new(),
        };
        let used = Usage {
            cpu_seconds: 0.002,
            system_seconds: 0.001,
            machine_cpu_seconds: 1.502,
            device_read_bytes: 1_000,
            device_write_bytes: 50_500,
            ..Usage::default()
        };
        let about = Circumstances {
            job: &job,
            used,
            mhz: 2000.0,
            space_bytes: 2_060_000,
            peak_rss_bytes: 7,
            randomness: None,
            searches: None,
        };
        Record::new(&phase, &outcome, &about)
    }

    #[test]
    fn a_record_serialises_with_all_fields_that_readers_count_on() {
        let json = serde_json::to_value(record()).unwrap();
        for (field, expected) in [
            ("engine", "\"kreon\""),
            ("preset", "\"small\""),
            ("mix", "\"K\""),
            ("workload", "\"A\""),
            ("round", "2"),
            ("operations", "100"),
            ("seconds", "2.0"),
            ("cpu_us_per_op", "20.0"),
            ("device_read_bytes_per_op", "10.0"),
            ("device_write_bytes_per_op", "505.0"),
            ("space_bytes", "2060000"),
            ("live_bytes", "1030000"),
            ("peak_rss_bytes", "7"),
            ("failures", "3"),
            ("is_cut", "true"),
            ("cycles_per_op", "40000.0"),
            ("other_load_cores", "0.5"),
            ("io_amplification", "1.0"),
        ] {
            assert_eq!(json[field].to_string(), expected, "{field}");
        }
        // Histograms keep three digits.
        for (field, us) in [
            ("p50_us", 50.0),
            ("p99_us", 99.0),
            ("p999_us", 100.0),
            ("p9999_us", 100.0),
            ("max_us", 100.0),
        ] {
            let found = json[field].as_f64().unwrap();
            assert!((found / us - 1.0).abs() < 0.002, "{field}: {found}");
        }
    }

    #[test]
    fn a_record_comes_back_from_its_line() {
        let line = serde_json::to_string(&record()).unwrap();
        let back: Record = serde_json::from_str(&line).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), line);
    }
}
