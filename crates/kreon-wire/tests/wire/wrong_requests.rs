//! Requests with one field wrong, and requests at their limits.

use kreon_base::KEY_BYTES_MAX;
use kreon_wire::limits::*;
use kreon_wire::*;

use crate::requests::{violation, with};
use crate::samples::GROUP;

/// The body with other bytes at a place.
fn over(mut body: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    body[at..at + bytes.len()].copy_from_slice(bytes);
    body
}

#[test]
fn each_wrong_field_is_told_as_what_it_is() {
    let get = Request::Get {
        table: "t",
        key: b"k",
        snapshot: SnapshotId(0),
    }
    .body();
    let mut keys = KeyList::new();
    keys.push(b"k").unwrap();
    let many = Request::GetMany {
        table: "t",
        keys: keys.keys(),
        snapshot: SnapshotId(0),
    }
    .body();
    let mut write = WriteBody::new();
    write.put("t", b"k", b"v").unwrap();
    let write = write.finish(Durability::Sync);
    let scan = Request::Scan(ScanPart {
        table: "t",
        bounds: Bounds::ALL,
        is_reverse: false,
        keys_only: false,
        entries_max: 1,
        bytes_max: 1,
        snapshot: SnapshotId(0),
    })
    .body();
    let release = Request::Release {
        snapshot: SnapshotId(1),
    }
    .body();
    let order = Request::Order(Order::Promote {
        group: GROUP,
        server: ServerId(1),
    })
    .body();
    let mut splits = SplitList::new();
    splits.push(b"a").unwrap();
    splits.push(b"b").unwrap();
    let splits = splits.splits();
    let create = Request::Order(Order::CreateTable { table: "t", splits }).body();
    let long = (KEY_BYTES_MAX as u32 + 1).to_le_bytes();
    let too_long = (VALUE_BYTES_MAX as u32 + 1).to_le_bytes();
    use Violation::{Count, FieldBits, FieldValue};
    let cases = [
        ("no such request", over(get.clone(), 0, &[10]), FieldValue),
        ("bits of a get", over(get.clone(), 7, &[1]), FieldBits),
        ("no table", over(get.clone(), 16, &[0, 0]), FieldValue),
        (
            "a table with a line break",
            over(get.clone(), 18, b"\n"),
            FieldValue,
        ),
        ("a table longer than all", over(get, 16, &[9, 0]), Count),
        ("bits of many gets", over(many.clone(), 1, &[1]), FieldBits),
        ("no keys", over(many.clone(), 4, &[0; 4]), Count),
        (
            "more keys than bytes",
            over(many.clone(), 4, &[0xff; 4]),
            Count,
        ),
        ("a key that is too long", over(many, 19, &long), Count),
        (
            "no such durability",
            over(write.clone(), 1, &[3]),
            FieldValue,
        ),
        ("no tables", over(write.clone(), 2, &[0, 0]), Count),
        ("too many tables", over(write.clone(), 2, &[1, 1]), Count),
        ("no changes", over(write.clone(), 4, &[0; 4]), Count),
        (
            "more changes than bytes",
            over(write.clone(), 4, &[0xff; 4]),
            Count,
        ),
        (
            "changes behind the end",
            over(write.clone(), 8, &[0xff; 4]),
            Count,
        ),
        ("bits of a write", over(write.clone(), 12, &[1]), FieldBits),
        ("no such change", over(write.clone(), 16, &[4]), FieldValue),
        (
            "a put with a bound",
            over(write.clone(), 17, &[1]),
            FieldValue,
        ),
        (
            "a deletion with a value",
            over(write.clone(), 16, &[2]),
            Count,
        ),
        (
            "a range without bounds, with a key",
            over(write.clone(), 16, &[3]),
            FieldValue,
        ),
        ("no such table", over(write.clone(), 19, &[1]), FieldValue),
        (
            "a key of a put that is too long",
            over(write.clone(), 20, &long),
            Count,
        ),
        (
            "a value that is too long",
            over(write, 24, &too_long),
            Count,
        ),
        (
            "neither up nor down",
            over(scan.clone(), 1, &[2]),
            FieldValue,
        ),
        ("no such bound", over(scan.clone(), 3, &[3]), FieldValue),
        ("bits of a scan", over(scan.clone(), 7, &[1]), FieldBits),
        (
            "a page without entries",
            over(scan.clone(), 16, &[0; 4]),
            FieldValue,
        ),
        (
            "a page of too many",
            over(scan.clone(), 18, &[2]),
            FieldValue,
        ),
        (
            "a page without bytes",
            over(scan.clone(), 20, &[0; 4]),
            FieldValue,
        ),
        (
            "a page of too many bytes",
            over(scan.clone(), 23, &[2]),
            FieldValue,
        ),
        (
            "a start that is too long",
            over(scan.clone(), 24, &long),
            Count,
        ),
        ("an end that is not there", over(scan, 28, &[9]), Count),
        (
            "the present released",
            over(release.clone(), 8, &[0]),
            FieldValue,
        ),
        ("bits of a release", over(release, 1, &[1]), FieldBits),
        ("no such order", over(order.clone(), 1, &[0]), FieldValue),
        ("splits of a promotion", over(order.clone(), 2, &[1]), Count),
        (
            "a promotion of nobody",
            over(order.clone(), 8, &[0]),
            FieldValue,
        ),
        (
            "a promotion without a group",
            over(order.clone(), 4, &[0]),
            FieldValue,
        ),
        ("bits of an order", over(order.clone(), 12, &[1]), FieldBits),
        (
            "a promotion that vouches",
            over(order.clone(), 16, &[1]),
            FieldValue,
        ),
        ("a term beyond the last", over(order, 23, &[1]), FieldValue),
        ("too many splits", over(create.clone(), 2, &[1, 4]), Count),
        (
            "splits out of order",
            over(create.clone(), 29, b"b"),
            Violation::Order,
        ),
        ("a table with a server", over(create, 8, &[1]), FieldValue),
    ];
    for (name, body, expected) in cases {
        assert_eq!(violation(&body), Some(expected), "{name}: {body:?}");
    }
}

#[test]
fn a_group_stands_in_the_header_where_a_primary_is_asked_and_nowhere_else() {
    let group = GROUP;
    let get = Request::Snapshot.body();
    let verify = Request::Order(Order::Verify { group }).body();
    let promote = Request::Order(Order::Promote {
        group,
        server: ServerId(1),
    });
    let found = |body: &[u8], group| with(body, group, |request| request.err());
    assert_eq!(found(&get, GroupId(0)), Some(Violation::GroupMisplaced));
    assert_eq!(found(&verify, GroupId(0)), Some(Violation::GroupMisplaced));
    assert_eq!(found(&verify, GroupId(6)), Some(Violation::OtherGroup));
    assert_eq!(
        found(&promote.body(), GROUP),
        Some(Violation::GroupMisplaced)
    );
    assert_eq!(found(&promote.body(), GroupId(0)), None);
}

#[test]
fn a_write_takes_what_a_request_may_have_and_nothing_more() {
    let (key, value) = (vec![1; KEY_BYTES_MAX], vec![2; VALUE_BYTES_MAX]);
    let mut write = WriteBody::new();
    write.put("t", &key, &value).unwrap();
    let before = write.len_bytes();
    assert_eq!(
        write.put("t", &[&key[..], &[0]].concat(), b""),
        Err(Violation::Count)
    );
    assert_eq!(
        write.put("t", b"", &[&value[..], &[0]].concat()),
        Err(Violation::Count)
    );
    assert_eq!(write.put("", b"", b""), Err(Violation::FieldValue));
    assert_eq!(write.delete("\u{7}", b""), Err(Violation::FieldValue));
    assert_eq!(write.delete(&"t".repeat(256), b""), Err(Violation::Count));
    let left = REQUEST_BYTES_MAX as usize - before - 12;
    let rest = vec![3; left + 1];
    assert_eq!(write.put("t", b"", &rest), Err(Violation::TooLong));
    // A new table needs room for its name.
    assert_eq!(write.put("u", b"", &rest[..left]), Err(Violation::TooLong));
    assert_eq!((write.len(), write.len_bytes()), (1, before));
    write.put("t", b"", &rest[..left]).unwrap();
    let body = write.finish(Durability::Replicated);
    assert_eq!(body.len(), REQUEST_BYTES_MAX as usize);
    assert_eq!(violation(&body), None);
}

#[test]
fn a_write_names_256_tables_and_no_more() {
    let mut write = WriteBody::new();
    for number in 0..TABLES_MAX {
        write.delete(&format!("table {number}"), b"k").unwrap();
    }
    assert_eq!(write.delete("another", b"k"), Err(Violation::Count));
    write.delete("table 255", b"k").unwrap();
    assert_eq!(write.table(255), Some("table 255"));
    assert_eq!(violation(&write.finish(Durability::Sync)), None);
}

#[test]
fn a_collection_of_keys_ends_at_the_longest_request() {
    let mut keys = KeyList::new();
    let key = vec![7; KEY_BYTES_MAX];
    while keys.push(&key) == Ok(()) {}
    assert_eq!(keys.push(&key), Err(Violation::TooLong));
    assert_eq!(keys.push(&[&key[..], &[0]].concat()), Err(Violation::Count));
    let count = keys.keys().len();
    assert_eq!(count, REQUEST_BYTES_MAX as usize / (KEY_BYTES_MAX + 4));
    assert_eq!(keys.keys().iter().count(), count);
}
