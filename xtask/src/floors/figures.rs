//! Measured figures in the documents that explain the store: they age faster than what stands around them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::findings::Findings;
use super::ratchet;
use super::sources::read;

/// Of time and of speed. A size without a time is design, not a result.
const UNITS: &[&str] = &["us", "ns", "ms", "k/s", "MiB/s", "MB/s", "GB/s"];

/// Checks the documents named in `plan` below `root`.
pub fn check(plan: &BTreeMap<String, usize>, root: &Path, findings: &mut Findings) -> Result<()> {
    for (name, &planned) in plan {
        let text = read(&root.join(name))?;
        findings.errors.extend(fault(name, &text, planned));
    }
    Ok(())
}

fn fault(name: &str, text: &str, planned: usize) -> Option<String> {
    let fault = ratchet::fault(figures(name, text), planned, &format!("[figures] {name:?}"))?;
    Some(format!(
        "{name}: figures with a unit of time or speed: {fault}"
    ))
}

/// How many figures `text` holds. README.md may have them in one table: the one with the most does not count.
fn figures(name: &str, text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let is_row = |line: &&str| line.trim_start().starts_with('|');
    let tables = lines
        .chunk_by(|a, b| is_row(a) == is_row(b))
        .filter(|lines| is_row(&lines[0]));
    let in_table = |table: &[&str]| table.iter().map(|line| figures_in(line)).sum();
    let in_tables: Vec<usize> = tables.map(in_table).collect();
    let allowed = in_tables
        .iter()
        .copied()
        .max()
        .filter(|_| name == "README.md");
    let all: usize = lines.iter().map(|line| figures_in(line)).sum();
    all - allowed.unwrap_or(0)
}

/// Numbers with one of the units behind them, with a space or without.
fn figures_in(line: &str) -> usize {
    let digits = line.char_indices().filter(|(_, c)| c.is_ascii_digit());
    let units = digits.filter(|(at, _)| {
        let behind = &line[at + 1..];
        let behind = behind.strip_prefix(' ').unwrap_or(behind);
        UNITS.iter().any(|unit| {
            let rest = behind.strip_prefix(unit);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
        })
    });
    units.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_a_unit_count_and_others_do_not() {
        let text = "A get takes 1.5 us, of 12 ns each; 300 k/s, 3 MiB, 8 ms, 20us.\n4 usual things, 2 MB/s.";
        assert_eq!(figures("ARCHITECTURE.md", text), 6);
    }

    #[test]
    fn one_table_of_the_readme_is_free() {
        let text = "| 1 us | 2 us |\n|---|---|\n| 3 us | 4 us |\n\n5 us\n\n| 6 us |\n";
        assert_eq!(figures("README.md", text), 2);
        assert_eq!(figures("ARCHITECTURE.md", text), 6);
    }

    #[test]
    fn a_figure_more_than_planned_is_an_error_and_one_less_too() {
        let fault = |text, planned| fault("ARCHITECTURE.md", text, planned);
        assert_eq!(fault("It takes 3 us.", 1), None);
        let above = fault("It takes 3 us, then 4 ns.", 1).unwrap();
        assert!(above.contains("2, at most 1 may be"), "{above}");
        let below = fault("It is quick.", 1).unwrap();
        assert!(
            below.contains("set [figures] \"ARCHITECTURE.md\""),
            "{below}"
        );
    }
}
