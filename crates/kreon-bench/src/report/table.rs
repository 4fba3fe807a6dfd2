//! `results.md`: the medians as tables.

use super::claims;
use super::memories::Memories;
use super::notes::notes;
use super::paper;
use super::results::Results;
use super::summary::{Cell, cells, variants};
use super::tucana;

/// The whole file.
pub fn markdown(results: &Results) -> String {
    let cells = cells(&results.records);
    let mut text = format!(
        "# {}\n\n```text\n{}\n```\n\n",
        results.settings.preset, results.origin.command
    );
    for (name, value) in about(results) {
        text += &format!("- {name}: {value}\n");
    }
    for variant in variants(&cells) {
        if !variant.is_empty() {
            text += &format!("\n## {variant}\n");
        }
        let of_variant: Vec<&Cell> = cells.iter().filter(|c| c.variant == variant).collect();
        text += &format!("\n{}", table(&of_variant));
    }
    if let Some(ratios) = paper::markdown(&results.settings.preset, &cells) {
        text += &format!("\n## The paper's ratios\n\n{ratios}");
    }
    if let Some(claims) = claims::markdown(&results.settings.preset, &cells) {
        text += &format!("\n## KVell's claims\n\n{claims}");
    }
    if let Some(claims) = tucana::markdown(&results.settings, &cells) {
        text += &format!("\n## Tucana's claims\n\n{claims}");
    }
    if let Some(memories) = Memories::of(&results.settings) {
        text += &format!("\n## By memory\n\n{}", memories.markdown(&cells));
    }
    for note in notes(results, &|_| true) {
        text += &format!("\n{note}\n");
    }
    text
}

/// What a reader must know of the circumstances, as (name, value).
pub fn about(results: &Results) -> Vec<(&'static str, String)> {
    let machine = &results.machine;
    let is_limited = results.records.iter().all(|record| record.is_limited);
    let memory = memories(results);
    vec![
        ("processor", format!("{}, {} cores", machine.processor, machine.cores)),
        ("machine memory", format!("{} MiB", machine.memory_bytes >> 20)),
        ("kernel", machine.kernel.clone()),
        ("file system", machine.file_system.clone()),
        ("device", machine.device.clone()),
        ("commit", results.origin.commit.clone()),
        ("stores", results.origin.versions_line()),
        ("settings", results.origin.tuning_line()),
        (
            "memory of each store",
            match is_limited {
                true => format!("{memory} MiB, enforced by a control group, page cache included"),
                false => format!("{memory} MiB, NOT enforced: control groups are not allowed here"),
            },
        ),
        ("rounds", format!("{}, by turns; medians", results.settings.rounds)),
        (
            "CPU time",
            "whole process, background work to its end; without the harness's own, which the first row shows".to_owned(),
        ),
    ]
}

/// Those of all points, in MiB.
fn memories(results: &Results) -> String {
    let points = results.settings.points.iter();
    let mut memories: Vec<u64> = points.map(|point| point.means.memory_bytes >> 20).collect();
    memories.dedup();
    let memories: Vec<String> = memories.iter().map(u64::to_string).collect();
    memories.join(", ")
}

const HEAD: &str = "| workload | store | k ops/s | rounds | settle s | CPU us/op | cycles/op | read B/op | written B/op | amplification | p50 us | p99 | p99.9 | p99.99 | max | worst s / median | space / live | peak MiB | other load |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";

fn table(cells: &[&Cell]) -> String {
    let mut sorted = cells.to_vec();
    sorted.sort_by_key(|cell| (order(cell), cell.engine));
    let rows = sorted.iter().map(|cell| row(cell));
    HEAD.to_owned() + &rows.collect::<String>()
}

fn order(cell: &Cell) -> usize {
    let all = crate::ycsb::workload::Workload::ALL;
    all.iter()
        .position(|workload| *workload == cell.workload)
        .unwrap_or(all.len())
}

fn row(cell: &Cell) -> String {
    let us = |value: f64| match value {
        value if value < 10.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    };
    let told = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v:.2}"));
    let failed = match (cell.failures, cell.is_cut && cell.workload.is_load()) {
        (0, false) => String::new(),
        (0, true) => " (cut short)".to_owned(),
        (failures, _) => format!(" **{failures} WRONG**"),
    };
    format!(
        "| {} | {}{failed} | {:.1} | {:.2}-{:.2} | {:.1} | {:.2} | {:.0} | {:.0} | {:.0} | {} | {} | {} | {} | {} | {} | {} | {} | {:.0} | {:.2} |\n",
        cell.workload.name(),
        cell.engine.label(),
        cell.ops_per_second / 1e3,
        cell.spread.0,
        cell.spread.1,
        cell.settle_seconds,
        cell.net_cpu_us(),
        cell.cycles,
        cell.read_bytes,
        cell.write_bytes,
        told(cell.io_amplification),
        us(cell.p50_us),
        us(cell.p99_us),
        us(cell.p999_us),
        us(cell.p9999_us),
        us(cell.max_us),
        told(cell.worst_second_share),
        told(cell.engine.is_store().then_some(cell.space_per_live)),
        cell.peak_rss_bytes / f64::from(1 << 20),
        cell.other_load_cores,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Kind;
    use crate::report::sample::{of, results};
    use crate::ycsb::workload::Workload;

    #[test]
    fn a_store_that_is_not_durable_is_marked_in_its_line_and_below() {
        let text = markdown(&results(vec![of(Kind::Bftree, Workload::C, 1e5)], true));
        assert!(text.contains("| C | bftree (not durable) |"), "{text}");
        assert!(text.contains("bftree is not durable: "), "{text}");
        let text = markdown(&results(vec![of(Kind::Kreon, Workload::C, 1e5)], true));
        assert!(!text.contains("not durable"), "{text}");
    }
}
