//! Frames that callers fill in place, and their pages.

mod common;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;

use common::{
    Content, MemoryDevice, Random, VOLUME_BYTES, any, fill, fresh, mapping_with,
    mapping_with_frames, verify, version, while_every_frame_is_held,
};
use kreon_base::{ErrorKind, PageNo, Priority, Result};
use kreon_mapping::{Mapping, OpenFrame};

const PRIORITY: Priority = Priority(2);

fn device() -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new(VOLUME_BYTES, Content::Numbered))
}

fn mapping(device: &Arc<MemoryDevice>, frames: u64) -> Arc<Mapping> {
    Arc::new(mapping_with_frames(device, frames))
}

/// An open frame with a version of a page.
fn filled(mapping: &Arc<Mapping>, page: u64, version: u64) -> Option<OpenFrame> {
    let mut frame = mapping.open_frame()?;
    frame.copy_from_slice(&*fill(page, version));
    Some(frame)
}

/// Publishes a version of a page.
fn publish(mapping: &Arc<Mapping>, page: u64, version: u64) -> Result<()> {
    let frame = filled(mapping, page, version).expect("an open frame");
    mapping.publish(PageNo(page), PRIORITY, frame)
}

/// Frames that are open, free, or hold a page.
fn frames(mapping: &Mapping) -> [u64; 3] {
    let stats = mapping.stats();
    [stats.frames_open, stats.frames_free, stats.pages_resident]
}

#[test]
fn a_published_page_is_never_read_and_written_once() {
    let device = device();
    let mapping = mapping(&device, 64);
    publish(&mapping, 10, 1).unwrap();
    assert_eq!(version(&mapping, 10).unwrap(), 1);
    assert_eq!(verify(10, &device.page(10)), Ok(0));
    let stats = mapping.stats();
    assert_eq!((stats.pages_dirty, stats.pages_fresh), (1, 1));
    mapping.sync().unwrap();
    assert_eq!(verify(10, &device.page(10)), Ok(1));
    mapping.sync().unwrap();
    assert_eq!((device.reads(), device.writes()), (0, vec![(10, 1)]));
    assert_eq!(frames(&mapping), [0, 63, 1]);
}

#[test]
fn an_open_frame_is_written_in_place_as_often_as_its_owner_likes() {
    let mapping = mapping(&device(), 64);
    let mut frame = mapping.open_frame().unwrap();
    for version in 1..4 {
        frame.copy_from_slice(&*fill(7, version));
        assert_eq!(verify(7, &frame), Ok(version));
    }
    let (first, others): (&[u8], _) = (&frame[..8], mapping.open_frame().unwrap());
    assert_ne!(first.as_ptr(), others.as_ptr());
    mapping.publish(PageNo(7), PRIORITY, frame).unwrap();
    assert_eq!(version(&mapping, 7).unwrap(), 3);
}

#[test]
fn half_of_the_frames_can_be_open_and_come_back_when_they_are_dropped() {
    let mapping = mapping(&device(), 65);
    assert_eq!(mapping.open_frames_max(), 32);
    let mut open: Vec<_> = std::iter::from_fn(|| mapping.open_frame()).collect();
    assert_eq!(open.len(), 32);
    assert_eq!(frames(&mapping), [32, 33, 0]);
    assert!(mapping.open_frame().is_none());
    open.pop();
    assert_eq!(frames(&mapping), [31, 34, 0]);
    open.push(mapping.open_frame().unwrap());
    assert!(mapping.open_frame().is_none());
    drop(open);
    assert_eq!(frames(&mapping), [0, 65, 0]);
}

#[test]
fn reads_and_writes_share_what_open_frames_leave() {
    let device = device();
    let mapping = mapping(&device, 64);
    let open: Vec<_> = (0..32)
        .map(|i| filled(&mapping, i, 9).expect("a frame"))
        .collect();
    for page in 1000..1500 {
        fresh(&mapping, page, 1).unwrap();
        assert_eq!(version(&mapping, page - 500).unwrap(), 0);
    }
    for page in 1000..1500 {
        assert_eq!(version(&mapping, page).unwrap(), 1);
    }
    assert!(mapping.resident_pages() <= 32);
    for (page, frame) in (0..).zip(open) {
        assert_eq!(verify(page, &frame), Ok(9), "nobody else wrote to it");
        mapping.publish(PageNo(page), PRIORITY, frame).unwrap();
    }
    for page in 0..32 {
        assert_eq!(version(&mapping, page).unwrap(), 9);
    }
    device.assert_no_violation();
}

#[test]
fn a_page_is_evicted_for_an_open_frame_and_written_before_that() {
    let device = device();
    let mapping = mapping(&device, 64);
    for page in 0..64 {
        fresh(&mapping, page, 1).unwrap();
    }
    let open: Vec<_> = std::iter::from_fn(|| mapping.open_frame()).collect();
    assert_eq!(open.len(), 32);
    for page in 0..64 {
        assert_eq!(version(&mapping, page).unwrap(), 1);
    }
    device.assert_no_violation();
}

#[test]
fn no_frame_is_opened_while_readers_hold_all() {
    let mapping = mapping(&device(), 64);
    while_every_frame_is_held(&mapping, |release| {
        assert!(mapping.open_frame().is_none());
        assert_eq!(mapping.stats().frames_open, 0);
        release();
    });
    assert!(mapping.open_frame().is_some());
}

#[test]
fn no_frame_is_opened_while_the_device_takes_no_dirty_page() {
    let device = device();
    let mapping = Arc::new(mapping_with(&device, 64, |options| {
        options.dirty_share_percent = 90;
    }));
    device.write_failure_rate.store(1, SeqCst);
    while fresh(&mapping, 100 + mapping.stats().pages_dirty, 1).is_ok() {}
    let _open: Vec<_> = std::iter::from_fn(|| mapping.open_frame()).collect();
    assert!(mapping.stats().frames_open < 32);
    device.write_failure_rate.store(0, SeqCst);
    // An eviction that finds dirty pages only gives up after a few writes; the next one goes on behind them.
    assert!((0..8).any(|_| mapping.open_frame().is_some()));
}

#[test]
fn publishing_a_resident_page_replaces_it_and_leaves_it_to_its_readers() {
    let device = device();
    let mapping = mapping(&device, 64);
    publish(&mapping, 80, 1).unwrap();
    let ((reading, is_reading), (go, may_go)) = (mpsc::channel(), mpsc::channel::<()>());
    thread::scope(|scope| {
        let mapping = &mapping;
        scope.spawn(move || {
            mapping
                .read(any(80), |bytes| {
                    reading.send(()).unwrap();
                    may_go.recv().unwrap();
                    assert_eq!(verify(80, bytes), Ok(1));
                })
                .unwrap();
        });
        is_reading.recv().unwrap();
        publish(mapping, 80, 2).unwrap();
        assert_eq!(version(mapping, 80).unwrap(), 2);
        for page in 1000..1500 {
            publish(mapping, page, 1).unwrap();
        }
        go.send(()).unwrap();
    });
    assert_eq!(version(&mapping, 80).unwrap(), 2);
    assert_eq!(mapping.stats().frames_open, 0);
}

#[test]
fn publishing_waits_for_a_write_of_the_page_that_is_under_way() {
    let device = device();
    let mapping = mapping(&device, 64);
    publish(&mapping, 50, 1).unwrap();
    device.write_delay_us.store(30_000, SeqCst);
    thread::scope(|scope| {
        let first = scope.spawn(|| mapping.sync());
        while device.write_calls.load(SeqCst) == 0 {
            thread::yield_now();
        }
        publish(&mapping, 50, 2).unwrap();
        mapping.sync().unwrap();
        first.join().unwrap().unwrap();
    });
    device.assert_no_violation();
    assert_eq!(verify(50, &device.page(50)), Ok(2));
    assert_eq!(version(&mapping, 50).unwrap(), 2);
}

#[test]
fn pages_beyond_the_table_evict_others_or_are_written_at_once() {
    let device = device();
    let mapping = mapping(&device, 128);
    // A page in every stripe of the page array, of which a few only can have memory.
    for stripe in 0..60 {
        publish(&mapping, stripe * 1024, 1).unwrap();
    }
    assert!(mapping.stats().stripes_emptied > 0);
    for stripe in 0..60 {
        assert_eq!(version(&mapping, stripe * 1024).unwrap(), 1);
    }
    device.assert_no_violation();
}

#[test]
fn a_page_is_written_at_once_while_readers_hold_every_stripe() {
    let device = device();
    let mapping = mapping(&device, 64);
    // Readers of one page in each stripe that can have memory: none can be emptied.
    let stripes = (0..64)
        .take_while(|stripe| {
            version(&mapping, stripe * 1024).unwrap();
            mapping.stats().stripes_emptied == 0
        })
        .count() as u64;
    assert!(stripes < 60, "{stripes}");
    mapping.discard(PageNo(0), 1 << 16);
    let held = std::sync::Barrier::new(stripes as usize + 1);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for stripe in 0..stripes {
            let (mapping, held, done) = (&mapping, &held, &done);
            scope.spawn(move || {
                mapping
                    .read(any(stripe * 1024), |_| {
                        held.wait();
                        while !done.load(SeqCst) {
                            thread::yield_now();
                        }
                    })
                    .unwrap();
            });
        }
        held.wait();
        let page = 60 * 1024;
        let published = publish(&mapping, page, 5);
        let after = (mapping.stats(), verify(page, &device.page(page)));
        device.bad_writes.lock().insert(page + 1);
        let failed = publish(&mapping, page + 1, 5);
        done.store(true, SeqCst);
        published.unwrap();
        assert_eq!((after.0.pages_written_past, after.1), (1, Ok(5)));
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Io);
    });
    assert_eq!(version(&mapping, 60 * 1024).unwrap(), 5);
    let [open, free, resident] = frames(&mapping);
    assert_eq!((open, free + resident), (0, 64), "no frame is lost");
}

#[test]
fn a_failed_write_of_others_is_reported_and_the_page_is_there() {
    let device = device();
    let mapping = Arc::new(mapping_with(&device, 64, |options| {
        options.dirty_share_percent = 10;
    }));
    device.write_failure_rate.store(1, SeqCst);
    let failed: Vec<u64> = (0..16)
        .filter(|&page| publish(&mapping, page, 1).is_err())
        .collect();
    assert!(!failed.is_empty());
    for page in 0..16 {
        assert_eq!(version(&mapping, page).unwrap(), 1);
    }
    device.write_failure_rate.store(0, SeqCst);
    mapping.sync().unwrap();
    for page in 0..16 {
        assert_eq!(verify(page, &device.page(page)), Ok(1));
    }
    assert_eq!(mapping.stats().frames_open, 0);
}

#[test]
fn a_page_outside_the_volume_is_refused_and_the_frame_is_free_again() {
    let mapping = mapping(&device(), 64);
    let error = publish(&mapping, VOLUME_BYTES / 4096, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(frames(&mapping), [0, 64, 0]);
    assert_eq!(mapping.stats().pages_fresh, 0);
}

#[test]
fn a_frame_of_another_mapping_is_refused_and_goes_back_there() {
    let (ours, theirs) = (mapping(&device(), 64), mapping(&device(), 64));
    publish(&ours, 5, 1).unwrap();
    let frame = filled(&theirs, 5, 2).unwrap();
    let error = ours.publish(PageNo(5), PRIORITY, frame).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(version(&ours, 5).unwrap(), 1);
    assert_eq!(frames(&ours), [0, 63, 1]);
    assert_eq!(frames(&theirs), [0, 64, 0]);
}

#[test]
fn an_open_frame_outlives_the_other_handles_of_its_mapping() {
    let mapping = mapping(&device(), 64);
    let mut frame = filled(&mapping, 3, 4).unwrap();
    drop(mapping);
    assert_eq!(verify(3, &frame), Ok(4));
    frame.fill(0);
}

/// Writers fill open frames, hand them on and publish them; readers see whole pages, none older than what was published
/// before they began.
#[test]
fn readers_see_whole_published_pages_of_several_writers() {
    const WRITERS: u64 = 2;
    const PAGES: u64 = 96;
    let device = device();
    let mapping = mapping(&device, 64);
    let published: Vec<AtomicU64> = (0..WRITERS * PAGES).map(|_| AtomicU64::new(0)).collect();
    let writers_left = AtomicU64::new(WRITERS);
    thread::scope(|scope| {
        let (mapping, published, left) = (&mapping, &published, &writers_left);
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mut random = Random(writer);
                let mut open: VecDeque<(u64, u64, OpenFrame)> = VecDeque::new();
                for version in 1..4000 {
                    let page = writer * PAGES + random.below(PAGES);
                    // No page twice at once: its versions would pass each other.
                    if open.iter().any(|(other, ..)| *other == page) {
                        continue;
                    }
                    if let Some(frame) = filled(mapping, page, version) {
                        open.push_back((page, version, frame));
                    }
                    while open.len() > 12 {
                        let (page, version, frame) = open.pop_front().unwrap();
                        mapping.publish(PageNo(page), PRIORITY, frame).unwrap();
                        published[page as usize].store(version, SeqCst);
                    }
                }
                left.fetch_sub(1, SeqCst);
            });
        }
        for reader in 0..3 {
            scope.spawn(move || {
                let mut random = Random(100 + reader);
                while left.load(SeqCst) > 0 {
                    let page = random.below(WRITERS * PAGES);
                    let before = published[page as usize].load(SeqCst);
                    // Between two publications of a page nobody changes it, so what is read is never older.
                    let seen = version(mapping, page).unwrap();
                    assert!(seen >= before, "page {page}: {seen} after {before}");
                }
            });
        }
    });
    assert_eq!(mapping.stats().frames_open, 0);
    for (page, published) in (0..).zip(&published) {
        let last = published.load(SeqCst);
        assert_eq!(version(&mapping, page).unwrap(), last);
    }
    mapping.sync().unwrap();
    for (page, published) in (0..).zip(&published) {
        assert_eq!(verify(page, &device.page(page)), Ok(published.load(SeqCst)));
    }
    device.assert_no_violation();
}

#[test]
fn threads_together_never_open_more_than_the_share() {
    let mapping = mapping(&device(), 64);
    let held = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..2000 {
                    let mut open = Vec::new();
                    for i in 0..16 {
                        let Some(frame) = filled(&mapping, i, round) else {
                            break;
                        };
                        let most = held.fetch_add(1, SeqCst) + 1;
                        assert!(most <= 32, "{most} of 64 are open");
                        open.push(frame);
                    }
                    for (i, frame) in (0..).zip(open) {
                        assert_eq!(verify(i, &frame), Ok(round));
                        held.fetch_sub(1, SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(frames(&mapping), [0, 64, 0]);
}
