//! Reading pages and ranges of bytes.

mod common;

use std::cell::Cell;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Barrier};
use std::thread;

use common::{
    Content, MemoryDevice, VOLUME_BYTES, any, fill, mapping_with_frames, version,
    while_every_frame_is_held,
};
use kreon_base::{Error, ErrorKind, PageNo, Priority};
use kreon_mapping::{Mapping, PageRequest};

fn device() -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new(VOLUME_BYTES, Content::Numbered))
}

#[test]
fn a_page_is_read_from_the_device_once() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    for _ in 0..1000 {
        assert_eq!(version(&mapping, 7).unwrap(), 0);
    }
    assert_eq!(device.reads(), 1);
    let stats = mapping.stats();
    assert_eq!((stats.hits, stats.misses, stats.pages_read), (999, 1, 1));
    assert_eq!(stats.pages_resident, 1);
    assert_eq!(stats.frames_free, 63);
}

#[test]
fn hits_of_more_threads_than_there_are_counters_are_all_counted() {
    const THREADS: u64 = 100;
    let mapping = mapping_with_frames(&device(), 64);
    version(&mapping, 7).unwrap();
    let barrier = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                // All are alive at once, so each has a number of its own.
                version(&mapping, 7).unwrap();
                barrier.wait();
                for _ in 0..99 {
                    version(&mapping, 7).unwrap();
                }
            });
        }
    });
    let stats = mapping.stats();
    assert_eq!((stats.hits, stats.misses), (THREADS * 100, 1));
}

#[test]
fn the_check_runs_once_for_each_load() {
    let mapping = mapping_with_frames(&device(), 64);
    let runs = std::sync::atomic::AtomicU64::new(0);
    let request = PageRequest {
        check: &|_| {
            runs.fetch_add(1, SeqCst);
            Ok(())
        },
        ..any(3)
    };
    for _ in 0..10 {
        mapping.read(request, |_| ()).unwrap();
    }
    assert_eq!(runs.load(SeqCst), 1);
    mapping.discard(PageNo(3), 1);
    mapping.read(request, |_| ()).unwrap();
    assert_eq!(runs.load(SeqCst), 2);
}

#[test]
fn threads_that_miss_the_same_page_share_one_read() {
    let device = device();
    device.read_delay_us.store(20_000, SeqCst);
    let mapping = mapping_with_frames(&device, 64);
    let barrier = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                assert_eq!(version(&mapping, 5).unwrap(), 0);
            });
        }
    });
    assert_eq!(device.reads(), 1);
    assert_eq!(mapping.stats().pages_resident, 1);
}

#[test]
fn reads_nest_deeper_than_a_thread_has_pins() {
    fn nest(mapping: &Mapping, depth: u64) -> u64 {
        if depth == 0 {
            return 0;
        }
        let inner = || nest(mapping, depth - 1);
        mapping
            .read(any(depth), |bytes| {
                let sum = inner();
                common::verify(depth, bytes).unwrap();
                sum + depth
            })
            .unwrap()
    }
    let mapping = mapping_with_frames(&device(), 64);
    assert_eq!(nest(&mapping, 20), 210);
    assert_eq!(nest(&mapping, 20), 210);
}

#[test]
fn a_pinned_page_survives_the_eviction_of_everything_else() {
    let mapping = mapping_with_frames(&device(), 64);
    mapping
        .read(any(0), |bytes| {
            for page in 1..1000 {
                assert_eq!(version(&mapping, page).unwrap(), 0);
            }
            assert_eq!(common::verify(0, bytes), Ok(0));
        })
        .unwrap();
    assert!(mapping.stats().pages_evicted > 900);
}

#[test]
fn pages_are_served_when_readers_hold_every_frame() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    while_every_frame_is_held(&mapping, |_| {
        assert_eq!(mapping.stats().frames_free, 0);
        let before = mapping.stats().pages_read_past;
        for page in 1000..1010 {
            assert_eq!(version(&mapping, page).unwrap(), 0);
        }
        assert_eq!(mapping.stats().pages_read_past, before + 10);
        // A fresh page goes to the device at once.
        common::fresh(&mapping, 2000, 9).unwrap();
        assert_eq!(common::verify(2000, &device.page(2000)), Ok(9));
        assert_eq!(version(&mapping, 2000).unwrap(), 9);
    });
    assert_eq!(version(&mapping, 1000).unwrap(), 0);
    assert_eq!(version(&mapping, 1000).unwrap(), 0);
    assert!(mapping.stats().frames_free > 0 || mapping.stats().pages_resident == 64);
}

#[test]
fn higher_priority_numbers_are_evicted_first() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    let with = |page, priority| {
        let request = PageRequest {
            priority: Priority(priority),
            ..any(page)
        };
        mapping.read(request, |_| ()).unwrap();
    };
    (0..32).for_each(|page| with(page, 1));
    (100..400).for_each(|page| with(page, 255));
    let before = device.reads();
    (0..32).for_each(|page| with(page, 1));
    assert_eq!(
        device.reads(),
        before,
        "index pages were evicted by log pages"
    );
}

#[test]
fn pages_that_are_read_again_get_a_second_chance() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    for page in 0..10_000 {
        version(&mapping, 20_000 + page).unwrap();
        version(&mapping, page % 8).unwrap();
    }
    let misses = mapping.stats().misses;
    assert!(
        misses < 10_000 + 2500,
        "{misses} misses: the 8 hot pages were evicted like the others"
    );
}

#[test]
fn prefetch_merges_neighbours_and_reads_what_is_missing() {
    let device = device();
    let mapping = mapping_with_frames(&device, 256);
    version(&mapping, 12).unwrap();
    let pages = [40, 11, 10, 13, 12, 41, 14, 10, 44, 90];
    let requests: Vec<_> = pages.iter().map(|&page| any(page)).collect();
    let calls = device.read_calls.load(SeqCst);
    mapping.prefetch(&requests).unwrap();
    // 10-14, page 12 once more into a frame of nobody; 40-44; 90.
    assert_eq!(device.reads(), 1 + 3);
    assert_eq!(mapping.stats().pages_resident, 9);
    assert_eq!(device.read_calls.load(SeqCst), calls + 1);
    for page in pages {
        assert_eq!(version(&mapping, page).unwrap(), 0);
    }
    assert_eq!(device.reads(), 4);
    mapping.prefetch(&requests).unwrap();
    assert_eq!(device.reads(), 4);
    assert_eq!(mapping.stats().frames_free, 256 - 9);
}

#[test]
fn prefetch_of_more_pages_than_frames_ends() {
    let mapping = mapping_with_frames(&device(), 64);
    let requests: Vec<_> = (0..3000).map(any).collect();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| mapping.prefetch(&requests).unwrap());
        }
    });
    for page in (0..3000).step_by(100) {
        assert_eq!(version(&mapping, page).unwrap(), 0);
    }
}

#[test]
fn ranges_of_bytes_equal_what_the_device_holds() {
    let device = device();
    let mapping = mapping_with_frames(&device, 256);
    let expected: Vec<u8> = (0..600).flat_map(|page| *device.page(page)).collect();
    common::fresh(&mapping, 300, 0).unwrap();
    let mut scratch = Vec::new();
    for (offset, len) in [
        (0, 0),
        (5, 1),
        (4095, 1),
        (4090, 12),
        (8192, 4096),
        (100, 65_536),
        (77, 65_537),
        (4096, 1 << 20),
        (1234, 2_200_000),
        // One page more than the length says, in both windows.
        (4095, 65_538),
        ((2 << 20) - 40_001, 80_002),
    ] {
        let want = &expected[offset as usize..offset as usize + len];
        let mut got = vec![0xEE; len];
        mapping.read_bytes(offset, Priority(255), &mut got).unwrap();
        assert!(got == want, "read_bytes {len} at {offset}");
        let same = mapping
            .with_bytes(offset, len, Priority(255), &mut scratch, |bytes| {
                bytes == want
            })
            .unwrap();
        assert!(same, "with_bytes {len} at {offset}");
    }
}

#[test]
fn a_record_over_several_pages_is_one_read() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    let mut bytes = vec![0; 10_000];
    mapping.read_bytes(4000, Priority(255), &mut bytes).unwrap();
    assert_eq!(device.reads(), 1);
    mapping.read_bytes(4000, Priority(255), &mut bytes).unwrap();
    assert_eq!(device.reads(), 1);
    let mut long = vec![0; 300_000];
    mapping.read_bytes(0, Priority(255), &mut long).unwrap();
    assert_eq!(device.reads(), 2);
    assert_eq!(mapping.stats().pages_resident, 4);
}

#[test]
fn a_long_range_sees_dirty_pages_even_without_a_pin_left() {
    fn nest(mapping: &Mapping, depth: u64, then: &dyn Fn()) {
        match depth {
            0 => then(),
            _ => mapping
                .read(any(depth), |_| nest(mapping, depth - 1, then))
                .unwrap(),
        }
    }
    let mapping = mapping_with_frames(&device(), 64);
    common::fresh(&mapping, 101, 5).unwrap();
    let expected: Vec<u8> = (100..130)
        .flat_map(|page| *fill(page, if page == 101 { 5 } else { 0 }))
        .collect();
    nest(&mapping, 12, &|| {
        let mut got = vec![0; 30 * 4096];
        mapping
            .read_bytes(100 * 4096, Priority(255), &mut got)
            .unwrap();
        assert!(got == expected);
    });
}

#[test]
fn pages_outside_the_volume_are_refused() {
    let mapping = mapping_with_frames(&device(), 64);
    let beyond = VOLUME_BYTES / 4096;
    for page in [beyond, u64::MAX >> 12, u64::MAX] {
        let error = mapping.read(any(page), |_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let request = [any(page)];
        assert_eq!(
            mapping.prefetch(&request).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        assert!(common::fresh(&mapping, page, 1).is_err());
        mapping.discard(PageNo(page), 3);
    }
    let mut byte = [0];
    assert!(
        mapping
            .read_bytes(VOLUME_BYTES, Priority(0), &mut byte)
            .is_err()
    );
    assert!(
        mapping
            .read_bytes(u64::MAX, Priority(0), &mut byte)
            .is_err()
    );
    mapping.discard(PageNo(0), u64::MAX);
}

#[test]
fn a_failed_check_or_read_leaves_nothing_behind() {
    let device = device();
    let mapping = mapping_with_frames(&device, 64);
    let healthy = Cell::new(false);
    let bad = PageRequest {
        check: &|_| Err(Error::corruption("bad")),
        ..any(9)
    };
    for _ in 0..200 {
        assert_eq!(
            mapping.read(bad, |_| ()).unwrap_err().kind(),
            ErrorKind::Corruption
        );
    }
    device.bad_reads.lock().insert(9);
    for _ in 0..200 {
        assert_eq!(
            mapping.read(any(9), |_| ()).unwrap_err().kind(),
            ErrorKind::Io
        );
    }
    device.bad_reads.lock().clear();
    device.short_reads.store(true, SeqCst);
    for page in 0..200 {
        assert_eq!(
            mapping.read(any(page), |_| ()).unwrap_err().kind(),
            ErrorKind::Io
        );
    }
    device.short_reads.store(false, SeqCst);
    assert_eq!(mapping.stats().frames_free, 64);
    // Nor do they use up room in the page array: more of its stripes than there is room for.
    for page in (0..VOLUME_BYTES / 4096).step_by(1024) {
        assert!(
            mapping
                .read(
                    PageRequest {
                        page: PageNo(page),
                        ..bad
                    },
                    |_| ()
                )
                .is_err()
        );
    }
    for page in (0..VOLUME_BYTES / 4096).step_by(1024) {
        assert_eq!(version(&mapping, page).unwrap(), 0);
    }
    assert_eq!(mapping.stats().pages_read_past, 0);
    mapping.discard(PageNo(0), u64::MAX);
    mapping
        .read(any(9), |bytes| {
            healthy.set(common::verify(9, bytes) == Ok(0))
        })
        .unwrap();
    assert!(healthy.get());
}

#[test]
fn a_prefetch_with_one_bad_page_brings_the_others() {
    let device = device();
    let mapping = mapping_with_frames(&device, 256);
    device.bad_reads.lock().extend([7, 20]);
    let bad_check = |_: &_| Err(Error::corruption("bad"));
    // Page 7 lies in a gap that is read along: that it is bad is nobody's business.
    let mut requests: Vec<_> = [5, 6, 8, 20, 21, 30].into_iter().map(any).collect();
    requests.push(PageRequest {
        check: &bad_check,
        ..any(31)
    });
    assert!(mapping.prefetch(&requests).is_err());
    assert_eq!(mapping.stats().pages_resident, 5);
    assert!(mapping.prefetch(&requests[..3]).is_ok());
    let reads = device.reads();
    for page in [5, 6, 8, 21, 30] {
        assert_eq!(version(&mapping, page).unwrap(), 0);
    }
    assert_eq!(device.reads(), reads);
    assert!(mapping.read(any(20), |_| ()).is_err());
    assert_eq!(version(&mapping, 31).unwrap(), 0);
}

#[test]
fn a_check_that_panics_does_not_block_the_page() {
    let mapping = mapping_with_frames(&device(), 64);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let request = PageRequest {
            check: &|_| panic!("check"),
            ..any(4)
        };
        mapping.read(request, |_| ())
    }));
    assert!(caught.is_err());
    assert_eq!(version(&mapping, 4).unwrap(), 0);
    assert_eq!(mapping.stats().frames_free, 63);
}
