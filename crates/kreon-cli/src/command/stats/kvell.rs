//! What a store of the engine KVell holds and takes.

use indicatif::{BinaryBytes, HumanCount};
use kvell::Stats;
use serde_json::Value;

use super::figures::{self, Figure};

/// Bytes of an extent.
const EXTENT_BYTES: u64 = 1 << 20;

/// Each figure with its name and what it tells.
fn figures(stats: &Stats) -> [Figure; 7] {
    [
        (
            "keys",
            "Keys of all regions, with those of their names.",
            stats.keys,
        ),
        (
            "index_bytes",
            "Memory of the indexes in bytes.",
            stats.index_bytes,
        ),
        (
            "memory_bytes",
            "Memory of indexes, caches, slots and transfers in bytes.",
            stats.memory_bytes,
        ),
        (
            "outdated_items",
            "Outdated items on the device.",
            stats.outdated_items,
        ),
        (
            "tombstones",
            "Tombstones on the device that something depends on.",
            stats.tombstones,
        ),
        ("extents", "Extents of 1 MiB in use.", stats.extents),
        (
            "free_extents",
            "Extents that were given back.",
            stats.free_extents,
        ),
    ]
}

/// One object, without what is known of the place.
pub fn json(stats: &Stats, regions: Vec<String>) -> Value {
    let mut object = figures::object("kvell", &figures(stats));
    let extents = stats.extents + stats.free_extents;
    object.insert("volume_bytes".to_owned(), (extents * EXTENT_BYTES).into());
    object.insert("regions".to_owned(), regions.into());
    Value::Object(object)
}

/// Metrics for Prometheus.
pub fn prometheus(stats: &Stats) -> String {
    figures::metrics("kvell", &figures(stats))
}

/// A few lines of the object for a person.
pub fn lines(figures: &Value) -> String {
    let number = |name: &str| figures.get(name).and_then(Value::as_u64).unwrap_or(0);
    let size = |name: &str| BinaryBytes(number(name)).to_string();
    let count = |name: &str| HumanCount(number(name)).to_string();
    let text = |name: &str| {
        figures
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let regions = figures.get("regions").and_then(Value::as_array);
    let lines = [
        ("store", text("path").to_owned()),
        ("engine", "kvell".to_owned()),
        ("size on disk", size("disk_bytes")),
        (
            "extents of 1 MiB",
            format!(
                "{} in use, {} free",
                count("extents"),
                count("free_extents")
            ),
        ),
        ("regions", regions.map_or(0, Vec::len).to_string()),
        ("keys", count("keys")),
        ("index in memory", size("index_bytes")),
        ("memory", size("memory_bytes")),
        (
            "left behind",
            format!(
                "{} outdated items, {} tombstones",
                count("outdated_items"),
                count("tombstones")
            ),
        ),
    ];
    lines
        .map(|(name, text)| format!("{name:<20} {text}\n"))
        .concat()
}
