//! Sizes of slots and their places.

use std::collections::BTreeSet;

use kvell::format::*;

const ATOMIC_BYTES: [usize; 4] = [512, 1024, 2048, 4096];

fn classes(atomic_bytes: usize) -> Classes {
    Classes::new(atomic_bytes).unwrap()
}

#[test]
fn slots_are_in_bounds_and_do_not_overlap() {
    for atomic_bytes in ATOMIC_BYTES {
        let classes = classes(atomic_bytes);
        for (number, class) in classes.iter() {
            let mut free_from = SLOTS_AT as u32;
            for slot in 0..class.slots_per_extent {
                let at = classes.slot_offset(number, slot).unwrap();
                assert!(at >= free_from && at.is_multiple_of(8));
                free_from = at + class.slot_bytes;
                assert_eq!(classes.slot_of(number, at), Some(slot));
                assert_eq!(classes.slot_of(number, at + 8), None, "{class:?}");
            }
            assert!(free_from as usize <= EXTENT_BYTES);
            assert_eq!(classes.slot_offset(number, class.slots_per_extent), None);
            assert_eq!(classes.cell_offset(number, class.slots_per_extent), None);
            assert_eq!(classes.slot_of(number, free_from), None);
            assert_eq!(classes.slot_of(number, 0), None);
        }
    }
}

#[test]
fn small_slots_never_cross_an_atomic_unit_and_large_ones_consist_of_whole_units() {
    for atomic_bytes in ATOMIC_BYTES {
        let classes = classes(atomic_bytes);
        assert_eq!(classes.atomic_bytes(), atomic_bytes);
        for (number, class) in classes.iter() {
            let in_place = classes.is_in_place(number);
            assert_eq!(in_place, class.slot_bytes as usize <= atomic_bytes);
            for slot in 0..class.slots_per_extent {
                let at = class.slot_offset(slot).unwrap() as usize;
                let end = at + class.slot_bytes as usize;
                let cell = class.cell_offset(slot).unwrap() as usize;
                assert!(cell.is_multiple_of(atomic_bytes));
                assert!(cell <= at && end <= cell + class.cell_bytes as usize);
                match in_place {
                    true => assert_eq!(at / atomic_bytes, (end - 1) / atomic_bytes),
                    false => assert_eq!((at, end), (cell, cell + class.cell_bytes as usize)),
                }
            }
        }
    }
}

#[test]
fn an_item_gets_the_smallest_slot_that_it_fits_into() {
    for atomic_bytes in ATOMIC_BYTES {
        let classes = classes(atomic_bytes);
        for bytes in 0..=classes.slot_bytes_max() {
            let found = classes.class_of(bytes).unwrap();
            let naive = classes
                .iter()
                .find(|(_, class)| class.slot_bytes as usize >= bytes);
            assert_eq!(Some(found), naive.map(|(number, _)| number));
        }
        assert_eq!(classes.class_of(classes.slot_bytes_max() + 1), None);
        assert_eq!(classes.class_of(usize::MAX), None);
        assert!(classes.get(ClassNo(u8::MAX)).is_none());
    }
}

/// Of every hundred bytes of an extent, those in no slot; of a slot, those behind the smallest item of its class.
fn waste_percent(atomic_bytes: usize) -> (u32, Vec<(u32, u32)>) {
    let classes = classes(atomic_bytes);
    let of_extent = classes.iter().map(|(_, class)| {
        let used = class.slots_per_extent * class.slot_bytes;
        (EXTENT_BYTES as u32 - used) * 100 / EXTENT_BYTES as u32
    });
    let sizes: Vec<u32> = classes.iter().map(|(_, class)| class.slot_bytes).collect();
    let of_slots = sizes
        .windows(2)
        .map(|pair| (pair[1], (pair[1] - pair[0] - 1) * 100 / pair[1]));
    (of_extent.max().unwrap(), of_slots.collect())
}

#[test]
fn waste_is_bounded() {
    for (atomic_bytes, extent_max, beyond_8k_max) in [(512, 6, 20), (4096, 6, 33)] {
        let (of_extent, of_slots) = waste_percent(atomic_bytes);
        assert!(of_extent <= extent_max, "{atomic_bytes}: {of_extent} %");
        for (size, percent) in of_slots {
            let max = if size > 8192 { beyond_8k_max } else { 50 };
            assert!(percent <= max, "{atomic_bytes}: {percent} % of {size}");
        }
    }
}

#[test]
fn no_two_classes_have_as_many_slots() {
    for atomic_bytes in ATOMIC_BYTES {
        let classes = classes(atomic_bytes);
        let counts: BTreeSet<_> = classes
            .iter()
            .map(|(_, class)| class.slots_per_extent)
            .collect();
        assert_eq!(counts.len(), classes.iter().count());
        let (_, last) = classes.iter().last().unwrap();
        assert_eq!(
            (last.slot_bytes as usize, last.slots_per_extent),
            (classes.slot_bytes_max(), 4)
        );
    }
}

#[test]
fn an_atomic_unit_is_a_power_of_two_from_a_sector_to_a_page() {
    for atomic_bytes in [0, 1, 256, 511, 513, 768, 8192, usize::MAX] {
        let error = Classes::new(atomic_bytes).unwrap_err();
        assert_eq!(error.kind(), kreon_base::ErrorKind::InvalidArgument);
    }
}

#[test]
fn a_slot_knows_its_place_on_the_device() {
    let classes = classes(512);
    let class = classes.class_of(100).unwrap();
    let slot = classes.slot(ExtentNo(7), class, 5).unwrap();
    let offset = 7 * EXTENT_BYTES as u64 + SLOTS_AT as u64 + 512 + 128;
    assert_eq!(
        (slot.offset, slot.bytes, slot.extent()),
        (offset, 128, ExtentNo(7))
    );
    assert_eq!(classes.slot(ExtentNo(7), class, u32::MAX), None);
}
