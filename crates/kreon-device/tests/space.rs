//! Growing, allocating, discarding, and running out of space.

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;

use kreon_base::ErrorKind;
use kreon_device::{AlignedBuf, Device, FileOptions, Read, Write};
use support::{Scratch, Tmpfs, creating, device, pattern, ways};

const PAGE: u64 = 4096;

#[test]
fn a_file_grows_sparse_and_never_shrinks() {
    let scratch = Scratch::new();
    let path = scratch.path("volume");
    let device = device(&path, &creating(), 1 << 30);
    assert_eq!(device.len_bytes(), 1 << 30);
    device.grow(4096).unwrap();
    assert_eq!(
        (device.len_bytes(), fs::metadata(&path).unwrap().len()),
        (1 << 30, 1 << 30)
    );
    assert!(
        fs::metadata(&path).unwrap().blocks() * 512 < 1 << 20,
        "not sparse"
    );
}

#[test]
fn growth_stops_at_the_limit() {
    let scratch = Scratch::new();
    let limited = FileOptions {
        len_bytes_max: Some(8 * PAGE),
        ..creating()
    };
    let device = device(&scratch.path("volume"), &limited, 8 * PAGE);
    assert_eq!(device.len_bytes_max(), 8 * PAGE);
    let error = device.grow(9 * PAGE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfSpace);
    assert_eq!(device.len_bytes(), 8 * PAGE);
}

#[test]
fn allocated_space_is_real_and_discarded_space_is_given_back() {
    let scratch = Scratch::new();
    let path = scratch.path("volume");
    let device = device(&path, &creating(), 8 << 20);
    let used_bytes = || fs::metadata(&path).unwrap().blocks() * 512;
    device.allocate(1 << 20, 2 << 20).unwrap();
    if used_bytes() == 0 {
        eprintln!("skipped: the file system cannot allocate");
        return;
    }
    assert!((2 << 20..3 << 20).contains(&used_bytes()));
    assert_eq!(device.len_bytes(), 8 << 20);

    let bytes = pattern(1 << 20, 6);
    device.write_at(2 << 20, &bytes).unwrap();
    device.discard(2 << 20, 1 << 20).unwrap();
    device.flush().unwrap();
    assert!(used_bytes() < 2 << 20, "nothing was given back");
    let mut found = pattern(1 << 20, 0);
    device.read_at(2 << 20, &mut found).unwrap();
    assert!(found.iter().all(|&byte| byte == 0));
    assert_eq!(device.len_bytes(), 8 << 20);
}

#[test]
fn ranges_outside_are_refused() {
    let scratch = Scratch::new();
    let device = device(&scratch.path("volume"), &creating(), 8 * PAGE);
    for (offset, len_bytes) in [
        (0, 9 * PAGE),
        (1, PAGE),
        (PAGE, 100),
        (u64::MAX - 4095, PAGE),
    ] {
        for refused in [
            device.allocate(offset, len_bytes),
            device.discard(offset, len_bytes),
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
    }
    device.allocate(8 * PAGE, 0).unwrap();
    device.discard(0, 0).unwrap();
}

#[test]
fn a_full_disk_is_out_of_space_and_recovers() {
    for way in ways() {
        let Some(tmpfs) = Tmpfs::mount("1m") else {
            return;
        };
        let device = device(&tmpfs.folder.path("volume"), &way, 4 << 20);
        let kind = |result: kreon_base::Result<()>| result.unwrap_err().kind();
        assert_eq!(kind(device.allocate(0, 2 << 20)), ErrorKind::OutOfSpace);

        let bytes = pattern(512 << 10, 1);
        device.write_at(0, &bytes).unwrap();
        // Many writes, of which only some fit, and a single one.
        let writes: Vec<_> = (0..16)
            .map(|n| Write::new((1 << 20) + n * (128 << 10), &bytes[..128 << 10]))
            .collect();
        assert_eq!(kind(device.write(&writes)), ErrorKind::OutOfSpace);
        assert_eq!(
            kind(device.write_at(3 << 20, &bytes)),
            ErrorKind::OutOfSpace
        );

        // Earlier data is intact, and space that is freed can be used.
        let mut found = AlignedBuf::new(bytes.len());
        device.read(&mut [Read::new(0, &mut found)]).unwrap();
        assert_eq!(found[..], bytes[..]);
        device.discard(1 << 20, 3 << 20).unwrap();
        if cfg!(not(feature = "portable")) {
            device.write_at(3 << 20, &bytes[..256 << 10]).unwrap();
        }
        device.flush().unwrap();
    }
}
