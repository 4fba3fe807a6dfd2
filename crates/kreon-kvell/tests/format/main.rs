//! What the engine persists: its bytes, its sizes, and what damage and torn writes do to it.
#![allow(missing_docs)]

mod classes;
mod damage;
// The same reader of tables and pictures as that of `docs/format.md`.
#[allow(dead_code)]
#[path = "../../../kreon-format/tests/format_document/document.rs"]
mod document;
mod golden;
mod image;
mod items;
mod large;
mod layout;
mod superblocks;
mod tearing;
#[allow(dead_code)]
#[path = "../../../kreon-format/tests/format_document/values.rs"]
mod values;

use kreon_format::StoreId;
use kvell::format::*;

const SEAL: ItemSeal = ItemSeal {
    store: StoreId(0x0123_4567_89ab_cdef),
};

const TIMESTAMP: Timestamp = Timestamp::new(0x01_0203, 0x04_0506_0708);

/// A slot of `bytes` in extent 5.
fn slot(bytes: usize) -> Slot {
    Slot {
        offset: 5 * EXTENT_BYTES as u64 + SLOTS_AT as u64,
        class: ClassNo(9),
        bytes: bytes as u32,
    }
}

/// Bytes that look like chance, the same for the same seed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let words = (0..length as u64).map(|at| kreon_base::KeyHash::new(seed).word(at).finish());
    words.map(|word| word as u8).collect()
}

/// The content of a slot of `bytes`, blank but for an item.
fn encoded(bytes: usize, kind: ItemKind, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut content = vec![0; bytes];
    let length = match kind {
        ItemKind::Tombstone => encode_tombstone(&mut content, SEAL, slot(bytes), TIMESTAMP, key),
        _ => encode(&mut content, SEAL, slot(bytes), TIMESTAMP, kind, key, value),
    };
    assert!(length <= bytes);
    content
}
