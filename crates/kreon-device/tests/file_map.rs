//! A volume mapped by the kernel.
#![cfg(feature = "comparison")]

mod support;

use std::mem::MaybeUninit;

use kreon_base::PAGE_BYTES;
use kreon_device::{
    AlignedBuf, Device, Facility, FileDevice, FileMap, FileOptions, MapAdvice, Write,
};
use support::{Scratch, creating, device};

const PAGE: u64 = PAGE_BYTES as u64;

fn buffered() -> FileOptions {
    FileOptions {
        direct: Facility::Off,
        ..creating()
    }
}

fn mapped(device: &FileDevice, len_bytes_max: u64) -> FileMap {
    let map = device.map(len_bytes_max, MapAdvice::Random).unwrap();
    map.expect("a file that is not opened for direct I/O")
}

/// Content of byte `offset` of a written page.
fn byte(offset: u64) -> u8 {
    (offset % 251) as u8 + 1
}

fn write_page(device: &FileDevice, page: u64) {
    let mut buffer = AlignedBuf::new(PAGE_BYTES);
    for (offset, into) in (page * PAGE..).zip(buffer.iter_mut()) {
        *into = byte(offset);
    }
    device.write(&[Write::new(page * PAGE, &buffer)]).unwrap();
}

fn page(map: &FileMap, number: u64) -> Option<Vec<u8>> {
    let mut buffer = MaybeUninit::uninit();
    map.copy_page(number * PAGE, &mut buffer)
        .map(|bytes| bytes.to_vec())
}

#[test]
fn what_a_write_brought_is_seen_at_once_and_holes_are_zeroes() {
    let scratch = Scratch::new();
    let device = device(&scratch.path("volume"), &buffered(), 64 * PAGE);
    let map = mapped(&device, 64 * PAGE);
    assert_eq!(page(&map, 7), Some(vec![0; PAGE_BYTES]));
    write_page(&device, 7);
    let expected: Vec<u8> = (7 * PAGE..8 * PAGE).map(byte).collect();
    assert_eq!(page(&map, 7), Some(expected));
    device.discard(7 * PAGE, PAGE).unwrap();
    assert_eq!(page(&map, 7), Some(vec![0; PAGE_BYTES]));
}

#[test]
fn ranges_of_every_alignment_and_length_are_copied() {
    let scratch = Scratch::new();
    let device = device(&scratch.path("volume"), &buffered(), 4 * PAGE);
    (0..4).for_each(|page| write_page(&device, page));
    let map = mapped(&device, 4 * PAGE);
    for offset in (PAGE - 9..=PAGE + 9).chain([0, 1, 4 * PAGE - 40]) {
        for len in (0..=40).chain([4096, 5000]) {
            let mut into = vec![0; len];
            let there = offset + len as u64 <= 4 * PAGE;
            assert_eq!(map.copy(offset, &mut into), there, "{len} at {offset}");
            if there {
                let expected: Vec<u8> = (offset..offset + len as u64).map(byte).collect();
                assert_eq!(into, expected, "{len} at {offset}");
            }
        }
    }
}

#[test]
fn behind_the_end_of_the_file_nothing_is_touched_until_it_grows() {
    let scratch = Scratch::new();
    let device = device(&scratch.path("volume"), &buffered(), 2 * PAGE);
    let map = mapped(&device, 1 << 40);
    assert_eq!(page(&map, 2), None);
    assert_eq!(page(&map, 1 << 28), None);
    assert!(!map.copy(2 * PAGE - 1, &mut [0; 2]));
    assert!(!map.copy(u64::MAX, &mut [0; 2]));
    map.will_need(PAGE, 1 << 20);
    device.grow(1000 * PAGE).unwrap();
    assert_eq!(page(&map, 999), Some(vec![0; PAGE_BYTES]));
    write_page(&device, 999);
    assert_eq!(page(&map, 999).unwrap()[0], byte(999 * PAGE));
    assert_eq!(page(&map, 1000), None);
}

#[test]
fn a_longer_file_than_the_system_can_map_is_mapped_in_part() {
    let scratch = Scratch::new();
    let device = device(&scratch.path("volume"), &buffered(), 2 * PAGE);
    write_page(&device, 1);
    // Above the largest size of a file.
    let map = mapped(&device, u64::MAX);
    assert_eq!(page(&map, 1).unwrap()[0], byte(PAGE));
}

#[test]
fn a_device_with_direct_io_has_no_map() {
    let scratch = Scratch::new();
    let device = device(&scratch.path("volume"), &creating(), PAGE);
    let map = device.map(PAGE, MapAdvice::Random).unwrap();
    assert_eq!(map.is_none(), device.is_direct());
}

#[test]
fn a_page_that_is_written_meanwhile_is_copied_word_by_word() {
    let scratch = Scratch::new();
    let device = device(&scratch.path("volume"), &buffered(), PAGE);
    let map = mapped(&device, PAGE);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for version in 1..=2000_u64 {
                let mut buffer = AlignedBuf::new(PAGE_BYTES);
                let words = buffer.chunks_exact_mut(8);
                words.for_each(|word| word.copy_from_slice(&version.to_ne_bytes()));
                device.write(&[Write::new(0, &buffer)]).unwrap();
            }
        });
        let mut newest = 0;
        while newest < 2000 {
            let bytes = page(&map, 0).unwrap();
            let words = bytes
                .chunks_exact(8)
                .map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
            newest = words
                .inspect(|&word| assert!(word <= 2000, "a word that was never written"))
                .min()
                .unwrap();
        }
    });
}
