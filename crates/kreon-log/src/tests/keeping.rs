//! Pages that may be kept because they were written. That the device has their bytes is asserted whenever they are told.

use super::*;
use kreon_base::{LogOffset, PAGE_BYTES};

/// The pages that were told, in their order.
fn told(bench: &Bench) -> Vec<u64> {
    let runs = bench.told.runs.lock();
    let pages = |(offset, len): &(u64, usize)| {
        let first = offset / PAGE_BYTES as u64;
        first..first + (len / PAGE_BYTES) as u64
    };
    runs.iter().flat_map(pages).collect()
}

/// The pages before `upto` of the segments of the log from page `first` of the oldest on.
fn pages_before(bench: &Bench, first: u64, upto: Lsn) -> Vec<u64> {
    let (newest, within) = kreon_format::place_of(upto);
    let pages = bench
        .log
        .segments()
        .into_iter()
        .flat_map(|(segment, sequence)| {
            let start = segment.first_page().0;
            let count = match sequence == newest {
                true => u64::from(within) / PAGE_BYTES as u64,
                false => SEGMENT_BYTES / PAGE_BYTES as u64,
            };
            start..start + count
        });
    pages.skip(first as usize).collect()
}

#[test]
fn every_page_is_told_once_and_in_order_when_the_last_of_its_blocks_is_written() {
    let bench = Setup::default().open();
    for i in 0..3000 {
        let (_, end) = bench.put(b"key", &noise(1 + i * 37 % 5000, i));
        if i % 7 == 0 {
            // A block of 512 bytes at a time.
            bench.log.sync(end).unwrap();
        }
    }
    bench.log.write_out(bench.log.tail()).unwrap();
    assert!(bench.log.segments().len() > 3);
    let expected = pages_before(&bench, 0, bench.log.written());
    assert_eq!(told(&bench), expected);
}

#[test]
fn calls_that_end_out_of_order_tell_their_pages_in_order() {
    let bench = Setup::default().open();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let bench = &bench;
            scope.spawn(move || {
                for i in 0..1500 {
                    let (_, end) = bench.put(b"key", &noise(1 + i * 31 % 2000, seed));
                    if i % 5 == seed {
                        bench.log.sync(end).unwrap();
                    }
                }
            });
        }
    });
    bench.log.write_out(bench.log.tail()).unwrap();
    let expected = pages_before(&bench, 0, bench.log.written());
    assert_eq!(told(&bench), expected);
}

#[test]
fn of_a_segment_that_an_earlier_run_began_its_own_pages_are_told() {
    let bench = Setup::default().open();
    let (_, end) = bench.put(b"key", &noise(10_000, 1));
    let checkpoint = bench.checkpoint(end);
    let (again, _) = bench.reopen(&checkpoint);
    assert!(told(&again).is_empty());
    again.put(b"more", &noise(20_000, 2));
    again.log.write_out(again.log.tail()).unwrap();
    let resumed = u64::from(kreon_format::place_of(end).1).div_ceil(PAGE_BYTES as u64);
    let expected = pages_before(&again, resumed, again.log.written());
    assert_eq!(told(&again), expected);
}

#[test]
fn pages_are_told_before_their_write_lands() {
    let bench = Setup::default().open();
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let bench = &bench;
            scope.spawn(move || {
                for i in 0..1000 {
                    let (_, end) = bench.put(b"key", &noise(1 + i * 31 % 5000, seed));
                    if i % 11 == seed {
                        bench.log.sync(end).unwrap();
                    }
                }
            });
        }
    });
    bench.log.write_out(bench.log.tail()).unwrap();
    let sequences = bench.log.segments();
    let (runs, landed) = (bench.told.runs.lock(), bench.told.landed.lock());
    assert!(runs.len() > 20 && runs.len() == landed.len());
    for ((offset, len), landed) in runs.iter().zip(landed.iter()) {
        let segment = LogOffset(*offset).segment();
        let of = sequences.iter().find(|(id, _)| *id == segment);
        let (_, sequence) = of.expect("nothing was released");
        let within = (offset - segment.offset_bytes()) as u32 + *len as u32;
        let end = kreon_format::lsn_at(*sequence, within);
        // The header of a segment has no position.
        let is_header = within <= PAGE_BYTES as u32;
        assert!(is_header || *landed < end, "up to {end} at {landed}");
    }
}
