//! Faults of the settings: what makes a comparison unfair, whatever the figures.

use super::results::Results;
use super::summary::{Cell, cells};
use crate::engine::Kind;

/// Bytes read for the process per request from which on a store reads the device where everything fits in memory.
/// Opening files and metadata stay far below it.
const READ_BYTES_MIN: f64 = 16.0;

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
