//! Which keys lie in a group.

use std::collections::HashMap;
use std::ops::Bound;

use kreon_replica::machine::{Known, Version};
use kreon_wire::{Bounds, KeyRange};

/// The ranges of a configuration, by table.
#[derive(Clone, Debug, Default)]
pub struct Holds {
    version: Version,
    tables: HashMap<String, Vec<KeyRange>>,
    /// Dropped tables whose ranges leave, with the version of the configuration without them, if that is known. Of a table that
    /// was made anew, ranges come in a later version.
    leaving: HashMap<String, Option<Version>>,
    /// Nobody else is in the set.
    pub is_sole: bool,
}

impl Holds {
    /// What a configuration says.
    pub fn of(known: &Known) -> Self {
        let config = &known.config;
        // The bytes were checked when they were read.
        let ranges = KeyRange::decode_all(&config.ranges).unwrap_or_default();
        let mut tables: HashMap<String, Vec<KeyRange>> = HashMap::new();
        for range in ranges {
            tables.entry(range.table.clone()).or_default().push(range);
        }
        Self {
            version: known.version,
            tables,
            leaving: HashMap::new(),
            is_sole: config.in_sync.len() == 1,
        }
    }

    /// What the next configuration says.
    #[must_use]
    pub fn next(&self, known: &Known) -> Self {
        let mut next = Self::of(known);
        next.leaving = self.leaving.clone();
        next.forget_left();
        next
    }

    /// A dropped table is not served any more.
    #[must_use]
    pub fn without(&self, table: &str) -> Self {
        let mut next = self.clone();
        next.leaving.insert(table.to_owned(), None);
        next
    }

    /// The ranges of a dropped table have left with this version.
    #[must_use]
    pub fn left(&self, table: &str, version: Version) -> Self {
        let mut next = self.clone();
        if let Some(left) = next.leaving.get_mut(table) {
            *left = Some(version);
        }
        next.forget_left();
        next
    }

    fn forget_left(&mut self) {
        let seen = self.version;
        let leaves = |left: &mut Option<Version>| left.is_none_or(|left| left > seen);
        self.leaving.retain(|_, left| leaves(left));
    }

    /// Dropped tables of which it is not known whether their ranges have left.
    pub fn leaving(&self) -> impl Iterator<Item = &String> {
        let open = self.leaving.iter().filter(|(_, left)| left.is_none());
        open.map(|(table, _)| table)
    }

    /// The tables of which it has ranges.
    pub fn tables(&self) -> impl Iterator<Item = &String> {
        self.tables.keys()
    }

    /// Whether it has ranges of a table, and none that leave.
    pub fn serves(&self, table: &str) -> bool {
        self.tables.contains_key(table) && !self.leaving.contains_key(table)
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
        let ranges = self.tables.get(table).filter(|_| self.serves(table))?;
        let behind = ranges.partition_point(|range| range.start.as_slice() <= key);
        let range = ranges.get(behind.checked_sub(1)?)?;
        range.holds(key).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use kreon_replica::machine::{Configuration, Term};

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

    fn known(version: u64, tables: &[&str]) -> Known {
        let range = |table: &&str| KeyRange {
            table: (*table).to_owned(),
            start: Vec::new(),
            end: None,
        };
        let ranges: Vec<KeyRange> = tables.iter().map(range).collect();
        Known {
            version: Version(version),
            config: Configuration {
                term: Term(1),
                primary: None,
                in_sync: [].into(),
                servers: [].into(),
                min_in_sync: 1,
                after_loss: false,
                loss_term: Term(0),
                all_needed: false,
                ranges: KeyRange::encode_all(&ranges).into(),
            },
        }
    }

    #[test]
    fn a_dropped_table_is_served_again_only_by_a_configuration_after_it_has_left() {
        let held = Holds::of(&known(4, &["a", "b"]));
        let dropped = held.without("a").next(&known(5, &["a", "b"]));
        assert!(!dropped.has("a", b"x") && dropped.has("b", b"x"));
        assert_eq!(dropped.leaving().count(), 1);
        // It left with version 6, which is not seen yet, and came again with version 8.
        let left = dropped.left("a", Version(6));
        assert_eq!(left.leaving().count(), 0);
        assert!(!left.has("a", b"x"));
        assert!(left.next(&known(8, &["a", "b"])).has("a", b"x"));
        // The other way round: the later version was seen before it was known when it left.
        let seen = dropped.next(&known(8, &["a", "b"]));
        assert!(!seen.has("a", b"x"));
        assert!(seen.left("a", Version(6)).has("a", b"x"));
    }
}
