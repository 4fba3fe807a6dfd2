//! The log goes to its own device, everything else to the other; and all that is in use is told.

use std::collections::BTreeSet;
use std::sync::{OnceLock, Weak};

use kreon_base::{PAGE_BYTES, SEGMENT_BYTES, SegmentId};
use kreon_format::SUPERBLOCK_PAGES;
use kreon_volume::Occupied;

use super::*;
use crate::engine::subsystems::Subsystems;

/// The segments of the log, without its moved records.
fn log_segments(engine: &Engine) -> BTreeSet<SegmentId> {
    let occupied = engine.occupied().unwrap();
    let log = occupied.log.iter().filter(|held| held.log.0 == 0);
    log.map(|held| held.segment).collect()
}

fn segment(range: &Range<u64>) -> SegmentId {
    assert_eq!(range.start / SEGMENT_BYTES, (range.end - 1) / SEGMENT_BYTES);
    SegmentId((range.start / SEGMENT_BYTES) as u32)
}

/// A store that spills, merges, collects and takes images; `look` is called after each step.
fn work(primary: &Primary, mut look: impl FnMut()) {
    let region = primary.engine.region("r").unwrap();
    let mut dice = Dice(4);
    for round in 0..40 {
        for _ in 0..250 {
            let key = name(dice.below(1500) as u32);
            let bytes = vec![round as u8 + 1; dice.below(1200) as usize];
            primary.put(&region, &key, &bytes);
        }
        match round % 8 {
            1 => primary.engine.background(Work::Image).unwrap(),
            3 => primary.engine.checkpoint().unwrap(),
            5 => primary.engine.background(Work::Collect).unwrap(),
            7 => primary.engine.background(Work::Merge).unwrap(),
            _ => primary.engine.sync().unwrap(),
        }
        look();
    }
    primary.engine.compact_all(&mut |_| ()).unwrap();
    look();
}

fn busy() -> Options {
    Options {
        l0_bytes: Some(64 << 10),
        inline_value_bytes_max: 20,
        growth_factor: Some(2),
        unspilled_bytes_min: 64 << 10,
        ..options()
    }
}

#[test]
fn the_log_and_all_else_go_to_their_own_devices() {
    let primary = Primary::open(Image::default(), 1, busy()).unwrap();
    let (mut before, mut logged, mut moved) = (BTreeSet::new(), 0, 0);
    primary.log.written();
    primary.main.written();
    work(&primary, || {
        let now = log_segments(&primary.engine);
        for range in primary.log.written() {
            let segment = segment(&range);
            assert!(
                now.contains(&segment) || before.contains(&segment),
                "{segment} is not of the log"
            );
            logged += 1;
        }
        for range in primary.main.written() {
            let first = SegmentId((range.start / SEGMENT_BYTES) as u32);
            let is_logs = now.contains(&first) && before.contains(&first);
            assert!(!is_logs, "{first} is of the log");
            moved += 1;
        }
        before = now;
    });
    assert!(logged > 40 && moved > 40, "{logged} {moved}");
    let flushes = primary.log.flushes.load(Ordering::SeqCst);
    assert!(flushes >= 20, "the log flushes its own: {flushes}");
    assert_eq!(
        primary.engine.verify().unwrap().problems,
        Vec::<String>::new()
    );
}

#[test]
fn zeroes_ahead_of_the_log_are_for_its_own_device() {
    let primary = Primary::new();
    primary.main.written();
    primary.engine.background(Work::Prepare).unwrap();
    assert_eq!(primary.main.written(), []);
    assert!(!primary.log.written().is_empty());
}

/// Whether all of `range` is in use.
fn covers(occupied: &Occupied, range: &Range<u64>) -> bool {
    let pages = range.start / PAGE_BYTES as u64..range.end.div_ceil(PAGE_BYTES as u64);
    pages.into_iter().all(|page| {
        let of_slots = SUPERBLOCK_PAGES.iter().any(|slot| slot.0 == page);
        let segment = SegmentId((page * PAGE_BYTES as u64 / SEGMENT_BYTES) as u32);
        let of_log = occupied.log.iter().any(|held| held.segment == segment);
        let in_run = |(first, count): &(PageNo, u64)| (first.0..first.0 + count).contains(&page);
        of_slots || of_log || occupied.pages.iter().any(in_run)
    })
}

#[test]
fn whatever_is_written_is_in_use_at_that_moment() {
    let primary = Primary::open(Image::default(), 1, busy()).unwrap();
    let subsystems: Arc<OnceLock<Weak<Subsystems>>> = Arc::default();
    let looked = Arc::new(AtomicU64::new(0));
    for way in [&primary.main, &primary.log] {
        let (subsystems, looked) = (Arc::clone(&subsystems), Arc::clone(&looked));
        *way.look.lock() = Some(Box::new(move |range| {
            let Some(subsystems) = subsystems.get().and_then(Weak::upgrade) else {
                return;
            };
            let occupied = subsystems.storage.allocator.lock().occupied();
            assert!(covers(&occupied, range), "{range:?} is not in use");
            let backed = occupied.backed.iter().any(|(id, bytes)| {
                id.offset_bytes() <= range.start && range.end <= id.offset_bytes() + bytes
            });
            let is_over_many = range.end - range.start > SEGMENT_BYTES / 2;
            assert!(backed || is_over_many, "{range:?} has no blocks");
            looked.fetch_add(1, Ordering::SeqCst);
        }));
    }
    let _ = subsystems.set(Arc::downgrade(&primary.engine.subsystems));
    work(&primary, || ());
    assert!(looked.load(Ordering::SeqCst) > 200);
}

#[test]
fn what_is_in_use_is_listed_in_order_and_without_the_slots() {
    let primary = Primary::open(Image::default(), 1, busy()).unwrap();
    work(&primary, || {
        let occupied = primary.engine.occupied().unwrap();
        assert!(
            occupied
                .pages
                .windows(2)
                .all(|two| two[0].0.0 + two[0].1 < two[1].0.0)
        );
        assert!(
            occupied
                .log
                .windows(2)
                .all(|two| two[0].segment < two[1].segment)
        );
        let slots = occupied
            .pages
            .iter()
            .flat_map(|(first, count)| first.0..first.0 + count);
        assert!(
            slots
                .clone()
                .all(|page| SUPERBLOCK_PAGES.iter().all(|slot| slot.0 != page))
        );
        assert!(
            slots.clone().any(|page| page == 32),
            "the first bitmap block"
        );
        let len = u64::from(occupied.segments) * SEGMENT_BYTES;
        assert!(primary.device.len_bytes() >= len);
        let storage = &primary.engine.subsystems.storage;
        let allocator = storage.allocator.lock();
        let live: Vec<_> = allocator.live_pages().map(|page| page.0).collect();
        drop(allocator);
        let in_use: BTreeSet<_> = slots.collect();
        assert!(live.iter().all(|page| in_use.contains(page)));
    });
}

#[test]
fn free_space_is_what_the_device_of_pages_says() {
    let primary = Primary::new();
    let room = || {
        primary
            .engine
            .subsystems
            .storage
            .allocator
            .lock()
            .room_bytes()
    };
    let all = room();
    *primary.main.free_bytes.lock() = Some(3 << 20);
    *primary.log.free_bytes.lock() = Some(0);
    assert!(room() < all);
    assert!(room() < 60 << 20, "{}", room());
    let region = primary.engine.region("r").unwrap();
    primary.put(&region, b"key", b"value");
}
