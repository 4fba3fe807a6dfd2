//! The slots of the superblock: rotation, damage, torn writes, other volumes.

use kreon_base::{Checksum, ErrorKind, PAGE_BYTES, PageBytes};
use kvell::format::*;

use crate::SEAL;

const BLANK: PageBytes = [0; PAGE_BYTES];

pub fn superblock(sequence: u64) -> Superblock {
    Superblock {
        store: SEAL.store,
        sequence,
        incarnation: 9,
        extents_end: 40,
        atomic_bytes: 512,
        index_key_bytes: 32,
        state: State::Dirty,
        image: None,
        durable: (1..=8)
            .map(|mark| Timestamp::new(8, mark + sequence % 100))
            .collect(),
    }
}

/// The slots after the superblocks with these sequences were written.
fn slots(sequences: impl IntoIterator<Item = u64>) -> [PageBytes; SUPERBLOCK_SLOTS] {
    let mut slots = [BLANK; SUPERBLOCK_SLOTS];
    for sequence in sequences {
        let superblock = superblock(sequence);
        slots[superblock.slot()] = *superblock.encode();
    }
    slots
}

fn reseal(page: &mut PageBytes, slot: u64) {
    let store: [u8; 8] = page[16..24].try_into().unwrap();
    let sum = Checksum::new()
        .with(&store)
        .with(&slot.to_le_bytes())
        .with(&page[4..]);
    page[..4].copy_from_slice(&sum.finish().to_le_bytes());
}

#[test]
fn a_superblock_reads_back_in_its_own_slot_only() {
    let mut given = superblock(6);
    given.image = Some(ImagePlace {
        offset: 1 << 40,
        bytes: 5,
        checksum: 6,
    });
    given.state = State::Clean;
    given.durable = vec![Timestamp(u64::MAX); PARTITIONS_MAX];
    let page = given.encode();
    assert_eq!((given.slot(), given.offset()), (2, 8192));
    for slot in 0..5 {
        let read = Superblock::decode(&page, slot);
        assert_eq!(read.ok().flatten(), (slot == 2).then(|| given.clone()));
    }
}

#[test]
fn the_newest_whole_superblock_counts() {
    assert_eq!(newest(&slots([])).unwrap(), None);
    for last in 0..12 {
        let mut slots = slots(0..=last);
        assert_eq!(newest(&slots).unwrap(), Some(superblock(last)));
        slots[superblock(last).slot()][3000] ^= 1;
        let older = newest(&slots).ok().flatten();
        assert_eq!(older, last.checked_sub(1).map(superblock));
    }
}

#[test]
fn every_change_of_one_byte_is_noticed_and_another_slot_is_used() {
    let mut slots = slots(4..8);
    for at in 0..PAGE_BYTES {
        for change in [1, 0x80, 0xff] {
            slots[3][at] ^= change;
            assert!(Superblock::decode(&slots[3], 3).is_err());
            assert_eq!(newest(&slots).unwrap(), Some(superblock(6)), "byte {at}");
            slots[3][at] ^= change;
        }
    }
}

#[test]
fn a_torn_write_leaves_the_superblock_before_it() {
    let old = slots(4..8);
    let new = superblock(8).encode();
    for mask in 0..=u8::MAX {
        let mut torn = old;
        for sector in (0..8).filter(|sector| mask >> sector & 1 == 1) {
            let range = sector * 512..(sector + 1) * 512;
            torn[0][range.clone()].copy_from_slice(&new[range]);
        }
        let expected = if torn[0] == *new { 8 } else { 7 };
        assert_eq!(newest(&torn).unwrap(), Some(superblock(expected)));
    }
}

#[test]
fn the_first_superblock_of_a_store_over_blank_bytes_cannot_be_torn() {
    let mut first = superblock(0);
    first.durable = vec![Timestamp(0); PARTITIONS_MAX];
    assert!(first.encode()[512..].iter().all(|&byte| byte == 0));
}

#[test]
fn volumes_without_a_superblock_that_counts_are_told_apart() {
    let failure = |slots: &[PageBytes; 4]| {
        let error = newest(slots).unwrap_err();
        (error.kind(), error.to_string())
    };
    let mut damaged = slots([5]);
    damaged[1][700] ^= 1;
    let (kind, text) = failure(&damaged);
    assert_eq!(kind, ErrorKind::Corruption);
    assert!(text.contains("superblock slot 1"), "{text}");

    let (kind, text) = failure(&[[1; PAGE_BYTES], BLANK, BLANK, BLANK]);
    assert_eq!(
        (kind, text.contains("not a KVell volume")),
        (ErrorKind::InvalidArgument, true)
    );
}

#[test]
fn a_volume_of_kreon_is_named() {
    let kreon = kreon_format::Superblock {
        store: SEAL.store,
        epoch: kreon_base::Epoch(1),
        incarnation: kreon_base::Incarnation(1),
        segments: 44,
        catalogue: kreon_format::PagePointer {
            page: kreon_base::PageNo(70),
            epoch: kreon_base::Epoch(1),
            checksum: 5,
        },
        catalogue_bytes: 100,
    };
    // A store that was made over one of KVell, whose other slots are still there.
    let mut slots = slots(4..8);
    slots[0] = *kreon.encode(0);
    assert_eq!(label_of(&slots[0]), Some(*b"KreonVol"));
    let error = newest(&slots).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("a volume of Kreon"), "{error}");

    let ours = superblock(4).encode();
    assert_eq!(label_of(&*ours), Some(*b"KvellVol"));
    let read = kreon_format::Superblock::decode(&ours, 0).unwrap_err();
    assert_eq!(read.kind(), ErrorKind::InvalidArgument);
    assert_eq!((label_of(&BLANK), label_of(b"short")), (None, None));
}

#[test]
fn a_newer_format_is_refused_although_older_superblocks_are_whole() {
    let mut slots = slots(4..8);
    slots[0][6] = FORMAT_VERSION + 1;
    assert_eq!(newest(&slots).unwrap(), Some(superblock(7)));
    reseal(&mut slots[0], 0);
    let error = newest(&slots).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("newer format"), "{error}");
}

#[test]
fn fields_out_of_range_are_refused_under_a_right_checksum() {
    let changed: [(usize, &[u8]); 8] = [
        (4, b"xx"),
        (24, &[5]),
        (35, &[1]),
        (40, &[1]),
        (44, &[0, 3]),
        (48, &[0, 0]),
        (48, &[1, 1]),
        (52, &[0]),
    ];
    for (at, value) in changed {
        let mut page = superblock(4).encode();
        reseal(&mut page, 0);
        assert!(Superblock::decode(&page, 0).is_ok());
        page[at..at + value.len()].copy_from_slice(value);
        reseal(&mut page, 0);
        let error = Superblock::decode(&page, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "byte {at}");
    }
}
