//! Fresh pages, writeback, sync and discard.

mod common;

use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use common::{
    Content, MemoryDevice, VOLUME_BYTES, any, fresh, mapping_with, mapping_with_frames, verify,
    version,
};
use kreon_base::{ErrorKind, PageNo};

fn device() -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new(VOLUME_BYTES, Content::Numbered))
}

#[test]
fn a_fresh_page_is_never_read_and_written_once() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    fresh(&mapping, 10, 1).unwrap();
    assert_eq!(version(&mapping, 10).unwrap(), 1);
    assert_eq!(verify(10, &device.page(10)), Ok(0));
    mapping.sync().unwrap();
    assert_eq!(verify(10, &device.page(10)), Ok(1));
    mapping.sync().unwrap();
    assert_eq!(device.reads(), 0);
    assert_eq!(device.writes(), [(10, 1)]);
    assert_eq!(mapping.stats().pages_dirty, 0);
}

#[test]
fn sync_writes_sorted_runs_of_up_to_a_mebibyte_in_one_call() {
    let device = device();
    let mapping = mapping_with_frames(&device, 2048);
    // Across a stripe of the page array, in no order.
    let mut pages: Vec<u64> = (900..1500).chain([5, 6, 7, 3000]).collect();
    pages.reverse();
    for &page in &pages {
        fresh(&mapping, page, 1).unwrap();
    }
    assert_eq!(device.writes(), []);
    mapping.sync().unwrap();
    assert_eq!(
        device.writes(),
        [(5, 3), (900, 256), (1156, 256), (1412, 88), (3000, 1)]
    );
    assert_eq!(device.write_calls.load(SeqCst), 1);
    let stats = mapping.stats();
    assert_eq!((stats.pages_written, stats.writes), (604, 5));
}

#[test]
fn dirty_pages_are_written_before_they_are_evicted() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    for page in 0..2000 {
        fresh(&mapping, page, 1).unwrap();
    }
    for page in 0..2000 {
        assert_eq!(version(&mapping, page).unwrap(), 1);
    }
    device.assert_no_violation();
}

#[test]
fn the_share_of_dirty_frames_stays_bounded() {
    let device = device();
    let mapping = mapping_with(&device, 512, |options| options.dirty_share_percent = 25);
    let mut most = 0;
    for page in 0..5000 {
        fresh(&mapping, page, 1).unwrap();
        most = most.max(mapping.stats().pages_dirty);
    }
    assert!(most <= 129, "{most} of 512");
    assert!(most > 64, "{most} of 512: written too eagerly to be merged");
    let runs = device.writes();
    assert!(runs.iter().map(|run| run.1).sum::<usize>() > 4800);
    assert!(runs.len() < 200, "{} runs", runs.len());
}

#[test]
fn a_failed_write_keeps_the_page_dirty() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    device.bad_writes.lock().insert(11);
    for page in 10..13 {
        fresh(&mapping, page, 1).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(mapping.sync().unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(mapping.stats().pages_dirty, 3);
    }
    assert_eq!(mapping.stats().write_errors, 3);
    for page in 10..13 {
        assert_eq!(version(&mapping, page).unwrap(), 1);
    }
    device.bad_writes.lock().clear();
    mapping.sync().unwrap();
    for page in 10..13 {
        assert_eq!(verify(page, &device.page(page)), Ok(1));
    }
    assert_eq!(mapping.stats().pages_dirty, 0);
}

#[test]
fn reads_go_on_and_nothing_is_lost_when_no_write_succeeds() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    device.write_failure_rate.store(1, SeqCst);
    let kept: Vec<u64> = (0..500)
        .filter(|&page| fresh(&mapping, page, 1).is_ok())
        .collect();
    assert!(kept.len() >= 32);
    for page in 1000..1200 {
        assert_eq!(version(&mapping, page).unwrap(), 0);
    }
    for &page in &kept {
        assert_eq!(version(&mapping, page).unwrap(), 1);
    }
    assert!(mapping.sync().is_err());
    device.write_failure_rate.store(0, SeqCst);
    mapping.sync().unwrap();
    for &page in &kept {
        assert_eq!(verify(page, &device.page(page)), Ok(1));
    }
}

#[test]
fn discarded_pages_are_never_written() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    for page in 100..120 {
        fresh(&mapping, page, 1).unwrap();
    }
    mapping.discard(PageNo(0), 110);
    mapping.sync().unwrap();
    assert_eq!(device.writes(), [(110, 10)]);
    assert_eq!(version(&mapping, 105).unwrap(), 0);
    mapping.discard(PageNo(0), 1 << 16);
    let stats = mapping.stats();
    assert_eq!(
        (stats.pages_resident, stats.frames_free, stats.pages_dirty),
        (0, 64, 0)
    );
}

#[test]
fn discard_waits_for_a_write_that_is_under_way() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    fresh(&mapping, 50, 1).unwrap();
    device.write_delay_us.store(50_000, SeqCst);
    thread::scope(|scope| {
        let sync = scope.spawn(|| mapping.sync());
        while device.write_calls.load(SeqCst) == 0 {
            thread::yield_now();
        }
        mapping.discard(PageNo(50), 1);
        assert!(device.fenced.lock().insert(50));
        sync.join().unwrap().unwrap();
    });
    device.assert_no_violation();
    assert_eq!(mapping.stats().pages_resident, 0);
}

#[test]
fn a_page_made_fresh_during_its_write_is_written_again_after_it() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    fresh(&mapping, 50, 1).unwrap();
    device.write_delay_us.store(30_000, SeqCst);
    thread::scope(|scope| {
        let first = scope.spawn(|| mapping.sync());
        while device.write_calls.load(SeqCst) == 0 {
            thread::yield_now();
        }
        fresh(&mapping, 50, 2).unwrap();
        mapping.sync().unwrap();
        first.join().unwrap().unwrap();
    });
    device.assert_no_violation();
    assert_eq!(verify(50, &device.page(50)), Ok(2));
    assert_eq!(version(&mapping, 50).unwrap(), 2);
}

#[test]
fn a_load_that_a_discard_overtook_is_not_kept() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    device.read_delay_us.store(50_000, SeqCst);
    thread::scope(|scope| {
        let reader = scope.spawn(|| mapping.read(any(60), |_| ()));
        while device.read_calls.load(SeqCst) == 0 {
            thread::yield_now();
        }
        mapping.discard(PageNo(60), 1);
        fresh(&mapping, 60, 3).unwrap();
        reader.join().unwrap().unwrap();
    });
    assert_eq!(version(&mapping, 60).unwrap(), 3);
    assert_eq!(device.reads(), 1);
    assert_eq!(mapping.stats().frames_free, 63);
}

#[test]
fn sync_waits_for_what_others_are_writing() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    fresh(&mapping, 70, 1).unwrap();
    device.write_delay_us.store(50_000, SeqCst);
    thread::scope(|scope| {
        let first = scope.spawn(|| mapping.sync());
        while device.write_calls.load(SeqCst) == 0 {
            thread::yield_now();
        }
        mapping.sync().unwrap();
        assert_eq!(verify(70, &device.page(70)), Ok(1));
        first.join().unwrap().unwrap();
    });
    assert_eq!(device.writes().len(), 1);
}

#[test]
fn sync_tries_itself_what_another_failed_to_write() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    fresh(&mapping, 70, 1).unwrap();
    device.write_delay_us.store(50_000, SeqCst);
    device.bad_writes.lock().insert(70);
    thread::scope(|scope| {
        let first = scope.spawn(|| mapping.sync());
        while device.write_calls.load(SeqCst) == 0 {
            thread::yield_now();
        }
        let second = scope.spawn(|| mapping.sync());
        assert!(first.join().unwrap().is_err());
        device.bad_writes.lock().clear();
        second.join().unwrap().unwrap();
    });
    assert_eq!(verify(70, &device.page(70)), Ok(1));
}

#[test]
fn readers_keep_a_discarded_page_until_they_are_done() {
    let mapping = mapping_with_frames(&device(), 64);
    fresh(&mapping, 80, 1).unwrap();
    let (reading, go) = (mpsc::channel(), mpsc::channel::<()>());
    thread::scope(|scope| {
        let (sender, receiver) = (reading.0, go.1);
        let mapping = &mapping;
        scope.spawn(move || {
            mapping
                .read(any(80), |bytes| {
                    sender.send(()).unwrap();
                    receiver.recv().unwrap();
                    assert_eq!(verify(80, bytes), Ok(1));
                })
                .unwrap();
        });
        reading.1.recv().unwrap();
        mapping.discard(PageNo(80), 1);
        fresh(mapping, 80, 2).unwrap();
        assert_eq!(version(mapping, 80).unwrap(), 2);
        for page in 1000..1500 {
            fresh(mapping, page, 1).unwrap();
        }
        thread::sleep(Duration::from_millis(5));
        go.0.send(()).unwrap();
    });
    assert_eq!(version(&mapping, 80).unwrap(), 2);
}
