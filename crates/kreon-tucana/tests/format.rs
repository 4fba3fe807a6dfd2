//! The structures as `docs/format-tucana.md` draws them, and damaged ones.

use kreon_base::{
    Checksum, Epoch, Incarnation, KeyHash, LogOffset, PAGE_BYTES, PageBytes, PageNo, RegionId,
};
use kreon_format::{PagePointer, StoreId};
use tucana::format::*;

const STORE: StoreId = StoreId(0x1122_3344_5566_7788);
const POINTER: NodePointer = NodePointer {
    page: PageNo(0x0a0b_0c0d_0e0f),
    epoch: Epoch(0x0102_0304_0506),
};

fn seal() -> NodeSeal {
    NodeSeal {
        store: STORE,
        region: RegionId(5),
    }
}

/// Puts bytes at an offset of a page that is drawn by hand.
fn draw(page: &mut PageBytes, at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

fn draw_checksum(page: &mut PageBytes, number: u64) {
    let checksum = Checksum::new()
        .with(&STORE.0.to_le_bytes())
        .with(&number.to_le_bytes())
        .with(&[0; 4])
        .with(&page[4..]);
    draw(page, 0, &checksum.finish().to_le_bytes());
}

fn header(level: u8) -> NodeHeader {
    NodeHeader {
        pointer: POINTER,
        region: RegionId(5),
        level,
    }
}

fn drawn_header(level: u8, count: u16, detail: u16) -> Box<PageBytes> {
    let mut page = Box::new([0; PAGE_BYTES]);
    draw(&mut page, 4, b"tN\x03");
    page[7] = level;
    draw(&mut page, 8, &[0x0f, 0x0e, 0x0d, 0x0c, 0x0b, 0x0a]);
    draw(&mut page, 14, &[6, 5, 4, 3, 2, 1]);
    draw(&mut page, 20, &[5, 0, 0, 0]);
    draw(&mut page, 24, &count.to_le_bytes());
    draw(&mut page, 26, &detail.to_le_bytes());
    page
}

fn leaf() -> Box<PageBytes> {
    let mut page = Box::new([0; PAGE_BYTES]);
    header(0).begin(&mut page);
    let mut leaf = LeafMut::of(&mut page);
    leaf.set_prefix_bytes(4);
    for (index, key) in [&b"userab"[..], b"userabcdefghij"].into_iter().enumerate() {
        let offset = LogOffset(0x0102_0304_0500 + index as u64);
        let entry = LeafEntry {
            head: head_of(key, 4),
            hash: key_hash(key),
            location: Location::new(offset, [65, 300_000][index]),
        };
        leaf.insert(index, entry);
    }
    seal().seal(&mut page);
    page
}

fn index() -> Box<PageBytes> {
    let mut page = Box::new([0; PAGE_BYTES]);
    header(2).begin(&mut page);
    let child = |page| NodePointer {
        page: PageNo(page),
        epoch: Epoch(page + 1),
    };
    let mut index = IndexMut::begin(&mut page, 2, child(0x10));
    index.insert(1, child(0x30), b"tree");
    index.insert(1, child(0x20), b"dog");
    seal().seal(&mut page);
    page
}

#[test]
fn a_leaf_is_as_the_document_draws_it() {
    let mut page = drawn_header(0, 2, 4);
    draw(&mut page, 32, b"ab\0\0\0\0\0\0abcdefgh");
    for (at, key) in [(1656, &b"userab"[..]), (1660, b"userabcdefghij")] {
        let hash = KeyHash::new(key.len() as u64).bytes(key).finish();
        draw(&mut page, at, &hash.to_le_bytes()[4..]);
    }
    draw(&mut page, 2468, &[9, 0, 0x00, 5, 4, 3, 2, 1]);
    draw(&mut page, 2476, &[0x50, 0x92, 0x01, 5, 4, 3, 2, 1]);
    draw_checksum(&mut page, POINTER.page.0);
    assert!(page == leaf());
    seal().verify(&page, POINTER, 0).unwrap();
}

#[test]
fn an_index_node_is_as_the_document_draws_it() {
    let mut page = drawn_header(2, 3, 4089);
    for (slot, child, at, bytes) in [(0, 0x10, 0, 0), (1, 0x20, 4089_u16, 3), (2, 0x30, 4092, 4)] {
        let start = 32 + slot * 16;
        page[start] = child;
        page[start + 6] = child + 1;
        draw(&mut page, start + 12, &at.to_le_bytes());
        page[start + 14] = bytes;
    }
    draw(&mut page, 4089, b"dogtree");
    draw_checksum(&mut page, POINTER.page.0);
    assert!(page == index());
    seal().verify(&page, POINTER, 2).unwrap();
}

#[test]
fn a_superblock_is_as_the_document_draws_it() {
    let superblock = Superblock {
        store: STORE,
        commit: 6,
        epoch: Epoch(9),
        incarnation: Incarnation(3),
        segments: 44,
        catalogue: PagePointer {
            page: PageNo(70),
            epoch: Epoch(9),
            checksum: 5,
        },
        catalogue_bytes: 100,
    };
    let mut page = Box::new([0; PAGE_BYTES]);
    draw(&mut page, 4, b"tS\x03\0TucanVol");
    draw(&mut page, 16, &STORE.0.to_le_bytes());
    for (at, byte) in [(24, 2), (28, 44), (32, 6), (40, 9), (48, 3), (72, 100)] {
        page[at] = byte;
    }
    draw(&mut page, 56, &superblock.catalogue.encode());
    // Slot 2 is page 16.
    draw_checksum(&mut page, 16);
    assert!(page == superblock.encode(2));
    assert_eq!(slot_of(superblock.commit), 2);
}

#[test]
fn no_change_of_a_byte_passes_the_seal() {
    for (page, level) in [(leaf(), 0), (index(), 2)] {
        for at in 0..PAGE_BYTES {
            let mut damaged = page.clone();
            damaged[at] ^= 0x10;
            assert!(
                seal().verify(&damaged, POINTER, level).is_err(),
                "byte {at}"
            );
        }
        let other = NodePointer {
            epoch: Epoch(1),
            ..POINTER
        };
        assert!(seal().verify(&page, other, level).is_err());
        assert!(seal().verify(&page, POINTER, level + 1).is_err());
    }
}

/// Content that was damaged before it was sealed: the check refuses what would lead out of the page, and nothing panics.
#[test]
fn any_content_below_a_good_seal_is_read_without_a_panic() {
    let mut state = 7_u64;
    let mut random = move |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % bound
    };
    let mut refused = 0;
    for round in 0..20_000 {
        let (mut page, level) = match round % 2 {
            0 => (leaf(), 0),
            _ => (index(), 2),
        };
        for _ in 0..1 + random(4) {
            let at = match random(3) {
                0 => 24 + random(4),
                1 => 32 + random(64),
                _ => 24 + random(4072),
            };
            page[at as usize] = random(256) as u8;
        }
        seal().seal(&mut page);
        refused += u32::from(seal().verify(&page, POINTER, level).is_err());
        if level == 0 {
            let leaf = Leaf::of(&page);
            let range = leaf.range_of(leaf.head_of(b"userabcd"));
            let entries = (0..leaf.count()).map(|index| leaf.entry(index));
            assert!(range.end <= ENTRIES_MAX && entries.count() <= ENTRIES_MAX);
        } else {
            let index = Index::of(&page);
            let slot = index.route(b"fox").max(index.route_below(None));
            assert!(slot <= CHILDREN_MAX && index.pivot(slot).len() <= PAGE_BYTES);
        }
    }
    assert!(refused > 5000, "{refused}");
}
