//! Lengths at their borders.

use kreon_wire::limits::*;
use kreon_wire::*;

use crate::samples::{address, role_of};

fn header(kind: Kind, body_bytes: u32) -> Vec<u8> {
    let address = address(kind);
    let header = Header {
        kind,
        body_bytes,
        group: address.group,
        term: address.term,
        number: address.number,
        checksum: 0,
    };
    header.encode().to_vec()
}

#[test]
fn the_header_alone_refuses_every_length_that_a_kind_never_has() {
    for kind in Kind::ALL {
        let shape = kind.shape();
        for role in Role::ALL.into_iter().filter(|role| role.allows(kind)) {
            let read = |body_bytes| {
                Header::decode(&header(kind, body_bytes), role).map(|header| header.body_bytes)
            };
            let (least, most) = (shape.body_bytes_min, shape.body_bytes_max);
            assert!(most <= role.body_bytes_max(), "{kind:?} {role:?}");
            assert_eq!(read(least), Ok(least));
            assert_eq!(read(most), Ok(most));
            if least > 0 {
                assert_eq!(read(least - 1), Err(Violation::Length), "{kind:?}");
            }
            let above = match most == role.body_bytes_max() {
                true => Violation::TooLong,
                false => Violation::Length,
            };
            assert_eq!(read(most + 1), Err(above), "{kind:?} {role:?}");
            let limit = role.body_bytes_max();
            assert_eq!(
                read(limit + 1),
                Err(Violation::TooLong),
                "{kind:?} {role:?}"
            );
            assert_eq!(read(u32::MAX), Err(Violation::TooLong), "{kind:?} {role:?}");
        }
    }
}

#[test]
fn the_longest_packets_are_decoded() {
    let data = vec![7; REQUEST_BYTES_MAX as usize];
    for kind in [
        Kind::Log,
        Kind::Pages,
        Kind::Copy,
        Kind::Request,
        Kind::Reply,
    ] {
        let longest = |bytes| match kind {
            Kind::Log => Packet::Stream(StreamPacket::Log {
                lsn: LSN_MAX,
                offset: 4096,
                bytes,
            }),
            Kind::Pages => Packet::Stream(StreamPacket::Pages { offset: 0, bytes }),
            Kind::Copy => Packet::Stream(StreamPacket::Copy { offset: 0, bytes }),
            Kind::Request => Packet::Request(bytes),
            _ => Packet::Reply(bytes),
        };
        let most = match kind {
            Kind::Request | Kind::Reply => REQUEST_BYTES_MAX as usize,
            _ => STREAM_DATA_BYTES_MAX as usize,
        };
        let packet = longest(&data[..most]);
        let bytes = packet.encode(&address(kind));
        let frame = Frame::open(&bytes, role_of(kind)).unwrap();
        assert_eq!(Packet::decode(&frame), Ok(packet));
    }
}

#[test]
fn log_may_fill_its_segment_and_not_leave_it() {
    let data = [0; 128];
    let end_of_segment = kreon_base::SEGMENT_BYTES * 3;
    for (left_bytes, expected) in [(128, Ok(())), (120, Err(Violation::Range))] {
        let packet = Packet::Stream(StreamPacket::Log {
            lsn: kreon_base::Lsn(8),
            offset: end_of_segment - left_bytes,
            bytes: &data,
        });
        let bytes = packet.encode(&address(Kind::Log));
        let frame = Frame::open(&bytes, Role::PeerStream).unwrap();
        assert_eq!(Packet::decode(&frame).map(drop), expected);
    }
}

#[test]
fn the_limits_fit_into_each_other() {
    assert!(HEADER_BYTES as u32 + STREAM_BYTES_MAX <= CONTROL_BYTES_MAX);
    for kind in Kind::ALL {
        let shape = kind.shape();
        assert!(shape.body_bytes_min <= shape.body_bytes_max, "{kind:?}");
    }
    // A value of 16 MiB and the longest key in one request.
    let request_bytes = (16 << 20) + kreon_base::KEY_BYTES_MAX as u32;
    assert!(request_bytes < REQUEST_BYTES_MAX);
}
