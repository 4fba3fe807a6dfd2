//! Transfers in flight together, on every kind of queue: rings and calls that wait, direct I/O and the page cache, the
//! default of devices without a queue, and the simulated device.

mod support;

use std::sync::Arc;
use std::time::Duration;

use kreon_base::{ErrorKind, Result};
use kreon_device::{
    AlignedBuf, Device, DeviceStats, FileDevice, Read, TransferQueue, Transferred, Write,
};
use kreon_sim::{Image, SimDevice, SimOptions};
use support::{FOR_EVER, Scratch, creating, device, finish, is_pattern, kinds, pattern, ways};

const PAGE: usize = 4096;

/// A device that has no queue of its own.
struct Plain(FileDevice);

impl Device for Plain {
    fn block_bytes(&self) -> u32 {
        self.0.block_bytes()
    }
    fn len_bytes(&self) -> u64 {
        self.0.len_bytes()
    }
    fn len_bytes_max(&self) -> u64 {
        self.0.len_bytes_max()
    }
    fn grow(&self, len_bytes: u64) -> Result<()> {
        self.0.grow(len_bytes)
    }
    fn allocate(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.0.allocate(offset, len_bytes)
    }
    fn discard(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.0.discard(offset, len_bytes)
    }
    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        self.0.read(reads)
    }
    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        self.0.write(writes)
    }
    fn flush(&self) -> Result<()> {
        self.0.flush()
    }
    fn stats(&self) -> DeviceStats {
        self.0.stats()
    }
}

/// Runs `test` on a new device of `len_bytes` of each kind.
fn each_device(len_bytes: u64, test: impl Fn(Arc<dyn Device>)) {
    for (number, way) in ways().iter().enumerate() {
        let scratch = Scratch::new();
        println!("way {number}: {way:?}");
        test(Arc::new(device(&scratch.path("volume"), way, len_bytes)));
    }
    let scratch = Scratch::new();
    println!("the default");
    let plain = Plain(device(&scratch.path("volume"), &creating(), len_bytes));
    test(Arc::new(plain));
    for queue_seed in 0..4 {
        println!("simulated, seed {queue_seed}");
        let options = SimOptions {
            queue_seed,
            ..SimOptions::default()
        };
        test(Arc::new(SimDevice::from_image(
            Image::new(len_bytes),
            options,
        )));
    }
}

#[test]
fn many_transfers_in_flight_go_each_to_its_place() {
    const COUNT: u64 = 300;
    let place = |tag: u64| tag * 7 % COUNT * 2 * PAGE as u64;
    each_device(COUNT * 2 * PAGE as u64, |device| {
        let mut queue = Arc::clone(&device).transfer_queue(64);
        assert_eq!((queue.depth(), queue.room()), (64, 64));
        let mut run = |push: &dyn Fn(&mut dyn TransferQueue, u64)| {
            let (mut next, mut ended) = (0, Vec::new());
            while (ended.len() as u64) < COUNT {
                while next < COUNT && queue.room() > 0 {
                    push(&mut *queue, next);
                    next += 1;
                }
                queue.wait(FOR_EVER);
                queue.reap(&mut ended);
            }
            assert_eq!(queue.in_flight(), 0);
            ended.sort_by_key(|one| one.tag);
            assert!(ended.iter().map(|one| one.tag).eq(0..COUNT), "once each");
            ended
        };
        let written = run(&|queue, tag| {
            queue.write(tag, place(tag), pattern(PAGE, tag), PAGE);
        });
        assert!(written.iter().all(|one| one.outcome.is_ok()));
        let read = run(&|queue, tag| queue.read(tag, place(tag), AlignedBuf::new(PAGE), PAGE));
        for Transferred {
            tag,
            outcome,
            buffer,
        } in read
        {
            outcome.unwrap();
            assert!(is_pattern(&buffer.unwrap(), tag), "page {tag}");
        }
    });
}

#[test]
fn reads_writes_and_flushes_are_in_flight_together() {
    each_device(64 * PAGE as u64, |device| {
        device.write_at(0, &pattern(PAGE, 5)).unwrap();
        let mut queue = Arc::clone(&device).transfer_queue(8);
        for round in 0..20 {
            queue.flush(0);
            queue.read(1, 0, AlignedBuf::new(PAGE), PAGE);
            queue.write(2, 8 * PAGE as u64, pattern(4 * PAGE, round), 4 * PAGE);
            queue.flush(3);
            queue.submit();
            let mut ended = finish(&mut *queue);
            ended.sort_by_key(|one| one.tag);
            assert!(ended.iter().all(|one| one.outcome.is_ok()));
            assert!(ended[0].buffer.is_none() && ended[3].buffer.is_none());
            assert!(is_pattern(ended[1].buffer.as_ref().unwrap(), 5));
            let mut found = AlignedBuf::new(4 * PAGE);
            device.read_at(8 * PAGE as u64, &mut found).unwrap();
            assert!(is_pattern(&found, round));
        }
        let stats = device.stats();
        assert_eq!(
            (stats.reads.count, stats.writes.count, stats.flushes),
            (40, 21, 40)
        );
        assert_eq!(stats.writes.bytes, 81 * PAGE as u64);
        assert!(stats.depth_max <= 8, "{stats:?}");
    });
}

#[test]
fn a_part_of_a_buffer_is_enough() {
    each_device(16 * PAGE as u64, |device| {
        let mut queue = Arc::clone(&device).transfer_queue(4);
        queue.write(1, PAGE as u64, pattern(3 * PAGE, 1), PAGE);
        queue.write(2, 12 * PAGE as u64, pattern(PAGE, 2), PAGE);
        finish(&mut *queue);
        queue.read(1, 0, pattern(6 * PAGE, 9), 4 * PAGE);
        queue.read(2, 0, pattern(PAGE, 9), 0);
        queue.submit();
        let mut ended = finish(&mut *queue);
        ended.sort_by_key(|one| one.tag);
        let found = ended.remove(0).buffer.unwrap();
        assert_eq!(found.len(), 6 * PAGE);
        assert!(is_pattern(&found[PAGE..2 * PAGE], 1));
        assert!(
            found[..PAGE]
                .iter()
                .chain(&found[2 * PAGE..4 * PAGE])
                .all(|&byte| byte == 0)
        );
        assert_eq!(found[4 * PAGE..], pattern(6 * PAGE, 9)[4 * PAGE..]);
    });
}

#[test]
fn what_is_wrong_with_a_transfer_is_its_outcome() {
    each_device(16 * PAGE as u64, |device| {
        let mut queue = Arc::clone(&device).transfer_queue(16);
        let buffer = || pattern(PAGE, 3);
        queue.write(0, 0, buffer(), PAGE);
        queue.write(1, 8, buffer(), PAGE);
        queue.write(2, 0, buffer(), PAGE - 8);
        queue.write(3, 16 * PAGE as u64, buffer(), PAGE);
        queue.write(4, 0, buffer(), 2 * PAGE);
        queue.read(5, u64::MAX - (PAGE as u64 - 1), buffer(), PAGE);
        queue.read(6, PAGE as u64, buffer(), PAGE);
        queue.read(7, 15 * PAGE as u64, pattern(2 * PAGE, 3), 2 * PAGE);
        queue.write(8, PAGE as u64, buffer(), 0);
        queue.read(9, 16 * PAGE as u64, AlignedBuf::new(0), 0);
        let ended = finish(&mut *queue);
        assert!(
            ended.iter().all(|one| one.buffer.is_some()),
            "buffers come back"
        );
        let bad = Some(ErrorKind::InvalidArgument);
        let expected = [None, bad, bad, bad, bad, bad, None, bad, None, None];
        assert!(kinds(ended).into_iter().eq((0..).zip(expected)));
        let stats = device.stats();
        assert_eq!(
            (stats.writes.bytes, stats.reads.bytes),
            (PAGE as u64, PAGE as u64)
        );
    });
}

#[test]
fn pushes_without_room_stay_behind_and_get_their_turn() {
    each_device(64 * PAGE as u64, |device| {
        for depth in [0, 1, 3] {
            let mut queue = Arc::clone(&device).transfer_queue(depth);
            assert_eq!(queue.depth(), depth.max(1));
            for tag in 0..40 {
                queue.write(tag, tag * PAGE as u64, pattern(PAGE, tag), PAGE);
            }
            assert_eq!((queue.in_flight(), queue.room()), (40, 0));
            let expected: Vec<_> = (0..40).map(|tag| (tag, None)).collect();
            assert_eq!(kinds(finish(&mut *queue)), expected);
        }
    });
}

#[test]
fn a_dropped_queue_has_ended_what_was_submitted_and_begun_nothing_else() {
    each_device(128 * PAGE as u64, |device| {
        let mut queue = Arc::clone(&device).transfer_queue(64);
        for tag in 0..64 {
            queue.write(tag, tag * PAGE as u64, pattern(PAGE, tag), PAGE);
            queue.submit();
        }
        queue.write(64, 64 * PAGE as u64, pattern(PAGE, 64), PAGE);
        drop(queue);
        let mut found = AlignedBuf::new(65 * PAGE);
        device.read_at(0, &mut found).unwrap();
        for (page, bytes) in found.chunks(PAGE).enumerate() {
            let is_there = is_pattern(bytes, page as u64);
            assert_eq!(is_there, page < 64, "page {page}");
        }
    });
}

#[test]
fn a_wait_ends_when_its_patience_does() {
    each_device(1 << 20, |device| {
        let mut queue = device.transfer_queue(4);
        queue.wait(Duration::ZERO);
        queue.wait(Duration::from_millis(1));
        assert_eq!(queue.in_flight(), 0);
    });
}

#[test]
fn a_waker_ends_the_wait_of_another_thread_or_the_next_one() {
    each_device(1 << 20, |device| {
        let mut queue = device.transfer_queue(4);
        let waker = queue.waker();
        for _ in 0..50 {
            waker.wake_by_ref();
            waker.wake_by_ref();
            queue.wait(FOR_EVER);
        }
        for _ in 0..50 {
            let other = queue.waker();
            let thread = std::thread::spawn(move || other.wake());
            queue.wait(FOR_EVER);
            thread.join().unwrap();
        }
        drop(queue);
        waker.wake();
    });
}

#[test]
fn a_wake_up_is_not_forgotten_by_those_who_only_reap() {
    each_device(1 << 20, |device| {
        let mut queue = device.transfer_queue(4);
        // From here on the waker is watched.
        queue.wait(Duration::from_micros(1));
        for _ in 0..50 {
            queue.waker().wake();
            queue.submit();
            queue.reap(&mut Vec::new());
            queue.wait(FOR_EVER);
        }
    });
}

#[test]
fn a_thread_that_submits_and_ends_leaves_its_transfers_to_others() {
    each_device(64 * PAGE as u64, |device| {
        let mut queue = Arc::clone(&device).transfer_queue(64);
        for round in 0..30 {
            let first = std::thread::spawn(move || {
                for tag in 0..20 {
                    queue.write(tag, tag * PAGE as u64, pattern(PAGE, tag ^ round), PAGE);
                }
                (20..25).for_each(|tag| queue.flush(tag));
                queue.submit();
                queue
            });
            queue = first.join().unwrap();
            let expected: Vec<_> = (0..25).map(|tag| (tag, None)).collect();
            assert_eq!(kinds(finish(&mut *queue)), expected);
            let mut found = AlignedBuf::new(20 * PAGE);
            device.read_at(0, &mut found).unwrap();
            for (tag, bytes) in found.chunks(PAGE).enumerate() {
                assert!(is_pattern(bytes, tag as u64 ^ round));
            }
        }
    });
}
