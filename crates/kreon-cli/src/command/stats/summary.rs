//! About ten lines on a store for a person who does not know how it works inside.

use indicatif::{BinaryBytes, HumanCount};
use kreon::Stats;
use kreon_format::FORMAT_VERSION;

use super::place::Place;
use crate::encoding::{Encoding, shown};

/// Regions that are named.
const NAMED_MAX: usize = 5;

pub fn lines(stats: &Stats, place: &Place) -> String {
    let size = |bytes| BinaryBytes(bytes).to_string();
    let lines = [
        ("store", place.path.display().to_string()),
        ("format", FORMAT_VERSION.to_string()),
        (
            "size on disk",
            format!(
                "{} (volume {}, {} of it free)",
                size(place.disk_bytes),
                size(stats.volume_bytes),
                size(stats.free_bytes)
            ),
        ),
        ("live data", live(stats)),
        (
            "space amplification",
            ratio(stats.collection.space_amplification),
        ),
        ("regions", regions(&place.regions)),
        ("keys", keys(stats)),
        ("memory", memory(stats)),
        (
            "last checkpoint",
            format!(
                "number {}; the next opening replays {}",
                stats.epoch,
                size(stats.replay_bytes)
            ),
        ),
        ("health", health(stats)),
    ];
    lines
        .map(|(name, text)| format!("{name:<20} {text}\n"))
        .concat()
}

/// A ratio for a person; `-` where it is not defined.
fn ratio(value: impl Into<Option<f64>>) -> String {
    match value.into() {
        Some(value) if value.is_finite() => format!("{value:.2}"),
        _ => "-".to_owned(),
    }
}

/// What the trees hold and point at.
fn live(stats: &Stats) -> String {
    let trees: u64 = stats.levels.iter().map(|level| level.bytes).sum();
    format!(
        "{} of values in the log, {} of index",
        BinaryBytes(stats.log_live_bytes),
        BinaryBytes(trees)
    )
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
fn keys(stats: &Stats) -> String {
    let spilled: u64 = stats.levels.iter().map(|level| level.entries).sum();
    format!(
        "at most {} (`kreon count` counts them)",
        HumanCount(spilled + stats.l0_entries)
    )
}

fn memory(stats: &Stats) -> String {
    let memory = &stats.memory;
    let cached =
        memory.index_bytes + memory.leaf_bytes + memory.log_page_bytes + memory.record_bytes;
    format!(
        "{} of pages and {} of new writes, of a budget of {}",
        BinaryBytes(cached),
        BinaryBytes(stats.l0_bytes),
        BinaryBytes(stats.memory_bytes)
    )
}

fn health(stats: &Stats) -> String {
    if stats.mapping.write_errors > 0 {
        return format!(
            "{} writes failed: open the store again",
            stats.mapping.write_errors
        );
    }
    if stats.found_damaged_image {
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
