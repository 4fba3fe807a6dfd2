//! Control messages.

use kreon_format::StoreId;
use kreon_wire::limits::HEADER_BYTES;
use kreon_wire::*;

use crate::values::Value::{self, Bytes, Number};
use crate::values::distinct;
use crate::{extent, lsn, room, wire};

const VOLUME_BYTES: u64 = 0x1122_3344_5000;

fn expect(heading: &str, control: Control, values: &[(&str, Value)]) {
    let to = Address {
        group: GroupId(1),
        term: Term(1),
        number: 1,
    };
    let body = control.encode(&to)[HEADER_BYTES..].to_vec();
    assert_eq!(body, wire().assemble(heading, values), "{heading}");
}

fn open() -> (Open, Vec<(&'static str, Value)>) {
    let open = Open {
        store: StoreId(distinct(8, 1)),
        volume_bytes: VOLUME_BYTES,
        format: 0xab,
        config: crate::nodes::config(),
    };
    let values = vec![
        ("store", Number(open.store.0)),
        ("volume bytes", Number(VOLUME_BYTES)),
        ("format", Number(0xab)),
        ("config", Bytes(open.config.encode())),
    ];
    (open, values)
}

#[test]
fn questions_stand_as_told() {
    let (open, of_open) = open();
    expect("Open", Control::Open(open.clone()), &of_open);
    let backed_bytes = VOLUME_BYTES - 0x0102_0000_0000;
    let of_attach = [&of_open[..], &[("backed bytes", Number(backed_bytes))]].concat();
    let attach = Attach { open, backed_bytes };
    expect("Attach", Control::Attach(attach), &of_attach);

    let (extent, of_extent) = extent();
    for pages in [Vec::new(), vec![0xc3; 4 * 4096]] {
        let equalise = Equalise {
            extent,
            superblocks: Superblocks::of(&pages).ok(),
        };
        let values = [&of_extent[..], &[("superblocks", Bytes(pages))]].concat();
        expect("Equalise", Control::Equalise(equalise), &values);
    }
}

#[test]
fn answers_stand_as_told() {
    let ((extent, of_extent), (room, of_room)) = (extent(), room());
    let free_bytes = distinct(8, 9);
    let opened = Control::Opened {
        volume_bytes: VOLUME_BYTES,
        log_durable: lsn(1),
        room,
    };
    let fields = [
        ("volume bytes", Number(VOLUME_BYTES)),
        ("log durable", Number(lsn(1).0)),
    ];
    expect("Opened", opened, &[&fields[..], &of_room].concat());
    let free = [("free bytes", Number(free_bytes))];
    expect("Beaten", Control::Beaten { free_bytes }, &free);
    let attached = Control::Attached { free_bytes, room };
    expect("Attached", attached, &[&free[..], &of_room].concat());
    let process = ProcessId(*b"0123456789abcdef");
    let fields = [("process", Bytes(process.0.to_vec()))];
    let sealed = Control::Sealed { process, extent };
    expect("Sealed", sealed, &[&fields[..], &of_extent].concat());
    expect("Equal", Control::Equal { extent }, &of_extent);
}

#[test]
fn refusals_and_standings_stand_as_told() {
    let document = wire();
    let reasons = document.numbers("Reasons", "kind", "code");
    assert_eq!(reasons.len(), Reason::ALL.len());
    for reason in Reason::ALL.iter().copied() {
        let refused = Refused {
            reason,
            kind: Kind::Equalise,
            term: Term(distinct(6, 3)),
        };
        let values = [
            ("reason", Number(reasons[format!("{reason:?}").as_str()])),
            ("kind", Number(Kind::Equalise as u64)),
            ("seen term", Number(refused.term.0)),
        ];
        expect("Refused", Control::Refused(refused), &values);
    }
    let stages = document.numbers("Stages", "kind", "code");
    assert_eq!(stages.len(), Stage::ALL.len());
    let (extent, of_extent) = extent();
    for stage in Stage::ALL.iter().copied() {
        let standing = Standing {
            stage,
            extent,
            landed: lsn(4),
            durable: lsn(5),
            free_bytes: distinct(8, 6),
        };
        let fields = [
            ("stage", Number(stages[format!("{stage:?}").as_str()])),
            ("landed", Number(lsn(4).0)),
            ("durable", Number(lsn(5).0)),
            ("free bytes", Number(standing.free_bytes)),
        ];
        let values = [&fields[..], &of_extent].concat();
        expect("Standing", Control::Standing(standing), &values);
    }
}
