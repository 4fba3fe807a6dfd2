//! What clients ask and servers answer.

use std::ops::Bound;

use arbitrary::{Arbitrary, Result, Unstructured};
use kreon_base::KEY_BYTES_MAX;
use kreon_wire::limits::{
    BLOCK_BYTES, DIGESTS_MAX, MEMBERS_MAX, PAGE_ENTRIES_MAX, REQUEST_BYTES_MAX,
    SPLIT_KEY_BYTES_MAX, SPLITS_MAX, TABLES_MAX, VALUE_BYTES_MAX, VOLUME_BYTES_MAX,
};
use kreon_wire::*;

use crate::case::with;
use crate::forge::{Origin, damage, flip};

const GROUP: GroupId = GroupId(5);

/// The body of a request or reply, read as both: what accepts it shows parts of it only, and encodes it as it was.
pub fn client_message(bytes: &[u8]) {
    with(bytes, |u| {
        let is_request = u.arbitrary()?;
        let given = match is_request {
            true => any_request(u)?,
            false => any_reply(u)?,
        };
        let origin = Origin::arbitrary(u)?;
        let body = forge(u, origin, given)?;
        let requests = [GROUP, GroupId(0)].map(|group| is_request_of(&body, group));
        let is_reply = is_reply_with(&body);
        assert_ne!(requests, [true; 2], "a header has a group or none");
        if origin == Origin::Whole {
            let found = if is_request {
                requests.contains(&true)
            } else {
                is_reply
            };
            assert!(found, "{body:?}");
        }
        Ok(())
    });
}

fn place(group: GroupId) -> Address {
    Address {
        group,
        term: Term(7),
        number: 1,
    }
}

/// Whether the body is a request of this group, all of whose parts are within their limits.
fn is_request_of(body: &[u8], group: GroupId) -> bool {
    let packet = Packet::request(&place(group), body).to_vec();
    let Ok(frame) = Frame::open(&packet, Role::Client) else {
        return false;
    };
    let Ok(request) = Request::decode(&frame) else {
        return false;
    };
    assert_eq!(request.body(), body);
    assert_eq!(request.has_group(), group.0 != 0);
    match request {
        Request::Get { key, .. } => assert!(key.len() <= KEY_BYTES_MAX),
        Request::GetMany { keys, .. } => {
            let lengths: Vec<_> = keys.iter().map(<[u8]>::len).collect();
            assert_eq!(lengths.len(), keys.len());
            assert!(lengths.iter().all(|len_bytes| *len_bytes <= KEY_BYTES_MAX));
            assert!(lengths.iter().sum::<usize>() < body.len());
        }
        Request::Write(write) => check_write(&write, body),
        Request::Scan(part) => {
            assert_eq!(part.bounds.check(), Ok(()));
            assert!((1..=PAGE_ENTRIES_MAX).contains(&part.entries_max));
            assert!((1..=REQUEST_BYTES_MAX).contains(&part.bytes_max));
        }
        Request::Order(Order::CreateTable { splits, .. }) => {
            let keys: Vec<_> = splits.iter().collect();
            assert_eq!(keys.len(), splits.len());
            assert!(keys.len() <= SPLITS_MAX && keys.is_sorted_by(|a, b| a < b));
            assert!(
                keys.iter()
                    .all(|key| (1..=SPLIT_KEY_BYTES_MAX).contains(&key.len()))
            );
        }
        Request::Digests { offset, blocks } => {
            assert!(offset <= VOLUME_BYTES_MAX && (1..=DIGESTS_MAX).contains(&blocks));
        }
        Request::Snapshot | Request::Release { .. } | Request::Order(_) | Request::Backups => {}
    }
    true
}

/// A write collected anew from its parts has the same bytes, if it names tables as a collection does.
fn check_write(write: &Write<'_>, body: &[u8]) {
    let tables: Vec<_> = write.tables.iter().collect();
    assert_eq!(tables.len(), write.tables.len());
    assert!((1..=TABLES_MAX).contains(&tables.len()));
    let (mut again, mut count) = (WriteBody::new(), 0);
    for operation in write.operations.iter() {
        let table = tables[usize::from(operation.table())];
        let added = match operation {
            Operation::Put { key, value, .. } => {
                assert!(key.len() <= KEY_BYTES_MAX && value.len() <= VALUE_BYTES_MAX);
                again.put(table, key, value)
            }
            Operation::Delete { key, .. } => again.delete(table, key),
            Operation::DeleteRange { bounds, .. } => again.delete_range(table, &bounds),
        };
        assert_eq!(added, Ok(()));
        count += 1;
    }
    assert_eq!((count, again.len()), (write.operations.len(), count));
    let named: Vec<_> = (0..=u8::MAX)
        .map_while(|number| again.table(number))
        .collect();
    if named == tables {
        assert_eq!(again.finish(write.durability), body);
    }
}

/// Whether the body is a reply, all of whose parts are within their limits.
fn is_reply_with(body: &[u8]) -> bool {
    let packet = Packet::reply(&place(GROUP), body).to_vec();
    let Ok(frame) = Frame::open(&packet, Role::Client) else {
        return false;
    };
    let Ok(reply) = Reply::decode(&frame) else {
        return false;
    };
    assert_eq!(reply.body(), body);
    match reply {
        Reply::Values(values) => {
            let mut again = ValuesBody::new();
            values
                .iter()
                .for_each(|value| assert_eq!(again.push(value), Ok(())));
            assert_eq!(values.iter().count(), values.len());
            assert_eq!(again.finish(), body);
        }
        Reply::Page(page) => {
            let mut again = PageBody::new();
            page.iter()
                .for_each(|(key, value)| assert_eq!(again.push(key, value), Ok(())));
            assert_eq!(again.len(), page.len());
            assert_eq!(again.finish(page.snapshot), body);
            assert!(page.is_last() || !page.is_empty());
        }
        Reply::Backups(backups) => {
            let all: Vec<_> = backups.iter().collect();
            assert!(all.len() == backups.len() && all.len() <= MEMBERS_MAX);
            assert_eq!(backups_body(&all), body);
        }
        Reply::Digests(digests) => {
            let all: Vec<_> = digests.iter().collect();
            assert_eq!(all.len(), digests.len());
            assert_eq!(digests_body(&all), body);
        }
        Reply::Failed(failure) => assert!(!failure.text.contains(char::is_control)),
        _ => {}
    }
    true
}

fn any_key<'a>(u: &mut Unstructured<'a>) -> Result<&'a [u8]> {
    let len_bytes = u.int_in_range(0..=4)?;
    u.bytes(len_bytes)
}

fn any_bounds<'a>(u: &mut Unstructured<'a>) -> Result<Bounds<'a>> {
    let mut edges = [Bound::Unbounded; 2];
    for edge in &mut edges {
        *edge = match u.int_in_range(0..=2)? {
            0 => Bound::Unbounded,
            1 => Bound::Included(any_key(u)?),
            _ => Bound::Excluded(any_key(u)?),
        };
    }
    let [start, end] = edges;
    Ok(Bounds { start, end })
}

fn any_write(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut write = WriteBody::new();
    for _ in 0..u.int_in_range(1..=4)? {
        let table = *u.choose(&["cities", "streets", "é"])?;
        let added = match u.int_in_range(0..=2)? {
            0 => write.put(table, any_key(u)?, any_key(u)?),
            1 => write.delete(table, any_key(u)?),
            _ => write.delete_range(table, &any_bounds(u)?),
        };
        assert_eq!(added, Ok(()));
    }
    Ok(write.finish(*u.choose(Durability::ALL)?))
}

fn any_request(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let (table, snapshot) = ("cities", SnapshotId(u.arbitrary()?));
    let (mut keys, mut splits) = (KeyList::new(), SplitList::new());
    let request = match u.int_in_range(0..=9)? {
        8 => Request::Backups,
        9 => Request::Digests {
            offset: u.int_in_range(0..=VOLUME_BYTES_MAX / BLOCK_BYTES)? * BLOCK_BYTES,
            blocks: u.int_in_range(1..=DIGESTS_MAX)?,
        },
        0 => Request::Get {
            table,
            key: any_key(u)?,
            snapshot,
        },
        1 => {
            for _ in 0..u.int_in_range(1..=3)? {
                assert_eq!(keys.push(any_key(u)?), Ok(()));
            }
            let keys = keys.keys();
            Request::GetMany {
                table,
                keys,
                snapshot,
            }
        }
        2 | 3 => return any_write(u),
        4 => Request::Scan(ScanPart {
            table,
            bounds: any_bounds(u)?,
            is_reverse: u.arbitrary()?,
            keys_only: u.arbitrary()?,
            entries_max: u.int_in_range(1..=PAGE_ENTRIES_MAX)?,
            bytes_max: u.int_in_range(1..=REQUEST_BYTES_MAX)?,
            snapshot,
        }),
        5 => Request::Snapshot,
        6 => Request::Release {
            snapshot: SnapshotId(snapshot.0.max(1)),
        },
        _ => {
            for _ in 0..u.int_in_range(0..=3)? {
                // Keys that do not ascend are refused, and left out.
                let _ = splits.push(any_key(u)?);
            }
            Request::Order(any_order(u, splits.splits())?)
        }
    };
    Ok(request.body())
}

fn any_order<'a>(u: &mut Unstructured<'_>, splits: Splits<'a>) -> Result<Order<'a>> {
    let (table, group, server) = ("cities", GROUP, ServerId(u.int_in_range(1..=9)?));
    Ok(match *u.choose(OrderKind::ALL)? {
        OrderKind::CreateTable => Order::CreateTable { table, splits },
        OrderKind::DropTable => Order::DropTable { table },
        OrderKind::AddMember => Order::AddMember { group, server },
        OrderKind::RemoveMember => Order::RemoveMember { group, server },
        OrderKind::Promote => Order::Promote { group, server },
        OrderKind::AcceptLoss => Order::AcceptLoss {
            group,
            server,
            vouched: match u.int_in_range(0..=Term::MAX.0)? {
                0 => None,
                term => Some(Term(term)),
            },
        },
        OrderKind::Verify => Order::Verify { group },
        OrderKind::HandOver => Order::HandOver { group },
        OrderKind::Compare => Order::Compare { group },
    })
}

fn any_backup(u: &mut Unstructured<'_>) -> Result<Backup> {
    Ok(Backup {
        member: Member {
            server: ServerId(u.arbitrary()?),
            process: ProcessId(u.arbitrary()?),
        },
        is_counted: u.arbitrary()?,
        has_ended: u.arbitrary()?,
        lag_bytes: u.arbitrary()?,
        durable_lag_bytes: u.arbitrary()?,
        copied_bytes: u.arbitrary()?,
        to_copy_bytes: u.arbitrary()?,
    })
}

fn any_reply(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let reply = match u.int_in_range(0..=10)? {
        8 => {
            let count = u.int_in_range(0..=3)?;
            let backups = (0..count).map(|_| any_backup(u));
            return Ok(backups_body(&backups.collect::<Result<Vec<_>>>()?));
        }
        9 => {
            let count = u.int_in_range(1..=4)?;
            let digests = (0..count).map(|_| u.arbitrary());
            return Ok(digests_body(&digests.collect::<Result<Vec<_>>>()?));
        }
        10 => Reply::Compared(Compared {
            copies: u.arbitrary()?,
            blocks: u.arbitrary()?,
            differing: u.arbitrary()?,
            unsettled: u.arbitrary()?,
            worst: ServerId(u.arbitrary()?),
        }),
        0 => Reply::Done,
        1 => Reply::Value(None),
        2 => Reply::Value(Some(any_key(u)?)),
        3 => {
            let mut values = ValuesBody::new();
            for _ in 0..u.int_in_range(0..=3)? {
                let value = if u.arbitrary()? {
                    Some(any_key(u)?)
                } else {
                    None
                };
                assert_eq!(values.push(value), Ok(()));
            }
            return Ok(values.finish());
        }
        4 => {
            let mut page = PageBody::new();
            for _ in 0..u.int_in_range(1..=3)? {
                assert_eq!(page.push(any_key(u)?, any_key(u)?), Ok(()));
            }
            return Ok(page.finish(SnapshotId(u.arbitrary()?)));
        }
        5 => Reply::Snapshot(SnapshotId(u.int_in_range(1..=u64::MAX)?)),
        6 => Reply::Verified(Verified {
            problems: u.arbitrary()?,
            pages: u.arbitrary()?,
            records: u.arbitrary()?,
        }),
        _ => {
            let text: &str = u.arbitrary()?;
            let failure = match *u.choose(FailureKind::ALL)? {
                FailureKind::Moved => Failure::moved(Term(u.int_in_range(0..=Term::MAX.0)?), text),
                FailureKind::NotMaster => Failure::not_master(ServerId(u.arbitrary()?), text),
                kind => Failure::new(kind, text),
            };
            return Ok(Reply::Failed(failure).body());
        }
    };
    Ok(reply.body())
}

fn forge(u: &mut Unstructured<'_>, origin: Origin, mut body: Vec<u8>) -> Result<Vec<u8>> {
    match origin {
        Origin::Whole => {}
        Origin::Flipped => flip(u, &mut body)?,
        Origin::Resealed => damage(u, &mut body)?,
        Origin::Sealed => {
            let kept = u.choose_index(body.len())?;
            body.truncate(kept);
            body.extend_from_slice(u.bytes(u.len())?);
        }
        Origin::Raw => body = u.bytes(u.len())?.to_vec(),
    }
    Ok(body)
}
