//! Queues of transfers of real files: failures of the system, locks, forked children.

mod support;

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::ErrorKind;
use kreon_device::{AlignedBuf, Device, FileDevice, FileOptions, ReadOnlyDevice, Transferred};
use support::{
    FOR_EVER, Scratch, Tmpfs, creating, device, finish, is_pattern, kinds, pattern, ways,
};

const PAGE: usize = 4096;

#[test]
fn a_wait_sleeps_for_its_patience() {
    for way in ways() {
        let scratch = Scratch::new();
        let device = Arc::new(device(&scratch.path("volume"), &way, 1 << 20));
        let mut queue = device.transfer_queue(4);
        let start = Instant::now();
        // A wait may return early, but not always.
        for _ in 0..10 {
            queue.wait(Duration::from_millis(20));
        }
        assert!(start.elapsed() >= Duration::from_millis(20));
    }
}

#[test]
fn a_read_that_ends_early_says_where() {
    for way in ways() {
        let scratch = Scratch::new();
        let path = scratch.path("volume");
        let device = Arc::new(device(&path, &way, 16 * PAGE as u64));
        device.write_at(0, &pattern(16 * PAGE, 4)).unwrap();
        // Bypasses the device.
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(9 * PAGE as u64).unwrap();
        let mut queue = Arc::clone(&device).transfer_queue(8);
        for others in [0, 2] {
            queue.read(9, 8 * PAGE as u64, AlignedBuf::new(4 * PAGE), 4 * PAGE);
            (0..others).for_each(|tag| queue.read(tag, 0, AlignedBuf::new(PAGE), PAGE));
            let mut ended = finish(&mut *queue);
            ended.sort_by_key(|one| one.tag);
            let error = ended.pop().unwrap().outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io);
            let text = error.to_string();
            assert!(
                text.contains("read 12288 bytes at 36864") && text.contains("volume"),
                "{text}"
            );
            assert!(ended.iter().all(|one| one.outcome.is_ok()));
        }
        assert_eq!(device.stats().reads.count, 4, "each once");
    }
}

#[test]
fn writes_without_space_fail_one_by_one() {
    let Some(tmpfs) = Tmpfs::mount("64k") else {
        return;
    };
    for (number, way) in ways().iter().enumerate() {
        let path = tmpfs.folder.path(&format!("volume-{number}"));
        let device = Arc::new(device(&path, way, 1 << 20));
        let mut queue = Arc::clone(&device).transfer_queue(32);
        for tag in 0..32 {
            queue.write(tag, tag * PAGE as u64, pattern(PAGE, tag), PAGE);
        }
        let (done, failed): (Vec<_>, Vec<_>) = finish(&mut *queue)
            .into_iter()
            .partition(|one| one.outcome.is_ok());
        assert!((1..=16).contains(&done.len()), "{} fit", done.len());
        assert_eq!(failed.len(), 32 - done.len());
        for Transferred { outcome, tag, .. } in failed {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfSpace, "{error}");
            let place = format!("write 4096 bytes at {}", tag * PAGE as u64);
            assert!(error.to_string().contains(&place), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_device_for_reading_only_refuses_writes() {
    let scratch = Scratch::new();
    let path = scratch.path("volume");
    device(&path, &creating(), 16 * PAGE as u64)
        .write_at(0, &pattern(PAGE, 1))
        .unwrap();
    let open = |read_only| {
        let options = FileOptions {
            read_only,
            ..FileOptions::default()
        };
        Arc::new(FileDevice::open(&path, &options).unwrap().0)
    };
    let check = |device: Arc<dyn Device>, flush: Option<ErrorKind>| {
        let mut queue = device.transfer_queue(4);
        queue.write(0, 0, pattern(PAGE, 2), PAGE);
        queue.read(1, 0, AlignedBuf::new(PAGE), PAGE);
        queue.flush(2);
        assert_eq!((queue.in_flight(), queue.room()), (3, 1));
        let ended = finish(&mut *queue);
        let read = ended.iter().find(|one| one.tag == 1).unwrap();
        assert!(is_pattern(read.buffer.as_ref().unwrap(), 1));
        let refused = Some(ErrorKind::ReadOnly);
        assert_eq!(kinds(ended), [(0, refused), (1, None), (2, flush)]);
        queue.waker().wake();
        queue.wait(FOR_EVER);
    };
    check(open(true), None);
    check(
        Arc::new(ReadOnlyDevice::new(open(false))),
        Some(ErrorKind::ReadOnly),
    );
}

#[test]
fn a_queue_keeps_its_device_open_and_locked() {
    let scratch = Scratch::new();
    let path = scratch.path("volume");
    let mut queue = Arc::new(device(&path, &creating(), 1 << 20)).transfer_queue(4);
    queue.write(1, 0, pattern(PAGE, 1), PAGE);
    let error = FileDevice::open(&path, &creating()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(kinds(finish(&mut *queue)), [(1, None)]);
    drop(queue);
    FileDevice::open(&path, &FileOptions::default()).unwrap();
}

#[test]
fn a_forked_child_is_refused_and_leaves_alone_what_is_in_flight() {
    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(status: i32) -> !;
    }
    for way in ways() {
        let scratch = Scratch::new();
        let device = Arc::new(device(&scratch.path("volume"), &way, 64 * PAGE as u64));
        let mut queue = Arc::clone(&device).transfer_queue(16);
        for tag in 0..8 {
            queue.write(tag, tag * PAGE as u64, pattern(PAGE, tag), PAGE);
        }
        queue.submit();
        // SAFETY: the child takes no lock except that of the allocator (the C library makes it usable in a child), and
        // exits.
        let child = unsafe { fork() };
        if child == 0 {
            let mut ended = Vec::new();
            if !device.has_rings() {
                // They ended before the fork, and their outcomes are copies.
                queue.reap(&mut ended);
                ended.clear();
            }
            queue.read(9, 0, AlignedBuf::new(PAGE), PAGE);
            queue.wait(Duration::from_millis(1));
            queue.reap(&mut ended);
            let is_refused = kinds(ended) == [(9, Some(ErrorKind::Closed))];
            drop(queue);
            // SAFETY: ends the child at once.
            unsafe { _exit(i32::from(!is_refused)) }
        }
        let mut status = -1;
        // SAFETY: `status` is a valid place for an `int`; the child is one of this process.
        assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        let expected: Vec<_> = (0..8).map(|tag| (tag, None)).collect();
        assert_eq!(kinds(finish(&mut *queue)), expected);
    }
}
