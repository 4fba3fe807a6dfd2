//! Both ends of a stream, packet after packet.

use kreon_base::{Lsn, SEGMENT_BYTES};
use kreon_wire::*;

use crate::samples::{GROUP, TERM, VOLUME_BYTES, progress};

/// Both ends of a stream with credit for `pages` blocks and `log` words.
struct Stream {
    outlet: Outlet,
    inlet: Inlet,
}

impl Stream {
    fn new(joining: bool) -> Self {
        let room = Room {
            log: GrantBytes(64),
            pages: GrantBytes(8192),
            space: GrantBytes(0),
        };
        let open = if joining {
            Inlet::joining
        } else {
            Inlet::following
        };
        Self {
            outlet: Outlet::new(GROUP, TERM, Lsn(1000), room),
            inlet: open(GROUP, TERM, VOLUME_BYTES, room),
        }
    }

    fn send(&mut self, packet: StreamPacket<'_>) -> Result<(), Violation> {
        let bytes = self.outlet.number(&packet).to_vec();
        self.take(&bytes)
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        let frame = Frame::open(bytes, Role::PeerStream).unwrap();
        self.inlet.admit(&frame).map(drop)
    }

    fn answer(&mut self, progress: Progress) -> Result<(), Violation> {
        let bytes = progress.encode(GROUP, TERM).to_vec();
        let frame = Frame::open(&bytes, Role::PeerStream).unwrap();
        self.outlet.admit(&frame).map(drop)
    }
}

const BLOCK: [u8; 4096] = [1; 4096];

fn pages(offset: u64) -> StreamPacket<'static> {
    let bytes = &BLOCK;
    StreamPacket::Pages { offset, bytes }
}

fn flush(number: u64) -> StreamPacket<'static> {
    StreamPacket::Flush {
        number: FlushNumber(number),
        log_upto: Lsn(0),
    }
}

#[test]
fn each_packet_is_taken_once_and_in_order() {
    let mut stream = Stream::new(false);
    let first = stream.outlet.number(&flush(3)).to_vec();
    let second = stream.outlet.number(&flush(4)).to_vec();
    assert_eq!(stream.take(&second), Err(Violation::Number));
    assert_eq!(stream.take(&first), Ok(()));
    assert_eq!(stream.take(&first), Err(Violation::Number));
    assert_eq!(stream.take(&second), Ok(()));
    assert_eq!(stream.inlet.last(), StreamNumber(2));
}

#[test]
fn flushes_only_rise() {
    let mut stream = Stream::new(false);
    assert_eq!(stream.send(flush(3)), Ok(()));
    assert_eq!(stream.send(flush(3)), Err(Violation::Order));
}

#[test]
fn a_longer_volume_takes_what_lies_there() {
    let mut stream = Stream::new(false);
    let behind = StreamPacket::Allocate {
        offset: VOLUME_BYTES,
        len_bytes: SEGMENT_BYTES,
    };
    let grow = StreamPacket::Grow {
        len_bytes: VOLUME_BYTES + SEGMENT_BYTES,
    };
    assert_eq!(stream.send(grow), Ok(()));
    assert_eq!(stream.send(behind), Ok(()));
    assert_eq!(
        stream.send(pages(VOLUME_BYTES + SEGMENT_BYTES)),
        Err(Violation::Range)
    );
}

#[test]
fn copies_end_with_complete() {
    let mut stream = Stream::new(true);
    let copy = StreamPacket::Copy {
        offset: 0,
        bytes: &BLOCK,
    };
    assert_eq!(stream.send(copy), Ok(()));
    assert_eq!(stream.send(StreamPacket::Complete), Ok(()));
    assert_eq!(stream.inlet.state(), State::Following);
    assert_eq!(stream.send(copy), Err(Violation::KindForState));
}

#[test]
fn nothing_is_taken_after_a_seal() {
    let mut stream = Stream::new(false);
    stream.inlet.seal();
    assert_eq!(stream.send(flush(1)), Err(Violation::KindForState));
}

#[test]
fn both_ends_count_credit_alike() {
    let mut stream = Stream::new(false);
    for offset in [0, 4096] {
        assert!(stream.outlet.has_room(&pages(offset)));
        assert_eq!(stream.send(pages(offset)), Ok(()));
    }
    assert!(!stream.outlet.has_room(&pages(8192)));
    assert_eq!(stream.inlet.taken(), stream.outlet.spent());
    // The log has credit of its own.
    let log = StreamPacket::Log {
        lsn: Lsn(1000),
        offset: SEGMENT_BYTES + 4096,
        bytes: &[0; 64],
    };
    assert!(stream.outlet.has_room(&log));
    assert_eq!(stream.send(log), Ok(()));

    let mut granted = stream.inlet.granted();
    granted.pages = GrantBytes(3 * 4096);
    stream.inlet.grant(granted);
    let answer = Progress {
        received: StreamNumber(3),
        written: StreamNumber(0),
        flushed: FlushNumber(0),
        log_durable: Lsn(1000),
        room: granted,
    };
    assert_eq!(stream.answer(answer), Ok(()));
    assert!(stream.outlet.has_room(&pages(8192)));
    assert_eq!(stream.send(pages(8192)), Ok(()));
    assert_eq!(stream.send(pages(8192)), Err(Violation::Credit));
}

#[test]
fn no_answer_acknowledges_what_was_not_sent_or_takes_back() {
    let mut stream = Stream::new(false);
    stream.send(flush(2)).unwrap();
    let room = stream.inlet.granted();
    let right = Progress {
        received: StreamNumber(1),
        written: StreamNumber(1),
        flushed: FlushNumber(2),
        log_durable: Lsn(1000),
        room,
    };
    let wrong = [
        Progress {
            received: StreamNumber(2),
            ..right
        },
        Progress {
            flushed: FlushNumber(3),
            ..right
        },
        Progress {
            log_durable: Lsn(1008),
            ..right
        },
        Progress {
            log_durable: Lsn(999),
            ..right
        },
    ];
    for progress in wrong {
        assert_eq!(
            stream.answer(progress),
            Err(Violation::Order),
            "{progress:?}"
        );
    }
    assert_eq!(stream.answer(right), Ok(()));
    let less = Room {
        log: GrantBytes(room.log.0 - 1),
        ..room
    };
    for earlier in [
        Progress {
            written: StreamNumber(0),
            ..right
        },
        Progress {
            room: less,
            ..right
        },
    ] {
        assert_eq!(stream.answer(earlier), Err(Violation::Order), "{earlier:?}");
    }
    assert_eq!(stream.outlet.progress(), &right);
}

#[test]
fn a_segments_header_is_no_payload() {
    let at = |within, length| {
        let packet = StreamPacket::Log {
            lsn: Lsn(5000),
            offset: 7 * SEGMENT_BYTES + within,
            bytes: &BLOCK[..length],
        };
        packet.log_end()
    };
    assert_eq!(at(0, 4096), Some(Lsn(5000)));
    assert_eq!(at(4088, 64), Some(Lsn(5056)));
    assert_eq!(at(4096, 64), Some(Lsn(5064)));
    assert_eq!(pages(0).log_end(), None);
    assert!(progress().continues(&progress()));
}
