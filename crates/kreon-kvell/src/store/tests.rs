//! Durable marks, with another time between them than that of a store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{PAGE_BYTES, PageBytes};
use kreon_device::Device;
use kreon_sim::{Call, SimDevice, SimOptions};

use super::handle::Handle;
use super::region::Region;
use super::running::{Crew, Running};
use crate::format::{SUPERBLOCK_SLOTS, State, Superblock, newest};
use crate::opening::{Opening, open};
use crate::partition::Durability::Buffered;

/// For slow machines: marks come within milliseconds.
const LONG: Duration = Duration::from_secs(20);

/// A store whose marks are written every `marks_every`.
fn started(device: &Arc<SimDevice>, marks_every: Duration) -> (Arc<Handle>, Region) {
    let opening = Opening {
        partitions: 3,
        atomic_bytes: 512,
        index_key_bytes: 32,
        memory_bytes: 4 << 20,
        is_lossless: false,
        store: None,
        creates: true,
        formats: false,
        threads: 1,
    };
    let device: Arc<dyn Device> = Arc::clone(device) as _;
    let opened = open(device, &opening).expect("a store");
    let crew = Crew {
        workers: 2,
        depth: 8,
        marks_every,
    };
    let running = Running::start(opened, crew).expect("workers");
    let handle = Arc::new(Handle::new(running));
    let region = Region::new(Arc::clone(&handle), 1);
    (handle, region)
}

fn on_device(device: &SimDevice) -> Superblock {
    let bytes = device.image().bytes(0, SUPERBLOCK_SLOTS * PAGE_BYTES);
    let (pages, _): (&[PageBytes], _) = bytes.as_chunks();
    let slots = pages.first_chunk::<SUPERBLOCK_SLOTS>().expect("all slots");
    newest(slots).expect("whole").expect("a superblock")
}

fn marks_known(handle: &Handle) -> Vec<u64> {
    let shared = handle.shared().expect("it is open");
    let marks = shared.partitions.iter().map(|partition| {
        let last = partition.look(|partition| partition.parts().last.0);
        last.expect("it works")
    });
    marks.collect()
}

#[test]
fn marks_of_all_changes_are_written_when_their_time_has_come() {
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let (handle, region) = started(&device, Duration::from_millis(1));
    for number in 0..30_u8 {
        region
            .put([number], vec![number; 700], Buffered)
            .expect("a put");
    }
    let start = Instant::now();
    loop {
        let superblock = on_device(&device);
        let written: Vec<u64> = superblock.durable.iter().map(|mark| mark.0).collect();
        assert_eq!(superblock.state, State::Dirty);
        if written == marks_known(&handle) {
            break;
        }
        assert!(start.elapsed() < LONG, "{written:?}");
        std::thread::yield_now();
    }
    handle.close().expect("a close");
    assert_eq!(on_device(&device).state, State::Clean);
}

#[test]
fn no_marks_are_written_before_their_time() {
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let (handle, region) = started(&device, Duration::from_secs(100_000));
    let before = on_device(&device).durable;
    for number in 0..30_u8 {
        region
            .put([number], vec![number; 700], Buffered)
            .expect("a put");
    }
    handle
        .shared()
        .and_then(|shared| shared.sync())
        .expect("a sync");
    assert_eq!(on_device(&device).durable, before);
    handle.close().expect("a close");
}

#[test]
fn a_store_without_news_writes_no_marks() {
    let device = Arc::new(SimDevice::new(SimOptions::default()));
    let (handle, region) = started(&device, Duration::from_millis(1));
    region.put("key", "value", Buffered).expect("a put");
    let start = Instant::now();
    let is_marked = || {
        let written = on_device(&device).durable;
        let known = marks_known(&handle);
        written.iter().zip(known).all(|(mark, last)| mark.0 == last)
    };
    while !is_marked() {
        assert!(start.elapsed() < LONG, "no marks");
        std::thread::yield_now();
    }
    let (sequence, flushes) = (on_device(&device).sequence, device.calls(Call::Flush));
    let shared = handle.shared().expect("it is open");
    // Whenever their time comes again.
    assert!((0..100).all(|_| !shared.ask_for_marks()));
    assert_eq!(on_device(&device).sequence, sequence);
    assert!(device.calls(Call::Flush) <= flushes + 1);
    handle.close().expect("a close");
}
