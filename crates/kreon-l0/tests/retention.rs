//! Which versions are retained, and their memory.

use kreon_base::{Attributes, LogOffset, Lsn, Payload, Timestamp};
use kreon_l0::{INLINE_BYTES_MAX, Keep, L0, L0_KEY_BYTES_MAX};

const NONE: Keep = Keep {
    snapshot_max: None,
    unit_pending: false,
    visible_before: Lsn(0),
};
const UNIT: Keep = Keep {
    snapshot_max: None,
    unit_pending: true,
    visible_before: Lsn(0),
};

fn snapshot(lsn: u64) -> Keep {
    Keep {
        snapshot_max: Some(Lsn(lsn)),
        unit_pending: false,
        visible_before: Lsn(0),
    }
}

fn logged(offset: u64) -> Payload<'static> {
    Payload::Logged {
        offset: LogOffset(offset),
        value_bytes: 10,
        attributes: Attributes::NONE,
    }
}

/// Inserts (lsn, keep) pairs in the order given; the LSNs that remain, newest first.
fn chain(writes: &[(u64, Keep)]) -> Vec<u64> {
    let mut chains = [false, true].map(|inline| {
        let l0 = L0::new();
        for &(lsn, keep) in writes {
            let value = lsn.to_le_bytes();
            let payload = match inline {
                true => Payload::Inline {
                    value: &value,
                    attributes: Attributes::NONE,
                },
                false => logged(lsn * 8),
            };
            l0.insert(b"key", Lsn(lsn), payload, keep);
        }
        let mut cursor = l0.cursor();
        assert!(cursor.first());
        cursor
            .versions()
            .map(|version| {
                let lsn = version.lsn.0;
                match version.payload {
                    Payload::Inline { value, .. } => assert_eq!(value, lsn.to_le_bytes()),
                    payload => assert_eq!(payload, logged(lsn * 8)),
                }
                lsn
            })
            .collect::<Vec<_>>()
    });
    assert_eq!(chains[0], chains[1]);
    std::mem::take(&mut chains[0])
}

#[test]
fn a_newer_version_replaces_the_older() {
    assert_eq!(chain(&[(1, NONE), (2, NONE), (3, NONE)]), [3]);
}

#[test]
fn an_older_version_that_nobody_can_see_is_dropped() {
    assert_eq!(chain(&[(3, NONE), (1, NONE), (2, UNIT)]), [3]);
}

#[test]
fn a_snapshot_retains_what_it_sees_and_no_more() {
    let writes = [
        (1, NONE),
        (3, NONE),
        (5, snapshot(4)),
        (6, snapshot(4)),
        (7, snapshot(4)),
    ];
    assert_eq!(chain(&writes), [7, 3]);
}

#[test]
fn the_first_write_without_a_snapshot_drops_what_it_saw() {
    assert_eq!(chain(&[(3, NONE), (5, snapshot(4)), (6, NONE)]), [6]);
}

#[test]
fn a_write_of_a_unit_retains_all_beneath_it() {
    assert_eq!(chain(&[(1, NONE), (2, UNIT), (3, UNIT)]), [3, 2, 1]);
    assert_eq!(chain(&[(1, NONE), (2, UNIT), (3, UNIT), (4, NONE)]), [4]);
}

/// A write of a pending unit while units before `lsn` are visible.
fn unit_after(lsn: u64) -> Keep {
    Keep {
        visible_before: Lsn(lsn),
        ..UNIT
    }
}

#[test]
fn writes_of_units_alone_retain_what_readers_may_see_and_no_more() {
    // Logged values: versions with inline values are not copied and keep the versions beneath.
    let l0 = L0::new();
    let write = |lsn, keep| l0.insert(b"k", Lsn(lsn), logged(lsn * 8), keep);
    let lsns = || {
        let mut cursor = l0.cursor();
        assert!(cursor.first());
        cursor.versions().map(|v| v.lsn.0).collect::<Vec<_>>()
    };
    write(1, NONE);
    write(2, unit_after(0));
    write(3, unit_after(0));
    assert_eq!(lsns(), [3, 2, 1], "both units are under way");
    write(4, unit_after(3));
    assert_eq!(lsns(), [4, 3, 2, 1], "that of 3 is");
    write(5, unit_after(5));
    assert_eq!(lsns(), [5, 4]);
    write(6, unit_after(6));
    let of_snapshot = Keep {
        snapshot_max: Some(Lsn(6)),
        ..unit_after(7)
    };
    write(7, of_snapshot);
    assert_eq!(lsns(), [7, 6, 5], "a snapshot sees 5");
}

#[test]
fn a_late_write_goes_beneath_pending_ones() {
    assert_eq!(chain(&[(1, NONE), (4, UNIT), (3, NONE)]), [4, 3]);
    assert_eq!(
        chain(&[(1, NONE), (5, UNIT), (3, UNIT), (4, UNIT)]),
        [5, 4, 3, 1]
    );
    assert_eq!(chain(&[(4, UNIT), (3, NONE), (2, NONE), (1, UNIT)]), [4, 3]);
}

#[test]
fn a_late_write_that_a_snapshot_sees_is_retained() {
    assert_eq!(
        chain(&[(1, NONE), (5, snapshot(4)), (3, snapshot(4))]),
        [5, 3, 1]
    );
}

#[test]
fn readers_skip_pending_versions_that_they_may_not_see() {
    let l0 = L0::new();
    l0.insert(b"k", Lsn(1), logged(8), NONE);
    l0.insert(b"k", Lsn(2), logged(16), UNIT);
    let get = |at, visible| l0.get(b"k", at, |_| visible, |v| (v.lsn.0, v.pending));
    assert_eq!(get(Lsn::MAX, false), Some((1, false)));
    assert_eq!(get(Lsn::MAX, true), Some((2, true)));
    assert_eq!(get(Lsn(2), true), Some((1, false)));
    assert_eq!(get(Lsn(1), true), None);
}

#[test]
fn the_same_lsn_again_moves_the_record() {
    let l0 = L0::new();
    let offsets = || {
        let mut cursor = l0.cursor();
        cursor.first();
        cursor.versions().map(|v| v.payload).collect::<Vec<_>>()
    };
    l0.insert(b"k", Lsn(1), logged(8), NONE);
    l0.insert(b"k", Lsn(2), logged(16), UNIT);
    l0.insert(b"k", Lsn(3), logged(24), UNIT);
    l0.insert(b"k", Lsn(3), logged(240), UNIT);
    l0.insert(b"k", Lsn(2), logged(160), UNIT);
    assert_eq!(offsets(), [logged(240), logged(160), logged(8)]);
    // A dropped version does not come back.
    l0.insert(b"k", Lsn(4), logged(32), NONE);
    l0.insert(b"k", Lsn(2), logged(1600), NONE);
    assert_eq!(offsets(), [logged(32)]);
}

#[test]
fn a_key_that_is_known_is_not_inserted_as_an_absent_one() {
    let l0 = L0::new();
    assert!(l0.approach(b"key").insert_absent(Lsn(7), logged(70)));
    assert!(!l0.approach(b"key").insert_absent(Lsn(9), logged(90)));
    let newest = l0.get(b"key", Lsn::MAX, |_| true, |version| version.lsn);
    assert_eq!((newest, l0.len()), (Some(Lsn(7)), 1));
    for number in 0..1000u32 {
        let key = number.to_be_bytes();
        assert!(l0.approach(&key).insert_absent(Lsn(8), logged(80)));
        assert!(!l0.approach(&key).insert_absent(Lsn(6), logged(60)));
    }
    assert_eq!(l0.len(), 1001);
}

#[test]
fn an_update_in_place_takes_no_memory() {
    let l0 = L0::new();
    l0.insert(b"key", Lsn(0), logged(0), NONE);
    let bytes = l0.bytes();
    for lsn in 1..100 {
        l0.insert(b"key", Lsn(lsn), logged(lsn), NONE);
    }
    assert_eq!((l0.bytes(), l0.len()), (bytes, 1));
}

#[test]
#[cfg(not(miri))] // There nodes have other sizes.
fn keys_in_rising_order_fill_their_leaves() {
    const KEYS: u64 = 20_000;
    let l0 = L0::new();
    for number in 0..KEYS {
        l0.insert(&number.to_be_bytes(), Lsn(number), logged(0), NONE);
    }
    let record_bytes = 28 + 8 + 4;
    let node_bytes = l0.bytes() as f64 / KEYS as f64 - f64::from(record_bytes);
    assert!(node_bytes < 10.0, "{node_bytes} bytes of nodes a key");
}

#[test]
fn values_and_keys_of_the_greatest_lengths_come_back() {
    let l0 = L0::new();
    let key = vec![7; L0_KEY_BYTES_MAX];
    for lsn in 1..4 {
        let value = vec![lsn as u8; INLINE_BYTES_MAX];
        let keep = snapshot(2);
        l0.insert(
            &key,
            Lsn(lsn),
            Payload::Inline {
                value: &value,
                attributes: Attributes::NONE,
            },
            keep,
        );
        let same = |at| {
            l0.get(
                &key,
                at,
                |_| true,
                |v| match v.payload {
                    Payload::Inline { value, .. } => (value.len(), value[0]),
                    _ => (0, 0),
                },
            )
        };
        assert_eq!(same(Lsn::MAX), Some((INLINE_BYTES_MAX, lsn as u8)));
        assert_eq!(same(Lsn(2)), Some((INLINE_BYTES_MAX, 1)));
    }
}

#[test]
fn a_key_that_is_too_long_is_refused_before_anything_changes() {
    let l0 = L0::new();
    let key = vec![0; L0_KEY_BYTES_MAX + 1];
    let insert = || l0.insert(&key, Lsn(1), logged(0), NONE);
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(insert));
    assert!(refused.is_err() && l0.is_empty());
}

/// Resident memory of this process in bytes.
#[cfg(all(target_os = "linux", not(miri)))]
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn dropping_frees_all_memory() {
    let fill = || {
        let l0 = L0::new();
        for i in 0..256_u64 {
            let mut key = vec![0; 64 << 10];
            key[..8].copy_from_slice(&i.to_be_bytes());
            l0.insert(&key, Lsn(i), logged(0), NONE);
        }
        assert!(l0.bytes() > 16 << 20);
    };
    fill();
    let before = resident_bytes();
    for _ in 0..16 {
        fill();
    }
    // Sixteen times 16 MiB if they leaked.
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 100 << 20, "{grown} bytes more");
}

/// A value in the log that ends.
fn ending(offset: u64, ms: u64) -> Payload<'static> {
    Payload::Logged {
        offset: LogOffset(offset),
        value_bytes: 18,
        attributes: Attributes::expiring(Some(Timestamp::of_ms(ms))),
    }
}

#[test]
fn a_moved_record_with_attributes_has_its_new_place_and_keeps_the_versions_beneath() {
    let l0 = L0::new();
    let told = |payload: Payload<'_>| format!("{payload:?}");
    let of = |at: u64| l0.get(b"key", Lsn(at), |_| true, |version| told(version.payload));
    // As the first version of the key, and as one outside its record.
    l0.insert(b"key", Lsn(4), ending(32, 4), NONE);
    l0.insert(b"key", Lsn(4), ending(40, 4), NONE);
    assert_eq!(of(u64::MAX), Some(told(ending(40, 4))));
    l0.insert(b"key", Lsn(6), logged(48), snapshot(5));
    l0.insert(b"key", Lsn(8), ending(64, 8), snapshot(7));
    l0.insert(b"key", Lsn(8), ending(72, 8), snapshot(7));
    let expected = [ending(40, 4), logged(48), ending(72, 8)];
    let found = [of(5), of(7), of(u64::MAX)];
    assert_eq!(found, expected.map(|payload| Some(told(payload))));
}
