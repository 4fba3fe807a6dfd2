//! Values over several slots.

use kreon_base::VALUE_BYTES_MAX;
use kvell::format::*;

use crate::{SEAL, TIMESTAMP, encoded, slot};

#[test]
fn a_part_names_its_owner() {
    let part = PartOf {
        key_hash: key_hash(SEAL, b"key"),
        timestamp: TIMESTAMP,
        number: 3,
    };
    let value = [&part.encode()[..], b"piece"].concat();
    let content = encoded(512, ItemKind::Part, b"", &value);
    let Found::Whole(item) = decode(&content, SEAL, slot(512)) else {
        panic!("not whole");
    };
    assert_eq!(PartOf::decode(item.value), Some((part, &b"piece"[..])));
    assert_eq!(PartOf::decode(&value[..PART_PREFIX_BYTES - 1]), None);
}

#[test]
fn a_large_value_reads_back_unless_it_cannot_be_one() {
    let given = LargeValue {
        value_bytes: VALUE_BYTES_MAX as u32,
        checksum: 5,
        parts: vec![OFFSET_MAX, 8, 4096],
    };
    let bytes = given.encode();
    assert_eq!(LargeValue::decode(&bytes).unwrap(), given);
    let mut long = given.clone();
    long.value_bytes += 1;
    let mut odd = given.clone();
    odd.parts[1] = 9;
    let mut far = given.clone();
    far.parts[0] += 8;
    let mut none = given.clone();
    none.parts.clear();
    let mut many = given;
    many.parts = vec![8; PARTS_MAX + 1];
    for wrong in [long, odd, far, none, many] {
        assert!(LargeValue::decode(&wrong.encode()).is_err());
    }
    for cut in [0, 7, bytes.len() - 1] {
        assert!(LargeValue::decode(&bytes[..cut]).is_err());
    }
}

#[test]
fn the_longest_value_fits_into_parts_and_their_places_into_a_slot() {
    for atomic_bytes in [512, 1024, 2048, 4096] {
        let slot_bytes = Classes::new(atomic_bytes).unwrap().slot_bytes_max();
        let piece = slot_bytes - item_bytes(0, PART_PREFIX_BYTES);
        assert!(VALUE_BYTES_MAX.div_ceil(piece) <= PARTS_MAX);
        assert!(item_bytes(ITEM_KEY_BYTES_MAX, 8 + 8 * PARTS_MAX) <= slot_bytes);
    }
}
