//! The table, the list of what is missing, and the minimum.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Result, bail};

use super::lines::Lines;
use crate::workspace::Package;

/// How much of a crate the tests reach.
pub struct Share {
    pub name: String,
    pub lines: usize,
    pub covered: usize,
}

impl Share {
    /// Nothing was measured: 0.
    fn percent(&self) -> f64 {
        self.covered as f64 * 100.0 / self.lines.max(1) as f64
    }
}

/// Adds up the lines of each crate.
pub fn shares(lines: &Lines, packages: &[Package], root: &Path) -> Vec<Share> {
    let share = |package: &Package| {
        let folder = package.manifest_path.parent().unwrap_or(root);
        let folder = folder.strip_prefix(root).unwrap_or(folder);
        let files = lines
            .files
            .iter()
            .filter(|(file, _)| file.starts_with(folder));
        let mut share = Share {
            name: package.name.clone(),
            lines: 0,
            covered: 0,
        };
        for (_, counts) in files {
            share.lines += counts.len();
            share.covered += counts.values().filter(|count| **count > 0).count();
        }
        share
    };
    packages.iter().map(share).collect()
}

/// A line for each crate.
pub fn table(shares: &[Share]) -> String {
    let mut text = format!("{:<16}{:>8}{:>9}{:>8}\n", "crate", "lines", "covered", "%");
    for share in shares {
        let percent = share.percent();
        let _ = writeln!(
            text,
            "{:<16}{:>8}{:>9}{percent:>8.1}",
            share.name, share.lines, share.covered
        );
    }
    text
}

/// A line for each file with lines that did not run: `src/a.rs: 3-5, 9`.
pub fn uncovered(lines: &Lines) -> String {
    let mut text = String::new();
    for (file, counts) in &lines.files {
        let runs = runs(counts.iter().map(|(line, count)| (*line, *count == 0)));
        if !runs.is_empty() {
            let _ = writeln!(text, "{}: {}", file.display(), runs.join(", "));
        }
    }
    text
}

/// Neighbours among the missing lines as one; lines without code between them do not part them.
fn runs(lines: impl Iterator<Item = (usize, bool)>) -> Vec<String> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut goes_on = false;
    for (line, missing) in lines {
        match runs.last_mut() {
            Some((_, end)) if missing && goes_on => *end = line,
            _ if missing => runs.push((line, line)),
            _ => {}
        }
        goes_on = missing;
    }
    let run = |(start, end)| match start == end {
        true => format!("{start}"),
        false => format!("{start}-{end}"),
    };
    runs.into_iter().map(run).collect()
}

/// Fails if one of the `measured` crates stays below `min` percent.
pub fn check(shares: &[Share], measured: &[&str], min: f64) -> Result<()> {
    let mut below = Vec::new();
    for name in measured {
        match shares.iter().find(|share| share.name == *name) {
            Some(share) if share.percent() >= min => {}
            Some(share) => below.push(format!("{name} {:.1}", share.percent())),
            None => below.push(format!("{name} is not there")),
        }
    }
    if !below.is_empty() {
        bail!("less than {min} % of the lines: {}", below.join(", "));
    }
    println!("coverage: at least {min} % in {}", measured.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(name: &str, lines: usize, covered: usize) -> Share {
        Share {
            name: name.to_owned(),
            lines,
            covered,
        }
    }

    #[test]
    fn missing_neighbours_are_one_run() {
        let lines = [(1, true), (2, true), (4, true), (5, false), (6, true)];
        assert_eq!(runs(lines.into_iter()), ["1-4", "6"]);
    }

    #[test]
    fn a_crate_below_the_minimum_or_without_a_line_fails() {
        let shares = [share("a", 10, 9), share("b", 0, 0)];
        assert!(check(&shares, &["a"], 90.0).is_ok());
        assert!(check(&shares, &["a"], 90.1).is_err());
        assert!(check(&shares, &["b"], 1.0).is_err());
        assert!(check(&shares, &["c"], 0.0).is_err());
    }
}
