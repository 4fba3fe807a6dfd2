//! No damage to a structure passes for another whole one, and no bytes make a decoder panic.

use kreon_base::{Checksum, PAGE_BYTES};
use kreon_format::StoreId;
use kvell::format::*;
use proptest::prelude::*;

use crate::{SEAL, encoded, noise, slot};

/// Calls `check` with every change of one byte of `bytes[..length]` to another value that one bit or all bits make.
fn each_change(bytes: &mut [u8], length: usize, mut check: impl FnMut(&[u8], usize)) {
    for at in 0..length {
        for change in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
            bytes[at] ^= change;
            check(bytes, at);
            bytes[at] ^= change;
        }
    }
}

#[test]
fn every_change_of_one_byte_of_an_item_is_noticed() {
    for (key_bytes, value_bytes) in [(0, 0), (5, 0), (16, 40), (400, 300), (401, 3), (900, 300)] {
        for kind in [ItemKind::Put, ItemKind::Large, ItemKind::Tombstone] {
            let (key, value) = (noise(1, key_bytes), noise(2, value_bytes));
            let mut content = encoded(1536, kind, &key, &value);
            let head = head_bytes(key_bytes);
            let length = match kind {
                ItemKind::Tombstone => head,
                _ => item_bytes(key_bytes, value_bytes),
            };
            each_change(&mut content, length, |content, at| {
                let found = decode(content, SEAL, slot(1536));
                match at < head {
                    true => assert_eq!(found, Found::BadHead, "byte {at}"),
                    false => assert!(matches!(found, Found::Torn(_)), "byte {at}: {found:?}"),
                }
            });
        }
    }
}

#[test]
fn an_item_does_not_verify_in_another_store_place_or_class() {
    let content = encoded(512, ItemKind::Put, b"key", b"value");
    let here = slot(512);
    assert!(matches!(decode(&content, SEAL, here), Found::Whole(_)));
    let moved = Slot {
        offset: here.offset + 512,
        ..here
    };
    let classed = Slot {
        class: ClassNo(8),
        ..here
    };
    let short = Slot { bytes: 31, ..here };
    for other in [moved, classed, short] {
        assert_eq!(decode(&content, SEAL, other), Found::BadHead, "{other:?}");
    }
    let store = StoreId(SEAL.store.0 + 1);
    assert_eq!(decode(&content, ItemSeal { store }, here), Found::BadHead);
    let cut = decode(&content[..31], SEAL, here);
    assert!(matches!(cut, Found::Torn(_)), "{cut:?}");
}

fn extent_header() -> ExtentHeader {
    ExtentHeader {
        store: SEAL.store,
        extent: ExtentNo(6),
        partition: 255,
        class: ClassNo(11),
        sequence: 77,
    }
}

#[test]
fn every_change_of_one_byte_of_an_extent_header_is_noticed() {
    let given = extent_header();
    let mut bytes = given.encode();
    let found = |bytes: &[u8], store, extent| {
        ExtentHeader::decode(bytes.first_chunk().unwrap(), store, extent)
    };
    let whole = found(&bytes, given.store, given.extent);
    assert!(matches!(whole, FoundExtent::Header(header) if header == given));
    each_change(&mut bytes, EXTENT_HEADER_BYTES, |bytes, at| {
        let found = found(bytes, given.store, given.extent);
        assert!(matches!(found, FoundExtent::Bad(_)), "byte {at}");
    });
    let others = [(StoreId(1), given.extent), (given.store, ExtentNo(7))];
    for (store, extent) in others {
        assert!(matches!(found(&bytes, store, extent), FoundExtent::Bad(_)));
    }
    let blank = found(&[0; EXTENT_HEADER_BYTES], given.store, given.extent);
    assert!(matches!(blank, FoundExtent::Blank));
}

/// Puts the checksum of the head part into the first bytes of an item.
fn seal_head(content: &mut [u8], slot: Slot) {
    let key_bytes = usize::from(u16::from_le_bytes([content[20], content[21]]));
    let end = head_bytes(key_bytes).min(content.len());
    let seed = [SEAL.store.0, slot.offset].map(u64::to_le_bytes);
    let checksum = Checksum::new()
        .with(seed.as_flattened())
        .with(&content[4..end])
        .finish();
    content[..4].copy_from_slice(&checksum.to_le_bytes());
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoders_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..2000),
        slot_bytes in 0..3000_u32,
    ) {
        let slot = Slot { bytes: slot_bytes, ..slot(0) };
        prop_assert!(!matches!(decode(&bytes, SEAL, slot), Found::Whole(_) | Found::Torn(_)));
        prop_assert!(!matches!(decode_head(&bytes, SEAL, slot), FoundHead::Head(_)));
        let _ = (PartOf::decode(&bytes), LargeValue::decode(&bytes), label_of(&bytes));
        if let Some(sector) = bytes.first_chunk() {
            let found = ExtentHeader::decode(sector, SEAL.store, ExtentNo(1));
            prop_assert!(matches!(found, FoundExtent::Bad(_)));
        }
        let mut page = [0; PAGE_BYTES];
        page[..bytes.len()].copy_from_slice(&bytes);
        prop_assert!(bytes.is_empty() || Superblock::decode(&page, 0).is_err());
    }

    /// A right checksum of the head part leads behind the first check.
    #[test]
    fn any_fields_under_a_right_checksum_do_not_make_the_decoder_panic(
        mut content in proptest::collection::vec(any::<u8>(), 24..1500),
        key_bytes in prop_oneof![0..500_u16, any::<u16>()],
        value_bytes in prop_oneof![0..1500_u32, any::<u32>()],
        kind in 0..6_u8,
        slot_bytes in 0..2000_u32,
    ) {
        let slot = Slot { bytes: slot_bytes, ..slot(0) };
        content[16..20].copy_from_slice(&value_bytes.to_le_bytes());
        content[20..22].copy_from_slice(&key_bytes.to_le_bytes());
        content[22..24].copy_from_slice(&[kind, slot.class.0]);
        seal_head(&mut content, slot);
        let found = decode(&content, SEAL, slot);
        if let Found::Torn(head) = found {
            prop_assert!(head.item_bytes() <= slot_bytes as usize);
        }
        prop_assert!(!matches!(found, Found::Whole(item) if item.head.kind != ItemKind::Tombstone));
    }
}

#[test]
fn a_head_whose_lengths_leave_the_slot_or_do_not_suit_its_kind_is_bad() {
    let set = |at: usize, value: &[u8]| {
        let mut content = encoded(512, ItemKind::Put, b"key", b"value");
        content[at..at + value.len()].copy_from_slice(value);
        seal_head(&mut content, slot(512));
        matches!(decode(&content, SEAL, slot(512)), Found::BadHead)
    };
    let [put, tombstone, part, unknown] = [1, 2, 4, 5].map(|kind| [kind]);
    assert!(!set(22, &put) && set(22, &tombstone) && set(22, &part) && set(22, &unknown));
    assert!(set(16, &486_u32.to_le_bytes()) && !set(16, &485_u32.to_le_bytes()));
    assert!(set(16, &u32::MAX.to_le_bytes()) && set(20, &u16::MAX.to_le_bytes()));
}
