//! Header, first messages and packets of streams.

use kreon_base::{Checksum, SEGMENT_BYTES};
use kreon_wire::limits::{HEADER_BYTES, WIRE_VERSION};
use kreon_wire::*;

use crate::values::Value::{Bytes, Number};
use crate::values::distinct;
use crate::{lsn, room, wire};

const TO: Address = Address {
    group: GroupId(0x1122_3344),
    term: Term(0x0102_0304_0506),
    number: 0x1718_191a_1b1c_1d1e,
};

fn body(packet: &Packet<'_>) -> Vec<u8> {
    packet.encode(&TO)[HEADER_BYTES..].to_vec()
}

#[test]
fn the_header_stands_as_told() {
    let body = [7; 13];
    let packet = Packet::request(&TO, &body).to_vec();
    let mut zeroed = packet.clone();
    zeroed[12..16].fill(0);
    let told = wire().assemble(
        "Header",
        &[
            ("magic", Bytes(b"KrnW".to_vec())),
            ("version", Number(WIRE_VERSION.into())),
            ("kind", Number(Kind::Request as u64)),
            ("body bytes", Number(body.len() as u64)),
            ("checksum", Number(Checksum::of(&zeroed).into())),
            ("group", Number(TO.group.0.into())),
            ("term", Number(TO.term.0)),
            ("number", Number(TO.number)),
        ],
    );
    assert_eq!(packet, [&told[..], &body].concat());
}

#[test]
fn the_first_messages_stand_as_told() {
    let document = wire();
    let roles = document.numbers("Roles", "kind", "code");
    let told = [
        ("client", Role::Client),
        ("peer stream", Role::PeerStream),
        ("peer control", Role::PeerControl),
    ];
    assert_eq!(roles.len(), told.len());
    for (name, role) in told {
        let is_client = role == Role::Client;
        let server = if is_client { 0 } else { distinct(4, 1) };
        let hello = Hello {
            role,
            keyed: true,
            sender: Member {
                server: ServerId(server as u32),
                process: ProcessId(*b"0123456789abcdef"),
            },
            challenge: *b"0123456789abcdefghijklmnopqrstuv",
            cluster: "prod",
        };
        let expected = document.assemble(
            "Hello",
            &[
                ("role", Number(roles[name])),
                ("keyed", Number(1)),
                ("server", Number(server)),
                ("process", Bytes(hello.sender.process.0.to_vec())),
                ("challenge", Bytes(hello.challenge.to_vec())),
                ("cluster", Bytes(b"prod".to_vec())),
            ],
        );
        assert_eq!(body(&Packet::Hello(hello)), expected);
    }
    let code = *b"abcdefghijklmnopqrstuv0123456789";
    let expected = document.assemble("Proof", &[("code", Bytes(code.to_vec()))]);
    assert_eq!(body(&Packet::Proof(Proof { code })), expected);
}

#[test]
fn the_packets_of_streams_stand_as_told() {
    let document = wire();
    let data: Vec<u8> = (0..4096).map(|at| at as u8).collect();
    let (bytes, offset) = (&data[..], distinct(5, 1) * 4096);
    let len_bytes = distinct(4, 2) * 4096;
    let on_log = offset / SEGMENT_BYTES * SEGMENT_BYTES + 4096;
    let expect = |heading: &str, packet, values: &[_]| {
        let expected = document.assemble(heading, values);
        assert_eq!(body(&Packet::Stream(packet)), expected, "{heading}");
    };
    let placed = [("offset", Number(offset)), ("bytes", Bytes(data.clone()))];
    let ranged = [("offset", Number(offset)), ("length", Number(len_bytes))];
    let log = StreamPacket::Log {
        lsn: lsn(3),
        offset: on_log,
        bytes,
    };
    let of_log = [
        ("lsn", Number(lsn(3).0)),
        ("offset", Number(on_log)),
        ("bytes", Bytes(data.clone())),
    ];
    expect("Log", log, &of_log);
    expect("Pages", StreamPacket::Pages { offset, bytes }, &placed);
    expect("Copy", StreamPacket::Copy { offset, bytes }, &placed);
    let grow = StreamPacket::Grow { len_bytes };
    expect("Grow", grow, &[("length", Number(len_bytes))]);
    let allocate = StreamPacket::Allocate { offset, len_bytes };
    expect("Allocate", allocate, &ranged);
    let discard = StreamPacket::Discard { offset, len_bytes };
    expect("Discard", discard, &ranged);
    let flush = StreamPacket::Flush {
        number: FlushNumber(distinct(8, 4)),
        log_upto: lsn(5),
    };
    let of_flush = [
        ("flush", Number(distinct(8, 4))),
        ("log upto", Number(lsn(5).0)),
    ];
    expect("Flush", flush, &of_flush);
    assert!(body(&Packet::Stream(StreamPacket::Complete)).is_empty());
}

#[test]
fn progress_stands_as_told() {
    let (room, of_room) = room();
    let progress = Progress {
        received: StreamNumber(distinct(8, 2)),
        written: StreamNumber(distinct(8, 1)),
        flushed: FlushNumber(distinct(8, 3)),
        log_durable: lsn(7),
        room,
    };
    let numbers = [
        ("received", Number(progress.received.0)),
        ("written", Number(progress.written.0)),
        ("flushed", Number(progress.flushed.0)),
        ("log durable", Number(progress.log_durable.0)),
    ];
    let expected = wire().assemble("Progress", &[&numbers[..], &of_room].concat());
    assert_eq!(body(&Packet::Progress(progress)), expected);
}
