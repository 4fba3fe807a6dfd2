use std::collections::BTreeSet;

use super::*;

const REGION: RegionId = RegionId(3);

fn deletion(lsn: u64) -> Deletion {
    Deletion {
        lsn: Lsn(lsn),
        pending: false,
    }
}

fn keep_all() -> Keep {
    Keep {
        snapshot_max: Some(Lsn::MAX),
        ..Keep::default()
    }
}

fn lsns(ranges: &RegionRanges, key: &[u8]) -> Vec<u64> {
    let covering = ranges.covering(key).iter();
    covering.map(|deletion| deletion.lsn.0).collect()
}

/// Deterministic pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
        (self.0 >> 33) % bound
    }
}

#[test]
fn fragments_say_of_every_key_what_the_ranges_say() {
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let (mut ranges, mut all) = (RegionRanges::default(), Vec::new());
        for lsn in 1..=12 {
            // Any order of positions, as writers come in any order.
            let lsn = lsn * 7 % 13;
            let (one, two) = (dice.below(20) as u8, dice.below(20) as u8);
            let (start, end) = (one.min(two), one.max(two) + 1);
            let end = (end < 18).then_some([end]);
            let end = end.as_ref().map(<[u8; 1]>::as_slice);
            ranges = ranges.with(&[start], end, deletion(lsn), keep_all());
            all.push((start, end.map(|end| end[0]), lsn));
            for key in 0..22u8 {
                let covers = |(start, end, _): &&(u8, Option<u8>, u64)| {
                    *start <= key && end.is_none_or(|end| key < end)
                };
                let found = all.iter().filter(covers).map(|(_, _, lsn)| *lsn);
                let expected: BTreeSet<_> = found.collect();
                let expected: Vec<_> = expected.into_iter().rev().collect();
                assert_eq!(lsns(&ranges, &[key]), expected, "seed {seed} key {key}");
                let at = dice.below(14);
                let stretch = ranges.stretch(&[key], Lsn(at));
                assert!(stretch.has(&[key]));
                let seen = expected.iter().find(|lsn| **lsn < at);
                assert_eq!(stretch.deleted.map(|lsn| lsn.0), seen.copied());
            }
        }
    }
}

#[test]
fn a_deletion_replaces_older_ones_that_no_snapshot_sees() {
    let none = Keep::default();
    let ranges = RegionRanges::default().with(b"b", Some(b"d"), deletion(5), none);
    let ranges = ranges.with(b"a", None, deletion(9), none);
    assert_eq!(ranges.fragments.len(), 1, "one range covers all");
    assert_eq!(lsns(&ranges, b"c"), [9]);
    let snapshot = Keep {
        snapshot_max: Some(Lsn(9)),
        ..none
    };
    let ranges = ranges.with(b"c", None, deletion(7), none);
    assert_eq!(lsns(&ranges, b"c"), [9], "an older one that comes late");
    let ranges = ranges.with(b"c", None, deletion(6), snapshot);
    assert_eq!(lsns(&ranges, b"c"), [9, 6], "for the snapshot");
    let ranges = ranges.with(b"c", None, deletion(12), none);
    assert_eq!(lsns(&ranges, b"c"), [12]);
}

#[test]
fn one_that_may_be_hidden_hides_nothing() {
    let pending = Deletion {
        lsn: Lsn(9),
        pending: true,
    };
    let none = Keep::default();
    let ranges = RegionRanges::default().with(b"", None, deletion(5), none);
    let ranges = ranges.with(b"", None, pending, none);
    assert_eq!(lsns(&ranges, b"c"), [9, 5]);
    let settled = Keep {
        visible_before: Lsn(10),
        ..none
    };
    let ranges = ranges.with(b"", None, deletion(11), settled);
    assert_eq!(lsns(&ranges, b"c"), [11]);
}

#[test]
fn a_node_is_met_where_its_bounds_touch_a_range() {
    let ranges = RegionRanges::default().with(b"d", Some(b"f"), deletion(5), Keep::default());
    assert!(ranges.may_meet(b"a", Some(b"d")) && ranges.may_meet(b"e", None));
    assert!(ranges.may_meet(b"e", Some(b"e")) && !ranges.may_meet(b"f", None));
    assert!(!ranges.may_meet(b"a", Some(b"c")));
    // A long key begins with the bytes that its node is known by.
    let long = RegionRanges::default().with(b"dd", None, deletion(5), Keep::default());
    assert!(long.may_meet(b"a", Some(b"d")));
}

#[test]
fn regions_have_their_own_ranges() {
    let none = Keep::default();
    let ranges = Ranges::default().with(REGION, (b"a", Some(b"c")), deletion(4), none);
    let ranges = ranges.with(RegionId(1), (b"", None), deletion(8), none);
    assert_eq!(ranges.regions().collect::<Vec<_>>(), [RegionId(1), REGION]);
    let of = |region, key: &[u8]| ranges.of(region).map(|ranges| lsns(ranges, key));
    assert_eq!(of(REGION, b"b"), Some(vec![4]));
    assert_eq!(of(REGION, b"c"), Some(vec![]));
    assert_eq!(of(RegionId(2), b"b"), None);
    assert_eq!(
        (ranges.fragments(), ranges.first_from(Lsn(5))),
        (2, Some(Lsn(8)))
    );
    assert!(ranges.bytes() > 0);
}

/// A caller of the engine may hand one in; over other ranges it would leave fragments that overlap.
#[test]
fn a_range_that_ends_before_it_starts_deletes_nothing() {
    let ranges = RegionRanges::default().with(b"a", Some(b"m"), deletion(5), keep_all());
    for (start, end) in [(b"k", b"c"), (b"z", b"b"), (b"a", b"a")] {
        let with = ranges.with(start, Some(end), deletion(9), keep_all());
        assert_eq!(with, ranges, "{start:?} to {end:?}");
    }
}
