//! Records that are fetched ahead, and what comes along with a record.

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use common::{Content, MemoryDevice, VOLUME_BYTES, mapping_with};
use kreon_base::{PageNo, Priority, SEGMENT_BYTES};
use kreon_mapping::{Fetched, FinalBytes, KeepRecords, Mapping};

const FRAMES: u64 = 1200;

const LAST: Priority = Priority(255);

fn device() -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new(VOLUME_BYTES, Content::Numbered))
}

fn mapping(device: &Arc<MemoryDevice>, records: KeepRecords) -> Mapping {
    mapping_with(device, FRAMES, |options| options.modes.records = records)
}

/// A record in a segment that is final up to its end.
fn record(offset_bytes: u64, len_bytes: usize) -> FinalBytes {
    FinalBytes {
        offset_bytes,
        len_bytes,
        final_end_bytes: (offset_bytes / SEGMENT_BYTES + 1) * SEGMENT_BYTES,
    }
}

/// The bytes that the device holds.
fn held(device: &MemoryDevice, record: &FinalBytes) -> Vec<u8> {
    let offset = record.offset_bytes;
    (offset..offset + record.len_bytes as u64)
        .map(|at| device.page(at / 4096)[(at % 4096) as usize])
        .collect()
}

fn fetch(mapping: &Mapping, records: &[FinalBytes]) -> Fetched {
    let mut fetched = Fetched::default();
    mapping
        .fetch(records.iter().copied(), LAST, &mut fetched)
        .expect("within the volume");
    fetched
}

#[test]
fn fetched_records_come_in_one_call_and_equal_what_the_device_holds() {
    let device = device();
    let mapping = mapping(&device, KeepRecords::Always);
    // In no order, one twice, neighbours, and one behind a gap.
    let records: Vec<_> = [900_000, 4000, 5030, 77_777, 4000, 12_000, 3 << 20]
        .map(|offset| record(offset, 1030))
        .into();
    let fetched = fetch(&mapping, &records);
    assert_eq!(device.read_calls.load(SeqCst), 1);
    for record in &records {
        let found = fetched.get(record.offset_bytes, record.len_bytes);
        assert_eq!(found, Some(&held(&device, record)[..]));
    }
    assert!(fetched.get(4000, 1031).is_none() && fetched.get(4001, 10).is_none());
    assert_eq!(mapping.stats().pages_resident, 0, "no frames for pages");
    // They are kept: the second time nothing is read.
    let again = fetch(&mapping, &records);
    assert_eq!(device.read_calls.load(SeqCst), 1);
    for record in &records {
        let found = again.get(record.offset_bytes, record.len_bytes);
        assert_eq!(found, Some(&held(&device, record)[..]));
    }
}

#[test]
fn records_that_lie_together_are_read_again_rather_than_kept() {
    let device = device();
    let mapping = mapping(&device, KeepRecords::Always);
    let together: Vec<_> = (0..50).map(|at| record(4000 + at * 1030, 1030)).collect();
    for calls in 1..=2 {
        let fetched = fetch(&mapping, &together);
        assert_eq!(device.read_calls.load(SeqCst), calls);
        assert_eq!(fetched.transfers(), 1);
        for record in &together {
            let found = fetched.get(record.offset_bytes, record.len_bytes);
            assert_eq!(found, Some(&held(&device, record)[..]));
        }
    }
}

#[test]
fn blocks_of_both_sizes_serve_up_to_the_last_byte_of_the_volume() {
    for block_bytes in [512, 4096] {
        let device = device();
        device.block_bytes.store(block_bytes, SeqCst);
        let mapping = mapping(&device, KeepRecords::Always);
        let mut records: Vec<_> = [1, 511, 512, 513, 3072]
            .iter()
            .flat_map(|&len| {
                let end_of_segment = SEGMENT_BYTES - len as u64;
                [0, 511, 4095, 8000, 500_000, end_of_segment].map(|offset| {
                    record(3 * SEGMENT_BYTES + len as u64 * 8192 % 65_536 + offset, len)
                })
            })
            .filter(|record| {
                record.offset_bytes + record.len_bytes as u64 <= record.final_end_bytes
            })
            .collect();
        records.push(record(VOLUME_BYTES - 700, 700));
        records.dedup_by_key(|record| record.offset_bytes);
        let read = |record: &FinalBytes| {
            mapping.with_final_bytes(*record, LAST, &mut Vec::new(), <[u8]>::to_vec)
        };
        for record in &records {
            let fetched = fetch(&mapping, &[*record]);
            let found = fetched.get(record.offset_bytes, record.len_bytes);
            assert_eq!(found, Some(&held(&device, record)[..]), "{record:?}");
            mapping.discard(PageNo(record.offset_bytes / 4096), 1);
            assert_eq!(read(record).unwrap(), held(&device, record), "{record:?}");
        }
    }
}

#[test]
fn a_record_of_a_segment_that_is_given_back_meanwhile_is_not_kept() {
    let device = device();
    device.read_delay_us.store(300_000, SeqCst);
    let mapping = mapping(&device, KeepRecords::Always);
    let wanted = record(5 * SEGMENT_BYTES + 5000, 1030);
    std::thread::scope(|scope| {
        let old = held(&device, &wanted);
        let begun = || device.read_calls.load(SeqCst) > 0;
        let fetcher = scope.spawn(|| fetch(&mapping, &[wanted]));
        while !begun() {
            std::thread::yield_now();
        }
        mapping.discard(PageNo(5 * 512), 512);
        let fetched = fetcher.join().unwrap();
        assert_eq!(fetched.get(wanted.offset_bytes, 1030), Some(&old[..]));
    });
    device.read_delay_us.store(0, SeqCst);
    for page in 0..512 {
        device.put(5 * 512 + page, common::fill(5 * 512 + page, 7));
    }
    let new = held(&device, &wanted);
    let seen = mapping.with_final_bytes(wanted, LAST, &mut Vec::new(), <[u8]>::to_vec);
    assert_eq!(seen.unwrap(), new);
    let again = fetch(&mapping, &[wanted]);
    assert_eq!(again.get(wanted.offset_bytes, 1030), Some(&new[..]));
}

#[test]
fn what_comes_along_of_a_segment_that_is_given_back_meanwhile_is_not_published() {
    let device = device();
    device.read_delay_us.store(300_000, SeqCst);
    let mapping = mapping(&device, KeepRecords::Scarce);
    let wanted = record(5 * SEGMENT_BYTES + 5000, 1030);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            mapping
                .with_final_bytes(wanted, LAST, &mut Vec::new(), |_| ())
                .unwrap();
        });
        while device.read_calls.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        mapping.discard(PageNo(5 * 512), 512);
        for page in 0..512 {
            device.put(5 * 512 + page, common::fill(5 * 512 + page, 7));
        }
        reader.join().unwrap();
    });
    device.read_delay_us.store(0, SeqCst);
    // The reader has loaded its own pages anew, which is its own affair; none of the others came.
    assert!((3..16).all(|page| !mapping.is_resident(PageNo(5 * 512 + page))));
    let stats = mapping.stats();
    assert_eq!(
        stats.frames_free + stats.pages_resident + stats.frames_of_records,
        stats.frames
    );
}

#[test]
fn a_record_that_cannot_be_read_is_left_to_the_read_that_needs_it() {
    let device = device();
    let mapping = mapping(&device, KeepRecords::Always);
    let records = [record(3 * 4096, 500), record(900 * 4096, 500)];
    device.bad_reads.lock().insert(3);
    let fetched = fetch(&mapping, &records);
    assert!(fetched.get(3 * 4096, 500).is_none());
    assert_eq!(
        fetched.get(900 * 4096, 500),
        Some(&held(&device, &records[1])[..])
    );
    let read = || mapping.with_final_bytes(records[0], LAST, &mut Vec::new(), <[u8]>::to_vec);
    assert!(read().is_err());
    device.bad_reads.lock().clear();
    assert_eq!(read().unwrap(), held(&device, &records[0]));
}

#[test]
fn what_is_around_a_record_comes_along_as_far_as_it_is_final() {
    let device = device();
    let mapping = mapping(&device, KeepRecords::Scarce);
    let read = |record| mapping.with_final_bytes(record, LAST, &mut Vec::new(), <[u8]>::to_vec);
    let wanted = record(20 * 4096 + 4000, 1030);
    assert_eq!(read(wanted).unwrap(), held(&device, &wanted));
    assert_eq!(device.read_calls.load(SeqCst), 1);
    assert!((16..32).all(|page| mapping.is_resident(PageNo(page))));
    assert!(!mapping.is_resident(PageNo(15)) && !mapping.is_resident(PageNo(32)));
    // Final up to the middle of page 38, of which the record is a part.
    let tail = FinalBytes {
        final_end_bytes: 38 * 4096 + 2000,
        ..record(37 * 4096 + 4000, 1030)
    };
    assert_eq!(read(tail).unwrap(), held(&device, &tail));
    assert!((32..39).all(|page| mapping.is_resident(PageNo(page))));
    assert!(!mapping.is_resident(PageNo(39)));
    // The same for a few that are fetched.
    fetch(&mapping, &[record(100 * 4096, 1030)]);
    assert!((96..112).all(|page| mapping.is_resident(PageNo(page))));
}

#[test]
fn nothing_comes_along_when_frames_are_scarce() {
    let device = device();
    let mapping = mapping(&device, KeepRecords::Scarce);
    for number in 0..FRAMES {
        let record = record(number * 16 * 4096, 500);
        mapping
            .with_final_bytes(record, LAST, &mut Vec::new(), |_| ())
            .unwrap();
    }
    let stats = mapping.stats();
    assert!(stats.frames_of_records > 0, "{stats:?}");
    assert!(stats.pages_evicted < FRAMES, "{stats:?}");
    assert!(stats.pages_read < 4 * FRAMES, "{stats:?}");
}

#[test]
fn long_values_are_read_past_the_frames_also_while_those_are_plenty() {
    let device = device();
    let mapping = mapping(&device, KeepRecords::Scarce);
    let wanted = record(20 * 4096 + 100, 300_000);
    let seen = mapping.with_final_bytes(wanted, LAST, &mut Vec::new(), <[u8]>::to_vec);
    assert_eq!(seen.unwrap(), held(&device, &wanted));
    let stats = mapping.stats();
    assert_eq!(
        (stats.pages_resident, stats.pages_read),
        (0, 74),
        "{stats:?}"
    );
}
