//! The grammar of a Markdown table.

/// A line of cells.
pub fn line(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<_> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The first line, and the rule beneath it.
pub fn heading(first: &str, others: &[String]) -> String {
    let names = std::iter::once(first.to_owned()).chain(others.iter().cloned());
    let rule = "|---".repeat(others.len() + 1);
    format!("{}{rule}|\n", line(names))
}

/// A number with three digits that count.
pub fn short(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// What is not there.
pub const NONE: &str = "-";
