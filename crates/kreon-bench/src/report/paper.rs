//! The paper's ratios, to stand beside ours (`Kreon 4.2`, figures 5 and 11).

use crate::engine::Kind;
use crate::ycsb::workload::Workload;

use super::summary::Cell;

/// How many times less of something kreon took than RocksDB, in the paper's small dataset.
struct Ratio {
    workload: Workload,
    cycles: f64,
    ops: f64,
}

const SMALL: [Ratio; 3] = [
    Ratio {
        workload: Workload::LoadA,
        cycles: 8.3,
        ops: 14.35,
    },
    Ratio {
        workload: Workload::C,
        cycles: 1.56,
        ops: 1.24,
    },
    Ratio {
        workload: Workload::G,
        cycles: 1.4,
        ops: 1.25,
    },
];

/// A table of the paper's ratios beside those of `cells`; nothing if one of the two stores is missing.
pub fn markdown(cells: &[Cell]) -> Option<String> {
    let find = |engine, workload| {
        let mut found = cells
            .iter()
            .filter(|c| c.engine == engine && c.workload == workload);
        found.next()
    };
    let mut text = "| workload | cycles/op, RocksDB over kreon: paper | here | ops/s, kreon over RocksDB: paper | here |\n\
                    |---|---|---|---|---|\n"
        .to_owned();
    for ratio in SMALL {
        let (ours, theirs) = (
            find(Kind::Kreon, ratio.workload)?,
            find(Kind::Rocksdb, ratio.workload)?,
        );
        text += &format!(
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} |\n",
            ratio.workload.name(),
            ratio.cycles,
            theirs.net_cpu_us() / ours.net_cpu_us().max(1e-9),
            ratio.ops,
            ours.ops_per_second / theirs.ops_per_second.max(1e-9),
        );
    }
    Some(text)
}
