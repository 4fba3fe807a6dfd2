//! Streams whose links take a little at a time.

use std::io::IoSlice;
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Lsn, Result};
use kreon_engine::LogMirror as _;
use kreon_format::{LOG_HEADER_BYTES, lsn_at};
use kreon_sync::{Mutex, Ordering};
use kreon_wire::{
    Frame, GrantBytes, GroupId, Kind, Member, ProcessId, Role, Room, ServerId, StreamPacket, Term,
};

use super::carrier::Carrier;
use super::share::Share;
use super::stream::{Sent, Stream};
use super::streams::Mirror;

const PACKET_BYTES: usize = 64 << 10;

/// Takes so many bytes more, and counts what it took: copies, and everything else.
#[derive(Default)]
struct Narrow {
    left_bytes: Mutex<usize>,
    taken: Mutex<[usize; 2]>,
    share: Option<Arc<Share>>,
}

impl Narrow {
    fn open(&self, bytes: usize) {
        *self.left_bytes.lock() += bytes;
    }

    /// Since the last call.
    fn taken(&self) -> [usize; 2] {
        std::mem::take(&mut *self.taken.lock())
    }
}

impl Carrier for Narrow {
    fn carry(&self, parts: &[IoSlice<'_>]) -> Result<()> {
        let packet: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let mut left_bytes = self.left_bytes.lock();
        let Some(left) = left_bytes.checked_sub(packet.len()) else {
            return Err(Error::new(ErrorKind::Busy, "the window is full"));
        };
        *left_bytes = left;
        let frame = Frame::open(&packet, Role::PeerStream).unwrap();
        let is_copy = frame.header().kind == Kind::Copy;
        self.taken.lock()[usize::from(!is_copy)] += packet.len();
        Ok(())
    }

    fn share(&self) -> Option<&Arc<Share>> {
        self.share.as_ref()
    }
}

fn stream(group: u32, carrier: &Arc<Narrow>) -> Stream {
    let member = Member {
        server: ServerId(2),
        process: ProcessId([2; 16]),
    };
    let room = Room {
        log: GrantBytes(u64::MAX),
        pages: GrantBytes(u64::MAX),
        space: GrantBytes(0),
    };
    let carrier = Arc::clone(carrier) as Arc<dyn Carrier>;
    Stream::new((GroupId(group), Term(1)), member, carrier, Lsn(0), room)
}

fn copy(stream: &mut Stream) -> Sent {
    let bytes = [1; PACKET_BYTES];
    let offset = 1 << 20;
    stream.send(&StreamPacket::Copy {
        offset,
        bytes: &bytes,
    })
}

fn log(stream: &mut Stream, len_bytes: usize) -> Sent {
    let bytes = [2; PACKET_BYTES];
    stream.send(&StreamPacket::Log {
        lsn: lsn_at(1, LOG_HEADER_BYTES),
        offset: 0,
        bytes: &bytes[..len_bytes],
    })
}

/// Opens the link by one packet at a time; copies come first each time.
fn run(carrier: &Narrow, mut copies: impl FnMut() -> Sent, mut others: impl FnMut() -> Sent) {
    for _ in 0..100 {
        carrier.open(PACKET_BYTES + 100);
        while matches!(copies(), Sent::As(_)) {}
        while matches!(others(), Sent::As(_)) {}
    }
}

#[test]
fn copies_leave_half_of_a_link_to_log_that_waits_and_have_all_of_it_otherwise() {
    for len_bytes in [PACKET_BYTES, 8 << 10] {
        let carrier = Arc::new(Narrow::default());
        let stream = Mutex::new(stream(1, &carrier));
        // Nothing else has come yet: all of it is taken by copies.
        run(&carrier, || copy(&mut stream.lock()), || Sent::Later);
        let [copied, others] = carrier.taken();
        assert!(copied >= 100 * PACKET_BYTES && others == 0);
        assert_eq!(log(&mut stream.lock(), len_bytes), Sent::Later);
        run(
            &carrier,
            || copy(&mut stream.lock()),
            || log(&mut stream.lock(), len_bytes),
        );
        let [copied, others] = carrier.taken();
        assert!(others >= copied, "{others} of log, {copied} copied");
        assert!(copied >= 40 * PACKET_BYTES, "{copied} copied");
        // Nothing waits any more.
        carrier.open(2 * PACKET_BYTES);
        assert!(matches!(log(&mut stream.lock(), len_bytes), Sent::As(_)));
        carrier.taken();
        run(&carrier, || copy(&mut stream.lock()), || Sent::Later);
        let [copied, others] = carrier.taken();
        assert!(copied >= 100 * PACKET_BYTES && others == 0);
    }
}

#[test]
fn copies_of_one_group_leave_half_of_a_common_link_to_the_others() {
    let carrier = Arc::new(Narrow {
        share: Some(Arc::default()),
        ..Narrow::default()
    });
    let (mut joining, mut other) = (stream(1, &carrier), stream(2, &carrier));
    assert_eq!(log(&mut other, PACKET_BYTES), Sent::Later);
    run(
        &carrier,
        || copy(&mut joining),
        || log(&mut other, PACKET_BYTES),
    );
    let [copied, others] = carrier.taken();
    assert!(others >= copied && copied >= 40 * PACKET_BYTES);
}

#[test]
fn a_stream_that_has_ended_or_waits_for_nothing_holds_no_copy_back() {
    let ends: [fn(&mut Stream); 4] = [
        |stream| stream.end(Error::new(ErrorKind::Closed, "the link was cut")),
        Stream::fall_behind,
        Stream::give_up,
        |stream| {
            let bytes = &[3; 4096];
            stream.miss(&StreamPacket::Pages { offset: 0, bytes });
        },
    ];
    for end in ends {
        let carrier = Arc::new(Narrow {
            share: Some(Arc::default()),
            ..Narrow::default()
        });
        let (mut joining, mut other) = (stream(1, &carrier), stream(2, &carrier));
        carrier.open(PACKET_BYTES + 100);
        assert!(matches!(copy(&mut joining), Sent::As(_)));
        assert_eq!(log(&mut other, PACKET_BYTES), Sent::Later);
        carrier.open(2 * PACKET_BYTES);
        assert_eq!(copy(&mut joining), Sent::Later, "log waits");
        end(&mut other);
        assert!(matches!(copy(&mut joining), Sent::As(_)));
    }
}

#[test]
fn the_length_that_is_owed_goes_before_what_needs_it() {
    let carrier = Arc::new(Narrow::default());
    let mut stream = stream(1, &carrier);
    stream.miss(&StreamPacket::Grow { len_bytes: 8192 });
    carrier.open(4096 + 200);
    let bytes = &[3; 4096];
    let sent = stream.send(&StreamPacket::Pages {
        offset: 4096,
        bytes,
    });
    assert!(
        matches!(sent, Sent::As(number) if number.0 == 2),
        "{sent:?}"
    );
    assert!(stream.owed.is_nothing());
}

#[test]
fn what_takes_the_place_of_log_that_was_cut_off_comes_behind_the_rest_of_its_block() {
    let carrier = Arc::new(Narrow::default());
    let mut stream = stream(1, &carrier);
    let bytes = &[3; 4096];
    let page = |offset| StreamPacket::Pages { offset, bytes };
    stream.begin_log(lsn_at(1, LOG_HEADER_BYTES)).unwrap();
    carrier.open(1 << 20);
    assert!(matches!(log(&mut stream, 4096 + 104), Sent::As(_)));
    // Elsewhere: the log may go on.
    assert!(matches!(stream.send(&page(8192)), Sent::As(number) if number.0 == 2));
    assert!(stream.log_sent.is_some());
    // There: the segment was used again, and the rest of the block goes first.
    assert!(matches!(stream.send(&page(4096)), Sent::As(number) if number.0 == 4));
    assert_eq!(stream.log_sent, None);
    assert_eq!(stream.owed.log_from, Some(lsn_at(1, 8192)));
    assert!(stream.owed.blocks.is_empty(), "the page is newer");
    // The same without room for the rest: nothing is sent.
    let narrow = Arc::new(Narrow::default());
    let mut stream = self::stream(1, &narrow);
    stream.begin_log(lsn_at(1, LOG_HEADER_BYTES)).unwrap();
    narrow.open(4096 + 104 + 200);
    assert!(matches!(log(&mut stream, 4096 + 104), Sent::As(_)));
    let (offset, len_bytes) = (0, 2 << 20);
    let discard = StreamPacket::Discard { offset, len_bytes };
    assert_eq!(stream.send(&discard), Sent::Later);
    narrow.open(1 << 20);
    assert!(matches!(stream.send(&discard), Sent::As(number) if number.0 == 3));
}

#[test]
fn a_log_that_is_behind_stays_behind_at_the_same_place_when_it_is_said_twice() {
    let carrier = Arc::new(Narrow::default());
    let mut stream = stream(1, &carrier);
    let from = lsn_at(1, LOG_HEADER_BYTES);
    stream.begin_log(from).unwrap();
    carrier.open(1 << 20);
    assert!(matches!(log(&mut stream, 8192), Sent::As(_)));
    for _ in 0..2 {
        stream.fall_behind();
        assert_eq!(stream.log_sent, None);
        assert_eq!(stream.owed.log_from, Some(lsn_at(1, 8192)));
    }
    stream.resume_log(lsn_at(1, 12288));
    assert_eq!(stream.owed.log_from, None);
    stream.fall_behind();
    assert_eq!(stream.owed.log_from, Some(lsn_at(1, 12288)));
}

#[test]
fn a_copy_does_not_take_the_place_of_log() {
    let carrier = Arc::new(Narrow::default());
    let mut stream = stream(1, &carrier);
    stream.begin_log(lsn_at(1, LOG_HEADER_BYTES)).unwrap();
    carrier.open(1 << 20);
    assert!(matches!(log(&mut stream, 4096 + 104), Sent::As(_)));
    let bytes = &[3; 8192];
    let copy = StreamPacket::Copy { offset: 0, bytes };
    assert!(matches!(stream.send(&copy), Sent::As(number) if number.0 == 2));
    assert!(stream.log_sent.is_some() && stream.owed.is_nothing());
}

#[test]
fn a_member_whose_stream_ends_counts_on_only_if_it_may_be_in_the_configuration() {
    for is_on_trial in [true, false] {
        let carrier = Arc::new(Narrow::default());
        let mut stream = stream(1, &carrier);
        stream.resume_log(lsn_at(1, 8192));
        assert_eq!(stream.log_durable(), Lsn(0));
        stream.count();
        // All before that was sent as pages, and is durable.
        assert_eq!(stream.log_durable(), lsn_at(1, 8192));
        assert!(!stream.fail_trial() && stream.is_counted);
        stream.is_on_trial = is_on_trial;
        stream.end(Error::new(ErrorKind::Closed, "the link was cut"));
        assert_eq!(stream.fail_trial(), is_on_trial);
        assert_eq!(stream.is_counted, !is_on_trial);
    }
}

#[test]
fn the_tap_sends_what_the_thread_that_appended_it_forgets() {
    let mirror = Mirror::new(GroupId(1), Term(1), Lsn(0));
    let is = |flag: &kreon_sync::AtomicBool| flag.load(Ordering::Acquire);
    mirror.append_here(|| mirror.grown());
    assert!(is(&mirror.is_owed) && !is(&mirror.has_grown));
    assert!(mirror.positions().is_empty());
    // It was called, or this waits for ever.
    mirror.wakeup.wait();
    mirror.ship_appended();
    assert!(!is(&mirror.is_owed));
    mirror.grown();
    assert!(is(&mirror.has_grown) && !is(&mirror.is_owed));
    mirror.wakeup.wait();
}
