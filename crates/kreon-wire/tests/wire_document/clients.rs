//! Requests of clients and replies to them.

use std::ops::Bound;

use kreon_wire::*;

use crate::document::Document;
use crate::values::Value::{Bytes, Number};
use crate::values::{Value, distinct};
use crate::wire;

const TABLE: &str = "cities";

fn text(document: &Document, text: &str) -> Vec<u8> {
    let length = ("length", Number(text.len() as u64));
    let bytes = ("text", Bytes(text.as_bytes().to_vec()));
    document.assemble("Text", &[length, bytes])
}

fn expect(heading: &str, body: &[u8], codes: (&str, &str), values: &[(&str, Value)]) {
    let document = wire();
    let code = [("code", Number(document.code(codes.0, codes.1)))];
    let told = document.assemble(heading, &[&code[..], values].concat());
    assert_eq!(body, told, "{heading}");
}

fn request(heading: &str, request: Request<'_>, values: &[(&str, Value)]) {
    let kind = format!("{:?}", request.kind());
    let codes = ("Requests by code", kind.as_str());
    expect(heading, &request.body(), codes, values);
}

fn reply(heading: &str, reply: Reply<'_>, values: &[(&str, Value)]) {
    let kind = format!("{:?}", reply.kind());
    expect(heading, &reply.body(), ("Replies by code", &kind), values);
}

fn bytes(bytes: &[u8]) -> Value {
    Bytes(bytes.to_vec())
}

#[test]
fn codes_are_those_of_the_code() {
    macro_rules! told {
        ($($heading:literal $codes:ident,)+) => {$(
            let told = wire();
            let told = told.numbers($heading, "kind", "code");
            let codes = $codes::ALL.iter().map(|code| (format!("{code:?}"), *code as u64));
            let codes: Vec<_> = codes.collect();
            let codes: Vec<_> = codes.iter().map(|(name, code)| (name.as_str(), *code)).collect();
            assert_eq!(told, codes.into_iter().collect(), $heading);
        )+};
    }
    told! {
        "Requests by code" RequestKind,
        "Durabilities" Durability,
        "Changes" Change,
        "Orders" OrderKind,
        "Replies by code" ReplyKind,
        "Failures" FailureKind,
    }
}

#[test]
fn gets_stand_as_told() {
    let document = wire();
    let (snapshot, table) = (SnapshotId(distinct(8, 1)), text(&document, TABLE));
    let place = [("snapshot", Number(snapshot.0)), ("table", Bytes(table))];
    let get = Request::Get {
        table: TABLE,
        key: b"chania",
        snapshot,
    };
    request(
        "Get",
        get,
        &[&place[..], &[("key", bytes(b"chania"))]].concat(),
    );
    let (mut keys, mut told) = (KeyList::new(), Vec::new());
    for key in [&b"chania"[..], b"xanthi "] {
        keys.push(key).unwrap();
        let fields = [("length", Number(key.len() as u64)), ("key", bytes(key))];
        told.extend(document.assemble("Key of many", &fields));
    }
    let keys = keys.keys();
    let many = Request::GetMany {
        table: TABLE,
        keys,
        snapshot,
    };
    let fields = [("key count", Number(2)), ("keys", Bytes(told))];
    request("Get many", many, &[&place[..], &fields].concat());
}

#[test]
fn writes_stand_as_told() {
    let document = wire();
    let bounds = document.numbers("Bounds", "kind", "code");
    let (changes, durabilities) = (
        document.numbers("Changes", "kind", "code"),
        document.numbers("Durabilities", "kind", "code"),
    );
    let mut write = WriteBody::new();
    write.put(TABLE, b"chania", b"53910").unwrap();
    write.delete("streets", b"mill lane").unwrap();
    let edges = Bounds {
        start: Bound::Excluded(b"k"),
        end: Bound::Included(b"kz"),
    };
    write.delete_range("streets", &edges).unwrap();
    write.delete_range("streets", &Bounds::ALL).unwrap();
    let change = |change: &str, edges: [&str; 2], table, key: &[u8], value: &[u8]| {
        document.assemble(
            "Change of a write",
            &[
                ("change", Number(changes[change])),
                ("start bound", Number(bounds[edges[0]])),
                ("end bound", Number(bounds[edges[1]])),
                ("table", Number(table)),
                ("key length", Number(key.len() as u64)),
                ("value length", Number(value.len() as u64)),
                ("key", bytes(key)),
                ("value", bytes(value)),
            ],
        )
    };
    let none = ["Unbounded"; 2];
    let told = [
        change("Put", none, 0, b"chania", b"53910"),
        change("Delete", none, 1, b"mill lane", b""),
        change("DeleteRange", ["Excluded", "Included"], 1, b"k", b"kz"),
        change("DeleteRange", none, 1, b"", b""),
    ]
    .concat();
    let tables = [text(&document, TABLE), text(&document, "streets")].concat();
    let fields = [
        ("safe", Number(durabilities["Sync"])),
        ("table count", Number(2)),
        ("change count", Number(4)),
        ("changes bytes", Number(told.len() as u64)),
        ("changes", Bytes(told)),
        ("tables", Bytes(tables)),
    ];
    let body = write.finish(Durability::Sync);
    expect("Write", &body, ("Requests by code", "Write"), &fields);
}

#[test]
fn scans_stand_as_told() {
    let document = wire();
    let bounds = document.numbers("Bounds", "kind", "code");
    let part = ScanPart {
        table: TABLE,
        bounds: Bounds {
            start: Bound::Included(b"chania"),
            end: Bound::Excluded(b"xanthi "),
        },
        is_reverse: true,
        keys_only: true,
        entries_max: 0x0000_1234,
        bytes_max: 0x0012_3456,
        snapshot: SnapshotId(distinct(8, 2)),
    };
    let fields = [
        ("reverse", Number(1)),
        ("bare", Number(1)),
        ("from", Number(bounds["Included"])),
        ("to", Number(bounds["Excluded"])),
        ("snapshot", Number(part.snapshot.0)),
        ("entries max", Number(part.entries_max.into())),
        ("bytes max", Number(part.bytes_max.into())),
        ("start length", Number(6)),
        ("end length", Number(7)),
        ("table", Bytes(text(&document, TABLE))),
        ("start", bytes(b"chania")),
        ("end", bytes(b"xanthi ")),
    ];
    request("Scan", Request::Scan(part), &fields);
    request("Take a snapshot", Request::Snapshot, &[]);
    let snapshot = SnapshotId(distinct(8, 3));
    let fields = [("snapshot", Number(snapshot.0))];
    request("Release", Request::Release { snapshot }, &fields);
}

#[test]
fn orders_stand_as_told() {
    let document = wire();
    let codes = document.numbers("Orders", "kind", "code");
    let (group, server) = (distinct(4, 1) as u32, distinct(4, 2) as u32);
    let mut splits = SplitList::new();
    splits.push(b"g").unwrap();
    splits.push(b"tt").unwrap();
    let create = Order::CreateTable {
        table: TABLE,
        splits: splits.splits(),
    };
    let loss = Order::AcceptLoss {
        group: GroupId(group),
        server: ServerId(server),
        vouched: Some(Term(distinct(6, 3))),
    };
    let fields = |order: &str, numbers: [u64; 4], table: Vec<u8>, splits: &[u8]| {
        [
            ("order", Number(codes[order])),
            ("split count", Number(numbers[0])),
            ("group", Number(numbers[1])),
            ("server", Number(numbers[2])),
            ("vouched", Number(numbers[3])),
            ("table", Bytes(table)),
            ("splits", bytes(splits)),
        ]
    };
    let of_create = fields(
        "CreateTable",
        [2, 0, 0, 0],
        text(&document, TABLE),
        b"\x01\0g\x02\0tt",
    );
    request("Order", Request::Order(create), &of_create);
    let numbers = [0, group.into(), server.into(), distinct(6, 3)];
    let of_loss = fields("AcceptLoss", numbers, Vec::new(), b"");
    request("Order", Request::Order(loss), &of_loss);
}

#[test]
fn replies_with_values_stand_as_told() {
    let document = wire();
    let value = |value: &[u8]| [("value", bytes(value))];
    reply("Value", Reply::Value(Some(b"53910")), &value(b"53910"));
    reply("Done and Missing", Reply::Value(None), &[]);
    reply("Done and Missing", Reply::Done, &[]);
    let mut values = ValuesBody::new();
    values.push(Some(b"53910")).unwrap();
    values.push(None).unwrap();
    let item = |length: u64, value: &[u8]| {
        document.assemble(
            "Value of many",
            &[("length", Number(length)), ("value", bytes(value))],
        )
    };
    let told = [item(5, b"53910"), item(0xffff_ffff, b"")].concat();
    let fields = [("value count", Number(2)), ("values", Bytes(told))];
    let codes = "Replies by code";
    expect("Values", &values.finish(), (codes, "Values"), &fields);

    let mut page = PageBody::new();
    page.push(b"chania", b"53910").unwrap();
    let entry = [
        ("key length", Number(6)),
        ("value length", Number(5)),
        ("key", bytes(b"chania")),
        ("value", bytes(b"53910")),
    ];
    let fields = [
        ("entry count", Number(1)),
        ("snapshot", Number(distinct(8, 4))),
        (
            "entries",
            Bytes(document.assemble("Entry of a page", &entry)),
        ),
    ];
    let body = page.finish(SnapshotId(distinct(8, 4)));
    expect("Page", &body, (codes, "Page"), &fields);
}

#[test]
fn other_replies_stand_as_told() {
    let document = wire();
    let codes = document.numbers("Failures", "kind", "code");
    let snapshot = SnapshotId(distinct(8, 5));
    reply(
        "Snapshot",
        Reply::Snapshot(snapshot),
        &[("snapshot", Number(snapshot.0))],
    );
    let verified = Verified {
        problems: distinct(8, 6),
        pages: distinct(8, 7),
        records: distinct(8, 8),
    };
    let fields = [
        ("problems", Number(verified.problems)),
        ("pages", Number(verified.pages)),
        ("records", Number(verified.records)),
    ];
    reply("Verified", Reply::Verified(verified), &fields);
    let compared = Compared {
        copies: distinct(8, 11),
        blocks: distinct(8, 12),
        differing: distinct(8, 13),
        unsettled: distinct(8, 14),
        worst: ServerId(distinct(4, 15) as u32),
    };
    let fields = [
        ("copies", Number(compared.copies)),
        ("blocks", Number(compared.blocks)),
        ("differing", Number(compared.differing)),
        ("unsettled", Number(compared.unsettled)),
        ("worst", Number(compared.worst.0.into())),
    ];
    reply("Compared", Reply::Compared(compared), &fields);
    let (term, server) = (distinct(6, 9), distinct(4, 10) as u32);
    let failures = [
        Failure::moved(Term(term), "elsewhere"),
        Failure::not_master(ServerId(server), "elsewhere"),
    ];
    for failure in failures {
        let kind = format!("{:?}", failure.kind);
        let fields = [
            ("failure", Number(codes[kind.as_str()])),
            ("server", Number(failure.server.0.into())),
            ("term", Number(failure.term.0)),
            ("text", bytes(b"elsewhere")),
        ];
        reply("Failed", Reply::Failed(failure), &fields);
    }
}

#[test]
fn backups_and_digests_stand_as_told() {
    let document = wire();
    request("Ask for backups", Request::Backups, &[]);
    let (offset, blocks) = (0x0605_0403_2000, 0x0201);
    let fields = [("block count", Number(blocks)), ("offset", Number(offset))];
    let blocks = blocks as u32;
    request(
        "Ask for digests",
        Request::Digests { offset, blocks },
        &fields,
    );
    let process = core::array::from_fn(|at| at as u8 + 1);
    let backup = Backup {
        member: Member {
            server: ServerId(distinct(4, 1) as u32),
            process: ProcessId(process),
        },
        is_counted: true,
        has_ended: false,
        lag_bytes: distinct(8, 2),
        durable_lag_bytes: distinct(8, 3),
        copied_bytes: distinct(8, 4),
        to_copy_bytes: distinct(8, 5),
    };
    let told = document.assemble(
        "Backup",
        &[
            ("server", Number(backup.member.server.0.into())),
            ("counted", Number(1)),
            ("ended", Number(0)),
            ("process", bytes(&process)),
            ("lag", Number(backup.lag_bytes)),
            ("durable lag", Number(backup.durable_lag_bytes)),
            ("copied", Number(backup.copied_bytes)),
            ("to copy", Number(backup.to_copy_bytes)),
        ],
    );
    let codes = "Replies by code";
    let fields = [("backup count", Number(1)), ("backups", Bytes(told))];
    expect(
        "Backups",
        &backups_body(&[backup]),
        (codes, "Backups"),
        &fields,
    );
    let digests = [distinct(4, 6) as u32, distinct(4, 7) as u32];
    let told = digests.iter().flat_map(|digest| digest.to_le_bytes());
    let fields = [
        ("digest count", Number(2)),
        ("digests", Bytes(told.collect())),
    ];
    expect(
        "Digests",
        &digests_body(&digests),
        (codes, "Digests"),
        &fields,
    );
}
