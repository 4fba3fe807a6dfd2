//! What is written between two marks: the head, the tables, and what must be said below them.

use anyhow::{Context, bail, ensure};

use super::head::{head, wrapped};
use super::sources::{Source, Sources};
use super::wanted::{Table, Wanted};
use crate::engine::Kind;
use crate::report::grid::{heading, line, short};
use crate::report::notes::notes;
use crate::report::rates::{Figure, loads, rates, ratios};
use crate::report::results::Results;
use crate::report::rows::{Row, rows, stores};
use crate::{figures, overwrite, recovery};

/// What `text`, the words of a mark, asks for.
///
/// # Errors
/// If it is not understood, a run is missing or of another command, or a store that is asked for was not run.
pub fn block(text: &str, sources: &Sources) -> anyhow::Result<String> {
    let wanted = Wanted::new(text)?;
    let sources = sources.named(&wanted.runs)?;
    let all: Vec<_> = sources.iter().filter_map(|source| ycsb(source)).collect();
    let mut rows = rows(&all);
    if !wanted.workloads.is_empty() {
        rows.retain(|row| wanted.workloads.contains(&row.workload));
    }
    let shown = match wanted.stores.is_empty() {
        true => stores(&rows),
        false => wanted.stores.clone(),
    };
    for store in &shown {
        // One that died is told of below the table.
        let ran = all.iter().any(|run| run.settings.engines.contains(store));
        ensure!(ran, "{} was not run", store.name());
    }
    let mut text = head(&sources, &shown);
    for table in &wanted.tables {
        text += &format!("\n{}", one(*table, &wanted, &sources, &rows, &shown)?);
    }
    for note in distinct_notes(&all, &shown) {
        text += &format!("\n{}", wrapped(&note));
    }
    Ok(text)
}

/// All tables of a run of `ycsb`.
pub fn overview(results: &Results) -> String {
    let source = Source::Ycsb(Box::new(results.clone()));
    let rows = rows(&[results]);
    let mut shown: Vec<Kind> = results.settings.engines.clone();
    shown.retain(|engine| *engine != Kind::Nothing);
    let mut text = head(&[&source], &shown);
    for table in [
        rates(&rows, &shown, &Figure::USUAL),
        loads(&rows, &shown),
        ratios(&rows, &shown),
    ] {
        text += &format!("\n{table}");
    }
    for note in distinct_notes(&[results], &shown) {
        text += &format!("\n{}", wrapped(&note));
    }
    text
}

fn ycsb<'a>(source: &'a &Source) -> Option<&'a Results> {
    match source {
        Source::Ycsb(results) => Some(results),
        _ => None,
    }
}

fn distinct_notes(all: &[&Results], shown: &[Kind]) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for results in all {
        for note in notes(results, &|engine| shown.contains(&engine)) {
            if !distinct.contains(&note) {
                distinct.push(note);
            }
        }
    }
    distinct
}

fn one(
    table: Table,
    wanted: &Wanted,
    sources: &[&Source],
    rows: &[Row],
    shown: &[Kind],
) -> anyhow::Result<String> {
    if matches!(table, Table::Rates | Table::Ratios | Table::Loads) {
        ensure!(
            sources.iter().all(|source| ycsb(source).is_some()),
            "{table:?} are of runs of `ycsb`"
        );
    }
    Ok(match table {
        Table::Rates => rates(rows, shown, &wanted.figures),
        Table::Ratios => ratios(rows, shown),
        Table::Loads => loads(rows, shown),
        Table::Overwrite => overwritten(&wanted.runs, sources)?,
        Table::Recovery => opened(sources)?,
        Table::Engine => match sources {
            [Source::Engine(results)] => figures::table(results),
            _ => bail!("a table of the engine is of one run of `figures`"),
        },
    })
}

fn opened(sources: &[&Source]) -> anyhow::Result<String> {
    let tables = sources.iter().map(|source| match source {
        Source::Recovery(results) => Ok(recovery::table(results)),
        _ => bail!("a table of openings is of runs of `recovery`"),
    });
    Ok(tables.collect::<anyhow::Result<Vec<_>>>()?.join("\n"))
}

fn overwritten(names: &[String], sources: &[&Source]) -> anyhow::Result<String> {
    let columns = [
        "pairs MiB",
        "k ops/s",
        "CPU us/op",
        "B written per B given",
        "space / live, median",
        "most",
        "last tenth / second tenth",
    ];
    let mut text = heading("store, distribution", &columns.map(str::to_owned));
    for (name, source) in names.iter().zip(sources) {
        // Settings that differ are told by the commands of the runs.
        let before = match sources.len() {
            1 => String::new(),
            _ => format!("`{name}`: "),
        };
        let results = match source {
            Source::Overwrite(results) => Some(results),
            _ => None,
        };
        let results = results.context("a table of overwrites is of runs of `overwrite`")?;
        for run in &results.runs {
            text += &overwrite_line(&before, run);
        }
        for broken in &results.broken {
            text += &format!("\n**{}**\n", broken.to_string().replace('\n', " "));
        }
    }
    Ok(text)
}

fn overwrite_line(before: &str, run: &overwrite::Run) -> String {
    let target = run.space_target.map(|target| format!(", target {target}"));
    line([
        format!(
            "{before}{}, {}{}",
            run.engine.label(),
            overwrite::spread(run.distribution),
            target.unwrap_or_default()
        ),
        (run.live_bytes >> 20).to_string(),
        short(run.ops_per_second() / 1e3),
        short(run.cpu_us_per_op),
        short(run.written_per_byte),
        short(run.space_amplification_median),
        short(run.space_amplification_max),
        short(run.last_over_second_tenth()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::{of, results};
    use crate::ycsb::workload::Workload;

    fn sources() -> Sources {
        let records = vec![
            of(Kind::Kreon, Workload::A, 300e3),
            of(Kind::Lmdb, Workload::A, 150e3),
            of(Kind::Kreon, Workload::C, 900e3),
        ];
        let run = Source::Ycsb(Box::new(results(records, true)));
        Sources::of([("small".to_owned(), run)])
    }

    #[test]
    fn a_table_tells_commit_date_versions_settings_and_command() {
        let text = block("rates of small", &sources()).unwrap();
        for told in [
            "1970-01-01, commit 0123456789ab: ",
            "400 MiB of pairs, 1024 MiB of memory",
            "kreon 0.1.0, lmdb 0.9",
            "Settings: lmdb: a map.",
            "kreon-bench ycsb --preset small\n```",
            "| A | 300, ",
        ] {
            assert!(
                text.replace('\n', " ").contains(&told.replace('\n', " ")),
                "{told}: {text}"
            );
        }
    }

    #[test]
    fn only_the_workloads_and_stores_that_are_asked_for_are_shown() {
        let text = block("rates of small; stores kreon; workloads c", &sources()).unwrap();
        assert!(
            text.contains("| C | 900") && !text.contains("| A |") && !text.contains("lmdb"),
            "{text}"
        );
    }

    #[test]
    fn what_was_not_run_is_an_error() {
        for (wanted, why) in [
            ("rates of large", "no folder large"),
            ("rates of small; stores kreon,redb", "redb was not run"),
            ("overwrite of small", "`overwrite`"),
        ] {
            let error = format!("{:#}", block(wanted, &sources()).unwrap_err());
            assert!(error.contains(why), "{wanted}: {error}");
        }
    }
}
