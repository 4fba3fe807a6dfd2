//! Pages that were written past the mapping and kept, and what is known of the records in frames.

mod common;

use std::sync::Arc;

use common::{Content, MemoryDevice, VOLUME_BYTES, any, fill, mapping_with_frames};
use kreon_base::{PAGE_BYTES, PageNo, Priority};
use kreon_mapping::Mapping;

const FRAMES: u64 = 2048;

const LAST: Priority = Priority(255);

fn device() -> Arc<MemoryDevice> {
    Arc::new(MemoryDevice::new(VOLUME_BYTES, Content::Numbered))
}

/// Versions `version` of `pages` pages from `first` on, on the device and as one piece of memory.
fn written(device: &MemoryDevice, first: u64, pages: u64, version: u64) -> Vec<u8> {
    let mut all = Vec::new();
    for page in first..first + pages {
        let bytes = fill(page, version);
        all.extend_from_slice(&bytes[..]);
        device.put(page, bytes);
    }
    all
}

/// The bytes of a record in frames, and whether it was verified.
fn lent(mapping: &Mapping, offset: u64, len: usize) -> Option<(Vec<u8>, bool)> {
    mapping.with_resident_record(offset, len, LAST, &mut Vec::new(), |lent| {
        (lent.bytes().to_vec(), lent.is_verified())
    })
}

fn is_verified(mapping: &Mapping, offset: u64, len: usize) -> bool {
    lent(mapping, offset, len).expect("resident").1
}

fn set_verified(mapping: &Mapping, offset: u64, len: usize) {
    let set = mapping.with_resident_record(offset, len, LAST, &mut Vec::new(), |lent| {
        lent.set_verified();
    });
    set.expect("resident");
}

#[test]
fn admitted_pages_are_read_from_memory_and_need_no_check() {
    let device = device();
    let mapping = mapping_with_frames(&device, FRAMES);
    // Over the border of two stripes.
    let (first, pages) = (1000, 64);
    let bytes = written(&device, first, pages, 3);
    mapping.admit(PageNo(first), LAST, &bytes);
    let start = first * PAGE_BYTES as u64;
    for (at, len) in [(0, 64), (100, 1000), (4000, 1030), (5 * 4096 - 64, 100)] {
        let (found, is_verified) = lent(&mapping, start + at as u64, len).expect("resident");
        assert_eq!(found, bytes[at..at + len], "{at}");
        assert_eq!(is_verified, at % 4096 < 4032, "{at}");
    }
    // Shorter records may share a line, so nothing is known of them.
    assert!(!is_verified(&mapping, start + 100, 63));
    assert_eq!(lent(&mapping, start + 4000, 5000), None, "of three pages");
    assert_eq!(device.reads(), 0);
}

#[test]
fn a_record_from_the_device_is_verified_once_it_was_said_to_be() {
    let device = device();
    let mapping = mapping_with_frames(&device, FRAMES);
    for page in [7, 8, 9] {
        mapping.read(any(page), |_| ()).unwrap();
    }
    let start = 7 * PAGE_BYTES as u64;
    let records = [(64, 1000), (1088, 1000), (3500, 1000), (4500, 200)];
    for (i, (at, len)) in records.into_iter().enumerate() {
        assert!(!is_verified(&mapping, start + at, len), "{at}");
        set_verified(&mapping, start + at, len);
        for (later, (at, len)) in records.into_iter().enumerate() {
            assert_eq!(is_verified(&mapping, start + at, len), later <= i, "{at}");
        }
    }
}

#[test]
fn what_was_known_of_a_page_is_forgotten_with_its_frame() {
    let device = device();
    let mapping = mapping_with_frames(&device, FRAMES);
    let bytes = written(&device, 20, 2, 1);
    mapping.admit(PageNo(20), LAST, &bytes);
    let over_both = 21 * PAGE_BYTES as u64 - 500;
    assert!(is_verified(&mapping, over_both, 1000));
    for page in [20, 21] {
        mapping.discard(PageNo(page), 1);
        assert_eq!(lent(&mapping, over_both, 1000), None);
        mapping.read(any(page), |_| ()).unwrap();
        assert!(!is_verified(&mapping, over_both, 1000), "{page}");
        set_verified(&mapping, over_both, 1000);
        assert!(is_verified(&mapping, over_both, 1000));
    }
}

#[test]
fn an_admitted_page_takes_the_place_of_what_was_resident() {
    let device = device();
    let mapping = mapping_with_frames(&device, FRAMES);
    mapping.read(any(5), |_| ()).unwrap();
    let bytes = written(&device, 4, 3, 9);
    mapping.admit(PageNo(4), LAST, &bytes);
    let start = 4 * PAGE_BYTES as u64;
    let (found, _) = lent(&mapping, start + 4096, 4096).unwrap();
    assert_eq!(found, bytes[4096..8192]);
    assert_eq!(mapping.resident_pages(), 3);
}

#[test]
fn pages_are_admitted_only_while_frames_are_plenty() {
    let device = device();
    let mapping = mapping_with_frames(&device, FRAMES);
    let bytes = written(&device, 0, 64, 1);
    for batch in 0..100 {
        mapping.admit(PageNo(batch * 64), LAST, &bytes);
        mapping.read(any(20_000 + batch), |_| ()).unwrap();
    }
    let resident = mapping.resident_pages();
    assert!(resident < FRAMES, "{resident}");
    assert!(!mapping.has_plenty_of_frames());
    let evicted: u64 = mapping
        .stats_by_priority()
        .map(|(_, stats)| stats.pages_evicted)
        .sum();
    assert_eq!(evicted, 0, "nothing goes for what is kept");
}

#[test]
fn a_record_over_two_pages_is_lent_whole_and_without_a_copy_from_neighbours() {
    let device = device();
    let mapping = mapping_with_frames(&device, FRAMES);
    // Bytes that were copied to lend the record over the pages `page` and the next.
    let copied = |page: u64, version| {
        let bytes = [page, page + 1].map(|page| fill(page, version)[..].to_vec());
        let (start, mut scratch) = (page * PAGE_BYTES as u64 + 3500, Vec::new());
        mapping
            .with_resident_record(start, 1000, LAST, &mut scratch, |lent| {
                assert_eq!(lent.bytes(), &bytes.concat()[3500..4500], "{page}");
            })
            .expect("resident");
        scratch.len()
    };
    // The second time in frames that got free in another order.
    for version in [1, 2] {
        let bytes = written(&device, 100, 64, version);
        mapping.admit(PageNo(100), LAST, &bytes);
        let copies: usize = (100..163).map(|page| copied(page, version)).sum();
        assert_eq!(copies, 0, "{version}");
        for page in (100..164).rev() {
            mapping.discard(PageNo(page), 1);
        }
    }
    for page in [7, 300, 8] {
        device.put(page, fill(page, 5));
        mapping.read(any(page), |_| ()).unwrap();
    }
    assert_eq!(copied(7, 5), 1000);
}

#[test]
fn a_page_that_came_anew_says_nothing_of_what_comes_over_into_it() {
    let device = device();
    let mapping = mapping_with_frames(&device, FRAMES);
    let over = |page: u64| page * PAGE_BYTES as u64 + 3500;
    for page in [7, 8, 9] {
        mapping.read(any(page), |_| ()).unwrap();
    }
    set_verified(&mapping, over(7), 1000);
    mapping.discard(PageNo(8), 1);
    mapping.read(any(8), |_| ()).unwrap();
    // The record that starts in it and goes on behind it is another.
    set_verified(&mapping, over(8), 1000);
    assert!(is_verified(&mapping, over(8), 1000));
    assert!(!is_verified(&mapping, over(7), 1000));
}
