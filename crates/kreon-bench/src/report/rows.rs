//! The lines of a table: each workload under its circumstances, with all stores' figures.

use clap::ValueEnum;

use super::results::Results;
use super::summary::{Cell, cells};
use crate::engine::Kind;
use crate::run::settings::Point;
use crate::ycsb::workload::Workload;

/// A line.
pub struct Row {
    /// The workload, and what is told from other lines.
    pub name: String,
    /// The workload.
    pub workload: Workload,
    /// Of the stores that ran it.
    pub cells: Vec<Cell>,
}

impl Row {
    /// The figures of `engine`.
    pub fn of(&self, engine: Kind) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.engine == engine)
    }
}

/// The lines of all `runs`, in their order and that of the workloads.
pub fn rows(runs: &[&Results]) -> Vec<Row> {
    let mut mixes: Vec<_> = runs
        .iter()
        .flat_map(|run| &run.settings.points)
        .map(|point| point.means.mix.name())
        .collect();
    mixes.sort_unstable();
    mixes.dedup();
    let mut rows = Vec::new();
    for run in runs {
        let cells = cells(&run.records);
        for point in &run.settings.points {
            for workload in Workload::ALL {
                let of_row =
                    |cell: &&Cell| cell.variant == point.variant && cell.workload == workload;
                let cells: Vec<_> = cells.iter().filter(of_row).cloned().collect();
                if !cells.is_empty() {
                    rows.push(Row {
                        name: name(point, workload, mixes.len() > 1),
                        workload,
                        cells,
                    });
                }
            }
        }
    }
    rows
}

fn name(point: &Point, workload: Workload, has_mixes: bool) -> String {
    let mut name = workload.name().to_owned();
    let mut phases = point.phases.iter();
    if let Some(phase) = phases.find(|phase| phase.workload == workload) {
        let distribution = phase.distribution.and_then(|one| one.to_possible_value());
        if let Some(distribution) = distribution.filter(|_| !workload.is_load()) {
            name += &format!(", {}", distribution.get_name());
        }
        if phase.reads_together > 1 && workload == Workload::C {
            name += &format!(", {} in a call", phase.reads_together);
        }
        if let Some(rate) = phase.ops_per_second {
            name += &format!(" at {rate}/s");
        }
        if phase.rest_seconds > 0.0 {
            name += &format!(", then {} s of rest", phase.rest_seconds);
        }
    }
    // Where a run has several mixes its points are named after them.
    match (point.variant.as_str(), has_mixes) {
        ("", true) => format!("mix {}: {name}", point.means.mix.name()),
        ("", false) => name,
        (variant, _) => format!("{variant}: {name}"),
    }
}

/// The stores in `rows`, without what only the harness or the device does.
pub fn stores(rows: &[Row]) -> Vec<Kind> {
    let cells = rows.iter().flat_map(|row| &row.cells);
    let mut stores: Vec<Kind> = cells.map(|cell| cell.engine).collect();
    stores.retain(|engine| engine.is_store());
    stores.sort_unstable();
    stores.dedup();
    stores
}
