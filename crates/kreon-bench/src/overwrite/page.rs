//! `overwrite.html`: one page that needs nothing else.

use super::cleaning::{SIMULATED_GREEDY, written_per_byte};
use super::course::Sample;
use super::figures::Run;
use super::report::{Results, about, markdown, spread, verdict};
use crate::report::html::{STYLE, tables};
use crate::report::plot::{Frame, Series, escape, lines};

/// The whole page.
///
/// # Errors
/// Of drawing.
pub fn page(results: &Results) -> anyhow::Result<String> {
    let mut body = "<h1>kreon-bench: overwrite</h1>".to_owned();
    if let Some(failed) = verdict(results) {
        body += &format!(
            "<p class='bad'>This run has failed: {}</p>",
            escape(&failed)
        );
    }
    body += &format!("<pre>{}</pre><ul>", escape(&results.origin.command));
    for (name, value) in about(results) {
        body += &format!("<li><b>{name}</b>: {}</li>", escape(&value));
    }
    body += "</ul>";
    for distribution in results.distributions() {
        body += &format!("<h2>Overwrites: {}</h2>", spread(distribution));
        let of = |run: &&Run| run.distribution == distribution;
        let runs: Vec<&Run> = results.runs.iter().filter(of).collect();
        let free: Vec<&Run> = runs
            .iter()
            .copied()
            .filter(|r| r.space_target.is_none())
            .collect();
        if !free.is_empty() {
            body += &over_time(&free)?;
        }
        // Runs of one store would have one colour.
        for run in runs.iter().filter(|run| run.space_target.is_some()) {
            let target = run.space_target.unwrap_or(0.0);
            body += &format!("<h3>target {target}</h3>{}", over_time(&[run])?);
        }
    }
    let curve = results.on_the_curve();
    if !curve.is_empty() {
        body += &format!("<h2>Writes against space</h2>{}", against_space(&curve)?);
    }
    body += &format!("<h2>All figures</h2>{}", tables(&markdown(results)));
    Ok(format!(
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>\
         <title>kreon-bench overwrite</title><style>{STYLE}</style>{body}</html>\n"
    ))
}

/// Space and throughput, side by side.
fn over_time(runs: &[&Run]) -> anyhow::Result<String> {
    let series = |figure: &dyn Fn(&Sample) -> f64, skipped: usize| -> Vec<Series> {
        let of_run = |run: &&Run| {
            // The last sample is that behind the background work: no rate belongs to it.
            let kept = run.samples.len().saturating_sub(skipped);
            let points = run.samples.iter().take(kept).skip(skipped);
            Series {
                name: run.engine.name(),
                points: points
                    .map(|sample| (sample.seconds, figure(sample)))
                    .collect(),
            }
        };
        runs.iter().map(of_run).collect()
    };
    let mut space = series(&|sample| sample.space_amplification, 0);
    if let [run] = runs
        && let Some(target) = run.space_target
    {
        let end = run.samples.last().map_or(0.0, |sample| sample.seconds);
        space.push(Series {
            name: "target",
            points: vec![(0.0, target), (end, target)],
        });
    }
    let frame = |title: &str, unit| Frame {
        title: title.to_owned(),
        unit,
        across: "seconds",
        is_log: false,
    };
    let space = lines(&frame("Space for each live byte", ""), &[], &space)?;
    let rate = series(&|sample| sample.ops_per_second / 1e3, 1);
    let rate = lines(&frame("Throughput over time", "k ops/s"), &[], &rate)?;
    Ok(format!("<div class='pair'>{space}{rate}</div>"))
}

/// The log's writes at the space that each target led to, beside analysis and simulation.
fn against_space(runs: &[&Run]) -> anyhow::Result<String> {
    let points = runs
        .iter()
        .filter_map(|run| Some((run.space_amplification_median, run.log_written_per_byte()?)));
    let mut kreon: Vec<_> = points.collect();
    kreon.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (low, high) = SIMULATED_GREEDY
        .iter()
        .fold((1.1, 2.0), |range: (f64, f64), at| {
            (range.0.min(at.0), range.1.max(at.0))
        });
    let steps = (0..=45).map(|step| low + (high - low) * f64::from(step) / 45.0);
    let analytic = steps.filter_map(|space| Some((space, written_per_byte(space)?)));
    let series = [
        Series {
            name: "kreon",
            points: kreon,
        },
        Series {
            name: "analytic",
            points: analytic.collect(),
        },
        Series {
            name: "simulated",
            points: SIMULATED_GREEDY.to_vec(),
        },
    ];
    let frame = Frame {
        title: "Log bytes written for each byte given".to_owned(),
        unit: "uniform",
        across: "space for each live byte, median",
        is_log: false,
    };
    lines(&frame, &[], &series)
}
