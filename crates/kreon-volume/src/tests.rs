//! The allocator over a simulated device.

use std::sync::Arc;

use kreon_base::{ErrorKind, LogId, PageNo, SEGMENT_BYTES, SEGMENT_PAGES, SegmentId};
use kreon_device::Device;
use kreon_sim::{Call, Effect, Fault, SimDevice, SimOptions};

use super::allocator::Allocator;
use super::purpose::Purpose;
use super::reserve::{L0sReserve, Reserve};
use super::segment::Usage;

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
    assert_eq!(left_after(&mut allocator, Purpose::Maintenance), 0);
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
fn entries_that_could_not_be_granted_are_not_counted() {
    for effect in [Effect::Io, Effect::OutOfSpace] {
        let (device, mut allocator) = allocator(100);
        allocator.set_reserve(Reserve {
            spilled_pages: 10 * SEGMENT_PAGES,
            ..Reserve::default()
        });
        let reserve = allocator.space().reserve;
        device.inject(Fault::nth(1, Call::Allocate, effect).for_ever());
        match allocator.grant_entries(1 << 20) {
            Ok(is_granted) => assert!(!is_granted && effect == Effect::OutOfSpace),
            Err(error) => assert!(error.kind() == ErrorKind::Io && effect == Effect::Io),
        }
        assert_eq!(allocator.space().reserve, reserve, "{effect:?}");
        device.clear_faults();
        assert!(allocator.grant_entries(1 << 20).unwrap());
        assert!(allocator.space().reserve > reserve);
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

/// An allocator of a volume with so many segments, all of which are known.
fn stocked(segments: u32) -> (Arc<SimDevice>, Allocator) {
    let (device, mut allocator) = allocator(segments);
    device.grow(u64::from(segments) * SEGMENT_BYTES).unwrap();
    allocator.extend_to(segments).unwrap();
    allocator.set_reserve(Reserve::default());
    (device, allocator)
}

#[test]
fn segments_that_are_being_written_belong_to_nobody_and_are_a_logs_afterwards() {
    let (_device, mut allocator) = stocked(200);
    allocator.set_written_stock(8);
    let free = allocator.free_segment_count();
    let ids = allocator.begin_writing(8, 2).unwrap();
    assert_eq!(ids.len(), 2);
    assert!(allocator.is_writing());
    assert_eq!(allocator.free_segment_count(), free - 2);
    let mut others = Vec::new();
    while let Ok(id) = allocator.allocate_segment(Usage::Tree, Purpose::Maintenance) {
        assert!(!ids.contains(&id), "{id} is being written");
        others.push(id);
    }
    for id in others {
        let pages = (0..SEGMENT_PAGES).map(|page| PageNo(id.first_page().0 + page));
        allocator.release_pages(&pages.collect::<Vec<_>>()).unwrap();
    }
    allocator.end_writing(&ids, true).unwrap();
    assert!(!allocator.is_writing());
    assert_eq!(
        (allocator.free_segment_count(), allocator.free_written()),
        (free, 2)
    );
    // Trees take others; the log takes these.
    let tree = allocator
        .allocate_segment(Usage::Tree, Purpose::Put)
        .unwrap();
    assert!(!ids.contains(&tree));
    for sequence in 1..3 {
        let taken = allocator
            .allocate_segment(log(sequence), Purpose::Put)
            .unwrap();
        assert!(ids.contains(&taken) && allocator.was_written(taken));
    }
}

#[test]
fn writing_ahead_takes_none_of_the_reserve_and_a_share_of_the_room() {
    let (_device, mut allocator) = stocked(60);
    allocator.set_written_stock(16);
    let mut written = 0;
    loop {
        let ids = allocator.begin_writing(16, 2).unwrap();
        let space = allocator.space();
        assert!(space.free_backed >= space.reserve);
        if ids.is_empty() {
            break;
        }
        written += ids.len();
        allocator.end_writing(&ids, true).unwrap();
    }
    assert!(
        (1..=7).contains(&written),
        "an eighth of 60 at most: {written}"
    );
    // New data has every segment all the same.
    let (_device, mut plain) = stocked(60);
    let count = |allocator: &mut Allocator| {
        (1..)
            .take_while(|n| allocator.allocate_segment(log(*n), Purpose::Put).is_ok())
            .count()
    };
    assert_eq!(count(&mut allocator), count(&mut plain));
    assert_eq!(allocator.begin_writing(16, 2).unwrap(), []);
    allocator.set_written_stock(16);
    assert_eq!(allocator.begin_writing(16, 2).unwrap(), [], "a full volume");
}

#[test]
fn a_full_device_has_no_segments_to_write_ahead_and_that_is_no_error() {
    let (device, mut allocator) = stocked(200);
    device.set_space_bytes_max(device.space_bytes());
    allocator.set_written_stock(8);
    assert_eq!(allocator.begin_writing(8, 2).unwrap(), []);
}

#[test]
fn a_stock_that_is_not_wanted_any_more_is_given_back() {
    let (device, mut allocator) = stocked(200);
    let before = device.space_bytes();
    allocator.set_written_stock(8);
    for _ in 0..4 {
        let ids = allocator.begin_writing(8, 2).unwrap();
        allocator.end_writing(&ids, true).unwrap();
    }
    allocator.trim().unwrap();
    assert_eq!(allocator.free_written(), 8, "kept");
    assert!(device.space_bytes() >= before + 6 * SEGMENT_BYTES);
    allocator.set_written_stock(0);
    allocator.trim().unwrap();
    assert!(
        device.space_bytes() <= before + 2 * SEGMENT_BYTES,
        "but for the spare ones"
    );
}

#[test]
fn a_failed_write_ahead_leaves_the_segments_as_they_were() {
    let (_device, mut allocator) = stocked(200);
    allocator.set_written_stock(8);
    let ids = allocator.begin_writing(8, 2).unwrap();
    allocator.end_writing(&ids, false).unwrap();
    assert_eq!(
        (allocator.free_written(), allocator.is_writing()),
        (0, false)
    );
}

/// What an allocator was asked for and has not got back.
#[derive(Default)]
struct Outstanding {
    pages: Vec<PageNo>,
    logs: Vec<SegmentId>,
    retired: Vec<SegmentId>,
    writing: Vec<SegmentId>,
}

impl Outstanding {
    /// One operation of a store, chosen by `dice`.
    fn step(&mut self, allocator: &mut Allocator, dice: u64) {
        let purposes = [
            Purpose::Put,
            Purpose::Delete,
            Purpose::Collection,
            Purpose::Maintenance,
        ];
        let (purpose, size) = (purposes[(dice >> 8) as usize % 4], (dice >> 16) % 600);
        match dice % 12 {
            0..3 => {
                if let Ok((first, count)) = allocator.allocate_pages(size, purpose) {
                    let pages: Vec<_> = (first.0..first.0 + count).map(PageNo).collect();
                    assert!(pages.iter().all(|page| !self.pages.contains(page)));
                    allocator.keep_pages(&pages).unwrap();
                    self.pages.extend(pages);
                }
            }
            3 => {
                let kept = self.pages.len() - self.pages.len().min(size as usize * 4);
                let pages = self.pages.split_off(kept);
                allocator.drop_pages(&pages).unwrap();
                allocator.release_pages(&pages).unwrap();
            }
            4 | 5 => {
                if let Ok(id) = allocator.allocate_log_segment(LOG, dice >> 40, purpose) {
                    assert!(!self.logs.contains(&id) && !self.writing.contains(&id));
                    let _ = allocator.back_log(id, (0, size as u32 * 3000), purpose);
                    self.logs.push(id);
                }
            }
            6 if !self.logs.is_empty() => {
                let id = self.logs.remove(size as usize % self.logs.len());
                allocator.retire_log_segment(id).unwrap();
                self.retired.push(id);
            }
            7 => {
                for id in self.retired.drain(..) {
                    allocator.reuse_segment(id).unwrap();
                }
            }
            8 => {
                allocator.set_written_stock(size as u32 % 8);
                self.writing.extend(allocator.begin_writing(8, 2).unwrap());
            }
            9 => {
                let ids = std::mem::take(&mut self.writing);
                allocator.end_writing(&ids, dice & 1 == 0).unwrap();
            }
            10 => allocator.trim().unwrap(),
            11 => allocator.trim_all().unwrap(),
            _ => {}
        }
    }
}

#[test]
fn the_indices_of_the_table_agree_with_it_after_every_operation() {
    let (_device, mut allocator) = allocator(120);
    let mut held = Outstanding::default();
    // Xorshift.
    let mut dice: u64 = 0x9E37_79B9_7F4A_7C15;
    for _ in 0..3000 {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        held.step(&mut allocator, dice);
        allocator.assert_consistent();
    }
}

#[test]
#[should_panic(expected = "a segment becomes available that was not withheld")]
fn a_segment_in_use_is_not_made_available() {
    let (_device, mut allocator) = allocator(100);
    let id = allocator.allocate_segment(log(1), Purpose::Put).unwrap();
    let _ = allocator.reuse_segment(id);
}

#[test]
fn blocks_are_taken_ahead_only_as_far_as_there_is_room() {
    let most_ahead = |run_max: u32| {
        let (_device, mut allocator) = allocator(1000);
        allocator.set_run_max(run_max);
        let ahead = (0..200).map(|n| {
            allocator.allocate_segment(log(n), Purpose::Put).unwrap();
            let space = allocator.space();
            space.free_backed.saturating_sub(space.reserve)
        });
        ahead.max().unwrap_or_default()
    };
    assert_eq!(most_ahead(0), 0);
    assert!(most_ahead(16) > 8);
}
