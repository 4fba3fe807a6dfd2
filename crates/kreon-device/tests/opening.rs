//! Each invalid path has its error kind, and the lock excludes other openings.

mod support;

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

use kreon_base::{Error, ErrorKind};
use kreon_device::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN, Device, Facility, FileDevice, FileOptions};
use support::{Scratch, Tmpfs, creating, device, pattern, run};

fn refused(path: &Path, options: &FileOptions) -> Error {
    match FileDevice::open(path, options) {
        Ok(_) => panic!("{} opened", path.display()),
        Err(error) => error,
    }
}

fn existing() -> FileOptions {
    FileOptions::default()
}

fn reading() -> FileOptions {
    FileOptions {
        read_only: true,
        ..FileOptions::default()
    }
}

#[test]
fn a_file_is_created_once() {
    let scratch = Scratch::new();
    let path = scratch.path("volume");
    let (first, created) = FileDevice::open(&path, &creating()).unwrap();
    assert!(created);
    assert_eq!((first.len_bytes(), first.len_bytes_max()), (0, u64::MAX));
    drop(first);
    assert!(!FileDevice::open(&path, &creating()).unwrap().1);
}

#[test]
fn what_is_missing_is_not_found() {
    let scratch = Scratch::new();
    let missing = refused(&scratch.path("volume"), &existing());
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(!scratch.path("volume").exists());
    let no_parent = refused(&scratch.path("no/volume"), &creating());
    assert_eq!(no_parent.kind(), ErrorKind::NotFound);
    assert!(no_parent.to_string().contains("no/volume"), "{no_parent}");
}

#[test]
fn what_is_no_file_is_an_invalid_argument() {
    let scratch = Scratch::new();
    let folder = refused(&scratch.path("."), &creating());
    assert_eq!(folder.kind(), ErrorKind::InvalidArgument);
    assert!(folder.to_string().contains("a directory"), "{folder}");

    assert!(run("mkfifo", &[], &scratch.path("pipe")));
    let _socket = UnixListener::bind(scratch.path("socket")).unwrap();
    for other in [
        scratch.path("pipe"),
        scratch.path("socket"),
        "/dev/null".into(),
    ] {
        let error = refused(&other, &creating());
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }

    fs::write(scratch.path("file"), "").unwrap();
    let below_a_file = refused(&scratch.path("file/volume"), &creating());
    assert_eq!(below_a_file.kind(), ErrorKind::InvalidArgument);
    let long_name = refused(&scratch.path(&"x".repeat(300)), &creating());
    assert_eq!(long_name.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn options_out_of_range_are_invalid_arguments() {
    let scratch = Scratch::new();
    for ring_depth in [0, 4097] {
        let options = FileOptions {
            ring_depth,
            ..creating()
        };
        let error = refused(&scratch.path("volume"), &options);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    let options = FileOptions {
        read_only: true,
        ..creating()
    };
    let error = refused(&scratch.path("volume"), &options);
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(!scratch.path("volume").exists());
}

#[test]
fn a_second_open_finds_it_busy() {
    let scratch = Scratch::new();
    let path = scratch.path("volume");
    let first = device(&path, &creating(), 4096);
    assert_eq!(refused(&path, &creating()).kind(), ErrorKind::Busy);
    assert_eq!(refused(&path, &reading()).kind(), ErrorKind::Busy);
    drop(first);
    let _readers = [reading(), reading()].map(|o| FileDevice::open(&path, &o).unwrap());
    assert_eq!(refused(&path, &existing()).kind(), ErrorKind::Busy);
}

#[test]
fn another_process_finds_it_busy() {
    let scratch = Scratch::new();
    let path = scratch.path("volume");
    let first = device(&path, &creating(), 4096);
    let mut flock = std::process::Command::new("flock");
    flock.arg("--nonblock").arg(&path).arg("true");
    let Ok(status) = flock.status() else {
        eprintln!("skipped: there is no flock(1) here");
        return;
    };
    assert!(!status.success(), "another process got the lock");
    drop(first);
    assert!(flock.status().unwrap().success());
}

#[test]
fn an_open_right_after_a_close_succeeds() {
    let scratch = Scratch::new();
    let path = scratch.path("volume");
    drop(device(&path, &creating(), 4096));
    for _ in 0..50 {
        // A ring that is being torn down must not keep the lock.
        let (device, _) = FileDevice::open(&path, &existing()).unwrap();
        let mut pages = [pattern(4096, 1), pattern(4096, 2)];
        let [a, b] = &mut pages;
        let mut reads = [a, b].map(|page| kreon_device::Read::new(0, page));
        device.read(&mut reads).unwrap();
    }
}

#[test]
fn a_read_only_device_reads_and_refuses_the_rest() {
    let scratch = Scratch::new();
    let path = scratch.path("volume");
    let page = pattern(4096, 3);
    device(&path, &creating(), 8192)
        .write_at(4096, &page)
        .unwrap();
    let (device, _) = FileDevice::open(&path, &reading()).unwrap();
    let mut found = pattern(4096, 0);
    device.read_at(4096, &mut found).unwrap();
    assert_eq!(found[..], page[..]);
    let refusals = [
        device.write_at(0, &page),
        device.grow(1 << 20),
        device.allocate(0, 4096),
        device.discard(0, 4096),
    ];
    for refusal in refusals {
        let error = refusal.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnly);
        assert!(error.to_string().contains("reading only"), "{error}");
    }
    assert_eq!(device.len_bytes(), 8192);
}

#[test]
fn a_read_only_file_system_is_an_io_error() {
    let Some(tmpfs) = Tmpfs::mount("1m") else {
        return;
    };
    fs::write(tmpfs.folder.path("volume"), "").unwrap();
    if !run("mount", &["-o", "remount,ro"], &tmpfs.folder.path("")) {
        eprintln!("skipped: remounting is not permitted here");
        return;
    }
    for path in ["volume", "new"] {
        let error = refused(&tmpfs.folder.path(path), &creating());
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(
            error.to_string().contains("Read-only file system"),
            "{error}"
        );
    }
    FileDevice::open(tmpfs.folder.path("volume"), &reading()).unwrap();
}

#[test]
fn the_block_is_a_power_of_two_up_to_a_page() {
    let scratch = Scratch::new();
    let direct = device(&scratch.path("direct"), &creating(), 4096);
    let block_bytes = direct.block_bytes();
    assert!(block_bytes.is_power_of_two());
    assert!((BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block_bytes));
    let wide = FileOptions {
        block_bytes_min: 3000,
        ..creating()
    };
    assert_eq!(
        device(&scratch.path("wide"), &wide, 4096).block_bytes(),
        4096
    );
}

#[test]
fn refused_facilities_are_replaced() {
    let scratch = Scratch::new();
    let options = FileOptions {
        direct: Facility::Off,
        ring: Facility::Off,
        ..creating()
    };
    let device = device(&scratch.path("volume"), &options, 1 << 20);
    assert!(!device.is_direct() && !device.has_rings() && device.free_bytes().is_some());
    assert_eq!(
        device.block_bytes(),
        BLOCK_BYTES_MAX,
        "the page cache's unit"
    );
}

#[test]
fn refused_direct_io_goes_through_the_page_cache() {
    // Files in `/proc` do not support direct I/O.
    let path = Path::new("/proc/version");
    if !path.exists() {
        eprintln!("skipped: there is no /proc here");
        return;
    }
    let (device, _) = FileDevice::open(path, &reading()).unwrap();
    assert!(!device.is_direct());
    assert_eq!(device.block_bytes(), BLOCK_BYTES_MAX);
}
