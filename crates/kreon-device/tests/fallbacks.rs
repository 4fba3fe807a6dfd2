//! File systems without some features.

mod support;

use kreon_base::ErrorKind;
use kreon_device::{AlignedBuf, Device, Facility, FileOptions};
use support::{Ramfs, Scratch, creating, device, pattern};

#[test]
fn a_file_system_that_cannot_allocate_or_punch_holes_does_without() {
    let Some(ramfs) = Ramfs::mount() else {
        return;
    };
    let device = device(&ramfs.folder.path("volume"), &creating(), 1 << 20);
    let page = pattern(4096, 1);
    device.write_at(8192, &page).unwrap();
    // The first call finds out, the second does not try again.
    for _ in 0..2 {
        device.allocate(0, 1 << 20).unwrap();
        device.discard(8192, 4096).unwrap();
    }
    let mut found = AlignedBuf::new(4096);
    device.read_at(8192, &mut found).unwrap();
    assert!(found[..] == page[..], "what cannot be discarded stays");
    let stats = device.stats();
    assert_eq!((stats.allocations, stats.discards), (2, 2));
}

#[cfg(any(not(target_os = "linux"), feature = "portable"))]
#[test]
fn other_systems_than_linux_do_without_direct_io_rings_allocation_and_holes() {
    use std::os::unix::fs::MetadataExt;
    let scratch = Scratch::new();
    let path = scratch.path("volume");
    let device = device(&path, &creating(), 8 << 20);
    assert!(!device.is_direct() && !device.has_rings() && device.read_queue().is_none());
    device.allocate(0, 4 << 20).unwrap();
    let used_bytes = || std::fs::metadata(&path).unwrap().blocks() * 512;
    assert!(used_bytes() < 1 << 20, "nothing is allocated ahead");
    let bytes = pattern(1 << 20, 1);
    device.write_at(2 << 20, &bytes).unwrap();
    device.flush().unwrap();
    device.discard(2 << 20, 1 << 20).unwrap();
    let mut found = AlignedBuf::new(1 << 20);
    device.read_at(2 << 20, &mut found).unwrap();
    assert!(found[..] == bytes[..], "what cannot be discarded stays");
}

#[test]
fn what_the_file_system_cannot_grow_to_is_an_error_and_changes_nothing() {
    let scratch = Scratch::new();
    let path = scratch.path("volume");
    let device = device(&path, &creating(), 1 << 20);
    // No file can be that long: lengths are signed.
    let error = device.grow(u64::MAX - 4095).unwrap_err();
    assert_ne!(error.kind(), ErrorKind::OutOfSpace);
    assert!(error.to_string().contains("grow to"), "{error}");
    assert_eq!(device.len_bytes(), 1 << 20);
    device.grow(2 << 20).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 2 << 20);
}

#[test]
fn a_device_tells_what_it_is() {
    let scratch = Scratch::new();
    let path = scratch.path("volume");
    let options = FileOptions {
        direct: Facility::Off,
        ..creating()
    };
    let device = device(&path, &options, 8192);
    assert_eq!(device.path(), path);
    let text = format!("{device:?}");
    for part in [
        path.to_str().unwrap(),
        "Regular",
        "8192",
        "is_direct: false",
    ] {
        assert!(text.contains(part), "{text}");
    }
}
