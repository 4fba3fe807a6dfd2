//! The tables of what passed and why the rest did not.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::outcome::Outcome;
use super::reasons;

/// Tests of one reason, and how often each part was missing.
#[derive(Default)]
struct Class {
    tests: usize,
    parts: BTreeMap<String, usize>,
}

/// Prints them as Markdown; returns how many failures have no known reason.
pub fn print(outcomes: &[(&str, Outcome)]) -> usize {
    println!("{}", units(outcomes));
    let mut failed: BTreeMap<&str, Class> = BTreeMap::new();
    let mut skipped: BTreeMap<&str, Class> = BTreeMap::new();
    let mut unexplained = 0;
    for (unit, outcome) in outcomes {
        for failure in &outcome.failures {
            let Some((reason, part)) = reasons::of_failure(failure) else {
                eprintln!(
                    "UNEXPLAINED: {unit}: {}\n    {}",
                    failure.test, failure.message
                );
                unexplained += 1;
                continue;
            };
            let class = failed.entry(reason).or_default();
            class.tests += 1;
            if let Some(part) = part {
                *class.parts.entry(part).or_default() += 1;
            }
        }
        for text in &outcome.skipped {
            skipped.entry(reasons::of_skipped(text)).or_default().tests += 1;
        }
    }
    println!("| failed | why |\n|---:|---|\n{}", classes(&failed));
    println!("| skipped | why |\n|---:|---|\n{}", classes(&skipped));
    unexplained
}

fn units(outcomes: &[(&str, Outcome)]) -> String {
    let mut rows = String::from("| unit | passed | failed | skipped |\n|---|---:|---:|---:|\n");
    let mut sum = [0; 3];
    for (unit, outcome) in outcomes {
        let row = [
            outcome.passed,
            outcome.failures.len(),
            outcome.skipped.len(),
        ];
        let _ = writeln!(rows, "| `{unit}` | {} | {} | {} |", row[0], row[1], row[2]);
        for (sum, count) in sum.iter_mut().zip(row) {
            *sum += count;
        }
    }
    let _ = writeln!(rows, "| all | {} | {} | {} |", sum[0], sum[1], sum[2]);
    rows
}

/// Rows, the largest class first.
fn classes(classes: &BTreeMap<&str, Class>) -> String {
    let mut sorted: Vec<_> = classes.iter().collect();
    sorted.sort_by_key(|(_, class)| std::cmp::Reverse(class.tests));
    let mut rows = String::new();
    for (reason, class) in sorted {
        let _ = write!(rows, "| {} | {reason}", class.tests);
        let mut parts: Vec<_> = class.parts.iter().collect();
        parts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (at, (part, count)) in parts.into_iter().enumerate() {
            let _ = write!(rows, "{} `{part}` {count}", if at == 0 { ":" } else { "," });
        }
        rows.push_str(" |\n");
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_in_the_order_of_their_counts() {
        let parts = [("A".to_owned(), 1), ("B".to_owned(), 2)].into();
        let rows = classes(&[("missing", Class { tests: 3, parts })].into());
        assert_eq!(rows, "| 3 | missing: `B` 2, `A` 1 |\n");
    }
}
