//! What stands below a table because the figures alone would mislead.

use super::faults;
use super::results::Results;
use super::summary::cells;
use crate::engine::Kind;

/// Sentences on the stores in `shown`: those that did not come to their end, faults of the settings, durability, loads
/// that were cut short, wrong answers.
pub fn notes(results: &Results, shown: &dyn Fn(Kind) -> bool) -> Vec<String> {
    let mut notes = Vec::new();
    for broken in results.broken.iter().filter(|one| shown(one.engine)) {
        let (name, round) = (broken.engine.name(), broken.round);
        notes.push(format!(
            "**{name} did not come to its end in round {round}: {}**",
            broken.why.replace('\n', " ")
        ));
    }
    for (engine, fault) in faults::lines(results) {
        if shown(engine) {
            notes.push(format!("**Fault of the settings: {fault}.**"));
        }
    }
    let cells = cells(&results.records);
    let cells = || cells.iter().filter(|cell| shown(cell.engine));
    if let Some(cell) = cells().find(|cell| !cell.engine.is_durable()) {
        notes.push(format!(
            "{} is not durable: what it took is lost when its process ends.",
            cell.engine.name()
        ));
    }
    if cells().any(|cell| cell.is_cut && cell.workload.is_load()) {
        notes.push(
            "(cut short): the time was up before all records were loaded; the workloads behind it worked on those that were."
                .to_owned(),
        );
    }
    let failures = results.failures();
    if failures > 0 {
        notes.push(format!(
            "**{failures} wrong answers: this run has failed.**"
        ));
    }
    notes
}
