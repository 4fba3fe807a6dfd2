//! Reads and writes with each combination of direct I/O and rings.

mod support;

use std::fs::File;

use kreon_base::ErrorKind;
use kreon_device::{AlignedBuf, Device, FileDevice, FileOptions, Read, Write};
use support::{Scratch, creating, device, pattern, ways};

const PAGE: usize = 4096;

/// Runs `test` on a new device of `len_bytes` for each combination.
fn each_way(len_bytes: u64, test: impl Fn(&FileDevice)) {
    for (number, way) in ways().iter().enumerate() {
        let scratch = Scratch::new();
        println!("way {number}: {way:?}");
        test(&device(&scratch.path("volume"), way, len_bytes));
    }
}

fn read(device: &FileDevice, offset: u64, len_bytes: usize) -> AlignedBuf {
    let mut buf = pattern(len_bytes, 0xbad);
    device.read_at(offset, &mut buf).unwrap();
    buf
}

#[test]
fn what_was_written_is_read() {
    each_way(1 << 20, |device| {
        let bytes = pattern(5 * PAGE, 1);
        device.write_at(3 * PAGE as u64, &bytes).unwrap();
        device.flush().unwrap();
        assert_eq!(read(device, 3 * PAGE as u64, 5 * PAGE)[..], bytes[..]);
        assert!(
            read(device, 0, 3 * PAGE).iter().all(|&byte| byte == 0),
            "a hole"
        );
    });
}

#[test]
fn many_transfers_go_each_to_its_place() {
    // More than the depth, in an order that no engine would choose by itself.
    const COUNT: usize = 300;
    each_way((COUNT * 2 * PAGE) as u64, |device| {
        let place = |number: usize| (number * 7 % COUNT * 2 * PAGE) as u64;
        let pages: Vec<_> = (0..COUNT).map(|n| pattern(PAGE, n as u64)).collect();
        let writes: Vec<_> = (0..COUNT)
            .map(|n| Write::new(place(n), &pages[n]))
            .collect();
        device.write(&writes).unwrap();
        let mut found: Vec<_> = (0..COUNT).map(|_| AlignedBuf::new(PAGE)).collect();
        let mut reads: Vec<_> = found
            .iter_mut()
            .enumerate()
            .map(|(n, page)| Read::new(place(n), page))
            .collect();
        device.read(&mut reads).unwrap();
        assert!(reads.iter().all(|read| read.outcome.is_ok()));
        assert!((0..COUNT).all(|n| found[n][..] == pages[n][..]));
    });
}

#[test]
fn buffers_are_merged_in_their_order() {
    // Three transfers of 1500 buffers: each takes more than one system call.
    const BUFFERS: usize = 1500;
    const LEN: u64 = (BUFFERS * PAGE) as u64;
    each_way(3 * LEN, |device| {
        let bytes = pattern(3 * LEN as usize, 5);
        let writes: Vec<_> = bytes
            .chunks(LEN as usize)
            .enumerate()
            .map(|(n, part)| Write::vectored(n as u64 * LEN, part.chunks(PAGE).collect()))
            .collect();
        device.write(&writes).unwrap();
        assert!(read(device, 0, bytes.len())[..] == bytes[..]);

        let mut found = AlignedBuf::new(bytes.len());
        let mut reads: Vec<_> = found
            .chunks_mut(LEN as usize)
            .enumerate()
            .map(|(n, part)| Read::vectored(n as u64 * LEN, part.chunks_mut(PAGE).collect()))
            .collect();
        assert_eq!(reads[0].len_bytes(), LEN);
        device.read(&mut reads).unwrap();
        assert!(found[..] == bytes[..]);
    });
}

#[test]
fn uneven_and_empty_buffers_are_fine() {
    each_way(1 << 20, |device| {
        let bytes = pattern(7 * PAGE, 9);
        let (a, b, empty) = (&bytes[..PAGE], &bytes[PAGE..], &bytes[..0]);
        device
            .write(&[
                Write::vectored(0, vec![empty, a, empty, b]),
                Write::vectored(0, vec![]),
                Write::new(1 << 20, empty),
            ])
            .unwrap();
        assert_eq!(read(device, 0, 7 * PAGE)[..], bytes[..]);
        device.read(&mut []).unwrap();
        device.write(&[]).unwrap();
    });
}

#[test]
fn misaligned_transfers_do_nothing() {
    each_way(1 << 20, |device| {
        let block = device.block_bytes() as usize;
        let bytes = pattern(4 * PAGE, 2);
        let good = Write::new(0, &bytes[..PAGE]);
        let bad = [
            Write::new(8, &bytes[..PAGE]),
            Write::new(0, &bytes[8..8 + block]),
            Write::new(0, &bytes[..block - 8]),
            Write::new(1 << 20, &bytes[..PAGE]),
            Write::new(u64::MAX - (PAGE as u64 - 1), &bytes[..PAGE]),
        ];
        for bad in bad {
            let error = device.write(&[good.clone(), bad]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.to_string().contains("volume"), "{error}");
        }
        assert!(
            read(device, 0, PAGE).iter().all(|&byte| byte == 0),
            "written"
        );
        assert_eq!(device.stats().writes.count, 0);
    });
}

#[test]
fn each_read_has_its_outcome() {
    each_way(1 << 20, |device| {
        let bytes = pattern(PAGE, 2);
        device.write_at(0, &bytes).unwrap();
        let mut found = AlignedBuf::new(4 * PAGE);
        let mut parts = found.chunks_mut(PAGE);
        let mut part = || parts.next().unwrap();
        let mut reads = [
            Read::new(0, part()),
            Read::new(1 << 20, part()),
            Read::new(4, part()),
            Read::new(0, part()),
        ];
        let error = device.read(&mut reads).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(
            error.to_string().contains("beyond the device"),
            "the first: {error}"
        );
        let ended = reads.each_ref().map(|read| read.outcome.is_ok());
        assert_eq!(ended, [true, false, false, true]);
        assert_eq!(found[..PAGE], bytes[..]);
        assert_eq!(found[3 * PAGE..], bytes[..]);
    });
}

#[test]
fn a_lone_read_fails_as_one_of_several_does() {
    for way in ways() {
        let scratch = Scratch::new();
        let path = scratch.path("volume");
        let device = device(&path, &way, 4 * PAGE as u64);
        device.write_at(0, &pattern(4 * PAGE, 4)).unwrap();
        let mut found = AlignedBuf::new(2 * PAGE);
        for (offset, len) in [(1, PAGE), (0, PAGE - 1), (3 * PAGE as u64, 2 * PAGE)] {
            let error = device.read_at(offset, &mut found[..len]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.to_string().contains("volume"), "{error}");
        }
        // Bypasses the device.
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(3 * PAGE as u64).unwrap();
        let error = device.read_at(2 * PAGE as u64, &mut found).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(
            error.to_string().contains("read 4096 bytes at 12288"),
            "{error}"
        );
        assert_eq!(device.stats().reads.count, 1, "what moved is counted once");
    }
}

#[test]
fn a_read_that_ends_early_is_an_io_error_that_tells_where() {
    for way in ways() {
        let scratch = Scratch::new();
        let path = scratch.path("volume");
        let device = device(&path, &way, 16 * PAGE as u64);
        let bytes = pattern(16 * PAGE, 4);
        device.write_at(0, &bytes).unwrap();
        // Bypasses the device.
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(9 * PAGE as u64)
            .unwrap();

        let mut found = AlignedBuf::new(12 * PAGE);
        let mut parts = found.chunks_mut(4 * PAGE);
        let mut reads = [0, 4, 8].map(|page| Read::new(page * PAGE as u64, parts.next().unwrap()));
        let error = device.read(&mut reads).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        // One page of the third read exists; the rest does not.
        assert!(
            error.to_string().contains("read 12288 bytes at 36864"),
            "{error}"
        );
        let ended = reads.each_ref().map(|read| read.outcome.is_ok());
        assert_eq!(ended, [true, true, false]);
        assert_eq!(found[..8 * PAGE], bytes[..8 * PAGE]);
    }
}

#[test]
fn threads_do_io_at_once() {
    each_way(8 << 20, |device| {
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                scope.spawn(move || {
                    let bytes = pattern(64 * PAGE, thread);
                    let base = thread << 20;
                    for _ in 0..5 {
                        let writes: Vec<_> = bytes
                            .chunks(2 * PAGE)
                            .enumerate()
                            .map(|(n, part)| Write::new(base + (n * 2 * PAGE) as u64, part))
                            .collect();
                        device.write(&writes).unwrap();
                        assert!(read(device, base, bytes.len())[..] == bytes[..]);
                    }
                });
            }
        });
    });
}

#[test]
fn statistics_count_what_was_done() {
    let scratch = Scratch::new();
    let options = FileOptions {
        ring_depth: 8,
        ..creating()
    };
    let device = device(&scratch.path("volume"), &options, 1 << 20);
    let bytes = pattern(64 * PAGE, 1);
    let writes: Vec<_> = bytes
        .chunks(PAGE)
        .enumerate()
        .map(|(n, page)| Write::new((n * PAGE) as u64, page))
        .collect();
    device.write(&writes).unwrap();
    device.write_at(0, &bytes[..32 * PAGE]).unwrap();
    read(&device, 0, 2 * PAGE);
    device.flush().unwrap();
    device.allocate(0, PAGE as u64).unwrap();
    device.discard(0, PAGE as u64).unwrap();

    let stats = device.stats();
    assert_eq!(
        (stats.writes.count, stats.writes.bytes),
        (65, 96 * PAGE as u64)
    );
    assert_eq!((stats.writes.sizes[12], stats.writes.sizes[17]), (64, 1));
    assert_eq!((stats.reads.count, stats.reads.bytes), (1, 2 * PAGE as u64));
    assert_eq!(
        (stats.flushes, stats.allocations, stats.discards),
        (1, 1, 1)
    );
    if device.has_rings() {
        assert_eq!(stats.depth_max, 8);
        assert!((1.0..=8.0).contains(&stats.depth_average), "{stats:?}");
    }
}
