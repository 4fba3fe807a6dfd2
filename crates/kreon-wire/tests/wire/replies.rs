//! What servers answer to clients.

use kreon_base::KEY_BYTES_MAX;
use kreon_wire::limits::*;
use kreon_wire::*;

use crate::samples::{GROUP, TERM};

/// Decodes a body, and shows the reply to `see`.
fn with<R>(body: &[u8], see: impl FnOnce(Result<Reply<'_>, Violation>) -> R) -> R {
    let to = Address {
        group: GROUP,
        term: TERM,
        number: 9,
    };
    let bytes = Packet::reply(&to, body).to_vec();
    let frame = Frame::open(&bytes, Role::Client).unwrap();
    see(Reply::decode(&frame))
}

fn violation(body: &[u8]) -> Option<Violation> {
    with(body, |reply| reply.err())
}

fn values() -> Vec<u8> {
    let mut values = ValuesBody::new();
    for value in [Some(&b"53910"[..]), None, Some(b"")] {
        values.push(value).unwrap();
    }
    values.finish()
}

fn page(snapshot: u64) -> Vec<u8> {
    let mut page = PageBody::new();
    page.push(b"chania", b"53910").unwrap();
    page.push(b"", b"").unwrap();
    assert_eq!((page.len(), page.data_bytes()), (2, 11));
    page.finish(SnapshotId(snapshot))
}

fn failures() -> Vec<Failure<'static>> {
    let failures = FailureKind::ALL.iter();
    let mut failures: Vec<_> = failures
        .map(|kind| Failure::new(*kind, "for a reason"))
        .collect();
    failures.push(Failure::moved(Term::MAX, ""));
    failures.push(Failure::not_master(ServerId(3), "é"));
    failures
}

fn backup(server: u32) -> Backup {
    Backup {
        member: Member {
            server: ServerId(server),
            process: ProcessId([3; 16]),
        },
        is_counted: server == 1,
        has_ended: server == 2,
        lag_bytes: 4,
        durable_lag_bytes: 5,
        copied_bytes: 6,
        to_copy_bytes: u64::MAX,
    }
}

#[test]
fn backups_and_digests_come_in_their_order() {
    let backups = [backup(1), backup(2)];
    with(&backups_body(&backups), |reply| match reply {
        Ok(Reply::Backups(told)) => {
            assert_eq!((told.len(), told.is_empty()), (2, false));
            assert!(told.iter().eq(backups));
        }
        other => panic!("{other:?}"),
    });
    with(&digests_body(&[9, 8]), |reply| match reply {
        Ok(Reply::Digests(told)) => assert!(told.iter().eq([9, 8]) && told.len() == 2),
        other => panic!("{other:?}"),
    });
    assert_eq!(violation(&digests_body(&[])), Some(Violation::Count));
    let mut wrong = backups_body(&backups);
    wrong[12] = 2;
    assert_eq!(violation(&wrong), Some(Violation::FieldValue));
}

/// Bodies of replies of all kinds.
fn bodies() -> Vec<Vec<u8>> {
    let verified = Verified {
        problems: 1,
        pages: 2,
        records: u64::MAX,
    };
    let replies = [
        Reply::Done,
        Reply::Value(None),
        Reply::Value(Some(b"")),
        Reply::Value(Some(b"53910")),
        Reply::Snapshot(SnapshotId(u64::MAX)),
        Reply::Verified(verified),
        Reply::Compared(Compared {
            copies: 2,
            blocks: u64::MAX,
            differing: 1,
            unsettled: 3,
            worst: ServerId(u32::MAX),
        }),
    ];
    let failures = failures().into_iter().map(Reply::Failed);
    let replies = replies.into_iter().chain(failures);
    let mut bodies: Vec<_> = replies.map(|reply| reply.body()).collect();
    bodies.extend([
        values(),
        page(0),
        page(7),
        PageBody::new().finish(SnapshotId(0)),
        backups_body(&[]),
        backups_body(&[backup(1), backup(2)]),
        digests_body(&[7, u32::MAX]),
    ]);
    bodies
}

#[test]
fn replies_of_all_kinds_are_decoded_as_what_was_encoded() {
    let mut kinds = Vec::new();
    for body in bodies() {
        with(&body, |reply| {
            let reply = reply.unwrap();
            assert_eq!(reply.body(), body, "{reply:?}");
            kinds.push(reply.kind());
        });
    }
    assert!(ReplyKind::ALL.iter().all(|kind| kinds.contains(kind)));
    for failure in failures() {
        with(&Reply::Failed(failure).body(), |reply| {
            assert_eq!(reply, Ok(Reply::Failed(failure)));
        });
    }
}

#[test]
fn values_and_entries_come_in_their_order() {
    with(&values(), |reply| {
        let Ok(Reply::Values(values)) = reply else {
            panic!("{reply:?}");
        };
        let found: Vec<_> = values.iter().collect();
        assert_eq!(found, [Some(&b"53910"[..]), None, Some(b"")]);
        assert_eq!(values.len(), 3);
    });
    with(&page(7), |reply| {
        let Ok(Reply::Page(page)) = reply else {
            panic!("{reply:?}");
        };
        assert!(!page.is_last() && page.len() == 2);
        let found: Vec<_> = page.iter().collect();
        assert_eq!(found, [(&b"chania"[..], &b"53910"[..]), (b"", b"")]);
    });
}

#[test]
fn every_reply_has_one_encoding() {
    let mut accepted = 0;
    for whole in bodies() {
        for at in 0..whole.len() {
            for change in 1..=255 {
                let mut body = whole.clone();
                body[at] ^= change;
                with(&body, |reply| {
                    if let Ok(reply) = reply {
                        accepted += 1;
                        assert_eq!(reply.body(), body, "{reply:?}");
                    }
                });
            }
        }
    }
    assert!(accepted > 5_000, "only {accepted} were accepted");
}

#[test]
fn a_reply_that_is_cut_or_lengthened_is_refused_or_another_one() {
    // Value and text end where the body ends.
    let is_open = |body: &[u8]| matches!(body[0], 2 | 8);
    for whole in bodies() {
        for kept in 1..whole.len() {
            let found = violation(&whole[..kept]);
            assert!(is_open(&whole) || found.is_some(), "{whole:?} {kept}");
        }
        let longer = [&whole[..], b"x"].concat();
        let expected = (!is_open(&whole)).then_some(Violation::Count);
        assert_eq!(violation(&longer), expected, "{longer:?}");
    }
}

#[test]
fn each_wrong_field_is_told_as_what_it_is() {
    let over = |mut body: Vec<u8>, at: usize, bytes: &[u8]| {
        body[at..at + bytes.len()].copy_from_slice(bytes);
        body
    };
    let done = Reply::Done.body();
    let snapshot = Reply::Snapshot(SnapshotId(1)).body();
    let failed = Reply::Failed(Failure::new(FailureKind::Busy, "why")).body();
    let text = "x".repeat(FAILURE_TEXT_BYTES_MAX + 1);
    let too_long = (VALUE_BYTES_MAX as u32 + 1).to_le_bytes();
    let long = (KEY_BYTES_MAX as u32 + 1).to_le_bytes();
    use Violation::{Count, FieldBits, FieldValue};
    let cases = [
        ("no such reply", over(done.clone(), 0, &[12]), FieldValue),
        ("bits of what is done", over(done, 7, &[1]), FieldBits),
        ("no snapshot", over(snapshot.clone(), 8, &[0]), FieldValue),
        ("bits of a snapshot", over(snapshot, 1, &[1]), FieldBits),
        ("bits of values", over(values(), 3, &[1]), FieldBits),
        (
            "more values than bytes",
            over(values(), 4, &[0xff; 4]),
            Count,
        ),
        (
            "a value that is too long",
            over(values(), 8, &too_long),
            Count,
        ),
        ("bits of a page", over(page(7), 1, &[1]), FieldBits),
        ("too many entries", over(page(7), 6, &[2]), Count),
        ("more entries than bytes", over(page(7), 4, &[9]), Count),
        (
            "an empty page before others",
            over(PageBody::new().finish(SnapshotId(0)), 8, &[1]),
            Count,
        ),
        ("a key that is too long", over(page(7), 16, &long), Count),
        (
            "a value in a page that is too long",
            over(page(7), 20, &too_long),
            Count,
        ),
        ("no such failure", over(failed.clone(), 1, &[0]), FieldValue),
        (
            "bits of a failure",
            over(failed.clone(), 2, &[1]),
            FieldBits,
        ),
        (
            "a server without a reason",
            over(failed.clone(), 4, &[1]),
            FieldValue,
        ),
        (
            "a term without a reason",
            over(failed.clone(), 8, &[1]),
            FieldValue,
        ),
        (
            "a term beyond the last",
            over(failed.clone(), 15, &[1]),
            FieldValue,
        ),
        (
            "a text that is none",
            over(failed.clone(), 16, &[0xff]),
            FieldValue,
        ),
        (
            "a text of two lines",
            over(failed.clone(), 16, b"\n"),
            FieldValue,
        ),
        (
            "a text that is too long",
            [&failed[..16], text.as_bytes()].concat(),
            Count,
        ),
    ];
    for (name, body, expected) in cases {
        assert_eq!(violation(&body), Some(expected), "{name}: {body:?}");
    }
}

#[test]
fn a_text_that_nobody_may_send_is_made_one_that_everybody_may() {
    let text = "é\n".repeat(600);
    let body = Reply::Failed(Failure::new(FailureKind::Io, &text)).body();
    with(&body, |reply| {
        let Ok(Reply::Failed(failure)) = reply else {
            panic!("{reply:?}");
        };
        assert_eq!(failure.text, "é?".repeat(341));
    });
}

#[test]
fn values_and_pages_take_what_a_reply_may_have_and_nothing_more() {
    let value = vec![1; VALUE_BYTES_MAX];
    let longer = [&value[..], &[0]].concat();
    let rest = REQUEST_BYTES_MAX as usize - VALUE_BYTES_MAX;
    let mut values = ValuesBody::new();
    values.push(Some(&value)).unwrap();
    assert_eq!(values.push(Some(&longer)), Err(Violation::Count));
    assert_eq!(
        values.push(Some(&value[..rest - 15])),
        Err(Violation::TooLong)
    );
    values.push(Some(&value[..rest - 16])).unwrap();
    assert_eq!(values.push(None), Err(Violation::TooLong));
    let body = values.finish();
    assert_eq!(
        (body.len(), violation(&body)),
        (REQUEST_BYTES_MAX as usize, None)
    );

    let mut page = PageBody::new();
    page.push(b"k", &value).unwrap();
    assert_eq!(page.push(b"l", &longer), Err(Violation::Count));
    assert_eq!(
        page.push(&value[..KEY_BYTES_MAX + 1], b""),
        Err(Violation::Count)
    );
    assert_eq!(
        page.push(b"l", &value[..rest - 33]),
        Err(Violation::TooLong)
    );
    page.push(b"l", &value[..rest - 34]).unwrap();
    let body = page.finish(SnapshotId(1));
    assert_eq!(
        (body.len(), violation(&body)),
        (REQUEST_BYTES_MAX as usize, None)
    );

    let mut page = PageBody::new();
    for _ in 0..PAGE_ENTRIES_MAX {
        page.push(b"", b"").unwrap();
    }
    assert_eq!(page.push(b"", b""), Err(Violation::Count));
    assert_eq!(violation(&page.finish(SnapshotId(1))), None);
}

#[test]
fn a_value_of_more_than_16_mebibytes_is_refused() {
    let longest = Reply::Value(Some(&vec![1; VALUE_BYTES_MAX])).body();
    assert_eq!(violation(&longest), None);
    assert_eq!(
        violation(&[&longest[..], &[0]].concat()),
        Some(Violation::Count)
    );
}
