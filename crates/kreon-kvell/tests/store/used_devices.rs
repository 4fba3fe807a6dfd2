//! Devices that had other content, and the end of the extents in use.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use kreon_base::{ErrorKind, PAGE_BYTES};
use kreon_device::Device;
use kreon_sim::{Call, Content, Dice, Effect, Event, Fault, Image, Keep, SimDevice};
use kvell::Durability::Sync;
use kvell::format::{EXTENT_BYTES, SUPERBLOCK_SLOTS};
use kvell::{Options, Region, Store};

use crate::world::{from_image, open, options, simulated, value};

/// The first byte behind the superblocks.
const BEHIND: u64 = (SUPERBLOCK_SLOTS * PAGE_BYTES) as u64;

fn noise(seed: u64, len_bytes: usize) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    let words = std::iter::repeat_with(move || dice.roll().to_le_bytes());
    words.flatten().take(len_bytes).collect()
}

/// A device full of noise but for its first pages.
fn used(len_bytes: usize) -> Image {
    let mut image = Image::new(len_bytes as u64);
    image.write(BEHIND, &noise(1, len_bytes - BEHIND as usize));
    image
}

fn len_bytes_of(number: u64) -> usize {
    [30, 400, 5000, 100_000][number as usize % 4]
}

/// Items of several classes, in so many rounds that extents are needed besides the first ones.
fn fill(region: &Region) {
    for number in 0..40 {
        let value = value(number, len_bytes_of(number));
        region.put([number as u8], value, Sync).expect("a put");
    }
}

fn check(store: &Store) {
    let region = store.region("r").expect("the region");
    for number in 0..40 {
        let found = region.get([number as u8]).expect("a get");
        assert_eq!(found, Some(value(number, len_bytes_of(number))));
    }
}

#[test]
fn a_file_with_other_content_behind_its_first_pages_becomes_a_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let file = OpenOptions::new().write(true).create_new(true).open(&path);
    let file = file.expect("a file");
    // The last extent is there by half.
    let len_bytes = 20 * EXTENT_BYTES + EXTENT_BYTES / 2;
    file.set_len(len_bytes as u64).expect("a length");
    file.write_all_at(&noise(2, len_bytes - BEHIND as usize), BEHIND)
        .expect("noise");
    let store = options().open(&path).expect("a store");
    fill(&store.region("r").expect("a region"));
    store.close().expect("a close");
    check(&options().open(&path).expect("the store"));
}

/// Where a file system tells blocks that are only reserved from written ones; elsewhere no file has a hole.
#[cfg(target_os = "linux")]
#[test]
fn extents_of_a_new_file_are_written_to_their_ends() {
    use rustix::fs::{SeekFrom, seek};
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let store = options().open(&path).expect("a store");
    let region = store.region("r").expect("a region");
    region.put([1], value(1, 400), Sync).expect("a put");
    let file = std::fs::File::open(&path).expect("the file");
    let hole = seek(&file, SeekFrom::Hole(EXTENT_BYTES as u64)).expect("the first hole");
    assert_eq!(hole, file.metadata().expect("its length").len());
}

#[test]
fn a_used_device_is_recovered_after_any_event_of_a_load() {
    let device = from_image(used(12 << 20), 80 << 20);
    let store = open(&device, &options());
    fill(&store.region("r").expect("a region"));
    let history = device.history();
    let mut crash = history.crash_after(0);
    let mut image = crash.image(&mut Keep::All);
    let mut events = 0;
    while crash.advance() {
        events += 1;
        if events % 7 == 0 {
            for keep in [&mut Keep::All, &mut Keep::Nothing] {
                let device = from_image(crash.image(keep), 80 << 20);
                let device: std::sync::Arc<dyn Device> = device;
                let opened = options().open_on(device);
                opened.unwrap_or_else(|error| panic!("after event {events}: {error}"));
            }
        }
        image = crash.image(&mut Keep::Nothing);
    }
    check(&open(&from_image(image, 80 << 20), &options()));
}

#[test]
fn a_device_with_other_content_in_its_first_pages_is_refused_and_stays_as_it_is() {
    for page in 0..SUPERBLOCK_SLOTS {
        let mut image = Image::new(8 << 20);
        image.write((page * PAGE_BYTES) as u64, &noise(3, PAGE_BYTES));
        let before = image.digest();
        let device = from_image(image, 8 << 20);
        let refused = options().open_on(device.clone());
        let error = refused.err().expect("a refusal");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert_eq!(device.image().digest(), before);
    }
}

/// Whether a store opens, with all that it had, after damage to one slot of the superblock.
fn survives_damage_to_each_slot(device: &SimDevice) {
    for slot in 0..SUPERBLOCK_SLOTS {
        let mut image = device.image();
        image.flip_bit((slot * PAGE_BYTES + 40) as u64, 3);
        check(&open(&from_image(image, 1 << 40), &options()));
    }
}

#[test]
fn damage_to_one_slot_of_the_superblock_loses_no_extent() {
    let device = simulated(1 << 40);
    let store = open(&device, &options());
    fill(&store.region("r").expect("a region"));
    // The end moved with the first extent, and no superblock was written since.
    survives_damage_to_each_slot(&device);
    store.close().expect("a close");
    survives_damage_to_each_slot(&device);
}

#[test]
fn other_content_in_the_first_pages_is_refused_unless_it_is_to_be_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, len_bytes) in [9, 5000, 30_000, 3 * EXTENT_BYTES].into_iter().enumerate() {
        let path = folder.path().join(format!("content-{number}"));
        let content = noise(number as u64, len_bytes);
        std::fs::write(&path, &content).expect("a file");
        let refused = options().open(&path).map(|_| ());
        assert_eq!(
            refused.map_err(|error| error.kind()),
            Err(ErrorKind::InvalidArgument)
        );
        let left = std::fs::read(&path).expect("the file");
        assert!(
            left == content,
            "{len_bytes} bytes of content are untouched"
        );
        let format = Options {
            format: true,
            ..options()
        };
        let store = format.open(&path).expect("a store over it");
        fill(&store.region("r").expect("a region"));
        store.close().expect("a close");
        // A store is opened, not made anew.
        check(&format.open(&path).expect("the store"));
    }
}

#[test]
fn no_volume_of_a_known_engine_is_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    for label in ["KreonVol", "KvellVol", "TucanVol"] {
        let path = folder.path().join(label);
        let mut content = noise(1, EXTENT_BYTES);
        content[8..16].copy_from_slice(label.as_bytes());
        std::fs::write(&path, &content).expect("a file");
        let format = Options {
            format: true,
            ..options()
        };
        assert!(format.open(&path).is_err(), "{label}");
        assert!(
            std::fs::read(&path).expect("the file") == content,
            "{label}"
        );
    }
}

/// In a file a block that was never written needs a flush to last, whatever the device promises.
#[test]
fn without_flushes_extents_are_written_as_a_whole_and_flushed_before_they_are_used() {
    let device = simulated(1 << 40);
    // As a file does: it does not know what is blank.
    device.inject(Fault::nth(u64::MAX, Call::Read, Effect::Io));
    let lossless = Options {
        assume_power_loss_protection: true,
        ..options()
    };
    let store = open(&device, &lossless);
    fill(&store.region("r").expect("a region"));
    let (mut written, mut durable, mut headers) = (BTreeSet::new(), BTreeSet::new(), 0);
    for event in device.history().events {
        match event {
            Event::FlushEnded { .. } => durable.append(&mut written),
            Event::WriteBegan {
                offset, content, ..
            } if offset % EXTENT_BYTES as u64 == 0 && offset > 0 => match content {
                Content::Bytes(bytes) if bytes.len() == EXTENT_BYTES => {
                    written.insert(offset);
                }
                Content::Bytes(bytes) if bytes.iter().any(|&byte| byte != 0) => {
                    assert!(durable.contains(&offset), "extent at {offset}");
                    headers += 1;
                }
                _ => {}
            },
            _ => {}
        }
    }
    assert!(headers > 5, "{headers}");
}
