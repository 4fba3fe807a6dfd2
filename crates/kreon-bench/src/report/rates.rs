//! Figures of stores side by side, and how many times better kreon is.

use super::grid::{NONE, heading, line, short};
use super::rows::Row;
use super::summary::Cell;
use crate::engine::Kind;
use crate::ycsb::workload::Workload;

/// What a table shows of each store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Figure {
    /// Thousands of requests a second.
    Ops,
    /// CPU time of a request, without what the harness takes.
    Cpu,
    /// The median latency.
    P50,
    /// 99.9 % are below.
    P999,
    /// 99.99 % are below.
    P9999,
    /// Written at the device for a request.
    Written,
    /// Written by the process for a request, to the page cache or beside it: what is deleted again soon never comes to
    /// the device.
    Given,
    /// Read at the device for a request.
    Read,
}

impl Figure {
    /// What tables show where nothing else is asked for.
    pub const USUAL: [Self; 3] = [Self::Ops, Self::Cpu, Self::P999];

    fn name(self) -> &'static str {
        match self {
            Self::Ops => "k ops/s",
            Self::Cpu => "CPU us/op",
            Self::P50 => "p50 us",
            Self::P999 => "p99.9 us",
            Self::P9999 => "p99.99 us",
            Self::Written => "written B/op",
            Self::Given => "B/op given to the kernel",
            Self::Read => "read B/op",
        }
    }

    fn of(self, cell: &Cell) -> f64 {
        match self {
            Self::Ops => cell.ops_per_second / 1e3,
            Self::Cpu => cell.net_cpu_us(),
            Self::P50 => cell.p50_us,
            Self::P999 => cell.p999_us,
            Self::P9999 => cell.p9999_us,
            Self::Written => cell.write_bytes,
            Self::Given => cell.process_write_bytes,
            Self::Read => cell.read_bytes,
        }
    }
}

/// `figures` of `stores`; beside one other store kreon's ratios, too.
pub fn rates(rows: &[Row], stores: &[Kind], figures: &[Figure]) -> String {
    let other = match stores {
        [Kind::Kreon, other] | [other, Kind::Kreon] if other.is_store() => Some(*other),
        _ => None,
    };
    let mut names: Vec<String> = stores.iter().map(|one| one.label().to_owned()).collect();
    if other.is_some() {
        names.extend(["ops/s, times", "CPU, times less"].map(str::to_owned));
    }
    let first: Vec<_> = figures.iter().map(|figure| figure.name()).collect();
    let mut text = heading(&first.join(", "), &names);
    for row in rows {
        let mut cells = vec![row.name.clone()];
        cells.extend(stores.iter().map(|store| one(row, *store, figures)));
        if let Some(other) = other {
            let ratios = ratio(row, other).map(|(ops, cpu)| [short(ops), short(cpu)]);
            cells.extend(ratios.unwrap_or_else(|| [NONE, NONE].map(str::to_owned)));
        }
        text += &line(cells);
    }
    text
}

fn one(row: &Row, store: Kind, figures: &[Figure]) -> String {
    let Some(cell) = row.of(store) else {
        return NONE.to_owned();
    };
    let figures = figures.iter().map(|figure| short(figure.of(cell)));
    let is_short = cell.is_cut && row.workload.is_load();
    let mark = if is_short { " (cut short)" } else { "" };
    format!("{}{mark}", figures.collect::<Vec<_>>().join(", "))
}

/// How many times more requests kreon does, and how many times less CPU one costs.
fn ratio(row: &Row, other: Kind) -> Option<(f64, f64)> {
    let (ours, theirs) = (row.of(Kind::Kreon)?, row.of(other)?);
    let ops = ours.ops_per_second / theirs.ops_per_second.max(1e-9);
    Some((ops, theirs.net_cpu_us() / ours.net_cpu_us().max(1e-9)))
}

/// kreon's ratios to each of `stores`; nothing where it has no others beside it.
pub fn ratios(rows: &[Row], stores: &[Kind]) -> String {
    let others = stores.iter().copied();
    let others: Vec<Kind> = others
        .filter(|store| store.is_store() && *store != Kind::Kreon)
        .collect();
    if others.is_empty() {
        return String::new();
    }
    let names: Vec<String> = others.iter().map(|one| one.label().to_owned()).collect();
    let mut text = heading("kreon's ops/s, and how much less CPU, times", &names);
    for row in rows.iter().filter(|row| row.of(Kind::Kreon).is_some()) {
        let ratios = others.iter().map(|other| match ratio(row, *other) {
            Some((ops, cpu)) => format!("{}, {}", short(ops), short(cpu)),
            None => NONE.to_owned(),
        });
        text += &line(std::iter::once(row.name.clone()).chain(ratios));
    }
    text
}

/// What Load A moved, its longest requests, and what it left.
pub fn loads(rows: &[Row], stores: &[Kind]) -> String {
    let columns = [
        "written B per B given",
        "read B per B given",
        "p99.99 us",
        "max us",
        "worst second / median",
        "space / live",
        "peak MiB",
    ];
    let mut text = heading("", &columns.map(str::to_owned));
    for row in rows.iter().filter(|row| row.workload == Workload::LoadA) {
        // The harness, too: its tail and its worst second are the machine's own noise.
        for store in std::iter::once(Kind::Nothing).chain(stores.iter().copied()) {
            let Some(cell) = row.of(store) else { continue };
            let pair_bytes = cell.typical.mix.pair_bytes_mean();
            let told = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), short);
            text += &line([
                format!("{}, {}", row.name, store.label()),
                short(cell.write_bytes / pair_bytes),
                short(cell.read_bytes / pair_bytes),
                short(cell.p9999_us),
                short(cell.max_us),
                told(cell.worst_second_share),
                told(store.is_store().then_some(cell.space_per_live)),
                short(cell.peak_rss_bytes / f64::from(1 << 20)),
            ]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::rows::{rows, stores};
    use crate::report::sample::{of, results};

    fn two() -> Vec<Row> {
        let records = vec![
            of(Kind::Nothing, Workload::A, 9e9),
            of(Kind::Kreon, Workload::A, 300e3),
            of(Kind::Lmdb, Workload::A, 150e3),
            of(Kind::Kreon, Workload::LoadA, 500e3),
        ];
        rows(&[&results(records, true)])
    }

    #[test]
    fn beside_one_other_store_kreons_ratios_stand_in_the_table() {
        let rows = two();
        assert_eq!(stores(&rows), [Kind::Kreon, Kind::Lmdb]);
        let text = rates(&rows, &stores(&rows), &[Figure::Ops]);
        let expected = "| k ops/s | kreon | lmdb | ops/s, times | CPU, times less |\n\
                        |---|---|---|---|---|\n\
                        | Load A | 500 | - | - | - |\n\
                        | A | 300 | 150 | 2.00 | 0.00 |\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_store_that_is_not_durable_is_called_so_in_every_table() {
        let records = vec![
            of(Kind::Kreon, Workload::LoadA, 3e5),
            of(Kind::Bftree, Workload::LoadA, 6e5),
        ];
        let rows = rows(&[&results(records, true)]);
        let stores = stores(&rows);
        for table in [
            rates(&rows, &stores, &Figure::USUAL),
            ratios(&rows, &stores),
            loads(&rows, &stores),
        ] {
            assert!(table.contains("bftree (not durable)"), "{table}");
        }
    }

    #[test]
    fn a_load_that_was_cut_short_is_marked() {
        let mut record = of(Kind::Kreon, Workload::LoadA, 3e5);
        record.is_cut = true;
        let rows = rows(&[&results(vec![record], true)]);
        assert!(rates(&rows, &[Kind::Kreon], &[Figure::Ops]).contains("300 (cut short)"));
    }
}
