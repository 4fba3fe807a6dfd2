//! The log of a joiner that goes on at a later place, at the follower.

use std::time::Instant;

use kreon_base::{Lsn, SEGMENT_BYTES};
use kreon_device::Device;
use kreon_format::{LOG_HEADER_BYTES, lsn_at};
use kreon_replica::follower::{Capacity, Follower};
use kreon_sim::{SimDevice, SimOptions};
use kreon_wire::{FlushNumber, Frame, GrantBytes, GroupId, Outlet, Role, Room, StreamPacket, Term};

const BLOCK: usize = 4096;

struct Stream {
    outlet: Outlet,
    follower: Follower,
    device: SimDevice,
    now: Instant,
}

impl Stream {
    fn new() -> Self {
        let device = SimDevice::new(SimOptions::default());
        device.grow(16 * SEGMENT_BYTES).unwrap();
        let (group, term, capacity) = (GroupId(1), Term(5), Capacity::default());
        let room = Room {
            log: GrantBytes(capacity.log_bytes),
            pages: GrantBytes(capacity.pages_bytes),
            space: GrantBytes(0),
        };
        Self {
            outlet: Outlet::new(group, term, Lsn(0), room),
            follower: Follower::joining((group, term), device.len_bytes(), capacity),
            device,
            now: Instant::now(),
        }
    }

    fn send(&mut self, packet: &StreamPacket<'_>) {
        let encoded = self.outlet.number(packet).to_vec();
        let frame = Frame::open(&encoded, Role::PeerStream).unwrap();
        self.follower.take(&frame, self.now).unwrap();
    }

    fn log(&mut self, (sequence, within): (u64, u32), segment: u64, bytes: &[u8]) {
        self.send(&StreamPacket::Log {
            lsn: lsn_at(sequence, within.max(LOG_HEADER_BYTES)),
            offset: segment * SEGMENT_BYTES + u64::from(within),
            bytes,
        });
    }

    fn flush(&mut self, number: u64, log_upto: Lsn) -> Lsn {
        let number = FlushNumber(number);
        self.send(&StreamPacket::Flush { number, log_upto });
        self.work();
        let progress = self.follower.progress();
        assert_eq!(progress.flushed, number);
        progress.log_durable
    }

    fn work(&mut self) {
        while let Some(work) = self.follower.next(self.now).unwrap() {
            let outcome = work.perform(&self.device);
            self.follower.done(outcome).unwrap();
        }
    }

    fn holds(&self, segment: u64, within: u64, bytes: &[u8]) -> bool {
        let at = segment * SEGMENT_BYTES + within;
        self.device.image().bytes(at, bytes.len()) == bytes
    }
}

#[test]
fn a_flush_covers_the_border_at_which_log_begins_and_goes_on() {
    let mut stream = Stream::new();
    let begin = lsn_at(7, 8192);
    stream.log((7, 8192), 5, &[1; 104]);
    assert_eq!(stream.flush(1, begin), begin);
    stream.log((7, 8192 + 104), 5, &[2; BLOCK - 104]);
    // Whole blocks of the place before are still in memory.
    let later = lsn_at(9, 12288);
    stream.log((9, 12288), 8, &[3; 104]);
    assert_eq!(stream.flush(2, later), later);
    assert!(stream.holds(5, 8192 + 104, &[2; BLOCK - 104]));
    // Nothing but a header and a part of a block, of a segment that was used again.
    let again = lsn_at(12, LOG_HEADER_BYTES);
    stream.log((9, 12288 + 104), 8, &[3; BLOCK - 104]);
    stream.log((12, 0), 5, &[4; BLOCK + 8]);
    assert_eq!(stream.flush(3, again), again);
    assert!(stream.holds(5, 0, &[4; BLOCK]));
}

#[test]
fn log_of_a_segment_that_was_used_again_takes_the_place_of_what_is_still_in_memory() {
    let mut stream = Stream::new();
    stream.log((7, 8192), 5, &[1; 3 * BLOCK]);
    // Over the last of those blocks, and right behind them.
    stream.log((9, 16384), 5, &[2; BLOCK]);
    stream.log((11, 16384), 5, &[3; BLOCK]);
    stream.log((13, 20480), 5, &[4; 8]);
    let upto = lsn_at(13, 20480);
    assert_eq!(stream.flush(1, upto), upto);
    assert!(stream.holds(5, 8192, &[1; 2 * BLOCK]));
    assert!(stream.holds(5, 16384, &[3; BLOCK]));
    stream.follower.seal();
    stream.work();
    assert!(stream.follower.is_sealed() && stream.holds(5, 20480, &[4; 8]));
}

#[test]
fn log_that_is_left_by_one_call_is_still_written_in_time() {
    let mut stream = Stream::new();
    stream.log((7, 8192), 5, &[1; BLOCK]);
    stream.log((9, 8192), 5, &[2; BLOCK]);
    stream.work();
    let due = stream.follower.due().unwrap();
    stream.now = due;
    stream.work();
    assert!(stream.holds(5, 8192, &[2; BLOCK]));
    assert_eq!(stream.follower.due(), None);
}
