//! The results as Markdown.

use std::fmt::Write;

use super::experiments;
use super::results::{Results, Row};

const WORKLOADS: [&str; 5] = [
    "C that fits",
    "C uniform",
    "C Zipf",
    "C uniform, 32 at once",
    "insert and spill",
];

/// A line while the run goes on.
pub fn line(row: &Row) -> String {
    format!(
        "{:<30} {:<22} {:>8.1} k ops/s {:>7.2} CPU us/op{}",
        row.variant,
        row.workload,
        row.ops_per_second / 1e3,
        row.cpu_us_per_op,
        match row.is_over_budget() {
            true => "  OVER ITS MEMORY BUDGET",
            false => "",
        }
    )
}

/// The tables.
pub fn markdown(results: &Results) -> String {
    let mut text = String::new();
    let _ = ablation(results, &mut text);
    let _ = costs(results, &mut text);
    text.push_str(&experiments::markdown(results));
    text
}

fn ablation(results: &Results, text: &mut String) -> std::fmt::Result {
    if results.rows.is_empty() {
        return Ok(());
    }
    let settings = &results.settings;
    writeln!(
        text,
        "{} records of {} B, {} threads, {} MiB of memory{}; inserts: {} records of {} B, a quarter of the memory.\n\
         k ops/s · CPU us/op · device reads/op, of inserts bytes written per byte.\n",
        settings.records,
        settings.value_bytes,
        settings.threads_max(),
        settings.memory_mib,
        if results.is_limited {
            ""
        } else {
            " (NOT enforced)"
        },
        settings.inserts,
        settings.insert_value_bytes,
    )?;
    writeln!(text, "| | {} | most memory, MiB |", WORKLOADS.join(" | "))?;
    writeln!(text, "|---|{}---|", "---|".repeat(WORKLOADS.len()))?;
    let mut names: Vec<_> = results.rows.iter().map(|row| &row.variant).collect();
    names.dedup();
    for name in names {
        let of_variant = || results.rows.iter().filter(|row| row.variant == *name);
        write!(text, "| {name} |")?;
        for workload in WORKLOADS {
            match of_variant().find(|row| row.workload == workload) {
                Some(row) => write!(text, " {} |", cell(row))?,
                None => write!(text, " - |")?,
            }
        }
        let most = of_variant()
            .map(|row| row.peak_rss_bytes)
            .max()
            .unwrap_or(0);
        writeln!(text, " {} |", most >> 20)?;
    }
    writeln!(text)
}

fn cell(row: &Row) -> String {
    let third = row.written_per_byte.unwrap_or(row.device_reads_per_op);
    let (rate, cpu) = (row.ops_per_second / 1e3, row.cpu_us_per_op);
    format!("{rate:.0} · {cpu:.2} · {third:.2}")
}

fn costs(results: &Results, text: &mut String) -> std::fmt::Result {
    if results.costs.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "One thread, one page at a time unless it says otherwise.\n"
    )?;
    writeln!(text, "| a page | CPU ns | latency us |")?;
    writeln!(text, "|---|---|---|")?;
    for cost in &results.costs {
        match cost.latency_us {
            Some(us) => writeln!(text, "| {} | {:.0} | {us:.1} |", cost.what, cost.cpu_ns)?,
            None => writeln!(text, "| {} | {:.0} | |", cost.what, cost.cpu_ns)?,
        }
    }
    Ok(())
}
