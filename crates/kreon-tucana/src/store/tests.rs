//! Tests that need the parts of a store.

use std::sync::Arc;

use kreon_base::{ErrorKind, LogId, PageNo, RegionId};
use kreon_device::Device;
use kreon_format::MOVED_SEQUENCE_MIN;
use kreon_sim::{Call, Effect, Fault, Image, Keep, SimDevice, SimOptions};
use kreon_volume::Purpose;

use super::opening;
use super::options::{Durability, Maintenance, Options};
use super::region_key::{key_within, tree_range};
use super::region_state::RegionState;
use super::regions::{NAMES, Regions};
use super::shared::Shared;
use crate::log::Record;
use crate::tree::{Cursor, Direction};

fn options() -> Options {
    Options {
        memory_bytes: 2 << 20,
        volume_bytes_max: 32 << 20,
        maintenance: Maintenance::Callers,
        ..Options::default()
    }
}

fn open(image: Image) -> (Arc<SimDevice>, Shared) {
    let device = Arc::new(SimDevice::from_image(image, SimOptions::default()));
    let opened = opening::open(Arc::clone(&device) as Arc<dyn Device>, &options()).unwrap();
    (device, Shared::begin(opened, &options()).unwrap())
}

/// A write in region 1.
fn write(
    shared: &Shared,
    key: &[u8],
    value: Option<&[u8]>,
    durability: Durability,
) -> kreon_base::Result<bool> {
    shared.write(&RegionState::new(1, "r"), key, value, durability)
}

fn get(shared: &Shared, key: &[u8]) -> kreon_base::Result<Option<Vec<u8>>> {
    shared.get_with(&RegionState::new(1, "r"), key, <[u8]>::to_vec)
}

/// A store that holds one key, with nothing of it in memory.
fn reopened() -> (Arc<SimDevice>, Shared) {
    let (device, shared) = open(Image::new(0));
    let put = write(&shared, b"key", Some(b"old"), Durability::Buffered);
    assert!(!put.unwrap());
    shared.commit().unwrap();
    open(device.image())
}

fn value_after_a_crash(device: &SimDevice) -> Option<Vec<u8>> {
    let image = device.history().crash().image(&mut Keep::Nothing);
    get(&open(image).1, b"key").unwrap()
}

/// The leaf cannot be read, so the write is refused when its record is in the log already.
#[test]
fn a_refused_write_is_not_replayed() {
    let (device, shared) = reopened();
    device.inject(Fault::nth(1, Call::Read, Effect::Io).for_ever());
    let refused = write(&shared, b"key", Some(b"new"), Durability::Buffered);
    assert!(refused.is_err());
    device.clear_faults();
    shared.sync().unwrap();
    assert_eq!(value_after_a_crash(&device).as_deref(), Some(&b"old"[..]));
    assert_eq!(get(&shared, b"key").unwrap().as_deref(), Some(&b"old"[..]));
}

/// Not even if no commit can leave it behind.
#[test]
fn a_refused_write_is_not_replayed_if_nothing_can_be_committed() {
    let (device, shared) = reopened();
    shared.pages.stock().unwrap();
    let take = || {
        let mut allocator = shared.home.allocator.lock();
        allocator.allocate_pages(512, Purpose::Maintenance)
    };
    while take().is_ok() {}
    device.inject(Fault::nth(1, Call::Read, Effect::Io).for_ever());
    let refused = write(&shared, b"key", Some(b"new"), Durability::Buffered);
    assert!(refused.is_err());
    device.clear_faults();
    // It may not become durable by others' hands.
    let _ = shared.sync();
    assert_eq!(value_after_a_crash(&device).as_deref(), Some(&b"old"[..]));
}

/// Nothing of the volume is free any more, neither now nor in the next durable state.
fn use_up(shared: &Shared) {
    let mut allocator = shared.home.allocator.lock();
    while let Ok((first, count)) = allocator.allocate_pages(512, Purpose::Maintenance) {
        let pages: Vec<_> = (first.0..first.0 + count).map(PageNo).collect();
        allocator.keep_pages(&pages).unwrap();
    }
    assert_eq!(allocator.free_segment_count(), 0);
}

/// No segment of the volume is free any more; pages are.
fn use_up_segments(shared: &Shared) {
    let (other_log, sequence) = (LogId(9), MOVED_SEQUENCE_MIN);
    let mut allocator = shared.home.allocator.lock();
    while allocator.free_segment_count() > 0 {
        let taken = allocator.allocate_log_segment(other_log, sequence, Purpose::Maintenance);
        taken.unwrap();
    }
}

fn is_refused(put: kreon_base::Result<bool>) -> bool {
    put.is_err_and(|error| error.kind() == ErrorKind::OutOfSpace)
}

const BUFFERED: Durability = Durability::Buffered;
const KEYS: u8 = 200;

/// One opening after the other, each with a log of its own, in a volume that has no room for any of them.
#[test]
fn openings_need_nothing_that_is_free() {
    let (mut device, mut shared) = open(Image::new(0));
    for number in 0..KEYS {
        write(&shared, &[number], Some(b"value"), BUFFERED).unwrap();
    }
    use_up(&shared);
    for gone in 0..20 {
        use_up_segments(&shared);
        shared.commit().unwrap();
        let deleted = write(&shared, &[gone], None, Durability::Sync);
        assert!(deleted.unwrap_or_else(|error| panic!("deletion {gone}: {error}")));
        if gone % 3 == 1 {
            shared.commit().unwrap();
        }
        let image = device.history().crash().image(&mut Keep::Nothing);
        (device, shared) = open(image);
        let is_there = |number: u8| get(&shared, &[number]).unwrap().is_some();
        assert!((0..KEYS).all(|number| is_there(number) == (number > gone)));
        // The log of this opening has no values, so the next one needs no more than this.
        assert!(is_refused(write(&shared, b"new", Some(b""), BUFFERED)));
    }
}

/// The same where nothing was written between them.
#[test]
fn openings_that_write_nothing_take_nothing() {
    let (mut device, shared) = open(Image::new(0));
    write(&shared, b"key", Some(b"value"), BUFFERED).unwrap();
    use_up(&shared);
    shared.commit().unwrap();
    drop(shared);
    for round in 0..6 {
        let image = device.history().crash().image(&mut Keep::Nothing);
        let (again, shared) = open(image);
        assert!(get(&shared, b"key").unwrap().is_some(), "round {round}");
        use_up_segments(&shared);
        shared.commit().unwrap();
        device = again;
    }
}

/// Nodes that deletions have copied take all pages that were left; a replay copies them again, and commits.
#[test]
fn a_replay_has_the_pages_that_it_needs() {
    let (device, shared) = open(Image::new(0));
    let key = |number: u32| number.to_be_bytes();
    let count = 16_000_u32;
    for number in 0..count {
        write(&shared, &key(number), Some(b""), BUFFERED).unwrap();
    }
    shared.commit().unwrap();
    use_up(&shared);
    shared.commit().unwrap();
    let mut opened = 0;
    // One of each leaf, or of its neighbour.
    for number in (0..count).step_by(110) {
        assert!(write(&shared, &key(number), None, Durability::Sync).unwrap());
        let image = device.history().crash().image(&mut Keep::Nothing);
        let (_, again) = open(image);
        assert!(get(&again, &key(number)).unwrap().is_none());
        opened += 1;
    }
    assert!(opened > 100, "{opened} openings");
    for number in (0..count).filter(|number| number % 110 != 0) {
        let deleted = write(&shared, &key(number), None, BUFFERED);
        assert!(deleted.unwrap_or_else(|error| panic!("{number}: {error}")));
    }
}

#[test]
fn moved_records_have_a_segment_where_none_is_free_and_leave_those_of_openings() {
    let (_device, shared) = open(Image::new(0));
    write(&shared, b"key", Some(b"value"), BUFFERED).unwrap();
    use_up(&shared);
    let long = vec![7; 1 << 20];
    let record = Record {
        region: RegionId(1),
        key: b"key",
        value: Some(&long),
    };
    let moved = [(); 3].map(|()| shared.log.append_moved(&record).map(drop));
    assert!(moved[0].is_ok());
    assert_eq!(moved[1].as_ref().unwrap_err().kind(), ErrorKind::OutOfSpace);
    // Less is on standby than new data wants, and nothing can be had for it.
    assert!(is_refused(write(&shared, b"new", Some(b""), BUFFERED)));
    assert!(write(&shared, b"key", None, BUFFERED).unwrap());
}

#[test]
fn what_is_missing_on_standby_is_taken_where_there_is_room() {
    let (_device, shared) = open(Image::new(0));
    write(&shared, b"key", Some(b"value"), BUFFERED).unwrap();
    let standby = &shared.home.standby;
    assert!(standby.take_for_collection().is_some());
    assert!(standby.take_for_collection().is_none() && !standby.is_whole());
    write(&shared, b"new", Some(b"value"), BUFFERED).unwrap();
    assert!(standby.is_whole());
}

/// The last region has nothing behind it, and no number comes after it.
#[test]
fn the_last_numbers_are_regions_like_others_and_there_is_none_behind_them() {
    let (_device, shared) = open(Image::new(0));
    let names = RegionState::new(NAMES, "");
    let largest = (u32::MAX - 2).to_le_bytes();
    shared.write(&names, b"", Some(&largest), BUFFERED).unwrap();
    let regions = Regions::new();
    let made = ["a", "b"].map(|name| regions.get_or_make(&shared, name).unwrap());
    assert_eq!(
        made.each_ref().map(|it| it.number),
        [u32::MAX - 1, u32::MAX]
    );
    let refused = regions.get_or_make(&shared, "c").err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::OutOfSpace);
    assert_eq!(regions.list(&shared).unwrap(), ["a", "b"]);
    let keys: [&[u8]; 3] = [b"", b"key", &[0xff; 1024]];
    for region in &made {
        for key in keys {
            shared
                .write(region, key, Some(&region.number.to_be_bytes()), BUFFERED)
                .unwrap();
        }
    }
    for direction in [Direction::Forward, Direction::Reverse] {
        for region in &made {
            let mut cursor = Cursor::new(tree_range(region.number, ..), direction);
            let mut found = Vec::new();
            let take = |key: &[u8], value: &[u8]| (key_within(key).to_vec(), value.to_vec());
            while let Some((key, value)) = shared.tree.next(&mut cursor, take).unwrap() {
                assert_eq!(value, region.number.to_be_bytes());
                found.push(key);
            }
            if direction == Direction::Reverse {
                found.reverse();
            }
            assert_eq!(found, keys);
        }
    }
    regions.finish_drops(&shared).unwrap();
    assert!(get_of(&shared, u32::MAX, b"key").is_some());
    regions.drop_region(&shared, "b").unwrap();
    assert!(get_of(&shared, u32::MAX, b"key").is_none());
    assert!(get_of(&shared, u32::MAX - 1, b"key").is_some());
}

fn get_of(shared: &Shared, number: u32, key: &[u8]) -> Option<Vec<u8>> {
    let region = RegionState::new(number, "");
    shared.get_with(&region, key, <[u8]>::to_vec).unwrap()
}
