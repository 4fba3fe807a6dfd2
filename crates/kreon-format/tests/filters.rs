//! Filters of leaves: none denies a key of its leaf, and few other keys pass.
#![allow(missing_docs)]

mod keys;
mod samples;

use keys::{Version, key, versions};
use kreon_base::{
    Attributes, Epoch, LogOffset, Lsn, PAGE_BYTES, PageBytes, PageNo, Payload, RegionId,
};
use kreon_format::*;
use proptest::prelude::*;
use samples::{STORE, cases, identity, pointer};

/// A leaf with the first of `versions`, as many as fit, and their number.
fn leaf_of(versions: &[Version]) -> (PageBytes, usize) {
    let mut builder = LeafBuilder::new();
    let taken = versions
        .iter()
        .take_while(|version| {
            let pushed = builder.push(&version.key, version.lsn, version.payload());
            pushed.is_ok()
        })
        .count();
    let mut page = [0; PAGE_BYTES];
    builder.finish(&identity(5, 0), &mut page).unwrap();
    (page, taken)
}

fn filter_of(page: &PageBytes, bits_per_key: usize) -> LeafFilter {
    let leaf = Leaf::open(page).unwrap();
    FilterBuilder::new().build(&leaf, bits_per_key).unwrap()
}

fn pivot(bytes: &[u8]) -> Pivot {
    Pivot {
        bytes: bytes.to_vec(),
        ambiguous: false,
    }
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn no_filter_denies_a_key_of_its_leaf(versions in versions(60), bits in 1_usize..40) {
        let (page, taken) = leaf_of(&versions);
        let filter = filter_of(&page, bits);
        for version in &versions[..taken] {
            prop_assert!(filter.may_hold(&version.key));
        }
    }

    #[test]
    fn index_nodes_keep_filters_beside_children_that_have_none(
        lists in prop::collection::vec(prop::option::of(versions(20)), 1..12),
        mut bounds in prop::collection::vec(key(), 11),
        probes in prop::collection::vec(key(), 20),
    ) {
        bounds.iter_mut().for_each(|key| key.truncate(LONG_KEY_STORED_BYTES));
        bounds.sort();
        bounds.dedup();
        let filters = lists.iter().map(|list| match list {
            Some(versions) => filter_of(&leaf_of(versions).0, 10),
            None => LeafFilter::NONE,
        });
        let filters: Vec<_> = filters.take(bounds.len() + 1).collect();
        let mut builder = IndexBuilder::new();
        let mut given: Vec<(Pivot, LeafFilter)> = Vec::new();
        for (n, filter) in filters.into_iter().enumerate() {
            let pivot = n.checked_sub(1).map(|n| pivot(&bounds[n])).unwrap_or_default();
            let fits = builder.fits(&pivot, &filter);
            let pushed = builder.push(&pivot, pointer(given.len() as u64), &filter);
            prop_assert_eq!(pushed.is_ok(), fits);
            prop_assert!(fits || given.len() >= 3, "three children have room");
            if fits {
                given.push((pivot, filter));
            }
        }
        let (used_bytes, mut page) = (builder.used_bytes(), [0xaa; PAGE_BYTES]);
        let to_node = builder.finish(&identity(6, 1), &mut page).unwrap();
        check_node(&page, STORE, &to_node, 1).unwrap();
        let node = IndexNode::open(&page).unwrap();
        prop_assert_eq!((node.len(), node.used_bytes()), (given.len(), used_bytes));
        for (index, (pivot, filter)) in given.iter().enumerate() {
            prop_assert_eq!(node.child(index).unwrap(), pointer(index as u64));
            prop_assert_eq!(&node.filter(index).unwrap(), filter);
            if index > 0 {
                prop_assert_eq!(&node.pivot(index).unwrap(), pivot);
            }
            for key in &probes {
                let expected = (!filter.is_none()).then(|| filter.may_hold(key));
                prop_assert_eq!(node.may_hold(index, key).unwrap(), expected);
            }
        }
        prop_assert!(node.filter(given.len()).is_err());
    }
}

#[test]
fn versions_of_one_key_take_the_room_of_one() {
    let leaf = |versions: u64| {
        let mut builder = LeafBuilder::new();
        for lsn in (1..=versions).rev() {
            let offset = LogOffset(lsn);
            builder
                .push(b"key", Lsn(lsn), Payload::Tombstone { offset })
                .unwrap();
        }
        let mut page = [0; PAGE_BYTES];
        builder.finish(&identity(5, 0), &mut page).unwrap();
        page
    };
    let (one, many) = (filter_of(&leaf(1), 10), filter_of(&leaf(90), 10));
    assert_eq!(one, many);
    assert!(filter_of(&leaf(1), 0).is_none());
}

#[test]
fn long_keys_pass_by_their_stored_part() {
    let long = |last: u8| [vec![b'x'; 3000], vec![last]].concat();
    let mut builder = LeafBuilder::new();
    let offset = LogOffset(8);
    for (key, lsn) in [(b"a".to_vec(), 0), (long(1), 0)] {
        builder
            .push(&key, Lsn(lsn), Payload::Tombstone { offset })
            .unwrap();
    }
    let mut page = [0; PAGE_BYTES];
    builder.finish(&identity(5, 0), &mut page).unwrap();
    let filter = filter_of(&page, 24);
    assert!(filter.may_hold(&long(1)) && filter.may_hold(&long(2)));
    assert!(!filter.may_hold(&[b'y'; 3000]));
}

#[test]
fn nodes_above_index_nodes_have_no_filters() {
    let (leaf, _) = samples::leaf();
    let filter = filter_of(&leaf, 10);
    let mut builder = IndexBuilder::new();
    builder
        .push(&Pivot::default(), pointer(1), &filter)
        .unwrap();
    let mut page = [0; PAGE_BYTES];
    assert!(builder.finish(&identity(6, 2), &mut page).is_err());
    builder.finish(&identity(6, 1), &mut page).unwrap();
    // Resealed as a node without filters: of a higher level, or of an older version.
    for (at, byte) in [(7, 2), (6, 2)] {
        let mut page = page;
        page[at] = byte;
        let to_node = reseal(&mut page);
        let error = check_node(&page, STORE, &to_node, page[7]).unwrap_err();
        assert!(error.to_string().contains("filter"), "{error}");
    }
}

/// Writes a valid checksum into a node at page 6.
fn reseal(page: &mut PageBytes) -> PagePointer {
    let front = [&STORE.0.to_le_bytes()[..], &6_u64.to_le_bytes(), &[0; 4]].concat();
    let checksum = kreon_base::Checksum::new()
        .with(&[&front[..], &page[4..]].concat())
        .finish();
    page[..4].copy_from_slice(&checksum.to_le_bytes());
    PagePointer {
        page: PageNo(6),
        epoch: identity(6, 1).epoch,
        checksum,
    }
}

/// Scatters numbers.
fn scattered(number: u64) -> u64 {
    (number + 1)
        .wrapping_mul(0xd134_2543_de82_ef95)
        .rotate_left(29)
        ^ number << 7
}

/// Share of absent keys that pass: leaves hold the keys of even numbers, and keys of odd numbers that lead to them are
/// queried.
fn false_positives(key: impl Fn(u64) -> Vec<u8>, bits_per_key: usize) -> f64 {
    const KEYS: u64 = 60_000;
    let identity = NodeIdentity {
        store: STORE,
        page: PageNo(1),
        epoch: Epoch(1),
        region: RegionId(1),
        level: 0,
    };
    let mut keys: Vec<_> = (0..KEYS).map(|n| (key(n), n.is_multiple_of(2))).collect();
    keys.sort();
    let (mut builder, mut filters) = (LeafBuilder::new(), FilterBuilder::new());
    let (mut absent, mut asked, mut passed) = (Vec::new(), 0, 0);
    for (key, is_there) in keys {
        if !is_there {
            absent.push(key);
            continue;
        }
        let payload = Payload::Logged {
            offset: LogOffset(1 << 30),
            value_bytes: 1000,
            attributes: Attributes::NONE,
        };
        if builder.push(&key, Lsn(0), payload).is_err() {
            let mut page = [0; PAGE_BYTES];
            builder.finish(&identity, &mut page).unwrap();
            let leaf = Leaf::open(&page).unwrap();
            let filter = filters.build(&leaf, bits_per_key).unwrap();
            asked += absent.len();
            passed += absent.iter().filter(|key| filter.may_hold(key)).count();
            absent.clear();
            builder.push(&key, Lsn(0), payload).unwrap();
        }
    }
    assert!(asked > 25_000);
    passed as f64 / asked as f64
}

#[test]
fn of_a_hundred_absent_keys_less_than_one_passes() {
    let user = |n: u64| format!("user{:019}", scattered(n) >> 1).into_bytes();
    let random = |n: u64| {
        [scattered(n), scattered(n ^ 1 << 40)]
            .map(u64::to_be_bytes)
            .concat()
    };
    let counter = |n: u64| n.to_be_bytes().to_vec();
    let wide = |n: u64| [&n.to_be_bytes()[..], &[b'x'; 40]].concat();
    let text = |n: u64| format!("/some/path/{}/to/{n}", n / 1000).into_bytes();
    let shares = [
        ("user", false_positives(user, 10)),
        ("random", false_positives(random, 10)),
        ("counter", false_positives(counter, 10)),
        ("wide", false_positives(wide, 10)),
        ("text", false_positives(text, 10)),
    ];
    println!("{shares:?}");
    assert!(shares.iter().all(|(_, share)| *share < 0.01), "{shares:?}");
    assert!(false_positives(user, 5) > 0.03 && false_positives(user, 20) < 0.001);
}
