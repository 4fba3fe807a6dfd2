//! Medians over the rounds.

use crate::engine::Kind;
use crate::run::record::Record;
use crate::ycsb::mix::Mix;
use crate::ycsb::workload::Workload;

/// One store in one workload at one point: medians over the rounds.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The store.
    pub engine: Kind,
    /// The workload.
    pub workload: Workload,
    /// Point of a sweep.
    pub variant: String,
    /// Requests a second.
    pub ops_per_second: f64,
    /// Seconds that background work went on behind the last request.
    pub settle_seconds: f64,
    /// CPU time of the whole process, in us.
    pub cpu_us: f64,
    /// Of this, what the harness takes: the median of the store that does nothing.
    pub harness_us: f64,
    /// Estimated cycles, harness subtracted.
    pub cycles: f64,
    /// Device bytes an operation.
    pub read_bytes: f64,
    /// Device bytes an operation.
    pub write_bytes: f64,
    /// Bytes read from the device for the process, an operation.
    pub process_read_bytes: f64,
    /// Bytes that the process wrote, an operation.
    pub process_write_bytes: f64,
    /// See [`Record::io_amplification`].
    pub io_amplification: Option<f64>,
    /// Latencies in us.
    pub p50_us: f64,
    /// 99 % are below.
    pub p99_us: f64,
    /// 99.9 % are below.
    pub p999_us: f64,
    /// 99.99 % are below.
    pub p9999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// See [`Record::worst_second_share`].
    pub worst_second_share: Option<f64>,
    /// In some round the time was up before all requests were made.
    pub is_cut: bool,
    /// Disk space for each live byte.
    pub space_per_live: f64,
    /// Peak memory in bytes.
    pub peak_rss_bytes: f64,
    /// Cores that others kept busy.
    pub other_load_cores: f64,
    /// Sum over the rounds.
    pub failures: u64,
    /// Slowest and fastest round, as shares of the median rate.
    pub spread: (f64, f64),
    /// The round whose rate is the median.
    pub typical: Record,
}

impl Cell {
    /// CPU time without what the harness takes.
    pub fn net_cpu_us(&self) -> f64 {
        (self.cpu_us - self.harness_us).max(0.0)
    }
}

/// The cells in the order of the run, the store that does nothing among them.
pub fn cells(records: &[Record]) -> Vec<Cell> {
    let mut keys: Vec<(&str, Mix, Workload, Kind)> = Vec::new();
    for record in records {
        let key = key(record);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.into_iter()
        .filter_map(|key| cell(records, key))
        .collect()
}

/// The points of a run, in its order.
pub fn variants(cells: &[Cell]) -> Vec<&str> {
    let mut variants: Vec<&str> = Vec::new();
    for cell in cells {
        if !variants.contains(&cell.variant.as_str()) {
            variants.push(&cell.variant);
        }
    }
    variants
}

/// The stores that have some of `cells`.
pub fn engines<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Vec<Kind> {
    let mut engines: Vec<_> = cells.into_iter().map(|cell| cell.engine).collect();
    engines.sort_unstable();
    engines.dedup();
    engines
}

fn key(record: &Record) -> (&str, Mix, Workload, Kind) {
    (&record.variant, record.mix, record.workload, record.engine)
}

fn cell(records: &[Record], wanted: (&str, Mix, Workload, Kind)) -> Option<Cell> {
    let mut of_cell: Vec<&Record> = records.iter().filter(|r| key(r) == wanted).collect();
    of_cell.sort_by(|a, b| a.ops_per_second.total_cmp(&b.ops_per_second));
    let typical = *of_cell.get(of_cell.len() / 2)?;
    let median_of = |field: &dyn Fn(&Record) -> f64| median(of_cell.iter().map(|r| field(r)));
    let nothing = (wanted.0, wanted.1, wanted.2, Kind::Nothing);
    let harness = records.iter().filter(|r| key(r) == nothing);
    let harness_us = match wanted.3 {
        Kind::Nothing => 0.0,
        _ => median(harness.map(|r| r.cpu_us_per_op)),
    };
    let (cpu_us, rate) = (
        median_of(&|r| r.cpu_us_per_op),
        median_of(&|r| r.ops_per_second),
    );
    let mhz = match typical.cpu_us_per_op > 0.0 {
        true => typical.cycles_per_op / typical.cpu_us_per_op,
        false => 0.0,
    };
    let median_told = |field: &dyn Fn(&Record) -> Option<f64>| {
        let told: Vec<f64> = of_cell.iter().filter_map(|r| field(r)).collect();
        (!told.is_empty()).then(|| median(told.into_iter()))
    };
    Some(Cell {
        engine: wanted.3,
        workload: wanted.2,
        variant: wanted.0.to_owned(),
        ops_per_second: rate,
        settle_seconds: median_of(&|r| r.settle_seconds),
        cpu_us,
        harness_us,
        cycles: (cpu_us - harness_us).max(0.0) * mhz,
        read_bytes: median_of(&|r| r.device_read_bytes_per_op),
        write_bytes: median_of(&|r| r.device_write_bytes_per_op),
        process_read_bytes: median_of(&|r| r.process_read_bytes_per_op),
        process_write_bytes: median_of(&|r| r.process_write_bytes_per_op),
        io_amplification: median_told(&|r| r.io_amplification),
        p50_us: median_of(&|r| r.p50_us),
        p99_us: median_of(&|r| r.p99_us),
        p999_us: median_of(&|r| r.p999_us),
        p9999_us: median_of(&|r| r.p9999_us),
        max_us: median_of(&|r| r.max_us),
        worst_second_share: median_told(&|r| r.worst_second_share),
        is_cut: wanted.3.is_store() && of_cell.iter().any(|r| r.is_cut),
        space_per_live: median_of(&|r| r.space_bytes as f64 / r.live_bytes.max(1) as f64),
        peak_rss_bytes: median_of(&|r| r.peak_rss_bytes as f64),
        other_load_cores: median_of(&|r| r.other_load_cores),
        failures: of_cell.iter().map(|r| r.failures).sum(),
        spread: (
            of_cell.first().map_or(0.0, |r| r.ops_per_second / rate),
            of_cell.last().map_or(0.0, |r| r.ops_per_second / rate),
        ),
        typical: typical.clone(),
    })
}

/// The median; 0 of nothing.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.len() % 2, values.as_slice()) {
        (_, []) => 0.0,
        (0, values) => (values[middle - 1] + values[middle]) / 2.0,
        (_, values) => values[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_few_values() {
        assert_eq!(median([].into_iter()), 0.0);
        assert_eq!(median([3.0].into_iter()), 3.0);
        assert_eq!(median([4.0, 1.0].into_iter()), 2.5);
        assert_eq!(median([9.0, 1.0, 2.0].into_iter()), 2.0);
    }
}
