//! `kreon-bench table`: the few figures of a run that a README has room for.

use super::results::Results;
use super::summary::{Cell, cells};
use crate::engine::Kind;
use crate::ycsb::workload::Workload;

/// What was measured, on what, when and how; then a table of all workloads, one of the load's bytes and tails, and
/// one of kreon's ratios to each other store.
pub fn markdown(results: &Results) -> String {
    let cells: Vec<Cell> = cells(&results.records);
    let mut variants: Vec<&str> = cells.iter().map(|cell| cell.variant.as_str()).collect();
    variants.sort_unstable();
    variants.dedup();
    let mut text = head(results);
    for variant in variants {
        let of_variant: Vec<&Cell> = cells.iter().filter(|c| c.variant == variant).collect();
        if !variant.is_empty() {
            text += &format!("**{variant}**\n\n");
        }
        text += &format!("{}\n{}", workloads(&of_variant), loads(&of_variant));
        text += &ratios(&of_variant);
    }
    text
}

fn head(results: &Results) -> String {
    let point = results.settings.points.first();
    let means = point.map(|point| point.means);
    let clients = point
        .and_then(|point| point.phases.first())
        .map_or(0, |phase| phase.threads);
    let versions: Vec<String> = results
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    format!(
        "{}: preset `{}`, {} MiB of pairs, {} MiB of memory for each store, {clients} clients, medians of {} rounds by \
         turns; {}, {} cores; {}.\n\n```sh\n{}\n```\n\n",
        date(results.began_unix_seconds),
        results.settings.preset,
        means.map_or(0, |means| means.data_bytes >> 20),
        means.map_or(0, |means| means.memory_bytes >> 20),
        results.settings.rounds,
        results.machine.processor,
        results.machine.cores,
        versions.join(", "),
        command(&results.command),
    )
}

/// The command without the folder that the program was started from.
fn command(told: &str) -> String {
    let (program, rest) = told.split_once(' ').unwrap_or((told, ""));
    let name = program.rsplit('/').next().unwrap_or(program);
    format!("{name} {rest}")
}

/// The date of a moment in UTC, after H. Hinnant's `civil_from_days`.
fn date(unix_seconds: u64) -> String {
    let days = unix_seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

fn engines(cells: &[&Cell]) -> Vec<Kind> {
    let mut engines: Vec<Kind> = cells.iter().map(|cell| cell.engine).collect();
    engines.retain(|engine| *engine != Kind::Nothing);
    engines.sort_unstable();
    engines.dedup();
    engines
}

fn find<'a>(cells: &[&'a Cell], engine: Kind, workload: Workload) -> Option<&'a Cell> {
    let mut found = cells
        .iter()
        .filter(|c| c.engine == engine && c.workload == workload);
    found.next().copied()
}

fn short(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn heading(first: &str, others: &[String]) -> String {
    let names = std::iter::once(first.to_owned()).chain(others.iter().cloned());
    let rule = "|---".repeat(others.len() + 1);
    format!("{}{rule}|\n", line(names))
}

fn workloads(cells: &[&Cell]) -> String {
    let engines = engines(cells);
    let names: Vec<String> = engines
        .iter()
        .map(|engine| engine.name().to_owned())
        .collect();
    let mut text = heading("k ops/s, CPU us/op, p99.9 us", &names);
    for workload in Workload::ALL {
        if engines
            .iter()
            .all(|engine| find(cells, *engine, workload).is_none())
        {
            continue;
        }
        let of_engine = |engine: &Kind| match find(cells, *engine, workload) {
            Some(cell) => {
                let is_short = cell.is_cut && workload.is_load();
                format!(
                    "{}, {}, {}{}",
                    short(cell.ops_per_second / 1e3),
                    short(cell.net_cpu_us()),
                    short(cell.p999_us),
                    if is_short { " (cut short)" } else { "" }
                )
            }
            None => "-".to_owned(),
        };
        let name = std::iter::once(workload.name().to_owned());
        text += &line(name.chain(engines.iter().map(of_engine)));
    }
    text
}

fn loads(cells: &[&Cell]) -> String {
    let columns = [
        "written B per B given",
        "read B per B given",
        "p99.99 us",
        "max us",
        "worst second / median",
        "space / live",
        "peak MiB",
    ];
    let mut text = heading("Load A", &columns.map(str::to_owned));
    // The harness, too: its tail and its worst second are the machine's own noise.
    let harness = [Kind::Nothing];
    for engine in harness.into_iter().chain(engines(cells)) {
        let Some(cell) = find(cells, engine, Workload::LoadA) else {
            continue;
        };
        let pair_bytes = cell.typical.mix.pair_bytes_mean();
        let figures = [
            short(cell.write_bytes / pair_bytes),
            short(cell.read_bytes / pair_bytes),
            short(cell.p9999_us),
            short(cell.max_us),
            cell.worst_second_share
                .map_or_else(|| "-".to_owned(), short),
            if engine.is_store() {
                short(cell.space_per_live)
            } else {
                "-".to_owned()
            },
            short(cell.peak_rss_bytes / f64::from(1 << 20)),
        ];
        text += &line(std::iter::once(engine.name().to_owned()).chain(figures));
    }
    text
}

fn ratios(cells: &[&Cell]) -> String {
    let mut others = engines(cells);
    others.retain(|engine| engine.is_store() && *engine != Kind::Kreon);
    if others.is_empty() {
        return "\n".to_owned();
    }
    let names: Vec<String> = others
        .iter()
        .map(|engine| engine.name().to_owned())
        .collect();
    let mut text =
        "\n".to_owned() + &heading("kreon's ops/s, and how much less CPU, times", &names);
    for workload in Workload::ALL {
        let Some(ours) = find(cells, Kind::Kreon, workload) else {
            continue;
        };
        let of_other = |engine: &Kind| match find(cells, *engine, workload) {
            Some(theirs) => format!(
                "{}, {}",
                short(ours.ops_per_second / theirs.ops_per_second.max(1e-9)),
                short(theirs.net_cpu_us() / ours.net_cpu_us().max(1e-9))
            ),
            None => "-".to_owned(),
        };
        let name = std::iter::once(workload.name().to_owned());
        text += &line(name.chain(others.iter().map(of_other)));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_709_164_800, "2024-02-29"),
            (1_795_219_199, "2026-11-20"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }

    #[test]
    fn commands_lose_the_folder_of_their_program() {
        assert_eq!(
            command("/some/where/kreon-bench ycsb --preset small"),
            "kreon-bench ycsb --preset small"
        );
    }
}
