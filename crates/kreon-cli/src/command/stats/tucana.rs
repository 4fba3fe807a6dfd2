//! What a store of the engine Tucana takes, and what its tree did since the store was opened.

use indicatif::{BinaryBytes, HumanCount};
use serde_json::Value;
use tucana::Store;

use super::figures::{self, Figure};

/// Each figure with its name and what it tells.
fn figures(store: &Store) -> [Figure; 8] {
    let stats = store.stats();
    [
        (
            "used_bytes",
            "Bytes of the segments that hold something, or are reserved for the log.",
            store.used_bytes(),
        ),
        (
            "searches",
            "Searches for the place of a new key in a leaf since the store was opened.",
            stats.searches,
        ),
        (
            "ties",
            "Those that read keys, because prefixes were equal.",
            stats.ties,
        ),
        (
            "hash_matches",
            "Records that were read because their hash is that of the key.",
            stats.hash_matches,
        ),
        (
            "hash_misses",
            "Those of them with another key.",
            stats.hash_misses,
        ),
        (
            "node_copies",
            "Nodes that were copied at their first change in an epoch.",
            stats.copies,
        ),
        ("node_splits", "Nodes that were split.", stats.splits),
        (
            "node_merges",
            "Nodes that were merged into their neighbour.",
            stats.merges,
        ),
    ]
}

/// One object, without what is known of the place.
pub fn json(store: &Store, regions: Vec<String>) -> Value {
    let mut object = figures::object("tucana", &figures(store));
    object.insert("regions".to_owned(), regions.into());
    Value::Object(object)
}

/// Metrics for Prometheus.
pub fn prometheus(store: &Store) -> String {
    figures::metrics("tucana", &figures(store))
}

/// A few lines of the object for a person.
pub fn lines(figures: &Value) -> String {
    let number = |name: &str| figures.get(name).and_then(Value::as_u64).unwrap_or(0);
    let size = |name: &str| BinaryBytes(number(name)).to_string();
    let count = |name: &str| HumanCount(number(name)).to_string();
    let path = figures.get("path").and_then(Value::as_str);
    let lines = [
        ("store", path.unwrap_or_default().to_owned()),
        ("engine", "tucana".to_owned()),
        ("size on disk", size("disk_bytes")),
        ("segments in use", size("used_bytes")),
        (
            "searches to insert",
            format!("{}, {} of them read keys", count("searches"), count("ties")),
        ),
        (
            "reads by hash",
            format!(
                "{}, {} of them of another key",
                count("hash_matches"),
                count("hash_misses")
            ),
        ),
        (
            "nodes",
            format!(
                "{} copied, {} split, {} merged",
                count("node_copies"),
                count("node_splits"),
                count("node_merges")
            ),
        ),
    ];
    lines
        .map(|(name, text)| format!("{name:<20} {text}\n"))
        .concat()
}
