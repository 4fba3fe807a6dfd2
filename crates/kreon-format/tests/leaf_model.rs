//! Leaves against a sorted list.
#![allow(missing_docs)]

mod keys;
mod samples;

use keys::{Version, probes, stored, versions};
use kreon_base::{Attributes, ErrorKind, LogOffset, Lsn, PAGE_BYTES, PageBytes, Payload};
use kreon_format::*;
use proptest::prelude::*;
use samples::{STORE, cases, identity, logged};

/// The room of `versions`, computed differently from the builder.
fn room_bytes(versions: &[Version]) -> usize {
    let (Some(first), Some(last)) = (versions.first(), versions.last()) else {
        return NODE_HEADER_BYTES;
    };
    let pairs = first.stored().iter().zip(last.stored());
    let prefix = pairs.take_while(|(a, b)| a == b).count();
    let entries = versions.iter().map(|version| {
        let key = version.stored().len() - prefix;
        let body = match version.payload() {
            Payload::Logged { value_bytes, .. } => 6 + number_bytes(value_bytes),
            Payload::Inline { value, .. } => number_bytes(value.len() as u32) + value.len(),
            Payload::Tombstone { .. } => 6,
            Payload::Erased { .. } => 6 * usize::from(version.is_long()),
        };
        let body = body + version.payload().attributes().stored_bytes();
        let lsn = if version.lsn == Lsn(0) { 0 } else { 8 };
        let long = if version.is_long() { 3 } else { 0 };
        let length = if key < 256 { 1 } else { 2 };
        8 + 2 + 1 + length + key.saturating_sub(8) + body + lsn + long
    });
    NODE_HEADER_BYTES + prefix + entries.sum::<usize>()
}

fn number_bytes(number: u32) -> usize {
    (1..4).find(|bytes| number >> (8 * bytes) == 0).unwrap_or(4)
}

/// Fills leaves with `versions` and returns each with its share.
fn fill(versions: &[Version]) -> Vec<(PageBytes, PagePointer, &[Version])> {
    let mut builder = LeafBuilder::new();
    let (mut leaves, mut start) = (Vec::new(), 0);
    let mut finish = |builder: &mut LeafBuilder, start: usize, end: usize| {
        let mut page = [0xaa; PAGE_BYTES];
        let pointer = builder
            .finish(&identity(start as u64, 0), &mut page)
            .unwrap();
        leaves.push((page, pointer, &versions[start..end]));
    };
    for (end, version) in versions.iter().enumerate() {
        let fits = room_bytes(&versions[start..=end]) <= PAGE_BYTES;
        assert_eq!(
            builder.fits(&version.key, version.lsn, version.payload()),
            fits
        );
        if !fits {
            assert!(end - start >= 3, "room for three entries at least");
            let used_bytes = builder.used_bytes();
            assert!(
                builder
                    .push(&version.key, version.lsn, version.payload())
                    .is_err()
            );
            assert_eq!(
                (builder.len(), builder.used_bytes()),
                (end - start, used_bytes)
            );
            finish(&mut builder, start, end);
            assert!(builder.is_empty());
            start = end;
        }
        builder
            .push(&version.key, version.lsn, version.payload())
            .unwrap();
        assert_eq!(builder.len(), end + 1 - start);
        assert_eq!(builder.used_bytes(), room_bytes(&versions[start..=end]));
        assert_eq!(builder.first_key(), Some(versions[start].stored()));
        assert_eq!(builder.last_key(), Some(version.stored()));
    }
    finish(&mut builder, start, versions.len());
    leaves
}

fn expected(versions: &[Version], key: &[u8]) -> LeafSearch {
    let is_long = key.len() > LONG_KEY_STORED_BYTES;
    let order =
        |version: &Version| (stored(&version.key), version.is_long()).cmp(&(stored(key), is_long));
    let first = versions.partition_point(|version| order(version).is_lt());
    let end = versions.partition_point(|version| order(version).is_le());
    match (first < end, is_long) {
        (false, _) => LeafSearch::Absent(first),
        (true, false) => LeafSearch::Found(first),
        (true, true) => LeafSearch::Long { first, end },
    }
}

fn check_leaf(page: &PageBytes, pointer: &PagePointer, versions: &[Version]) {
    check_node(page, STORE, pointer, 0).unwrap();
    assert!(check_node(page, STORE, pointer, 1).is_err());
    let leaf = Leaf::open(page).unwrap();
    assert_eq!(leaf.len(), versions.len());
    assert_eq!(leaf.used_bytes(), room_bytes(versions));
    assert_eq!(leaf.region(), identity(0, 0).region);
    let mut key = vec![1, 2, 3];
    for (index, version) in versions.iter().enumerate() {
        let entry = leaf.entry(index).unwrap();
        assert_eq!((entry.lsn, entry.payload), (version.lsn, version.payload()));
        assert_eq!(entry.key_bytes as usize, version.key.len());
        leaf.key_into(index, &mut key).unwrap();
        assert_eq!(key, version.stored());
        assert!(key.starts_with(leaf.prefix()));
    }
    assert!(leaf.entry(versions.len()).is_err());
    assert!(leaf.key_into(versions.len(), &mut key).is_err());
    for key in probes(versions) {
        assert_eq!(leaf.search(&key).unwrap(), expected(versions, &key));
    }
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn leaves_hold_what_was_pushed(versions in versions(120)) {
        for (page, pointer, share) in fill(&versions) {
            check_leaf(&page, &pointer, share);
        }
    }

    #[test]
    fn runs_copied_from_leaves_are_as_if_pushed(versions in versions(60), goal in 1000..=PAGE_BYTES) {
        let leaves = fill(&versions);
        let (mut builder, mut done) = (LeafBuilder::new(), 0);
        let mut page = [0; PAGE_BYTES];
        for (source, _, share) in &leaves {
            let (leaf, mut from) = (Leaf::open(source).unwrap(), 0);
            while from < share.len() {
                let goal = if builder.is_empty() { PAGE_BYTES } else { goal };
                let goal = goal.max(builder.used_bytes());
                from += builder.push_run(&leaf, from..share.len(), goal).unwrap();
                prop_assert!(builder.used_bytes() <= goal);
                if from < share.len() {
                    let held = builder.len();
                    let next = &share[from];
                    let (stored, bytes) = (next.stored(), next.key.len() as u32);
                    let mut push = || builder.push_stored(stored, bytes, next.lsn, next.payload());
                    prop_assert!(goal < PAGE_BYTES || push().is_err());
                    let pointer = builder.finish(&identity(1, 0), &mut page).unwrap();
                    check_leaf(&page, &pointer, &versions[done..done + held]);
                    done += held;
                }
            }
        }
        let pointer = builder.finish(&identity(1, 0), &mut page).unwrap();
        check_leaf(&page, &pointer, &versions[done..]);
    }

    #[test]
    fn key_that_only_the_leaf_has_is_pushed_by_its_stored_part(versions in versions(20)) {
        let (mut whole, mut stored) = (LeafBuilder::new(), LeafBuilder::new());
        for version in &versions {
            let Version { key, lsn, .. } = version;
            let fits = whole.fits(key, *lsn, version.payload());
            let bytes = key.len() as u32;
            let pushed = stored.push_stored(version.stored(), bytes, *lsn, version.payload());
            prop_assert_eq!(pushed.is_ok(), fits);
            if fits {
                whole.push(key, *lsn, version.payload()).unwrap();
            }
        }
        let mut pages = [[0; PAGE_BYTES], [1; PAGE_BYTES]];
        whole.finish(&identity(1, 0), &mut pages[0]).unwrap();
        stored.finish(&identity(1, 0), &mut pages[1]).unwrap();
        prop_assert_eq!(pages[0], pages[1]);
    }
}

#[test]
fn builder_refuses_what_is_out_of_order_or_range() {
    let mut builder = LeafBuilder::new();
    let mut page = [0; PAGE_BYTES];
    assert!(builder.finish(&identity(1, 0), &mut page).is_err());
    builder.push(b"b", Lsn(5), logged(1, 1)).unwrap();
    let long = vec![b'c'; 1025];
    let mut refuses = |key: &[u8], lsn, payload| {
        assert!(!builder.fits(key, Lsn(lsn), payload));
        let error = builder.push(key, Lsn(lsn), payload).unwrap_err();
        assert_eq!(
            (error.kind(), builder.len()),
            (ErrorKind::InvalidArgument, 1)
        );
    };
    refuses(b"a", 0, logged(1, 1));
    refuses(b"b", 5, logged(1, 1));
    refuses(b"b", 6, logged(1, 1));
    refuses(b"c", 0, logged(LOG_OFFSET_MAX + 1, 1));
    refuses(b"c", 0, logged(1, (1 << 30) + 1));
    refuses(
        b"c",
        0,
        Payload::Inline {
            value: &[0; INLINE_VALUE_BYTES_MAX + 1],
            attributes: Attributes::NONE,
        },
    );
    refuses(
        &long,
        0,
        Payload::Inline {
            value: b"",
            attributes: Attributes::NONE,
        },
    );
    refuses(
        &vec![b'c'; 65537],
        0,
        Payload::Tombstone {
            offset: LogOffset(0),
        },
    );
    assert!(builder.push_stored(b"c", 2, Lsn(0), logged(1, 1)).is_err());
    assert!(builder.finish(&identity(1, 1), &mut page).is_err());
    builder.push(b"b", Lsn(4), logged(1, 1)).unwrap();
    assert!(builder.finish(&identity(1, 0), &mut page).is_ok());
}

#[test]
fn full_leaf_of_hashed_user_keys_holds_about_140_entries() {
    // As many keys as one leaf holds of a million hashed ones: they share "user" and two digits.
    let mut keys: Vec<_> = (0..1_000_000_u64)
        .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 10_000_000_000_000_000_000)
        .map(|n| format!("user{n:019}"))
        .collect();
    keys.sort_unstable();
    let mut builder = LeafBuilder::new();
    let mut counts = Vec::new();
    let mut page = [0; PAGE_BYTES];
    for (n, key) in (0..).zip(&keys[300_000..310_000]) {
        let payload = logged(1 << 40 | n, 1000);
        if !builder.fits(key.as_bytes(), Lsn(0), payload) {
            counts.push(builder.len());
            builder.finish(&identity(1, 0), &mut page).unwrap();
        }
        builder.push(key.as_bytes(), Lsn(0), payload).unwrap();
    }
    let mean = counts.iter().sum::<usize>() / counts.len();
    assert!((136..=150).contains(&mean), "{mean}");
}
