//! How often each line ran.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::test_code::{is_test_file, test_lines};

/// For each file, relative to the workspace, the lines that have code and how often each ran.
pub struct Lines {
    pub files: BTreeMap<PathBuf, BTreeMap<usize, u64>>,
}

impl Lines {
    /// Reads a report in the format of `lcov`, where `SF:file` begins a file and `DA:line,count` is a line
    /// of it. Files outside of `root` are left out.
    pub fn parse(report: &str, root: &Path) -> Result<Self> {
        let mut files: BTreeMap<PathBuf, BTreeMap<usize, u64>> = BTreeMap::new();
        let mut file = None;
        for line in report.lines() {
            if let Some(path) = line.strip_prefix("SF:") {
                file = Path::new(path).strip_prefix(root).ok();
            } else if let (Some(entry), Some(file)) = (line.strip_prefix("DA:"), file) {
                let (number, count) = count_of(entry).with_context(|| format!("reading {line}"))?;
                *files
                    .entry(file.to_owned())
                    .or_default()
                    .entry(number)
                    .or_default() += count;
            }
        }
        Ok(Self { files })
    }

    /// Forgets tests: they reach themselves.
    pub fn remove_test_code(&mut self, root: &Path) -> Result<()> {
        self.files.retain(|file, _| !is_test_file(file));
        for (file, lines) in &mut self.files {
            let source = std::fs::read_to_string(root.join(file))
                .with_context(|| format!("cannot read {}", file.display()))?;
            for range in test_lines(&source) {
                lines.retain(|line, _| !range.contains(line));
            }
        }
        Ok(())
    }
}

/// `line,count`, and a checksum perhaps.
fn count_of(entry: &str) -> Option<(usize, u64)> {
    let mut fields = entry.split(',');
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_line_add_up_and_other_files_are_left_out() {
        let report = "SF:/house/a.rs\nFN:1,f\nDA:1,2\nDA:2,0\nend_of_record\n\
                      SF:/elsewhere/b.rs\nDA:1,1\nend_of_record\nSF:/house/a.rs\nDA:1,3\n";
        let lines = Lines::parse(report, Path::new("/house")).unwrap();
        let expected = BTreeMap::from([("a.rs".into(), BTreeMap::from([(1, 5), (2, 0)]))]);
        assert_eq!(lines.files, expected);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_an_error() {
        assert!(Lines::parse("SF:/house/a.rs\nDA:x,1\n", Path::new("/house")).is_err());
    }
}
