//! What clients ask for.

use std::ops::Bound;

use kreon_wire::limits::*;
use kreon_wire::*;

use crate::samples::{GROUP, TERM};

/// The packet of a request with this body, as it goes out.
fn packet(body: &[u8], group: GroupId) -> Vec<u8> {
    let to = Address {
        group,
        term: TERM,
        number: 9,
    };
    Packet::request(&to, body).to_vec()
}

/// Decodes a body, and shows the request to `see`.
pub fn with<R>(
    body: &[u8],
    group: GroupId,
    see: impl FnOnce(Result<Request<'_>, Violation>) -> R,
) -> R {
    let bytes = packet(body, group);
    let frame = Frame::open(&bytes, Role::Client).unwrap();
    see(Request::decode(&frame))
}

pub fn violation(body: &[u8]) -> Option<Violation> {
    let group = match body.first() {
        Some(7) if !matches!(body.get(1), Some(7 | 8)) => GroupId(0),
        _ => GROUP,
    };
    with(body, group, |request| request.err())
}

pub fn write() -> WriteBody {
    let mut write = WriteBody::new();
    write.put("cities", b"chania", b"53910").unwrap();
    write.delete("streets", b"").unwrap();
    let edges = [
        (Bound::Unbounded, Bound::Unbounded),
        (Bound::Included(&b""[..]), Bound::Excluded(&b"m"[..])),
        (Bound::Excluded(&b"z"[..]), Bound::Included(&b"a"[..])),
    ];
    for (start, end) in edges {
        write
            .delete_range("cities", &Bounds { start, end })
            .unwrap();
    }
    write
}

fn orders() -> Vec<Order<'static>> {
    let (group, server) = (GROUP, ServerId(3));
    vec![
        Order::DropTable { table: "cities" },
        Order::AddMember { group, server },
        Order::RemoveMember { group, server },
        Order::Promote { group, server },
        Order::AcceptLoss {
            group,
            server,
            vouched: None,
        },
        Order::AcceptLoss {
            group,
            server,
            vouched: Some(Term::MAX),
        },
        Order::Verify { group },
        Order::HandOver { group },
        Order::Compare { group },
    ]
}

/// Bodies of requests of all kinds.
fn bodies() -> Vec<Vec<u8>> {
    let mut keys = KeyList::new();
    for key in [&b"chania"[..], b"", b"chania"] {
        keys.push(key).unwrap();
    }
    let mut splits = SplitList::new();
    for key in [&b"g"[..], b"gr", b"t"] {
        splits.push(key).unwrap();
    }
    let (table, snapshot) = ("cities", SnapshotId(7));
    let scan = ScanPart {
        table,
        bounds: Bounds {
            start: Bound::Excluded(b"chania"),
            end: Bound::Included(b""),
        },
        is_reverse: true,
        keys_only: false,
        entries_max: PAGE_ENTRIES_MAX,
        bytes_max: 1,
        snapshot,
    };
    let requests = [
        Request::Get {
            table,
            key: b"chania",
            snapshot: SnapshotId(0),
        },
        Request::GetMany {
            table,
            keys: keys.keys(),
            snapshot,
        },
        Request::Scan(scan),
        Request::Scan(ScanPart {
            bounds: Bounds::ALL,
            ..scan
        }),
        Request::Snapshot,
        Request::Release { snapshot },
        Request::Order(Order::CreateTable {
            table,
            splits: splits.splits(),
        }),
        Request::Backups,
        Request::Digests {
            offset: VOLUME_BYTES_MAX,
            blocks: DIGESTS_MAX,
        },
    ];
    let orders = orders().into_iter().map(Request::Order);
    let mut bodies: Vec<_> = requests
        .into_iter()
        .chain(orders)
        .map(|request| request.body())
        .collect();
    bodies.push(write().finish(Durability::Replicated));
    bodies.push(write().finish(Durability::Sync));
    bodies
}

fn group_of(body: &[u8]) -> GroupId {
    match violation(body) {
        None if body[0] == 7 && !matches!(body[1], 7..=9) => GroupId(0),
        _ => GROUP,
    }
}

#[test]
fn requests_of_all_kinds_are_decoded_as_what_was_encoded() {
    let mut kinds = Vec::new();
    for body in bodies() {
        with(&body, group_of(&body), |request| {
            let request = request.unwrap();
            assert_eq!(request.body(), body, "{request:?}");
            kinds.push(request.kind());
        });
    }
    kinds.dedup();
    assert!(RequestKind::ALL.iter().all(|kind| kinds.contains(kind)));
    for order in orders() {
        let body = Request::Order(order).body();
        with(&body, group_of(&body), |request| {
            assert_eq!(request, Ok(Request::Order(order)));
        });
    }
}

#[test]
fn a_write_tells_its_changes_in_order_with_their_tables() {
    let body = write().finish(Durability::Sync);
    assert_eq!(body.len(), write().len_bytes());
    with(&body, GROUP, |request| {
        let Ok(Request::Write(write)) = request else {
            panic!("{request:?}");
        };
        assert_eq!(write.durability, Durability::Sync);
        assert_eq!(
            write.tables.iter().collect::<Vec<_>>(),
            ["cities", "streets"]
        );
        let operations: Vec<_> = write.operations.iter().collect();
        assert_eq!(operations.len(), write.operations.len());
        let put = Operation::Put {
            table: 0,
            key: b"chania",
            value: b"53910",
        };
        let whole = Operation::DeleteRange {
            table: 0,
            bounds: Bounds::ALL,
        };
        let delete = Operation::Delete { table: 1, key: b"" };
        assert_eq!(operations[..3], [put, delete, whole]);
        assert_eq!(operations[4].table(), 0);
    });
}

#[test]
fn keys_and_splits_come_in_their_order() {
    let mut keys = KeyList::new();
    let mut splits = SplitList::new();
    for key in [&b"a"[..], b"b"] {
        keys.push(key).unwrap();
        splits.push(key).unwrap();
    }
    assert_eq!(keys.keys().iter().collect::<Vec<_>>(), [b"a", b"b"]);
    assert_eq!(splits.splits().iter().collect::<Vec<_>>(), [b"a", b"b"]);
    assert_eq!(splits.push(b"b"), Err(Violation::Order));
    assert_eq!(SplitList::new().push(b""), Err(Violation::Order));
    assert_eq!(splits.push(&[b'c'; 257]), Err(Violation::Count));
    assert_eq!(splits.splits().len(), 2);
}

/// Whatever byte is changed, a request that is accepted has exactly one encoding: no bit goes unread.
#[test]
fn every_request_has_one_encoding() {
    let mut accepted = 0;
    for whole in bodies() {
        for at in 0..whole.len() {
            for change in 1..=255 {
                let mut body = whole.clone();
                body[at] ^= change;
                for group in [GROUP, GroupId(0)] {
                    with(&body, group, |request| {
                        if let Ok(request) = request {
                            accepted += 1;
                            assert_eq!(request.body(), body, "{request:?}");
                            assert_eq!(request.has_group(), group.0 != 0);
                        }
                    });
                }
            }
        }
    }
    assert!(accepted > 10_000, "only {accepted} were accepted");
}

#[test]
fn a_request_that_is_cut_or_lengthened_is_refused_or_another_one() {
    for whole in bodies() {
        for kept in 1..whole.len() {
            with(&whole[..kept], group_of(&whole), |request| {
                // The key of a get ends where the body ends.
                let is_get = matches!(request, Ok(Request::Get { key, .. }) if key.len() < 6);
                assert!(is_get || request.is_err(), "{request:?}");
            });
        }
        let longer = [&whole[..], &[0]].concat();
        let expected = (whole[0] != 1).then_some(Violation::Count);
        assert_eq!(violation(&longer), expected, "{longer:?}");
    }
}

#[test]
fn a_reply_is_no_request() {
    let to = Address {
        group: GROUP,
        term: TERM,
        number: 1,
    };
    let bytes = Packet::reply(&to, &Request::Snapshot.body()).to_vec();
    let frame = Frame::open(&bytes, Role::Client).unwrap();
    assert_eq!(Request::decode(&frame), Err(Violation::KindForState));
}

#[test]
fn a_write_that_is_opened_again_becomes_the_same_and_takes_more() {
    let body = write().finish(Durability::Sync);
    let again = WriteBody::reopened(body.clone()).unwrap();
    assert_eq!(
        (again.len(), again.len_bytes()),
        (write().len(), body.len())
    );
    assert_eq!(again.finish(Durability::Sync), body);
    let (mut one, mut other) = (write(), WriteBody::reopened(body.clone()).unwrap());
    for write in [&mut one, &mut other] {
        write.put("of its own", b"k", b"v").unwrap();
    }
    assert_eq!(one.finish(Durability::Sync), other.finish(Durability::Sync));
    for len_bytes in 0..body.len() {
        assert!(WriteBody::reopened(body[..len_bytes].to_vec()).is_err());
    }
    assert!(WriteBody::reopened(Request::Snapshot.body()).is_err());
}

#[test]
fn digests_are_asked_for_at_borders_of_blocks_and_not_too_many() {
    for (offset, blocks) in [(1, 1), (4096, 0), (0, DIGESTS_MAX + 1)] {
        let body = Request::Digests { offset, blocks }.body();
        assert_eq!(violation(&body), Some(Violation::FieldValue));
    }
    let offset = VOLUME_BYTES_MAX + BLOCK_BYTES;
    let body = Request::Digests { offset, blocks: 1 }.body();
    assert_eq!(violation(&body), Some(Violation::FieldValue));
}
