//! Runs pieces by turns in several rounds, and prints medians.

use std::fmt::Write;
use std::path::Path;

use anyhow::ensure;

use super::child::Task;
use super::piece::{Measured, Piece};
use super::pieces;
use super::process::{Step, run_step};
use super::ram::disk::{RamDisk, RamFile};
use super::ram::sparse;
use super::results::Results;
use super::settings::{Ablation, Settings};

/// Runs what the settings ask for beside the variants of a store.
///
/// # Errors
/// If a piece fails.
pub fn run(settings: &Settings, dir: &Path, results: &mut Results) -> anyhow::Result<()> {
    let disk = match settings.wants_ram() {
        true => made("a block device in DRAM", RamDisk::new(), results),
        false => None,
    };
    let file = match settings.wants_ram() {
        true => made("a file in DRAM", RamFile::new(), results),
        false => None,
    };
    let (disk_path, file_path) = (
        disk.as_ref().map(RamDisk::path),
        file.as_ref().map(RamFile::path),
    );
    let mut all = Vec::new();
    for &threads in &settings.threads {
        if settings.wants_ram() {
            all.extend(pieces::ram(
                threads,
                disk_path.as_deref(),
                file_path.as_deref(),
            ));
        }
        let of_threads = settings
            .ablate
            .iter()
            .filter(|ablation| ablation.has_threads());
        all.extend(of_threads.flat_map(|ablation| pieces::ablation(*ablation, threads)));
    }
    let alone = settings
        .ablate
        .iter()
        .filter(|ablation| !ablation.has_threads());
    all.extend(alone.flat_map(|ablation| pieces::ablation(*ablation, 1)));
    if settings.inserts_latency {
        all.extend(pieces::inserts(settings));
    }
    if settings.ablate.contains(&Ablation::Writeback) {
        sparse::make(dir)?;
    }
    for round in 1..=settings.rounds {
        for piece in &all {
            if let Some(disk) = &disk {
                disk.forget()?;
            }
            one(settings, dir, piece, round, results)?;
        }
    }
    Ok(())
}

/// Says loudly what is not to be had.
fn made<T>(what: &str, outcome: anyhow::Result<T>, results: &mut Results) -> Option<T> {
    outcome
        .inspect_err(|error| {
            let skipped = format!("SKIPPED: all rows with {what}: {error:#}");
            println!("{skipped}");
            results.skipped.push(skipped);
        })
        .ok()
}

fn one(
    settings: &Settings,
    dir: &Path,
    piece: &Piece,
    round: u32,
    results: &mut Results,
) -> anyhow::Result<()> {
    let limit = match piece.limit_bytes.map(crate::machine::limit::Limit::new) {
        None => None,
        Some(Ok(limit)) => Some(limit),
        Some(Err(error)) => {
            let skipped = format!(
                "SKIPPED: {}, {}: no memory limit is to be had: {error:#}",
                piece.row, piece.column
            );
            if !results.skipped.contains(&skipped) {
                println!("{skipped}");
                results.skipped.push(skipped);
            }
            return Ok(());
        }
    };
    let before = results.measured.len();
    let step = Step {
        variant: "pool",
        task: Task::Piece,
        piece: Some(piece.clone()),
        memory_bytes: settings.memory_mib << 20,
    };
    run_step(settings, dir, step, limit.as_ref(), results)?;
    ensure!(results.measured.len() == before + 1, "a piece said nothing");
    if let Some(measured) = results.measured.last() {
        println!("round {round}: {}", line(measured));
    }
    Ok(())
}

fn line(measured: &Measured) -> String {
    let piece = &measured.piece;
    format!(
        "{} · {} · {} · {} threads: {:.0} k/s, {:.3} CPU us{}",
        piece.table,
        piece.column,
        piece.row,
        piece.threads,
        measured.per_second / 1e3,
        measured.cpu_us,
        more(&measured.more),
    )
}

fn more(figures: &[(String, f64)]) -> String {
    let figures = figures
        .iter()
        .map(|(name, figure)| format!(", {name} {figure:.2}"));
    figures.collect()
}

/// The tables: medians over the rounds, and the range of the CPU time.
pub fn markdown(results: &Results) -> String {
    let mut text = String::new();
    let _ = tables(results, &mut text);
    text
}

fn tables(results: &Results, text: &mut String) -> std::fmt::Result {
    for skipped in &results.skipped {
        writeln!(text, "{skipped}\n")?;
    }
    let mut names: Vec<&str> = Vec::new();
    for measured in &results.measured {
        let name = measured.piece.table.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        writeln!(
            text,
            "**{name}**: medians of {} rounds by turns; in brackets the least and the most CPU time; \"times\" is \
             the CPU time over that of the first row of its group.\n",
            results.settings.rounds
        )?;
        writeln!(
            text,
            "| what | threads | way | k/s | CPU us each | CPU, times | more |"
        )?;
        writeln!(text, "|---|---|---|---|---|---|---|")?;
        rows(results, name, text)?;
        writeln!(text)?;
    }
    if results
        .measured
        .iter()
        .any(|m| m.piece.row.contains("mmap, block"))
    {
        writeln!(
            text,
            "The CPU time of `mmap` lacks that of the kernel's threads that write pages back. Reads of tmpfs touch one page \
             in 16, as a fault maps the resident neighbours, too; its pages are in memory, so nothing is read."
        )?;
    }
    Ok(())
}

fn rows(results: &Results, table: &str, text: &mut String) -> std::fmt::Result {
    let mut groups: Vec<(&str, u64)> = Vec::new();
    let mut rows: Vec<&Piece> = Vec::new();
    for Measured { piece, .. } in results.measured.iter().filter(|m| m.piece.table == table) {
        let group = (piece.column.as_str(), piece.threads);
        if !groups.contains(&group) {
            groups.push(group);
        }
        if !rows.contains(&piece) {
            rows.push(piece);
        }
    }
    for group in groups {
        let mut first = None;
        for piece in rows
            .iter()
            .filter(|piece| (piece.column.as_str(), piece.threads) == group)
        {
            let of_piece: Vec<_> = results
                .measured
                .iter()
                .filter(|m| m.piece == **piece)
                .collect();
            let cpu: Vec<f64> = of_piece.iter().map(|m| m.cpu_us).collect();
            let rate = median(of_piece.iter().map(|m| m.per_second));
            let middle = median(cpu.iter().copied());
            let (least, most) = (
                cpu.iter().copied().fold(f64::INFINITY, f64::min),
                cpu.iter().copied().fold(0.0, f64::max),
            );
            let first = *first.get_or_insert(middle);
            let figures: Vec<(String, f64)> = of_piece[0]
                .more
                .iter()
                .enumerate()
                .map(|(at, (name, _))| {
                    let of_rounds = of_piece.iter().filter_map(|m| m.more.get(at));
                    (name.clone(), median(of_rounds.map(|(_, figure)| *figure)))
                })
                .collect();
            let figures = more(&figures);
            writeln!(
                text,
                "| {} | {} | {} | {:.0} | {middle:.3} ({least:.3} to {most:.3}) | {:.2} | {} |",
                group.0,
                group.1,
                piece.row,
                rate / 1e3,
                middle / first,
                figures.trim_start_matches(", "),
            )?;
        }
    }
    Ok(())
}

/// The middle one; of an even number the mean of the two.
fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = figures.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count => (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }
}
