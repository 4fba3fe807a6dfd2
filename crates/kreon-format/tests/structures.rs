//! Every structure reads back at the address where it was written, and nowhere else.
#![allow(missing_docs)]

mod samples;

use kreon_base::{Epoch, ErrorKind, Incarnation, LogOffset, Lsn, PageNo, RegionId, SegmentId};
use kreon_format::*;
use proptest::prelude::*;
use samples::*;

#[test]
fn bitmap_block_reads_back_in_its_own_place_only() {
    let (bytes, pointer) = bitmap().encode(STORE, 1);
    assert_eq!(BitmapBlock::decode(&bytes, STORE, 3, 1).unwrap(), bitmap());
    assert_eq!(
        BitmapBlock::decode_pointed(&bytes, STORE, 3, &pointer).unwrap(),
        bitmap()
    );
    assert!(BitmapBlock::decode(&bytes, STORE, 3, 0).is_err());
    assert!(BitmapBlock::decode(&bytes, STORE, 2, 1).is_err());
    assert!(BitmapBlock::decode(&bytes, StoreId(1), 3, 1).is_err());

    // The block of an earlier epoch, left by a lost write, is intact but not the right one.
    let mut old = bitmap();
    old.epoch = Epoch(1);
    let (old, _) = old.encode(STORE, 1);
    assert!(BitmapBlock::decode(&old, STORE, 3, 1).is_ok());
    let error = BitmapBlock::decode_pointed(&old, STORE, 3, &pointer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
}

#[test]
fn bitmap_blocks_stand_in_the_heads_of_their_groups() {
    assert_eq!(bitmap_page(0, 0), PageNo(32));
    assert_eq!(bitmap_page(1, 1), PageNo(44 * 512 + 33));
    for segment in [0, 43, 44, 45, 1 << 26] {
        let segment = SegmentId(segment);
        let first = group_first_segment(group_of(segment));
        assert_eq!(
            first.0 as usize + slot_in_group(segment),
            segment.0 as usize
        );
        assert_eq!(bitmap_page(group_of(segment), 0).segment(), first);
    }
    assert_eq!((groups_of(1), groups_of(44), groups_of(45)), (1, 1, 2));
}

#[test]
fn catalogue_reads_back_through_its_chain() {
    let mut catalogue = catalogue();
    catalogue.groups = vec![catalogue.groups[0]; 1000];
    let bytes = catalogue.encode();
    for spare in 0..2 {
        let count = pages_needed(bytes.len()) + spare;
        let pages: Vec<_> = (0..count as u64).map(|n| PageNo(1000 - n * 3)).collect();
        let (chain, head) = encode_chain(STORE, Epoch(8), &bytes, &pages).unwrap();
        assert_eq!(chain.iter().map(|page| page.0).collect::<Vec<_>>(), pages);
        let (mut read, mut next) = (Vec::new(), Some(head));
        for (page, bytes) in &chain {
            let pointer = next.unwrap();
            assert_eq!(pointer.page, *page);
            let (payload, behind) = decode_page(bytes, STORE, &pointer).unwrap();
            read.extend_from_slice(payload);
            next = behind;
        }
        assert_eq!(next, None);
        assert_eq!(Catalogue::decode(&read).unwrap(), catalogue);
    }
    assert!(encode_chain(STORE, Epoch(8), &bytes, &[PageNo(1)]).is_err());
    assert!(encode_chain(STORE, Epoch(8), &[], &[]).is_err());
    assert_eq!(
        Catalogue::decode(&Catalogue::default().encode()).unwrap(),
        Catalogue::default()
    );
}

#[test]
fn catalogue_that_contradicts_itself_is_damaged() {
    let broken = |change: fn(&mut Catalogue)| {
        let mut catalogue = catalogue();
        change(&mut catalogue);
        Catalogue::decode(&catalogue.encode()).is_err()
    };
    assert!(!broken(|_| ()));
    assert!(broken(|c| c.regions[1].id = c.regions[0].id));
    assert!(broken(|c| c.next_region = RegionId(8)));
    assert!(broken(|c| c.groups[0].copy = 2));
    assert!(broken(|c| c.logs[0].resumes[0].end = Lsn(99)));
    assert!(broken(|c| c.logs[0].resumes[0].resume = Lsn(103)));
    // What is before the marker may be kept for the change feed.
    assert!(!broken(|c| {
        (c.logs[0].resumes[0].end, c.logs[0].resumes[0].resume) = (Lsn(50), Lsn(60));
    }));
    assert!(broken(|c| {
        let again = c.logs[0].resumes[0];
        c.logs[0].resumes.push(again);
    }));
    let mut bytes = catalogue().encode();
    bytes.push(0);
    assert!(Catalogue::decode(&bytes).is_err());
}

#[test]
fn catalogue_page_of_an_earlier_epoch_is_refused() {
    let (chain, head) = encode_chain(STORE, Epoch(8), b"x", &[PageNo(5)]).unwrap();
    let stale = PagePointer {
        epoch: Epoch(9),
        ..head
    };
    assert!(decode_page(&chain[0].1, STORE, &head).is_ok());
    assert!(decode_page(&chain[0].1, STORE, &stale).is_err());
}

#[test]
fn log_segment_header_reads_back_in_its_own_place_only() {
    let alone = LogSegmentHeader {
        previous: None,
        next: None,
        ..segment_header()
    };
    for header in [segment_header(), alone] {
        let bytes = header.encode();
        assert_eq!(
            LogSegmentHeader::decode(&bytes, STORE, SegmentId(3)).unwrap(),
            header
        );
        assert!(LogSegmentHeader::decode(&bytes, STORE, SegmentId(4)).is_err());
        assert!(LogSegmentHeader::decode(&bytes, StoreId(0), SegmentId(3)).is_err());
    }
}

#[test]
fn fragment_reads_back_under_its_own_seal_only() {
    let bytes = [fragment(), vec![1; 100]].concat();
    let read = Fragment::decode(&bytes, &SEAL, RECORD_OFFSET).unwrap();
    let Fragment::Record { header, payload } = read else {
        panic!("a pad");
    };
    assert_eq!(
        (header, payload),
        (fragment_header(), &b"abcde12345678"[..])
    );
    assert_eq!(read.extent_bytes(), 32);
    assert_eq!(fragment_extent(bytes.first_chunk().unwrap()), 32);
    assert!(read.is_of(0xabcd) && !read.is_of(0xab_cd ^ 0x8000));

    let elsewhere = LogOffset(RECORD_OFFSET.0 + 8);
    let other_store = FragmentSeal {
        store: StoreId(1),
        ..SEAL
    };
    let other_sequence = FragmentSeal {
        sequence: 13,
        ..SEAL
    };
    assert!(Fragment::decode(&bytes, &SEAL, elsewhere).is_err());
    assert!(Fragment::decode(&bytes, &other_store, RECORD_OFFSET).is_err());
    assert!(Fragment::decode(&bytes, &other_sequence, RECORD_OFFSET).is_err());
    for cut in 0..32 {
        assert!(Fragment::decode(&bytes[..cut], &SEAL, RECORD_OFFSET).is_err());
    }
    assert!(Fragment::decode(&[0; 64], &SEAL, RECORD_OFFSET).is_err());
}

#[test]
fn pads_of_every_length_read_back() {
    for pad_bytes in [8, 16, 24, 512, 4096, (2 << 20) - 4096] {
        let bytes = pad(pad_bytes);
        let read = Fragment::decode(&bytes, &SEAL, RECORD_OFFSET).unwrap();
        let durable = (pad_bytes >= 16).then_some(Lsn(0x1234));
        let incarnation = 0xabcd & 0x1ff;
        assert_eq!(
            read,
            Fragment::Pad {
                pad_bytes,
                incarnation,
                durable
            }
        );
        assert_eq!(
            (
                read.extent_bytes(),
                fragment_extent(bytes.first_chunk().unwrap())
            ),
            (pad_bytes, pad_bytes)
        );
        assert!(read.is_of(0xabcd) && !read.is_of(0xabcc));
    }
    for length in [0, 4, 12] {
        let mut bytes = vec![0; length];
        let error = encode_pad(&mut bytes, &SEAL, RECORD_OFFSET, 0, Lsn(0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_fragment_header_reads_back(
        key_bytes in 0_u32..=65536,
        kind in 0..9_usize,
        flags in 0..6_u8,
        incarnation: u64,
        region: u32,
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..4),
    ) {
        let payload = pieces.concat();
        let header = FragmentHeader {
            length_bytes: payload.len() as u32,
            region: RegionId(region),
            key_bytes,
            kind: [
                RecordKind::Put,
                RecordKind::Delete,
                RecordKind::Relocation,
                RecordKind::Ingested,
                RecordKind::DeleteRange,
                RecordKind::MakeRegion,
                RecordKind::DropRegion,
                RecordKind::Loaded,
                RecordKind::Followed,
            ][kind],
            starts_record: flags & 1 != 0,
            ends_record: flags & 6 != 0,
            ends_unit: flags & 4 != 0,
            incarnation: incarnation_mark(Incarnation(incarnation)),
            has_attributes: flags & 8 != 0 && kind < 4 && kind != 1,
        };
        let slices: Vec<_> = pieces.iter().map(Vec::as_slice).collect();
        let mut bytes = header.encode(&SEAL, RECORD_OFFSET, &slices).to_vec();
        bytes.extend_from_slice(&payload);
        bytes.resize(fragment_bytes(payload.len()), 0);
        let read = Fragment::decode(&bytes, &SEAL, RECORD_OFFSET).unwrap();
        prop_assert_eq!(read, Fragment::Record { header, payload: &payload });
    }

    #[test]
    fn every_pointer_reads_back(page in 0..=PAGE_NO_MAX, epoch in 0..=EPOCH_MAX, checksum: u32) {
        let pointer = PagePointer { page: PageNo(page), epoch: Epoch(epoch), checksum };
        prop_assert_eq!(PagePointer::decode(&pointer.encode()), pointer);
    }
}
