//! The append buffer, with one thread and with several.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use kreon_device::{AppendBuffer, Backing, Reservation, Reserve};

const PAGE: u32 = 4096;

fn reserved(found: Reserve<'_>) -> Reservation<'_> {
    match found {
        Reserve::Reserved(reservation) => reservation,
        other => panic!("nothing reserved: {other:?}"),
    }
}

#[test]
fn reservations_follow_one_another_and_round_up() {
    let buffer = AppendBuffer::new(PAGE, Backing::Ahead);
    for (len_bytes, at, end) in [(8, 0, 8), (13, 8, 24), (0, 24, 32), (16, 32, 48)] {
        let part = reserved(buffer.reserve(len_bytes));
        assert_eq!(
            (part.at(), part.end(), part.len() as u32),
            (at, end, end - at)
        );
        part.commit();
    }
    assert_eq!(buffer.reserved_bytes(), 48);
}

#[test]
fn committed_bytes_can_be_read_and_others_cannot() {
    let buffer = AppendBuffer::new(PAGE, Backing::Ahead);
    let mut first = reserved(buffer.reserve(8));
    let mut second = reserved(buffer.reserve(16));
    first.fill(1);
    second.fill(2);
    second.commit();
    assert_eq!(buffer.committed(0), None);
    assert_eq!(buffer.committed(8), Some(&[2; 16][..]));
    assert_eq!(buffer.committed(16), None, "inside a reservation");
    assert_eq!(buffer.committed_prefix(0), 0);
    assert_eq!(buffer.committed_prefix(8), 24);
    assert_eq!(buffer.committed_range(8..24), None, "the prefix has a hole");
    first.commit();
    assert_eq!(buffer.committed_prefix(0), 24);
    assert_eq!(
        buffer.committed_range(4..12),
        Some(&[1, 1, 1, 1, 2, 2, 2, 2][..])
    );
    assert_eq!(buffer.committed_range(0..25), None);
    let (from, to) = (12, 4);
    assert_eq!(buffer.committed_range(from..to), None);
}

#[test]
fn a_reservation_never_straddles_the_end() {
    let buffer = AppendBuffer::new(PAGE, Backing::Ahead);
    reserved(buffer.reserve(PAGE - 16)).commit();
    assert!(matches!(buffer.reserve(24), Reserve::Full { used } if used == PAGE - 16));
    assert!(matches!(buffer.reserve(u32::MAX), Reserve::Full { .. }));
    let rest = reserved(buffer.reserve(16));
    assert_eq!((rest.at(), rest.len()), (PAGE - 16, 16));
    rest.commit();
    assert!(matches!(buffer.reserve(8), Reserve::Full { used: PAGE }));
    assert_eq!(buffer.committed_prefix(0), PAGE);
    assert_eq!(
        buffer.committed_range(0..PAGE).map(<[u8]>::len),
        Some(PAGE as usize)
    );
}

#[test]
fn reservations_end_at_the_limit_until_it_is_raised() {
    let buffer = AppendBuffer::new(2 * PAGE, Backing::Ahead);
    buffer.set_limit(512);
    reserved(buffer.reserve(504)).commit();
    assert!(matches!(buffer.reserve(16), Reserve::Full { used: 504 }));
    let rest = reserved(buffer.reserve(8));
    assert_eq!((rest.at(), rest.len()), (504, 8));
    rest.commit();
    buffer.set_limit(u32::MAX);
    assert_eq!(buffer.limit_bytes(), 2 * PAGE);
    reserved(buffer.reserve(16)).commit();
    // Earlier reservations stay valid wherever the limit is set.
    buffer.set_limit(256);
    assert!(matches!(buffer.reserve(8), Reserve::Full { used: 528 }));
    assert_eq!(buffer.committed_prefix(0), 528);
}

#[test]
fn a_boundary_is_reached_by_one_reservation() {
    let buffer = AppendBuffer::new(2 * PAGE, Backing::Ahead);
    assert!(matches!(
        buffer.reserve_to_boundary(512),
        Reserve::Full { used: 0 }
    ));
    reserved(buffer.reserve(520)).commit();
    let pad = reserved(buffer.reserve_to_boundary(512));
    assert_eq!((pad.at(), pad.end()), (520, 1024));
    pad.commit();
    assert!(matches!(
        buffer.reserve_to_boundary(512),
        Reserve::Full { used: 1024 }
    ));
    assert_eq!(buffer.committed_prefix(0), 1024);
}

#[test]
fn nothing_is_reserved_after_sealing() {
    let buffer = AppendBuffer::new(PAGE, Backing::Ahead);
    reserved(buffer.reserve(24)).commit();
    assert_eq!(buffer.seal(), 24);
    assert!(buffer.is_sealed());
    assert!(matches!(buffer.reserve(8), Reserve::Sealed));
    assert!(matches!(buffer.reserve_rest(), Reserve::Sealed));
    assert!(matches!(buffer.reserve_to_boundary(512), Reserve::Sealed));
    assert_eq!((buffer.seal(), buffer.reserved_bytes()), (24, 24));
}

#[test]
fn the_rest_is_reserved_and_sealed_at_once() {
    let buffer = AppendBuffer::new(PAGE, Backing::Ahead);
    reserved(buffer.reserve(24)).commit();
    let rest = reserved(buffer.reserve_rest());
    assert_eq!((rest.at(), rest.end()), (24, PAGE));
    assert!(matches!(buffer.reserve(8), Reserve::Sealed));
    rest.commit();
    assert_eq!(buffer.committed_prefix(0), PAGE);

    let full = AppendBuffer::new(PAGE, Backing::Ahead);
    reserved(full.reserve(PAGE)).commit();
    assert!(matches!(full.reserve_rest(), Reserve::Full { used: PAGE }));
    assert!(matches!(full.reserve(8), Reserve::Sealed));
}

#[test]
fn parts_of_a_split_are_committed_by_themselves() {
    let buffer = AppendBuffer::new(PAGE, Backing::Ahead);
    let (mut first, second) = reserved(buffer.reserve(64)).split_at(24);
    assert_eq!(
        (first.at(), first.end(), second.at(), second.end()),
        (0, 24, 24, 64)
    );
    first.fill(9);
    first.commit();
    assert_eq!(buffer.committed_prefix(0), 24);
    second.commit();
    assert_eq!(buffer.committed_prefix(0), 64);
    assert!(!buffer.is_abandoned());
}

#[test]
fn a_bad_split_panics_and_counts_as_dropped() {
    for len_bytes in [0, 4, 64, 72] {
        let buffer = AppendBuffer::new(PAGE, Backing::Ahead);
        let part = reserved(buffer.reserve(64));
        let split = catch_unwind(AssertUnwindSafe(|| drop(part.split_at(len_bytes))));
        assert!(split.is_err() && buffer.is_abandoned(), "{len_bytes}");
    }
}

#[test]
fn a_dropped_reservation_is_a_hole_that_shows() {
    let buffer = AppendBuffer::new(PAGE, Backing::Ahead);
    reserved(buffer.reserve(8)).commit();
    drop(reserved(buffer.reserve(8)));
    reserved(buffer.reserve(8)).commit();
    assert!(buffer.is_abandoned());
    assert_eq!(buffer.committed_prefix(0), 8);
    assert_eq!(buffer.committed(16).map(<[u8]>::len), Some(8));
}

#[test]
fn a_reset_buffer_is_as_new() {
    let mut buffer = AppendBuffer::new(PAGE, Backing::Ahead);
    let mut part = reserved(buffer.reserve(1000));
    part.fill(0xff);
    part.commit();
    drop(reserved(buffer.reserve(8)));
    let _ = buffer.seal();
    buffer.reset();
    assert_eq!((buffer.reserved_bytes(), buffer.is_sealed()), (0, false));
    assert_eq!((buffer.committed(0), buffer.committed_prefix(0)), (None, 0));
    assert!(!buffer.is_abandoned());
    reserved(buffer.reserve(PAGE)).commit();
    assert_eq!(buffer.committed_prefix(0), PAGE);
}

/// Content of a record in the thread test: length, writer, number, then bytes derived from these.
fn fill_record(part: &mut [u8], writer: u32, number: u32) {
    let len_bytes = part.len() as u32;
    part[..4].copy_from_slice(&len_bytes.to_le_bytes());
    part[4..8].copy_from_slice(&writer.to_le_bytes());
    part[8..12].copy_from_slice(&number.to_le_bytes());
    part[12..].fill((writer * 31 + number) as u8);
}

/// Checks the record at the start of `bytes`; returns its length, writer and number.
fn check_record(bytes: &[u8]) -> (usize, u32, u32) {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (len_bytes, writer, number) = (word(0) as usize, word(4), word(8));
    let fill = (writer * 31 + number) as u8;
    assert!(bytes[12..len_bytes].iter().all(|&byte| byte == fill));
    (len_bytes, writer, number)
}

fn append_until_full(buffer: &AppendBuffer, writer: u32, latest: &AtomicU32) -> u32 {
    let mut number = 0;
    loop {
        let len_bytes = 16 + (number * 7 + writer * 13) % 200 / 8 * 8;
        match buffer.reserve(len_bytes) {
            Reserve::Reserved(mut part) => {
                let at = part.at();
                fill_record(&mut part, writer, number);
                part.commit();
                latest.store(at, Relaxed);
                // A writer sees its own write at once.
                assert_eq!(check_record(buffer.committed(at).unwrap()).1, writer);
                number += 1;
            }
            Reserve::Full { .. } => return number,
            Reserve::Sealed => unreachable!(),
        }
    }
}

/// Writes out whole blocks of the prefix as it grows, as the log does, until the last.
fn write_out(buffer: &AppendBuffer, until: &AtomicU32) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let last = until.load(Relaxed);
        let prefix = buffer.committed_prefix(out.len() as u32);
        let end = if prefix == last {
            prefix
        } else {
            prefix / 512 * 512
        };
        out.extend_from_slice(buffer.committed_range(out.len() as u32..end).unwrap());
        if end == last {
            return out;
        }
        thread::yield_now();
    }
}

#[test]
fn threads_append_read_and_write_out_at_once() {
    const WRITERS: u32 = 4;
    let mut buffer = AppendBuffer::new(if cfg!(miri) { PAGE } else { 64 * PAGE }, Backing::Ahead);
    for _ in 0..if cfg!(miri) { 2 } else { 20 } {
        let latest = AtomicU32::new(0);
        let until = AtomicU32::new(u32::MAX);
        let (counts, out) = thread::scope(|scope| {
            let (buffer, latest, until) = (&buffer, &latest, &until);
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| scope.spawn(move || append_until_full(buffer, writer, latest)))
                .collect();
            let writer_out = scope.spawn(|| write_out(buffer, until));
            let reader = scope.spawn(|| {
                while until.load(Relaxed) == u32::MAX {
                    // `latest` synchronises nothing: only `committed` makes the bytes visible.
                    if let Some(bytes) = buffer.committed(latest.load(Relaxed)) {
                        assert_eq!(check_record(bytes).0, bytes.len());
                    }
                    thread::yield_now();
                }
            });
            let counts: Vec<u32> = writers.into_iter().map(|w| w.join().unwrap()).collect();
            until.store(buffer.seal(), Relaxed);
            reader.join().unwrap();
            (counts, writer_out.join().unwrap())
        });
        let mut seen = vec![0; WRITERS as usize];
        let mut rest = &out[..];
        while !rest.is_empty() {
            let (len_bytes, writer, number) = check_record(rest);
            assert_eq!(
                seen[writer as usize], number,
                "records of one writer in order"
            );
            seen[writer as usize] += 1;
            rest = &rest[len_bytes..];
        }
        assert_eq!(seen, counts);
        buffer.reset();
    }
}
