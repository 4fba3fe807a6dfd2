//! Single records that are kept without their pages.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use common::{Content, MemoryDevice, Random, VOLUME_BYTES, any, fill, mapping_with};
use kreon_base::{PageNo, Priority};
use kreon_mapping::{KeepRecords, Mapping};
use parking_lot::RwLock;

const FRAMES: u64 = 1200;

const LAST: Priority = Priority(255);

fn device() -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new(VOLUME_BYTES, Content::Numbered))
}

fn mapping(device: &Arc<MemoryDevice>) -> Mapping {
    mapping_with(device, FRAMES, |options| {
        options.modes.records = KeepRecords::Always;
    })
}

fn read(mapping: &Mapping, offset: u64, len: usize) -> Vec<u8> {
    mapping
        .with_bytes(offset, len, LAST, &mut Vec::new(), <[u8]>::to_vec)
        .expect("a record")
}

/// The bytes that the device holds.
fn held(device: &MemoryDevice, offset: u64, len: usize) -> Vec<u8> {
    (offset..offset + len as u64)
        .map(|at| device.page(at / 4096)[(at % 4096) as usize])
        .collect()
}

#[test]
fn a_record_is_read_once_and_equals_what_the_device_holds() {
    let device = device();
    let mapping = mapping(&device);
    let places = [
        (0, 1),
        (100, 1000),
        (4000, 3072),
        (5 * 4096 - 1, 2),
        (9999, 17),
    ];
    for (offset, len) in places {
        assert_eq!(read(&mapping, offset, len), held(&device, offset, len));
    }
    let calls = device.read_calls.load(SeqCst);
    assert_eq!(
        calls,
        places.len() as u64,
        "one read each, two pages or one"
    );
    for (offset, len) in places {
        assert_eq!(read(&mapping, offset, len), held(&device, offset, len));
    }
    assert_eq!(device.read_calls.load(SeqCst), calls);
    assert_eq!(mapping.stats().record_hits, places.len() as u64);
    // The start of one that is kept serves, more than that does not.
    assert_eq!(read(&mapping, 100, 10), held(&device, 100, 10));
    assert_eq!(read(&mapping, 100, 1001), held(&device, 100, 1001));
    assert_eq!(read(&mapping, 100, 1001), held(&device, 100, 1001));
    assert_eq!(device.read_calls.load(SeqCst), calls + 1);
}

#[test]
fn a_kept_record_counts_as_there_until_it_is_forgotten() {
    let device = device();
    let mapping = mapping(&device);
    // In pages 0 and 1.
    let (offset, len) = (4000, 500);
    assert!(!mapping.has_bytes(offset, len));
    read(&mapping, offset, len);
    assert!(mapping.has_bytes(offset, len) && !mapping.is_resident(PageNo(0)));
    assert!(!mapping.has_bytes(offset, len + 1));
    let calls = device.read_calls.load(SeqCst);
    // One of its pages alone changes nothing.
    mapping.read(any(1), |_| ()).unwrap();
    assert!(mapping.has_bytes(offset, len));
    assert_eq!(read(&mapping, offset, len), held(&device, offset, len));
    assert_eq!(device.read_calls.load(SeqCst), calls + 1, "page 1 only");
    mapping.discard(PageNo(300), 1);
    assert!(!mapping.has_bytes(offset, len));
}

#[test]
fn a_discard_of_any_page_of_the_segment_forgets_its_records() {
    let device = device();
    let mapping = mapping(&device);
    read(&mapping, 4096, 500);
    read(&mapping, 2 << 20, 500);
    device.put(1, fill(1, 7));
    mapping.discard(PageNo(300), 1);
    assert_eq!(read(&mapping, 4096, 500), fill(1, 7)[..500]);
    let calls = device.read_calls.load(SeqCst);
    read(&mapping, 2 << 20, 500);
    assert_eq!(device.read_calls.load(SeqCst), calls, "another segment");
}

#[test]
fn a_record_whose_read_a_discard_overtook_is_not_kept() {
    let device = device();
    let mapping = mapping(&device);
    device.read_delay_us.store(100_000, SeqCst);
    thread::scope(|scope| {
        scope.spawn(|| read(&mapping, 4096, 500));
        while device.read_calls.load(SeqCst) == 0 {
            thread::yield_now();
        }
        mapping.discard(PageNo(1), 1);
    });
    device.read_delay_us.store(0, SeqCst);
    device.put(1, fill(1, 9));
    assert_eq!(read(&mapping, 4096, 500), fill(1, 9)[..500]);
}

#[test]
fn nothing_is_kept_of_a_read_that_failed() {
    let device = device();
    let mapping = mapping(&device);
    device.bad_reads.lock().insert(3);
    let get = |offset| mapping.with_bytes(offset, 500, LAST, &mut Vec::new(), |_| ());
    assert!(get(3 * 4096).is_err());
    assert!(get(3 * 4096 - 100).is_err());
    device.bad_reads.lock().clear();
    device.short_reads.store(true, SeqCst);
    assert!(get(3 * 4096).is_err());
    device.short_reads.store(false, SeqCst);
    assert_eq!(read(&mapping, 3 * 4096, 500), held(&device, 3 * 4096, 500));
    assert_eq!(mapping.stats().record_hits, 0);
}

#[test]
fn hot_records_stay_while_cold_ones_pass_by() {
    let device = device();
    let mapping = mapping(&device);
    let mut random = Random(1);
    // Memory has room for 4600 records; 1000 are hot, each alone on its page.
    let hot = |number: u64| number * 10 * 4096;
    let mut hits = 0;
    for round in 0..24_000 {
        let before = mapping.stats().record_hits;
        read(&mapping, hot(random.below(1000)), 1000);
        if round >= 12_000 {
            hits += mapping.stats().record_hits - before;
        }
        read(&mapping, random.below(VOLUME_BYTES - 1000), 1000);
    }
    assert!(hits > 11_500, "{hits} of 12000");
    assert!(mapping.stats().frames_of_records <= FRAMES);
}

#[test]
fn pages_that_matter_more_take_frames_from_records_and_give_them_back() {
    let device = device();
    let mapping = mapping(&device);
    let fill_with_records = || {
        for number in 0..8_000 {
            read(&mapping, number * 16_384, 1000);
        }
        mapping.stats().frames_of_records
    };
    assert!(fill_with_records() > FRAMES * 9 / 10);
    for page in 0..FRAMES * 9 / 10 {
        mapping.read(any(40_000 + page), |_| ()).expect("a page");
    }
    let stats = mapping.stats();
    assert!(stats.pages_resident >= FRAMES * 9 / 10, "{stats:?}");
    mapping.discard(PageNo(40_000), FRAMES);
    assert!(fill_with_records() > FRAMES * 9 / 10);
}

/// Pages whose versions change while nobody reads them, in segments that others read.
#[test]
fn eight_threads_see_the_present_version_of_every_record() {
    const PAGES: u64 = 3000;
    let device = device();
    let mapping = mapping(&device);
    let versions: Vec<_> = (0..PAGES).map(|_| RwLock::new(0_u64)).collect();
    let (stop, hits) = (AtomicBool::new(false), AtomicU64::new(0));
    let work = |thread: u64| {
        let mut random = Random(thread << 32);
        while !stop.load(SeqCst) {
            // Half of the reads go to a tenth of the pages.
            let range = [PAGES, PAGES / 10][random.below(2) as usize];
            let i = random.below(range);
            let page = i * 21;
            match random.below(1000) {
                0 => {
                    let mut version = versions[i as usize].write();
                    mapping.discard(PageNo(page), 1);
                    *version += 1;
                    device.put(page, fill(page, *version));
                }
                1..20 => mapping
                    .read(any(40_000 + random.below(500)), |_| ())
                    .expect("a page"),
                _ => {
                    let version = versions[i as usize].read();
                    let (from, len) = (random.below(4) * 1000, 1000 + (i % 90) as usize);
                    let len = len.min(4096 - from as usize);
                    let seen = read(&mapping, page * 4096 + from, len);
                    let from = from as usize;
                    assert_eq!(seen, fill(page, *version)[from..from + len], "page {page}");
                    hits.fetch_add(1, SeqCst);
                }
            }
        }
    };
    thread::scope(|scope| {
        (0..8).for_each(|thread| {
            drop(scope.spawn({
                let work = &work;
                move || work(thread)
            }))
        });
        thread::sleep(Duration::from_millis(400));
        stop.store(true, SeqCst);
    });
    let stats = mapping.stats();
    assert!(
        stats.record_hits > 100 && stats.frames_of_records > 500,
        "{stats:?}"
    );
}
