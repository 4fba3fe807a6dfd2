//! What the paper claims of Tucana, beside what was measured here (`Tucana 2.2.1`, `Tucana 2.4`).

use super::summary::Cell;
use crate::engine::{Kind, Searches};
use crate::run::preset::Preset;
use crate::run::settings::Settings;
use crate::ycsb::workload::Workload;

/// A figure and what it must be.
struct Claim {
    figure: String,
    here: f64,
    /// What the paper has.
    paper: &'static str,
    /// The claim is reached from here on.
    least: f64,
}

/// The claims of the cells of a run of Tucana's preset, each with a verdict; nothing of other presets.
pub fn markdown(settings: &Settings, cells: &[Cell]) -> Option<String> {
    if settings.preset != Preset::Tucana.name() {
        return None;
    }
    let mut text =
        "| memory | workload | figure | here | paper | reached from | |\n|---|---|---|---|---|---|---|\n"
            .to_owned();
    for ours in cells.iter().filter(|cell| cell.engine == Kind::Tucana) {
        let mut points = settings.points.iter();
        let point = points.find(|point| point.variant == ours.variant);
        let is_small = point.is_some_and(|point| point.means.is_warmed);
        for claim in claims(ours, cells, is_small) {
            let verdict = match claim.here >= claim.least {
                true => "reached",
                false => "not reached",
            };
            text += &format!(
                "| {} | {} | {} | {:.2} | {} | {:.2} | {verdict} |\n",
                ours.variant,
                ours.workload.name(),
                claim.figure,
                claim.here,
                claim.paper,
                claim.least
            );
        }
    }
    text += "\nThe paper's share of prefixes is that of reads in binary searches, here it is that of searches that read nothing.\n";
    Some(text)
}

fn claims(ours: &Cell, cells: &[Cell], is_small: bool) -> Vec<Claim> {
    let theirs = cells.iter().find(|cell| {
        cell.engine == Kind::Rocksdb
            && cell.workload == ours.workload
            && cell.variant == ours.variant
    });
    let mut claims: Vec<Claim> = theirs
        .map(|theirs| beside_rocksdb(ours, theirs, is_small))
        .unwrap_or_default();
    if let Some(searches) = ours.typical.searches {
        claims.extend(of_searches(ours.workload, searches));
    }
    claims
}

fn beside_rocksdb(ours: &Cell, theirs: &Cell, is_small: bool) -> Vec<Claim> {
    let over = |theirs: f64, ours: f64| theirs / ours.max(1e-9);
    let (paper, least) = match (ours.workload.is_load(), is_small) {
        (true, _) => ("alike", 0.9),
        (false, true) => ("0.75-7.01", 0.75),
        (false, false) => ("1.07-9.24", 1.07),
    };
    let mut claims = vec![Claim {
        figure: "rocksdb's cycles/op over ours".to_owned(),
        here: over(theirs.net_cpu_us(), ours.net_cpu_us()),
        paper,
        least,
    }];
    if ours.workload == Workload::LoadA && !is_small {
        claims.push(Claim {
            figure: "rocksdb's bytes written over ours".to_owned(),
            here: over(theirs.write_bytes, ours.write_bytes),
            paper: "435 GB over 123 GB: 3.5",
            least: 3.5,
        });
        claims.push(Claim {
            figure: "rocksdb's bytes read over ours".to_owned(),
            here: over(theirs.read_bytes, ours.read_bytes),
            paper: "69 GB over 29 GB: 2.3",
            least: 2.3,
        });
    }
    claims
}

fn of_searches(workload: Workload, searches: Searches) -> Vec<Claim> {
    let by_prefix = searches.by_prefix_percent().filter(|_| workload.is_load());
    let by_prefix = by_prefix.map(|here| Claim {
        figure: "inserts that prefixes alone place, %".to_owned(),
        here,
        paper: "65-75",
        least: 65.0,
    });
    let by_hash = searches.by_hash_percent().map(|here| Claim {
        figure: "records that hashes find right, %".to_owned(),
        here,
        paper: "over 98",
        least: 98.0,
    });
    by_prefix.into_iter().chain(by_hash).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{of, results};
    use super::super::summary::cells;
    use super::*;
    use crate::run::record::Record;

    fn told(records: Vec<Record>, is_warmed: bool) -> Option<String> {
        let cells = cells(&records);
        let mut settings = results(records, is_warmed).settings;
        settings.preset = Preset::Tucana.name().to_owned();
        markdown(&settings, &cells)
    }

    fn record(engine: Kind, workload: Workload, cpu_us: f64, written: f64) -> Record {
        Record {
            cpu_us_per_op: cpu_us,
            device_write_bytes_per_op: written,
            ..of(engine, workload, 1e5)
        }
    }

    #[test]
    fn cycles_are_beside_those_of_rocksdb() {
        let records = || {
            vec![
                record(Kind::Tucana, Workload::C, 2.0, 0.0),
                record(Kind::Rocksdb, Workload::C, 2.0, 0.0),
            ]
        };
        let name = "C | rocksdb's cycles/op over ours";
        let text = told(records(), true).unwrap();
        let line = format!("| {name} | 1.00 | 0.75-7.01 | 0.75 | reached |");
        assert!(text.contains(&line), "{text}");
        let text = told(records(), false).unwrap();
        let line = format!("| {name} | 1.00 | 1.07-9.24 | 1.07 | not reached |");
        assert!(text.contains(&line), "{text}");
    }

    #[test]
    fn bytes_are_claimed_of_the_load_that_does_not_fit_in_memory() {
        let records = || {
            vec![
                record(Kind::Tucana, Workload::LoadA, 2.0, 1000.0),
                record(Kind::Rocksdb, Workload::LoadA, 2.0, 4000.0),
            ]
        };
        let line = "| Load A | rocksdb's bytes written over ours | 4.00 | 435 GB over 123 GB: 3.5 | 3.50 | reached |";
        assert!(told(records(), false).unwrap().contains(line));
        assert!(!told(records(), true).unwrap().contains("bytes written"));
    }

    #[test]
    fn what_prefixes_and_hashes_spare_is_told_of_the_counters() {
        let mut load = record(Kind::Tucana, Workload::LoadA, 1.0, 1.0);
        load.searches = Some(Searches {
            inserts: 100,
            inserts_that_read: 40,
            reads_by_hash: 0,
            reads_of_other_keys: 0,
        });
        let mut reads = record(Kind::Tucana, Workload::C, 1.0, 1.0);
        reads.searches = Some(Searches {
            reads_by_hash: 200,
            reads_of_other_keys: 1,
            ..Searches::default()
        });
        let text = told(vec![load, reads], true).unwrap();
        let line = "| Load A | inserts that prefixes alone place, % | 60.00 | 65-75 | 65.00 | not reached |";
        assert!(text.contains(line), "{text}");
        let line = "| C | records that hashes find right, % | 99.50 | over 98 | 98.00 | reached |";
        assert!(text.contains(line), "{text}");
        // Without any there is nothing to tell.
        assert_eq!(text.matches("hashes find").count(), 1, "{text}");
    }

    #[test]
    fn other_presets_have_no_claims() {
        let records = vec![of(Kind::Tucana, Workload::A, 1e5)];
        let cells = cells(&records);
        assert!(markdown(&results(records, true).settings, &cells).is_none());
    }
}
