//! What a client asks for, it gets.

use std::ops::Bound;

use kreon_wire::{
    Bounds, Durability, FailureKind, KeyList, Reply, Request, ScanPart, SnapshotId, WriteBody,
};

use super::house::House;
use super::raw::{Raw, all_of};

#[test]
fn a_table_over_three_groups_is_read_and_written_at_their_primaries() {
    let house = House::new(3, 3);
    let node = house.make_table("cities", &["h", "p"]);
    let groups: Vec<_> = node.ranges.iter().map(|(_, group)| *group).collect();
    assert_eq!(groups.len(), 3);
    let leaders = groups.iter().map(|group| house.primary(*group).me());
    let mut leaders: Vec<_> = leaders.collect();
    leaders.sort_unstable();
    leaders.dedup();
    assert_eq!(leaders.len(), 3, "primaries are spread");

    for (group, keys) in groups.iter().zip([["a", "g"], ["h", "o"], ["p", "z"]]) {
        let mut client = house.client_of(*group);
        for key in keys {
            client.put(*group, "cities", key.as_bytes(), b"1").unwrap();
            let found = client.get(*group, "cities", key.as_bytes()).unwrap();
            assert_eq!(found.as_deref(), Some(&b"1"[..]));
        }
        assert_eq!(
            client.get(*group, "cities", keys[0].as_bytes()).unwrap(),
            Some(b"1".to_vec())
        );
        // A key of another group, and a table that is none.
        let other = if keys[0] == "a" { "z" } else { "a" };
        for (table, key) in [("cities", other), ("nowhere", "a")] {
            let failed = client.put(*group, table, key.as_bytes(), b"").unwrap_err();
            assert_eq!(failed.kind, FailureKind::Moved, "{table} {key}");
            assert!(failed.term.0 > 0);
        }
    }
    // Backups send clients on.
    let primary = house.primary(groups[0]).me();
    for other in house.nodes.iter().filter(|node| node.me() != primary) {
        let mut client = Raw::connect(&other.address());
        let failed = client.get(groups[0], "cities", b"a").unwrap_err();
        assert_eq!(failed.kind, FailureKind::Moved);
    }
}

#[test]
fn batches_scans_and_snapshots_show_one_moment() {
    let house = House::new(2, 1);
    let group = house.make_table("t", &[]).ranges[0].1;
    let mut client = house.client_of(group);
    let mut batch = WriteBody::new();
    for number in 0..100 {
        let key = format!("k{number:03}");
        batch.put("t", key.as_bytes(), b"old").unwrap();
    }
    batch.delete("t", b"k007").unwrap();
    client.write(group, batch, Durability::Sync).unwrap();

    let snapshot = client.snapshot(group).unwrap();
    let mut writer = house.client_of(group);
    // A scan goes on at its moment, whatever is written between its pages.
    let all = client.scan(group, all_of("t", 7), |seen| {
        let key = format!("k{:03}", 99 - seen / 7);
        writer.put(group, "t", key.as_bytes(), b"new").unwrap();
    });
    assert_eq!(all.len(), 99);
    assert!(all.iter().all(|(_, value)| value == b"old"));
    assert_eq!(
        client.get(group, "t", b"k098").unwrap().as_deref(),
        Some(&b"new"[..])
    );
    let then = client.get_at(group, "t", b"k098", snapshot).unwrap();
    assert_eq!(then.as_deref(), Some(&b"old"[..]));

    let reverse = ScanPart {
        bounds: Bounds {
            start: Bound::Included(b"k010"),
            end: Bound::Excluded(b"k020"),
        },
        is_reverse: true,
        keys_only: true,
        ..all_of("t", 4)
    };
    let keys: Vec<_> = client.scan(group, reverse, |_| {});
    assert_eq!(
        (keys.len(), &keys[0].0[..], &keys[0].1[..]),
        (10, &b"k019"[..], &b""[..])
    );

    let mut range = WriteBody::new();
    let bounds = Bounds {
        start: Bound::Excluded(b"k010"),
        end: Bound::Unbounded,
    };
    range.delete_range("t", &bounds).unwrap();
    client.write(group, range, Durability::Replicated).unwrap();
    assert_eq!(client.scan(group, all_of("t", 64), |_| {}).len(), 10);
    let before = ScanPart {
        snapshot,
        ..all_of("t", 1000)
    };
    assert_eq!(client.page(group, before).unwrap().entries.len(), 99);

    let mut keys = KeyList::new();
    for key in ["k001", "k007", "k050"] {
        keys.push(key.as_bytes()).unwrap();
    }
    let many = Request::GetMany {
        table: "t",
        keys: keys.keys(),
        snapshot: SnapshotId(0),
    };
    let number = client.send(group, &many.body());
    let values = client.answer(number, |reply| match reply {
        Reply::Values(values) => Some(values.iter().map(|v| v.is_some()).collect::<Vec<_>>()),
        _ => None,
    });
    assert_eq!(values.unwrap(), [true, false, false]);

    client.release(group, snapshot).unwrap();
    let failed = client.get_at(group, "t", b"k001", snapshot).unwrap_err();
    assert_eq!(failed.kind, FailureKind::Closed);
    assert_eq!(house.primary(group).status().clients.snapshots, 0);
}

#[test]
fn a_snapshot_of_one_client_is_none_of_another_and_ends_with_its_link() {
    let house = House::new(1, 1);
    let group = house.make_table("t", &[]).ranges[0].1;
    let (mut one, mut two) = (house.client_of(group), house.client_of(group));
    let snapshot = one.snapshot(group).unwrap();
    let failed = two.get_at(group, "t", b"k", snapshot).unwrap_err();
    assert_eq!(failed.kind, FailureKind::Closed);
    two.release(group, snapshot).unwrap();
    assert_eq!(one.get_at(group, "t", b"k", snapshot).unwrap(), None);
    drop(one);
    house.wait("its snapshot is closed", |house| {
        house.primary(group).status().clients.snapshots == 0
    });
}
