//! The image of the index that a clean close writes.

use std::sync::Arc;

use kreon_base::ErrorKind;
use kreon_device::Device;
use kreon_sim::{SimDevice, Version};
use kvell::Durability::{Buffered, Sync};
use kvell::format::{EXTENT_BYTES, IMAGE_BLOCK_BYTES, ImagePlace, State};
use kvell::{Options, Region, Stats, Store};

use crate::superblocks::on_device;
use crate::world::{from_image, open, options, simulated, value};

const KEYS: u64 = 900;

const SECTOR_BYTES: u64 = 512;

/// Short keys, longer ones that begin alike, and some longer than a head part has room for.
fn key(number: u64) -> Vec<u8> {
    match number % 3 {
        0 => number.to_be_bytes().to_vec(),
        1 => format!("{}{number}", "alike".repeat(9)).into_bytes(),
        _ => format!("{}{number}", "long".repeat(110)).into_bytes(),
    }
}

fn len_bytes_of(number: u64) -> usize {
    match number {
        // Two parts.
        100 | 101 => 300_000,
        _ => [30, 400, 2000, 9000][number as usize / 3 % 4],
    }
}

/// Puts, changes that leave outdated items behind, and deletions over some of these.
fn fill(region: &Region) {
    for round in 0..3 {
        for number in 0..KEYS {
            let value = value(number + round, len_bytes_of(number));
            region.put(key(number), value, Buffered).expect("a put");
        }
    }
    for number in (0..KEYS).step_by(7) {
        region.delete(key(number), Buffered).expect("a deletion");
    }
    region.put(key(1), "last", Sync).expect("a put");
}

fn check(store: &Store) {
    let region = store.region("r").expect("the region");
    for number in 0..KEYS {
        let expected = match number {
            1 => Some(b"last".to_vec()),
            _ if number % 7 == 0 => None,
            _ => Some(value(number + 2, len_bytes_of(number))),
        };
        assert_eq!(region.get(key(number)).expect("a get"), expected);
    }
}

/// A device with a store that was closed, and where the image is.
fn closed(len_bytes_max: u64) -> (Arc<SimDevice>, Option<ImagePlace>) {
    let device = simulated(len_bytes_max);
    let store = open(&device, &options());
    fill(&store.region("r").expect("a region"));
    store.close().expect("a close");
    let superblock = on_device(&device).expect("a superblock");
    assert_eq!(superblock.state, State::Clean);
    (device, superblock.image)
}

fn without_memory(stats: Stats) -> Stats {
    Stats {
        index_bytes: 0,
        memory_bytes: 0,
        device: Default::default(),
        ..stats
    }
}

/// The same device with one bit of the byte at `offset` flipped.
fn damaged(device: &SimDevice, offset: u64) -> Arc<SimDevice> {
    let mut image = device.image();
    image.flip_bit(offset, 2);
    from_image(image, 1 << 40)
}

fn refusal(device: &Arc<SimDevice>, options: &Options) -> Option<ErrorKind> {
    let device: Arc<dyn Device> = Arc::clone(device) as _;
    options.open_on(device).err().map(|error| error.kind())
}

#[test]
fn an_opening_by_the_image_finds_what_reading_everything_finds() {
    let (device, place) = closed(1 << 40);
    let place = place.expect("an image");
    let by_image = open(&from_image(device.image(), 1 << 40), &options());
    let by_reading = open(&damaged(&device, place.offset + 99), &options());
    let stats = [&by_image, &by_reading].map(|store| without_memory(store.stats()));
    assert!(stats[0].outdated_items > 0 && stats[0].tombstones > 0);
    assert_eq!(stats[0], stats[1]);
    for store in [&by_image, &by_reading] {
        check(store);
        // Both go on as one that was never closed.
        fill(&store.region("r").expect("the region"));
        check(store);
    }
}

#[test]
fn an_opening_by_the_image_reads_no_extent() {
    let (device, place) = closed(1 << 40);
    let place = place.expect("an image");
    let bad_header = damaged(&device, EXTENT_BYTES as u64);
    assert_eq!(refusal(&bad_header, &options()), None);
    let both = damaged(&damaged(&device, EXTENT_BYTES as u64), place.offset + 99);
    assert_eq!(refusal(&both, &options()), Some(ErrorKind::Corruption));
}

#[test]
fn an_image_of_several_blocks_of_each_partition_is_read() {
    let options = Options {
        index_key_bytes: 256,
        memory_bytes: 32 << 20,
        ..options()
    };
    let device = simulated(1 << 40);
    let store = open(&device, &options);
    let region = store.region("r").expect("a region");
    let keys: Vec<String> = (0..12_000).map(|number| format!("{number:0250}")).collect();
    for some in keys.chunks(1000) {
        let puts: Vec<_> = some.iter().map(|key| (key, Some(key))).collect();
        region.write_many(&puts, Buffered).expect("puts");
    }
    drop(region);
    store.close().expect("a close");
    let place = on_device(&device).and_then(|it| it.image);
    let blocks = place.map_or(0, |it| it.bytes / IMAGE_BLOCK_BYTES as u64);
    assert!(blocks > 10, "{blocks}");
    // Without the image this one would be refused.
    let store = open(&damaged(&device, EXTENT_BYTES as u64), &options);
    let region = store.region("r").expect("the region");
    assert!(store.stats().keys >= 12_000);
    let mut count = 0;
    for (key, found) in keys.iter().zip(region.iter().keys()) {
        assert_eq!(found.expect("a key"), key.as_bytes());
        count += 1;
    }
    assert_eq!(count, 12_000);
}

#[test]
fn damage_anywhere_in_an_image_has_everything_read() {
    let (device, place) = closed(1 << 40);
    let place = place.expect("an image");
    for part in 0..16 {
        let at = place.offset + part * (place.bytes / 16) + part;
        check(&open(&damaged(&device, at), &options()));
    }
}

#[test]
fn an_image_for_other_bytes_of_each_key_is_not_used() {
    let (device, _) = closed(1 << 40);
    let fewer = Options {
        index_key_bytes: 5,
        ..options()
    };
    check(&open(&device, &fewer));
}

#[test]
fn a_store_without_room_for_an_image_is_closed_without() {
    let (device, place) = closed(1 << 40);
    // The image lies right behind what is in use.
    let full = place.expect("an image").offset;
    for room in [0, 4096] {
        let mut image = device.image();
        image.set_len(full);
        let device = from_image(image, full + room);
        open(&device, &options()).close().expect("a close");
        let superblock = on_device(&device).expect("a superblock");
        assert_eq!((superblock.image, superblock.state), (None, State::Clean));
        check(&open(&device, &options()));
    }
}

#[test]
fn an_open_store_has_no_image() {
    let (device, place) = closed(1 << 40);
    assert!(place.is_some());
    let store = open(&device, &options());
    let superblock = on_device(&device).expect("a superblock");
    assert_eq!((superblock.image, superblock.state), (None, State::Dirty));
    store
        .region("r")
        .and_then(|it| it.put("new", "", Sync))
        .expect("a put");
    // The newest superblock is lost: the one before tells of no image either.
    let slot = superblock.offset();
    let store = open(&damaged(&device, slot + 30), &options());
    let region = store.region("r").expect("the region");
    assert_eq!(region.get("new").expect("a get"), Some(Vec::new()));
}

#[test]
fn a_store_opens_after_a_power_cut_that_takes_the_discard_of_its_image_back() {
    let closed = simulated(1 << 40);
    let store = open(&closed, &options());
    let region = store.region("r").expect("a region");
    region.put("key", "value", Sync).expect("a put");
    drop(region);
    store.close().expect("a close");
    let image = on_device(&closed).and_then(|it| it.image);
    let start = image.expect("an image").offset / SECTOR_BYTES;
    let device = from_image(closed.image(), 1 << 40);
    let store = open(&device, &options());
    let region = store.region("r").expect("the region");
    // The end of the extents moves on over the place of the image, before any other flush.
    region
        .put("more", value(1, 70_000), Buffered)
        .expect("a put");
    let history = device.history();
    let mut crash = history.crash_after(0);
    while crash.advance() {
        // All that is not flushed arrives, but nothing behind what was in use.
        let mut keep =
            |sector: u64, versions: &[Version]| (sector < start).then(|| versions.len() - 1);
        let events = crash.events();
        let device: Arc<dyn Device> = from_image(crash.image(&mut keep), 1 << 40);
        let opened = options().open_on(device);
        opened.unwrap_or_else(|error| panic!("after event {events}: {error}"));
    }
}
