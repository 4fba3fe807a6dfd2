//! Results for tests.

use super::origin::Origin;
use super::results::{Results, SCHEMA};
use crate::engine::Kind;
use crate::engine::tuning::Means;
use crate::machine::about::About;
use crate::run::record::Record;
use crate::run::record::tests::record;
use crate::run::settings::{Point, Settings};
use crate::ycsb::workload::Workload;

/// A record of `engine` at so many requests a second.
pub fn of(engine: Kind, workload: Workload, ops_per_second: f64) -> Record {
    Record {
        engine,
        workload,
        ops_per_second,
        failures: 0,
        is_cut: false,
        ..record()
    }
}

/// A run with `records`, in a warmed cell or not.
pub fn results(records: Vec<Record>, is_warmed: bool) -> Results {
    let mut engines: Vec<Kind> = records.iter().map(|record| record.engine).collect();
    engines.dedup();
    let means = Means {
        memory_bytes: 1 << 30,
        data_bytes: 400 << 20,
        is_warmed,
        ..Means::default()
    };
    Results {
        schema: SCHEMA,
        origin: Origin {
            commit: "0123456789ab".to_owned(),
            command: "target/kreon-bench ycsb --preset small".to_owned(),
            versions: vec![
                ("kreon".to_owned(), "0.1.0".to_owned()),
                ("lmdb".to_owned(), "0.9".to_owned()),
            ],
            tuning: vec![("lmdb".to_owned(), "a map".to_owned())],
            ..Origin::default()
        },
        machine: About::here(std::path::Path::new(".")),
        settings: Settings {
            preset: "small".to_owned(),
            engines,
            points: vec![Point {
                variant: String::new(),
                means,
                phases: Vec::new(),
            }],
            rounds: 1,
        },
        records,
        broken: Vec::new(),
    }
}
