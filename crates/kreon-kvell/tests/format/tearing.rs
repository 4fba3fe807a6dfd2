//! A write of which any subset of sectors arrived, over an older item in the same slot.

use kvell::format::*;
use proptest::prelude::*;

use crate::{SEAL, noise, slot};

const SLOT_BYTES: usize = 4096;
const SECTOR_BYTES: usize = 512;

#[derive(Clone, Debug)]
struct Write {
    counter: u64,
    kind: ItemKind,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Write {
    fn over(&self, content: &[u8]) -> Vec<u8> {
        let (mut content, slot) = (content.to_vec(), slot(SLOT_BYTES));
        let timestamp = Timestamp::new(1, self.counter);
        match self.kind {
            ItemKind::Tombstone => {
                encode_tombstone(&mut content, SEAL, slot, timestamp, &self.key);
            }
            kind => {
                encode(
                    &mut content,
                    SEAL,
                    slot,
                    timestamp,
                    kind,
                    &self.key,
                    &self.value,
                );
            }
        }
        content
    }

    /// Whether `item` has the content of this write.
    fn is(&self, item: &Item<'_>) -> bool {
        let is_tombstone = self.kind == ItemKind::Tombstone;
        let is_value = is_tombstone || item.value == self.value;
        let is_key = is_tombstone || item.key == self.key;
        let head = item.head;
        head.timestamp == Timestamp::new(1, self.counter)
            && head.kind == self.kind
            && head.is_of(&self.key, key_hash(SEAL, &self.key))
            && is_key
            && is_value
    }
}

/// Keys and values of few seeds, so that writes often share bytes.
fn write(counter: u64) -> impl Strategy<Value = Write> {
    let kinds = prop_oneof![4 => Just(ItemKind::Put), 1 => Just(ItemKind::Tombstone)];
    let lengths = (
        prop_oneof![3 => 8..40_usize, 1 => 380..1500_usize],
        0..2500_usize,
    );
    (kinds, lengths, 0..3_u64, 0..2_u64).prop_map(move |(kind, (key, value), salt, other)| Write {
        counter,
        kind,
        key: noise(salt, key),
        value: noise(10 + other, value),
    })
}

/// The sectors of `new` that `mask` names over `old`.
fn torn(old: &[u8], new: &[u8], mask: u8) -> Vec<u8> {
    let mut content = old.to_vec();
    let sectors = content
        .chunks_mut(SECTOR_BYTES)
        .zip(new.chunks(SECTOR_BYTES));
    for (rank, (to, from)) in sectors.enumerate() {
        if mask >> rank & 1 == 1 {
            to.copy_from_slice(from);
        }
    }
    content
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sectors_of_two_writes_never_make_a_third_item(
        first in write(1),
        second in write(2),
        blank in any::<bool>(),
    ) {
        let empty = vec![0; SLOT_BYTES];
        let old = if blank { empty } else { first.over(&empty) };
        let new = second.over(&old);
        for mask in 0..=u8::MAX {
            let content = torn(&old, &new, mask);
            let found = decode(&content, SEAL, slot(SLOT_BYTES));
            // The head part is that of one of them.
            let is_new = mask & 1 == 1;
            match found {
                Found::Whole(item) if is_new => prop_assert!(second.is(&item), "{mask:b}"),
                Found::Whole(item) => prop_assert!(!blank && first.is(&item), "{mask:b}"),
                Found::Torn(head) => {
                    let counter = if is_new { second.counter } else { first.counter };
                    prop_assert_eq!(head.timestamp.counter(), counter);
                    prop_assert!(content != new && content != old);
                }
                Found::Blank => prop_assert!(blank && !is_new),
                Found::BadHead => prop_assert!(false, "{:b}", mask),
            }
        }
    }
}

#[test]
fn a_body_does_not_pass_for_that_of_another_write_of_other_bytes() {
    let write = |counter, seed| Write {
        counter,
        kind: ItemKind::Put,
        key: b"key".to_vec(),
        value: noise(seed, 3000),
    };
    let old = write(1, 1).over(&vec![0; SLOT_BYTES]);
    let new = write(2, 2).over(&old);
    for mask in 1..0b11_1110 {
        let content = torn(&old, &new, mask);
        let found = decode(&content, SEAL, slot(SLOT_BYTES));
        assert!(matches!(found, Found::Torn(_)), "{mask:b}");
    }
}
