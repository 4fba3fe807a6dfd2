//! About ten lines on a store for a person who does not know how it works inside.

use indicatif::{BinaryBytes, HumanCount};
use serde_json::Value;

use crate::encoding::{Encoding, shown};

/// Regions that are named.
const NAMED_MAX: usize = 5;

/// Of the figures in JSON.
pub fn lines(figures: &Value) -> String {
    let figures = &Figures(figures);
    let size = |name: &str| BinaryBytes(figures.number(name)).to_string();
    let lines = [
        ("store", figures.text("path")),
        ("format", figures.number("format_version").to_string()),
        (
            "size on disk",
            format!(
                "{} (volume {}, {} of it free)",
                size("disk_bytes"),
                size("volume_bytes"),
                size("free_bytes")
            ),
        ),
        (
            "live data",
            format!(
                "{} of values in the log, {} of index",
                size("log_live_bytes"),
                BinaryBytes(figures.sum_of_levels("bytes"))
            ),
        ),
        (
            "space amplification",
            ratio(figures.within("collection").real("space_amplification")),
        ),
        ("regions", regions(&figures.texts("regions"))),
        ("keys", keys(figures)),
        ("memory", memory(figures)),
        (
            "last checkpoint",
            format!(
                "number {}; the next opening replays {}",
                figures.number("epoch"),
                size("replay_bytes")
            ),
        ),
        ("health", health(figures)),
    ];
    lines
        .map(|(name, text)| format!("{name:<20} {text}\n"))
        .concat()
}

/// A JSON object of figures; what is missing counts as nothing.
struct Figures<'a>(&'a Value);

impl Figures<'_> {
    fn within(&self, name: &str) -> Figures<'_> {
        Figures(self.0.get(name).unwrap_or(&Value::Null))
    }

    fn number(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or(0)
    }

    fn real(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    fn text(&self, name: &str) -> String {
        let text = self.0.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let texts = self.0.get(name).and_then(Value::as_array);
        let texts = texts.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }

    fn sum_of_levels(&self, name: &str) -> u64 {
        let levels = self.0.get("levels").and_then(Value::as_array);
        let levels = levels.into_iter().flatten();
        levels.map(|level| Figures(level).number(name)).sum()
    }
}

/// A ratio for a person; `-` where it is not defined.
fn ratio(value: impl Into<Option<f64>>) -> String {
    match value.into() {
        Some(value) if value.is_finite() => format!("{value:.2}"),
        _ => "-".to_owned(),
    }
}

fn regions(names: &[String]) -> String {
    let named: Vec<_> = names
        .iter()
        .take(NAMED_MAX)
        .map(|name| shown(Encoding::Escapes, name.as_bytes()))
        .collect();
    let more = match names.len() > NAMED_MAX {
        true => ", ...",
        false => "",
    };
    match names.len() {
        0 => "0".to_owned(),
        count => format!("{count}: {}{more}", named.join(", ")),
    }
}

/// Entries count each version of a key, and deletions.
fn keys(figures: &Figures<'_>) -> String {
    let entries = figures.sum_of_levels("entries") + figures.number("l0_entries");
    format!(
        "at most {} (`kreon count` counts them)",
        HumanCount(entries)
    )
}

fn memory(figures: &Figures<'_>) -> String {
    let memory = figures.within("memory");
    let cached = [
        "index_bytes",
        "leaf_bytes",
        "log_page_bytes",
        "record_bytes",
    ];
    let cached: u64 = cached.iter().map(|name| memory.number(name)).sum();
    format!(
        "{} of pages and {} of new writes, of a budget of {}",
        BinaryBytes(cached),
        BinaryBytes(figures.number("l0_bytes")),
        BinaryBytes(figures.number("memory_bytes"))
    )
}

fn health(figures: &Figures<'_>) -> String {
    let write_errors = figures.within("mapping").number("write_errors");
    if write_errors > 0 {
        return format!("{write_errors} writes failed: open the store again");
    }
    let has_damage = figures.0.get("found_damaged_image") == Some(&Value::Bool(true));
    if has_damage {
        return "a checkpoint of memory was damaged; the log replaced it".to_owned();
    }
    "no error met since the opening; `kreon verify` checks everything".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_that_is_not_defined_is_a_hyphen() {
        assert_eq!(ratio(1.304), "1.30");
        assert_eq!(ratio(None), "-");
        for undefined in [f64::NAN, f64::INFINITY] {
            assert_eq!(ratio(undefined), "-");
        }
    }

    #[test]
    fn many_regions_are_counted_and_a_few_are_named() {
        let names: Vec<_> = (0..7).map(|i| format!("r{i}")).collect();
        assert_eq!(regions(&names), "7: r0, r1, r2, r3, r4, ...");
        assert_eq!(regions(&names[..2]), "2: r0, r1");
        assert_eq!(regions(&[]), "0");
    }
}
