//! Which keys lie in a group.

use std::collections::{HashMap, HashSet};
use std::ops::Bound;

use kreon_replica::machine::Configuration;
use kreon_wire::{Bounds, KeyRange};

/// The ranges of a configuration, by table.
#[derive(Debug, Default)]
pub struct Holds {
    tables: HashMap<String, Vec<KeyRange>>,
    /// Dropped tables whose ranges are about to leave.
    pub leaving: HashSet<String>,
    /// Nobody else is in the set.
    pub is_sole: bool,
}

impl Holds {
    /// What a configuration says; what of `leaving` it still has is leaving.
    pub fn of(config: &Configuration, leaving: &HashSet<String>) -> Self {
        // The bytes were checked when they were read.
        let ranges = KeyRange::decode_all(&config.ranges).unwrap_or_default();
        let mut tables: HashMap<String, Vec<KeyRange>> = HashMap::new();
        for range in ranges {
            tables.entry(range.table.clone()).or_default().push(range);
        }
        let still = |table: &&String| tables.contains_key(*table);
        let leaving = leaving.iter().filter(still).cloned().collect();
        Self {
            tables,
            leaving,
            is_sole: config.in_sync.len() == 1,
        }
    }

    /// The same, and these tables are leaving.
    pub fn leaving_too(&self, leaving: HashSet<String>) -> Self {
        Self {
            tables: self.tables.clone(),
            leaving,
            is_sole: self.is_sole,
        }
    }

    /// The tables of which it has ranges.
    pub fn tables(&self) -> impl Iterator<Item = &String> {
        self.tables.keys()
    }

    /// Whether a key of a table lies in it.
    pub fn has(&self, table: &str, key: &[u8]) -> bool {
        self.range_of(table, key).is_some()
    }

    /// Whether all keys in these bounds lie in one range of it.
    pub fn has_all(&self, table: &str, bounds: &Bounds<'_>) -> bool {
        let start = match bounds.start {
            Bound::Unbounded => &[][..],
            Bound::Included(key) | Bound::Excluded(key) => key,
        };
        let Some(range) = self.range_of(table, start) else {
            return false;
        };
        match (&range.end, bounds.end) {
            (None, _) => true,
            (Some(_), Bound::Unbounded) => false,
            (Some(last), Bound::Excluded(end)) => end <= last.as_slice(),
            (Some(last), Bound::Included(end)) => end < last.as_slice(),
        }
    }

    fn range_of(&self, table: &str, key: &[u8]) -> Option<&KeyRange> {
        let ranges = self.tables.get(table)?;
        if self.leaving.contains(table) {
            return None;
        }
        let behind = ranges.partition_point(|range| range.start.as_slice() <= key);
        let range = ranges.get(behind.checked_sub(1)?)?;
        range.holds(key).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds() -> Holds {
        let range = |table: &str, start: &str, end: Option<&str>| KeyRange {
            table: table.into(),
            start: start.into(),
            end: end.map(Into::into),
        };
        let mut holds = Holds::default();
        let a = vec![range("a", "c", Some("f")), range("a", "m", None)];
        holds.tables.insert("a".into(), a);
        let b = vec![range("b", "", None)];
        holds.tables.insert("b".into(), b);
        holds
    }

    #[test]
    fn a_key_lies_in_a_range_of_its_own_table() {
        let holds = holds();
        for (table, key, has) in [
            ("a", "b", false),
            ("a", "c", true),
            ("a", "ez", true),
            ("a", "f", false),
            ("a", "m", true),
            ("a", "zz", true),
            ("b", "", true),
            ("c", "c", false),
        ] {
            assert_eq!(holds.has(table, key.as_bytes()), has, "{table} {key}");
        }
    }

    #[test]
    fn bounds_lie_in_one_range_or_not_at_all() {
        use Bound::{Excluded, Included, Unbounded};
        let holds = holds();
        for (start, end, has) in [
            (Included("c"), Excluded("f"), true),
            (Excluded("d"), Excluded("f"), true),
            (Included("c"), Included("f"), false),
            (Included("c"), Unbounded, false),
            (Included("c"), Excluded("n"), false),
            (Included("n"), Unbounded, true),
            (Unbounded, Excluded("f"), false),
        ] {
            let bounds = Bounds {
                start: start.map(str::as_bytes),
                end: end.map(str::as_bytes),
            };
            assert_eq!(holds.has_all("a", &bounds), has, "{start:?} {end:?}");
        }
        assert!(holds.has_all("b", &Bounds::ALL));
    }

    #[test]
    fn a_table_that_leaves_is_not_served() {
        let mut holds = holds();
        holds.leaving.insert("b".to_owned());
        assert!(!holds.has("b", b"x") && holds.has("a", b"c"));
    }
}
