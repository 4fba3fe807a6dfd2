//! `report.html`: one page that needs nothing else.

use super::memories::Memories;
use super::plot::{Frame, Series, bars, escape, lines};
use super::results::Results;
use super::summary::{Cell, cells, engines, variants};
use super::table::{about, markdown};
use crate::engine::Kind;
use crate::run::record::PERCENTILES;
use crate::ycsb::workload::Workload;

/// What a bar shows of a cell.
type Figure<'a> = &'a dyn Fn(&Cell) -> Option<f64>;

/// The style sheet of every page.
pub const STYLE: &str = include_str!("report.css");

/// The whole page.
///
/// # Errors
/// Of drawing.
pub fn page(results: &Results) -> anyhow::Result<String> {
    let cells = cells(&results.records);
    let mut body = format!("<h1>kreon-bench: {}</h1>", escape(&results.settings.preset));
    if results.failures() > 0 {
        body += &format!(
            "<p class='bad'>{} wrong answers: this run has failed.</p>",
            results.failures()
        );
    }
    body += &format!("<pre>{}</pre><ul>", escape(&results.origin.command));
    for (name, value) in about(results) {
        body += &format!("<li><b>{name}</b>: {}</li>", escape(&value));
    }
    body += "</ul>";
    if let Some(memories) = Memories::of(&results.settings) {
        body += &format!("<h2>By memory</h2>{}", memories.plots(&cells)?);
    }
    for variant in variants(&cells) {
        if !variant.is_empty() {
            body += &format!("<h2>{}</h2>", escape(variant));
        }
        let of_variant: Vec<&Cell> = cells
            .iter()
            .filter(|cell| cell.variant == variant && cell.engine != Kind::Nothing)
            .collect();
        body += &plots(&of_variant)?;
    }
    body += &format!("<h2>All medians</h2>{}", tables(&markdown(results)));
    Ok(format!(
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>\
         <title>kreon-bench {}</title><style>{STYLE}</style>{body}</html>\n",
        escape(&results.settings.preset)
    ))
}

fn plots(cells: &[&Cell]) -> anyhow::Result<String> {
    let amplification = |cell: &Cell| cell.io_amplification;
    let figures: [(&str, &str, bool, Figure<'_>); 5] = [
        ("Throughput", "k ops/s, logarithmic", true, &|c| {
            Some(c.ops_per_second / 1e3)
        }),
        ("CPU time per operation", "us, logarithmic", true, &|c| {
            Some(c.net_cpu_us())
        }),
        ("99.9 % latency", "us, logarithmic", true, &|c| {
            Some(c.p999_us)
        }),
        (
            "Device bytes for each byte written by requests",
            "logarithmic",
            true,
            &amplification,
        ),
        ("Disk space for each live byte", "", false, &|c| {
            Some(c.space_per_live)
        }),
    ];
    let mut text = String::new();
    for (title, unit, is_log, figure) in figures {
        text += &bar_plot(cells, (title, unit, is_log), figure)?;
    }
    for workload in Workload::ALL {
        let of_workload: Vec<&Cell> = cells
            .iter()
            .copied()
            .filter(|cell| cell.workload == workload)
            .collect();
        if !of_workload.is_empty() {
            let (rate, latency) = (over_time(&of_workload)?, latency(&of_workload)?);
            text += &format!(
                "<h3>{}</h3><div class='pair'>{rate}{latency}</div>",
                workload.name()
            );
        }
    }
    Ok(text)
}

fn bar_plot(
    cells: &[&Cell],
    (title, unit, is_log): (&str, &'static str, bool),
    figure: Figure<'_>,
) -> anyhow::Result<String> {
    let there = |workload: &Workload| cells.iter().any(|cell| cell.workload == *workload);
    let workloads: Vec<_> = Workload::ALL.into_iter().filter(there).collect();
    let series: Vec<_> = engines(cells.iter().copied())
        .into_iter()
        .map(|engine| {
            let points = workloads.iter().enumerate().filter_map(|(at, workload)| {
                let cell = cells
                    .iter()
                    .find(|cell| cell.engine == engine && cell.workload == *workload)?;
                Some((at as f64, figure(cell)?))
            });
            series(engine, points.collect())
        })
        .collect();
    let names: Vec<_> = workloads
        .iter()
        .map(|workload| workload.name().to_owned())
        .collect();
    let frame = Frame {
        title: title.to_owned(),
        unit,
        across: "",
        is_log,
    };
    bars(&frame, &names, &series)
}

/// Requests a second over time, of the round with the median rate.
fn over_time(cells: &[&Cell]) -> anyhow::Result<String> {
    let of_cell = |cell: &&Cell| {
        let record = &cell.typical;
        // The last interval is not whole: it would look like a stall.
        let whole = record.series.len().saturating_sub(1).max(1);
        let points = record.series.iter().take(whole).enumerate();
        let points = points.map(|(at, rate)| (at as f64 * record.interval_seconds, rate / 1e3));
        series(cell.engine, points.collect())
    };
    let frame = Frame {
        title: "Throughput over time".to_owned(),
        unit: "k ops/s",
        across: "seconds",
        is_log: false,
    };
    lines(&frame, &[], &cells.iter().map(of_cell).collect::<Vec<_>>())
}

/// Latency by percentile: the horizontal axis gives each nine the same room.
fn latency(cells: &[&Cell]) -> anyhow::Result<String> {
    const NINES_MAX: f64 = 5.3;
    let nines = |percentile: f64| (-(1.0 - percentile / 100.0).log10()).min(NINES_MAX);
    let of_cell = |cell: &&Cell| {
        let curve = PERCENTILES.iter().zip(&cell.typical.latency_curve_us);
        series(cell.engine, curve.map(|(p, us)| (nines(*p), *us)).collect())
    };
    // No marks at 0 and 99.999 %: they would stand in those beside them.
    let marks: Vec<_> = [50.0, 90.0, 99.0, 99.9, 99.99]
        .map(|percentile| (nines(percentile), format!("{percentile} %")))
        .into_iter()
        .chain([(NINES_MAX, "max".to_owned())])
        .collect();
    let frame = Frame {
        title: "Latency".to_owned(),
        unit: "us, logarithmic",
        across: "share of the requests that are faster",
        is_log: true,
    };
    lines(
        &frame,
        &marks,
        &cells.iter().map(of_cell).collect::<Vec<_>>(),
    )
}

fn series(engine: Kind, points: Vec<(f64, f64)>) -> Series {
    Series {
        name: engine.name(),
        points,
    }
}

/// The tables of the Markdown file as HTML.
pub fn tables(markdown: &str) -> String {
    let (mut html, mut in_table, mut before) = (String::new(), false, String::new());
    for line in markdown.lines() {
        let Some(cells) = line
            .strip_prefix('|')
            .and_then(|line| line.strip_suffix('|'))
        else {
            if in_table {
                html += "</table></div>";
                in_table = false;
            }
            if let Some(title) = line.strip_prefix("## ") {
                html += &format!("<h3>{}</h3>", escape(title));
            }
            continue;
        };
        if cells.starts_with("---") {
            continue;
        }
        let tag = if in_table { "td" } else { "th" };
        if !in_table {
            html += "<div class='table'><table>";
            in_table = true;
        }
        let row: Vec<&str> = cells.split('|').map(str::trim).collect();
        let mut classes = Vec::new();
        // A line above each workload, and kreon in bold, so that the eye finds its way.
        classes.extend((row.first() != Some(&before.as_str())).then_some("first"));
        classes.extend((row.get(1) == Some(&Kind::Kreon.name())).then_some("kreon"));
        before = row.first().copied().unwrap_or_default().to_owned();
        let row = row
            .iter()
            .map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)));
        html += &format!(
            "<tr class='{}'>{}</tr>",
            classes.join(" "),
            row.collect::<String>()
        );
    }
    html + if in_table { "</table></div>" } else { "" }
}
