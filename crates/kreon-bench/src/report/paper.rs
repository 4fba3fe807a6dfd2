//! The paper's ratios, to stand beside ours (`Kreon 4.2`, figures 5, 9, 10 and 11; `Kreon 4.4`, tables 4 and 5).

use crate::engine::Kind;
use crate::run::preset::Preset;
use crate::ycsb::workload::Workload;

use super::summary::Cell;

/// How many times better kreon did than RocksDB in one of the paper's two datasets.
struct Dataset {
    /// Cycles/op of Load A, C and G, RocksDB's over kreon's.
    cycles: [f64; 3],
    /// Ops/s, kreon's over RocksDB's.
    ops: [f64; 3],
    /// p99.99 of Load A, RocksDB's over kreon's.
    tail: f64,
    /// Bytes read and written by Load A, RocksDB's over kreon's; told of the large dataset.
    bytes: Option<[f64; 2]>,
}

const WORKLOADS: [Workload; 3] = [Workload::LoadA, Workload::C, Workload::G];

/// 120 GB in 192 GB of memory.
const SMALL: Dataset = Dataset {
    cycles: [8.3, 1.56, 1.4],
    ops: [14.35, 1.24, 1.25],
    tail: 393.0,
    bytes: None,
};

/// 120 GB in 16 GB of memory.
const LARGE: Dataset = Dataset {
    cycles: [5.82, 1.2, 1.18],
    ops: [5.33, 1.05, 0.98],
    tail: 88.0,
    bytes: Some([669.0 / 112.0, 869.0 / 221.0]),
};

/// R of all transfers, the reads and the writes of kreon's Load A of the large dataset.
const RANDOMNESS: [f64; 3] = [0.009_851, 0.033_648, 0.000_325];

/// A table of the paper's ratios beside those of `cells`; nothing if one of the two stores or a workload is missing.
pub fn markdown(preset: &str, cells: &[Cell]) -> Option<String> {
    let is_large = [Preset::Large, Preset::PaperLarge]
        .iter()
        .any(|large| large.name() == preset);
    let dataset = if is_large { LARGE } else { SMALL };
    let mut text = "| kreon and RocksDB, times better | paper | here |\n|---|---|---|\n".to_owned();
    let mut line = |name: String, paper: f64, here: f64| {
        text += &format!("| {name} | {paper:.2} | {here:.2} |\n");
    };
    for (at, workload) in WORKLOADS.into_iter().enumerate() {
        let (ours, theirs) = pair(cells, workload)?;
        let name = workload.name();
        let cycles = over(theirs.net_cpu_us(), ours.net_cpu_us());
        line(format!("{name}: cycles/op"), dataset.cycles[at], cycles);
        let ops = over(ours.ops_per_second, theirs.ops_per_second);
        line(format!("{name}: ops/s"), dataset.ops[at], ops);
    }
    let (ours, theirs) = pair(cells, Workload::LoadA)?;
    let tail = over(theirs.p9999_us, ours.p9999_us);
    line("Load A: p99.99".to_owned(), dataset.tail, tail);
    if let Some([read, written]) = dataset.bytes {
        let here = over(theirs.read_bytes, ours.read_bytes);
        line("Load A: bytes read".to_owned(), read, here);
        let here = over(theirs.write_bytes, ours.write_bytes);
        line("Load A: bytes written".to_owned(), written, here);
    }
    text += &randomness(ours).unwrap_or_default();
    Some(text)
}

fn over(above: f64, below: f64) -> f64 {
    above / below.max(1e-9)
}

/// kreon's and RocksDB's figures of a workload.
fn pair(cells: &[Cell], workload: Workload) -> Option<(&Cell, &Cell)> {
    let find = |engine| {
        cells
            .iter()
            .find(|c| c.engine == engine && c.workload == workload)
    };
    Some((find(Kind::Kreon)?, find(Kind::Rocksdb)?))
}

/// R depends on the length of the volume and of the transfers: it is no ratio.
fn randomness(ours: &Cell) -> Option<String> {
    let found = ours.typical.randomness?;
    let mut text =
        "\n| kreon's I/O randomness R in Load A | paper, large | here |\n|---|---|---|\n"
            .to_owned();
    let here = [found.all, found.reads, found.writes];
    for ((name, paper), here) in ["all", "reads", "writes"].iter().zip(RANDOMNESS).zip(here) {
        let here = here.map_or_else(|| "-".to_owned(), |value| format!("{value:.6}"));
        text += &format!("| {name} | {paper:.6} | {here} |\n");
    }
    Some(text)
}
