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
        Table::Overwrite => overwritten(sources)?,
        Table::Recovery => match sources {
            [Source::Recovery(results)] => recovery::table(results),
            _ => bail!("a table of openings is of one run of `recovery`"),
        },
        Table::Engine => match sources {
            [Source::Engine(results)] => figures::table(results),
            _ => bail!("a table of the engine is of one run of `figures`"),
        },
    })
}

fn overwritten(sources: &[&Source]) -> anyhow::Result<String> {
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
    for source in sources {
        let results = match source {
            Source::Overwrite(results) => Some(results),
            _ => None,
        };
        let results = results.context("a table of overwrites is of runs of `overwrite`")?;
        text += &results.runs.iter().map(overwrite_line).collect::<String>();
        for broken in &results.broken {
            text += &format!("\n**{}**\n", broken.to_string().replace('\n', " "));
        }
    }
    Ok(text)
}

fn overwrite_line(run: &overwrite::Run) -> String {
    let target = run.space_target.map(|target| format!(", target {target}"));
    line([
        format!(
            "{}, {}{}",
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
