//! Faults of the settings: what makes a comparison unfair, whatever the figures.

use super::results::Results;
use super::summary::{Cell, cells};
use crate::engine::Kind;

/// Bytes read for the process per request from which on a store reads the device where everything fits in memory.
/// Opening files and metadata stay far below it.
const READ_BYTES_MIN: f64 = 16.0;

/// Of all requests together: what a file system reads of its own is less, and scans are few.
const READ_BYTES_IN_ALL_MIN: f64 = 1e6;

/// Peers that read from the device in cells where everything fits in memory, as lines: there they are not at their best.
/// What kreon reads is its own doing, and stands in the table.
pub fn lines(results: &Results) -> Vec<(Kind, String)> {
    let is_warmed = |cell: &Cell| {
        let points = &results.settings.points;
        let point = points.iter().find(|point| point.variant == cell.variant);
        point.is_some_and(|point| point.means.is_warmed)
    };
    let cells = cells(&results.records).into_iter();
    let read = cells.filter(|cell| {
        is_warmed(cell)
            && cell.engine.is_store()
            && cell.engine != Kind::Kreon
            && !cell.workload.is_load()
            && cell.process_read_bytes >= READ_BYTES_MIN
            && cell.process_read_bytes * cell.typical.operations as f64 >= READ_BYTES_IN_ALL_MIN
    });
    read.map(|cell| {
        let line = format!(
            "{} read {:.0} B per request from the device in {}, where everything fits in memory",
            cell.engine.name(),
            cell.process_read_bytes,
            cell.workload.name()
        );
        (cell.engine, line)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{of, results};
    use crate::run::record::Record;
    use crate::ycsb::workload::Workload;

    fn reads(engine: Kind, workload: Workload, bytes: f64) -> Record {
        Record {
            process_read_bytes_per_op: bytes,
            operations: 100_000,
            ..of(engine, workload, 1e5)
        }
    }

    #[test]
    fn a_peer_that_reads_the_device_in_a_warmed_cell_is_a_fault() {
        let records = vec![
            reads(Kind::Lmdb, Workload::C, 900.0),
            reads(Kind::Redb, Workload::C, 1.0),
        ];
        let found = lines(&results(records.clone(), true));
        assert_eq!(found.len(), 1);
        assert!(
            found[0].0 == Kind::Lmdb && found[0].1.contains("900 B"),
            "{found:?}"
        );
        assert!(lines(&results(records, false)).is_empty());
    }

    #[test]
    fn a_few_blocks_that_the_file_system_reads_are_no_fault() {
        let mut scans = reads(Kind::Bftree, Workload::E, 50.0);
        scans.operations = 3000;
        assert!(lines(&results(vec![scans], true)).is_empty());
    }

    #[test]
    fn loads_the_harness_and_our_own_store_are_no_faults() {
        let records = vec![
            reads(Kind::Lmdb, Workload::LoadA, 900.0),
            reads(Kind::Kreon, Workload::C, 900.0),
            reads(Kind::Nothing, Workload::C, 900.0),
        ];
        assert!(lines(&results(records, true)).is_empty());
    }
}
