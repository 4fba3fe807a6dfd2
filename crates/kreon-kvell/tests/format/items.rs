//! Round trips of items, and their hashes.

use kvell::format::*;
use proptest::prelude::*;

use crate::{SEAL, TIMESTAMP, encoded, noise, slot};

fn whole(content: &[u8]) -> Item<'_> {
    match decode(content, SEAL, slot(content.len())) {
        Found::Whole(item) => item,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn an_item_reads_back_from_its_slot(
        key_bytes in prop_oneof![0..500_usize, 390..410_usize, 60_000..=ITEM_KEY_BYTES_MAX],
        value_bytes in 0..3000_usize,
        rest in 0..600_usize,
        is_large in any::<bool>(),
    ) {
        let (key, value) = (noise(1, key_bytes), noise(2, value_bytes));
        let bytes = item_bytes(key_bytes, value_bytes);
        let kind = if is_large { ItemKind::Large } else { ItemKind::Put };
        let content = encoded(bytes + rest, kind, &key, &value);
        let item = whole(&content);
        prop_assert_eq!((item.key, item.value), (&key[..], &value[..]));
        let head = item.head;
        prop_assert_eq!((head.kind, head.timestamp, head.class), (kind, TIMESTAMP, ClassNo(9)));
        prop_assert_eq!(head.key_hash, key_hash(SEAL, &key));
        prop_assert!(head.is_of(&key, head.key_hash));
        prop_assert_eq!(head.item_bytes(), bytes);
        prop_assert_eq!(head.key_prefix, &key[..key_bytes.min(HEAD_KEY_BYTES_MAX)]);
        let first = &content[..content.len().min(HEAD_BYTES_MAX)];
        prop_assert_eq!(decode_head(first, SEAL, slot(content.len())), FoundHead::Head(head));
        prop_assert!(content[bytes..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_tombstone_needs_the_first_sector_of_a_slot_alone(key_bytes in 0..2000_usize) {
        let (key, value) = (noise(1, key_bytes), noise(2, 1000));
        let bytes = item_bytes(key_bytes, value.len());
        let mut content = encoded(bytes, ItemKind::Put, &key, &value);
        let sector = content.len().min(512);
        let length = encode_tombstone(&mut content[..sector], SEAL, slot(bytes), TIMESTAMP, &key);
        prop_assert!(length == head_bytes(key_bytes) && length <= HEAD_BYTES_MAX);
        let item = whole(&content);
        prop_assert_eq!((item.head.kind, item.value.len()), (ItemKind::Tombstone, 0));
        prop_assert_eq!(item.head.item_bytes(), length);
        prop_assert!(item.head.is_of(&key, key_hash(SEAL, &key)));
        prop_assert_eq!(item.key, &key[..key_bytes.min(HEAD_KEY_BYTES_MAX)]);
    }
}

#[test]
fn an_item_is_of_no_other_key() {
    for key_bytes in [1, 10, 400, 401, 1000] {
        let key = noise(1, key_bytes);
        let content = encoded(2000, ItemKind::Put, &key, b"value");
        let is_of = |other: &[u8]| whole(&content).head.is_of(other, key_hash(SEAL, other));
        assert!(is_of(&key) && !is_of(&key[1..]) && !is_of(&[&key[..], b"a"].concat()));
        for at in [0, key_bytes / 2, key_bytes - 1] {
            let mut other = key.clone();
            other[at] ^= 1;
            assert!(!is_of(&other), "byte {at} of {key_bytes}");
        }
    }
}

#[test]
fn a_blank_slot_is_no_item_whatever_lies_behind_its_header() {
    let mut content = vec![0; 1024];
    assert_eq!(decode(&content, SEAL, slot(1024)), Found::Blank);
    content[ITEM_HEADER_BYTES..].fill(0xff);
    assert_eq!(decode(&content, SEAL, slot(1024)), Found::Blank);
    content[ITEM_HEADER_BYTES - 1] = 1;
    assert_eq!(decode(&content, SEAL, slot(1024)), Found::BadHead);
    assert_eq!(decode(&content[..23], SEAL, slot(1024)), Found::BadHead);
}

#[test]
fn hashes_of_neighbouring_keys_differ_in_both_lanes_and_fill_partitions_evenly() {
    let hashes: Vec<u128> = (0..64_000_u32)
        .map(|number| key_hash(SEAL, format!("user{number:08}").as_bytes()))
        .collect();
    for shift in [0, 64] {
        let mut lanes: Vec<u64> = hashes.iter().map(|hash| (hash >> shift) as u64).collect();
        lanes.sort_unstable();
        lanes.dedup();
        assert_eq!(lanes.len(), hashes.len());
    }
    for partitions in [1, 3, 8, 256] {
        let mut counts = vec![0_u32; partitions as usize];
        // Of one partition, how the other lane's lowest bits are spread.
        let mut low_bits = [0_u32; 16];
        for hash in &hashes {
            let partition = partition_of(*hash, partitions);
            counts[partition as usize] += 1;
            if partition == 0 {
                low_bits[(hash & 15) as usize] += 1;
            }
        }
        let fair = hashes.len() as u32 / partitions;
        let off = |count: &u32, fair: u32| count.abs_diff(fair) > fair / 3 + 20;
        assert!(!counts.iter().any(|count| off(count, fair)), "{counts:?}");
        assert!(
            !low_bits.iter().any(|count| off(count, fair / 16)),
            "{low_bits:?}"
        );
    }
    assert_eq!(partition_of(u128::MAX, 0), 0);
}

#[test]
fn stores_hash_keys_differently() {
    let other = ItemSeal {
        store: kreon_format::StoreId(SEAL.store.0 ^ 1),
    };
    assert_ne!(key_hash(SEAL, b"key"), key_hash(other, b"key"));
}
