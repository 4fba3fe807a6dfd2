//! The allocator over a simulated device.

use std::sync::Arc;

use kreon_base::{ErrorKind, LogId, PageNo, SEGMENT_BYTES, SEGMENT_PAGES, SegmentId};
use kreon_device::Device;
use kreon_sim::{Call, Effect, Fault, SimDevice, SimOptions};

use super::allocator::Usage;
use super::*;

const LOG: LogId = LogId(0);

fn allocator(segments_max: u32) -> (Arc<SimDevice>, Allocator) {
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let shared = Arc::clone(&device) as Arc<dyn Device>;
    (device, Allocator::new(shared, segments_max))
}

fn log(sequence: u64) -> Usage {
    Usage::Log { log: LOG, sequence }
}

#[test]
fn recovery_claims_free_segments_and_those_of_the_log_only() {
    let (device, mut allocator) = allocator(100);
    device.grow(10 * SEGMENT_BYTES).unwrap();
    allocator.extend_to(10).unwrap();
    let free = allocator.free_segment_count();
    allocator.claim_log_segment(SegmentId(5), LOG, 1).unwrap();
    allocator.claim_log_segment(SegmentId(5), LOG, 1).unwrap();
    assert_eq!(allocator.usage(SegmentId(5)), Some(log(1)));
    assert_eq!(allocator.free_segment_count(), free - 1);
    // A tree's segment, one that has another number, one behind the end of the volume.
    for (segment, sequence) in [(0, 2), (5, 2), (10, 2)] {
        let claimed = allocator.claim_log_segment(SegmentId(segment), LOG, sequence);
        assert_eq!(claimed.unwrap_err().kind(), ErrorKind::Corruption);
    }
    assert_eq!(allocator.log_segments(LOG), [(SegmentId(5), 1)]);
}

#[test]
fn a_log_segment_with_live_bytes_is_not_given_up() {
    let (_device, mut allocator) = allocator(100);
    let id = allocator.allocate_segment(log(1), Purpose::Put).unwrap();
    allocator.charge(id, 64).unwrap();
    let error = allocator.give_up_log_segment(id).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert_eq!(allocator.usage(id), Some(log(1)));
    allocator.charge(id, -64).unwrap();
    allocator.give_up_log_segment(id).unwrap();
    assert_eq!(allocator.usage(id), Some(Usage::Free));
}

#[test]
fn live_bytes_never_leave_their_range() {
    let (_device, mut allocator) = allocator(100);
    let id = allocator.allocate_segment(log(1), Purpose::Put).unwrap();
    allocator.charge(id, 64).unwrap();
    let behind = SegmentId(allocator.segment_count());
    for (id, bytes) in [
        (id, -65),
        (id, i64::from(u32::MAX)),
        (SegmentId(0), 1),
        (behind, 1),
    ] {
        let error = allocator.charge(id, bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }
    assert_eq!(allocator.live_bytes(id), 64);
    assert_eq!(allocator.live_bytes(behind), 0);
}

#[test]
fn pages_behind_the_end_of_the_volume_are_corruption() {
    let (device, mut allocator) = allocator(100);
    device.grow(10 * SEGMENT_BYTES).unwrap();
    allocator.extend_to(3).unwrap();
    let behind = [PageNo(3 * SEGMENT_PAGES)];
    for outcome in [
        allocator.keep_pages(&behind),
        allocator.drop_pages(&behind),
        allocator.release_pages(&behind),
    ] {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Corruption);
    }
    assert!(!allocator.is_live(behind[0]));
}

#[test]
fn each_purpose_goes_as_far_into_the_reserve_as_it_may() {
    let (_device, mut allocator) = allocator(20);
    let l0s = L0sReserve {
        pages: 8 * SEGMENT_PAGES,
        ..L0sReserve::default()
    };
    allocator.set_reserve(Reserve {
        l0s,
        ..Reserve::default()
    });
    assert_eq!(left_after(&mut allocator, Purpose::Put), 9);
    assert_eq!(left_after(&mut allocator, Purpose::Delete), 4);
    assert_eq!(left_after(&mut allocator, Purpose::Upkeep), 0);
}

/// Free segments when `purpose` gets no more.
fn left_after(allocator: &mut Allocator, purpose: Purpose) -> u32 {
    for sequence in 1.. {
        if let Err(error) = allocator.allocate_segment(log(sequence), purpose) {
            assert_eq!(error.kind(), ErrorKind::OutOfSpace);
            break;
        }
    }
    allocator.free_segment_count()
}

#[test]
fn pages_that_merges_need_are_no_reason_to_refuse_deletions() {
    let (_device, mut allocator) = allocator(20);
    allocator.set_reserve(Reserve {
        merged_pages: 12 * SEGMENT_PAGES,
        ..Reserve::default()
    });
    assert_eq!(left_after(&mut allocator, Purpose::Put), 12);
    assert_eq!(left_after(&mut allocator, Purpose::Delete), 2);
}

#[test]
fn a_few_entries_need_no_more_than_the_leaves_that_they_fall_into() {
    let (_device, mut allocator) = allocator(1000);
    let reserve = |entries| Reserve {
        spilled_pages: 100 * SEGMENT_PAGES,
        l0s: L0sReserve {
            entries,
            ..L0sReserve::default()
        },
        ..Reserve::default()
    };
    let free_for = |allocator: &mut Allocator, entries| {
        allocator.set_reserve(reserve(entries));
        allocator.space().free_backed
    };
    allocator.allocate_segment(log(1), Purpose::Put).unwrap();
    assert_eq!(free_for(&mut allocator, 0), 2);
    let few = free_for(&mut allocator, 1000);
    assert!((5..=6).contains(&few), "{few}");
    let all = free_for(&mut allocator, 1 << 30);
    assert!((99..=100).contains(&all), "{all}");
}

#[test]
fn a_small_log_is_backed_in_front_and_deletions_have_room_there_on_a_full_device() {
    let (device, mut allocator) = allocator(100);
    let first = allocator
        .allocate_log_segment(LOG, 1, Purpose::Put)
        .unwrap();
    let next = allocator
        .allocate_log_segment(LOG, 2, Purpose::Put)
        .unwrap();
    let limit = allocator.back_log(first, (64, 64), Purpose::Put).unwrap();
    assert!(u64::from(limit) <= SEGMENT_BYTES / 4, "{limit}");
    assert!(allocator.space().taken_bytes <= 3 << 20);
    device.inject(Fault::nth(1, Call::Allocate, Effect::OutOfSpace).for_ever());
    let refused = allocator.back_log(first, (limit, limit + 8), Purpose::Put);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::OutOfSpace);
    let more = allocator.back_log(first, (limit, limit + 8), Purpose::Delete);
    assert!(more.unwrap() > limit);
    device.clear_faults();
    let all = allocator.back_log(first, (limit, SEGMENT_BYTES as u32), Purpose::Put);
    assert_eq!(u64::from(all.unwrap()), SEGMENT_BYTES);
    assert!(
        allocator.space().free_backed >= 2,
        "the store is no longer small"
    );
    assert!(allocator.back_log(next, (64, 128), Purpose::Put).unwrap() >= 128);
}

#[test]
fn a_device_that_fails_is_no_full_device() {
    for call in [Call::Grow, Call::Allocate] {
        let (device, mut allocator) = allocator(100);
        device.inject(Fault::nth(1, call, Effect::Io));
        let error = allocator
            .allocate_segment(log(1), Purpose::Put)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{call:?}");
        // The next try is a new one: nothing was handed out.
        let id = allocator.allocate_segment(log(1), Purpose::Put).unwrap();
        assert_eq!(allocator.log_segments(LOG), [(id, 1)]);
    }
}

#[test]
fn a_device_that_is_full_refuses_data_and_takes_it_again_later() {
    for call in [Call::Grow, Call::Allocate] {
        let (device, mut allocator) = allocator(100);
        device.inject(Fault::nth(1, call, Effect::OutOfSpace).for_ever());
        let error = allocator.allocate_pages(8, Purpose::Put).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{call:?}");
        device.clear_faults();
        assert_eq!(allocator.allocate_pages(8, Purpose::Put).unwrap().1, 8);
    }
}
