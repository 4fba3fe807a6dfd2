//! Damaged bytes are detected and never cause a panic.
#![allow(missing_docs)]

mod samples;

use kreon_base::{Checksum, Epoch, PAGE_BYTES, PageBytes, PageNo, Result, SegmentId};
use kreon_format::*;
use proptest::prelude::*;
use samples::*;

/// Damages each byte in turn and demands that `read` rejects the result, but accepts the intact bytes.
fn every_flip_is_found(bytes: &[u8], read: impl Fn(&[u8]) -> Result<()>) {
    read(bytes).unwrap();
    let mut bytes = bytes.to_vec();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            bytes[at] ^= flip;
            assert!(read(&bytes).is_err(), "byte {at} flipped by {flip:02x}");
            bytes[at] ^= flip;
        }
    }
}

fn page(bytes: &[u8]) -> &PageBytes {
    bytes.try_into().unwrap()
}

#[test]
fn every_flip_in_a_superblock_is_found() {
    every_flip_is_found(&*superblock().encode(2), |bytes| {
        Superblock::decode(page(bytes), 2).map(drop)
    });
}

#[test]
fn every_flip_in_a_bitmap_block_is_found() {
    every_flip_is_found(&*bitmap().encode(STORE, 1).0, |bytes| {
        BitmapBlock::decode(page(bytes), STORE, 3, 1).map(drop)
    });
}

#[test]
fn every_flip_in_a_catalogue_page_is_found() {
    let payload = catalogue().encode();
    let (chain, head) = encode_chain(STORE, Epoch(8), &payload, &[PageNo(5)]).unwrap();
    every_flip_is_found(&*chain[0].1, |bytes| {
        decode_page(page(bytes), STORE, &head).map(drop)
    });
}

#[test]
fn every_flip_in_a_log_segment_header_is_found() {
    every_flip_is_found(&*segment_header().encode(), |bytes| {
        LogSegmentHeader::decode(page(bytes), STORE, SegmentId(3)).map(drop)
    });
}

#[test]
fn every_flip_in_a_fragment_or_pad_is_found() {
    for bytes in [fragment(), pad(8), pad(16), pad(64)] {
        every_flip_is_found(&bytes, |bytes| {
            Fragment::decode(bytes, &SEAL, RECORD_OFFSET).map(drop)
        });
    }
}

#[test]
fn every_flip_in_a_node_is_found() {
    for ((bytes, pointer), level) in [(leaf(), 0), (index(), 1)] {
        every_flip_is_found(&bytes, |bytes| {
            check_node(page(bytes), STORE, &pointer, level)
        });
    }
}

#[test]
fn whole_node_of_another_time_or_place_is_refused() {
    for ((bytes, pointer), level) in [(leaf(), 0), (index(), 1)] {
        let wrong = [
            PagePointer {
                page: PageNo(1),
                ..pointer
            },
            PagePointer {
                epoch: Epoch(1),
                ..pointer
            },
            PagePointer {
                checksum: 1,
                ..pointer
            },
        ];
        for pointer in wrong {
            assert!(check_node(&bytes, STORE, &pointer, level).is_err());
        }
        assert!(check_node(&bytes, StoreId(1), &pointer, level).is_err());
        assert!(check_node(&bytes, STORE, &pointer, 2).is_err());
    }
}

/// Calls all readers of a node; returns whether all succeeded.
fn use_node(bytes: &PageBytes, keys: &[Vec<u8>]) -> bool {
    let (mut fine, mut key) = (true, Vec::new());
    if let Ok(leaf) = Leaf::open(bytes) {
        let _ = (
            leaf.prefix(),
            leaf.used_bytes(),
            leaf.region(),
            format!("{leaf:?}"),
        );
        for index in 0..=leaf.len() {
            let read = [
                leaf.entry(index).is_ok(),
                leaf.key_into(index, &mut key).is_ok(),
            ];
            fine &= read == [index < leaf.len(); 2];
            let found = leaf.search(&key);
            fine &= index == leaf.len()
                || !matches!(found, Err(_) | Ok(LeafSearch::Absent(0)) if index > 0);
        }
        fine &= keys.iter().all(|key| leaf.search(key).is_ok());
        let copied = LeafBuilder::new().push_run(&leaf, 0..leaf.len(), PAGE_BYTES);
        fine &= copied.is_ok_and(|count| count == leaf.len());
    }
    if let Ok(node) = IndexNode::open(bytes) {
        let _ = (
            node.level(),
            node.used_bytes(),
            node.region(),
            format!("{node:?}"),
        );
        for index in 0..=node.len() {
            fine &= node.child(index).is_ok() == (index < node.len());
            fine &= node.pivot(index).is_ok() == (1..node.len()).contains(&index);
        }
        fine &= keys.iter().all(|key| node.route(key).is_ok());
    }
    fine
}

fn some_keys() -> Vec<Vec<u8>> {
    let stored = [&b"user4user1"[..], &[b'z'; 1014]].concat();
    let mut keys: Vec<Vec<u8>> = vec![
        vec![],
        b"user1".into(),
        b"user100000000".into(),
        vec![0xff; 2000],
    ];
    keys.extend([
        b"user1000000000".to_vec(),
        b"user2".into(),
        stored.clone(),
        [&stored[..], b"z"].concat(),
    ]);
    keys
}

/// The checksum of a page according to the format.
fn reseal(bytes: &mut PageBytes, store: StoreId, page: u64) -> u32 {
    bytes[..4].fill(0);
    let seed = Checksum::new()
        .with(&store.0.to_le_bytes())
        .with(&page.to_le_bytes());
    let checksum = seed.with(&bytes[..]).finish();
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

/// Checks that a damaged node with a valid checksum is either rejected or fully usable.
fn refused_or_usable(mut bytes: PageBytes, pointer: PagePointer, level: u8) {
    let checksum = reseal(&mut bytes, STORE, pointer.page.0);
    let usable = use_node(&bytes, &some_keys());
    let checked = check_node(
        &bytes,
        STORE,
        &PagePointer {
            checksum,
            ..pointer
        },
        level,
    );
    assert!(usable || checked.is_err());
}

#[test]
fn node_with_one_wrong_byte_and_a_right_checksum_is_refused_or_usable() {
    for ((mut bytes, pointer), level) in [(leaf(), 0), (index(), 1)] {
        let in_use = (0..400)
            .chain(PAGE_BYTES - 300..PAGE_BYTES)
            .chain((400..3800).step_by(7));
        for at in in_use {
            for flip in [0x01, 0x10, 0x80, 0xff] {
                bytes[at] ^= flip;
                refused_or_usable(bytes, pointer, level);
                bytes[at] ^= flip;
            }
        }
    }
}

/// Writes to a structure's bytes: position and value.
fn writes(count: usize) -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..count)
}

/// Runs all decoders on `bytes` of any length.
fn decode_all(bytes: &[u8]) {
    let mut whole = [0; PAGE_BYTES];
    for (to, from) in whole.iter_mut().zip(bytes) {
        *to = *from;
    }
    for slot in [0, 3, 4, usize::MAX] {
        let _ = format!("{:?}", Superblock::examine(&whole, slot));
        let _ = Superblock::decode(&whole, slot);
    }
    let _ = BitmapBlock::decode(&whole, STORE, 3, 1);
    let _ = BitmapBlock::decode(&whole, STORE, u32::MAX, 255);
    let _ = decode_page(&whole, STORE, &pointer(0));
    let _ = LogSegmentHeader::decode(&whole, STORE, SegmentId(u32::MAX));
    let _ = check_node(&whole, STORE, &pointer(0), whole[7]);
    let _ = Catalogue::decode(bytes);
    let _ = Fragment::decode(bytes, &SEAL, RECORD_OFFSET);
    use_node(&whole, &some_keys());
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..PAGE_BYTES), magic in 0..4_usize) {
        decode_all(&bytes);
        // With the marks of a node, so that decoders pass their first check.
        let mut bytes = bytes;
        if bytes.len() > 32 {
            bytes[4..7].copy_from_slice(&[b'k', b'N', 1]);
            bytes[7] = (magic / 2) as u8;
            bytes[25] = 0;
            bytes[27] = (magic % 2) as u8;
            bytes[29] = 8;
            decode_all(&bytes);
        }
    }

    #[test]
    fn damaged_nodes_never_panic(writes in writes(12), front in writes(4), which in 0..2_u8) {
        let (mut bytes, pointer) = if which == 0 { leaf() } else { index() };
        for (at, byte) in &writes {
            bytes[at.index(PAGE_BYTES)] = *byte;
        }
        refused_or_usable(bytes, pointer, which);
        for (at, byte) in &front {
            bytes[7 + at.index(150)] = *byte;
        }
        refused_or_usable(bytes, pointer, which);
    }

    #[test]
    fn damaged_catalogues_never_panic_or_take_much_memory(writes in writes(6), cut: prop::sample::Index) {
        let mut bytes = catalogue().encode();
        let length = bytes.len();
        let _ = Catalogue::decode(&bytes[..cut.index(length)]);
        prop_assert!(Catalogue::decode(&bytes[..cut.index(length)]).is_err());
        for (at, byte) in &writes {
            bytes[at.index(length)] = *byte;
        }
        if let Ok(catalogue) = Catalogue::decode(&bytes) {
            prop_assert_eq!(Catalogue::decode(&catalogue.encode()).unwrap(), catalogue);
        }
    }

    #[test]
    fn damaged_log_never_panics(writes in writes(4), which in 0..2_usize) {
        let mut bytes = if which == 0 { fragment() } else { pad(48) };
        for (at, byte) in &writes {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        let whole = if which == 0 { fragment() } else { pad(48) };
        let read = Fragment::decode(&bytes, &SEAL, RECORD_OFFSET);
        prop_assert_eq!(read.is_ok(), bytes == whole);
    }

    #[test]
    fn damaged_pages_with_a_right_checksum_never_panic(writes in writes(6)) {
        let (bitmap_bytes, _) = bitmap().encode(STORE, 1);
        let payload = catalogue().encode();
        let (chain, head) = encode_chain(STORE, Epoch(8), &payload, &[PageNo(5)]).unwrap();
        let pages = [
            (superblock().encode(2), 16),
            (bitmap_bytes, bitmap_page(3, 1).0),
            (segment_header().encode(), SegmentId(3).first_page().0),
            (chain[0].1.clone(), 5),
        ];
        for (mut bytes, page) in pages {
            for (at, byte) in &writes {
                bytes[at.index(300)] = *byte;
            }
            let checksum = reseal(&mut bytes, STORE, page);
            let _ = Superblock::decode(&bytes, 2);
            let _ = BitmapBlock::decode(&bytes, STORE, 3, 1);
            let _ = LogSegmentHeader::decode(&bytes, STORE, SegmentId(3));
            let head = PagePointer { checksum, ..head };
            if let Ok((payload, _)) = decode_page(&bytes, STORE, &head) {
                let _ = Catalogue::decode(payload);
            }
        }
    }
}
