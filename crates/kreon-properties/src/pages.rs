//! Pages of fixed fields.

use arbitrary::{Result, Unstructured};
use kreon_base::{Epoch, Incarnation, LogId, Lsn, PageNo, SegmentId};
use kreon_format::*;

use crate::case::with;
use crate::forge::{Kind, Origin, forge};
use crate::seal;

/// What is read from a superblock slot.
pub fn superblock(bytes: &[u8]) {
    with(bytes, |u| {
        let slot = u.choose_index(SUPERBLOCK_PAGES.len())?;
        let given = any_superblock(u)?;
        let mut page = given.encode(slot);
        let kind = Kind {
            marks: seal::SUPERBLOCK,
            store: given.store,
            page: SUPERBLOCK_PAGES[slot],
        };
        let origin = forge(u, &kind, &mut page)?;
        for place in [0, 1, 2, 3, 4, usize::MAX] {
            let examined = Superblock::examine(&page, place);
            let valid = match examined {
                SuperblockSlot::Valid(found) => Some(found),
                _ => None,
            };
            assert_eq!(Superblock::decode(&page, place).ok(), valid);
            let expected = (origin == Origin::Whole && place == slot).then_some(given);
            if matches!(origin, Origin::Whole | Origin::Flipped) {
                assert_eq!(valid, expected, "{origin:?} of slot {slot} in slot {place}");
            }
            if let Some(found) = valid {
                let again = found.encode(place);
                assert_eq!(Superblock::decode(&again, place).ok(), Some(found));
            }
        }
        Ok(())
    });
}

/// What is read from a bitmap block.
pub fn bitmap_block(bytes: &[u8]) {
    with(bytes, |u| {
        let store = StoreId(u.arbitrary()?);
        let (group, copy) = (u.int_in_range(0..=1 << 22)?, u.int_in_range(0..=1)?);
        let given = any_bitmap(u, group)?;
        let (mut page, pointer) = given.encode(store, copy);
        let kind = Kind {
            marks: seal::BITMAP,
            store,
            page: bitmap_page(group, copy),
        };
        let origin = forge(u, &kind, &mut page)?;
        let found = BitmapBlock::decode(&page, store, group, copy).ok();
        let pointed = BitmapBlock::decode_pointed(&page, store, group, &pointer).ok();
        match origin {
            Origin::Whole => assert_eq!((&found, &pointed), (&Some(given.clone()), &Some(given))),
            Origin::Flipped => assert_eq!((&found, pointed), (&None, None)),
            _ => {}
        }
        assert!(BitmapBlock::decode(&page, store, group ^ 1, copy).is_err());
        assert!(BitmapBlock::decode(&page, store, group, 1 - copy).is_err());
        // A group and a copy that no store has.
        let _ = BitmapBlock::decode(&page, store, u32::MAX, u8::MAX);
        if let Some(found) = found {
            let (again, _) = found.encode(store, copy);
            let read = BitmapBlock::decode(&again, store, group, copy);
            assert_eq!(read.ok(), Some(found));
        }
        Ok(())
    });
}

/// What is read from the first page of a log segment.
pub fn segment_header(bytes: &[u8]) {
    with(bytes, |u| {
        let given = any_segment_header(u)?;
        let mut page = given.encode();
        let kind = Kind {
            marks: seal::LOG_SEGMENT,
            store: given.store,
            page: given.segment.first_page(),
        };
        let origin = forge(u, &kind, &mut page)?;
        let found = LogSegmentHeader::decode(&page, given.store, given.segment).ok();
        match origin {
            Origin::Whole => assert_eq!(found, Some(given)),
            Origin::Flipped => assert_eq!(found, None),
            _ => {}
        }
        let neighbour = SegmentId(given.segment.0 ^ 1);
        assert!(LogSegmentHeader::decode(&page, given.store, neighbour).is_err());
        if let Some(found) = found {
            let read = LogSegmentHeader::decode(&found.encode(), given.store, given.segment);
            assert_eq!(read.ok(), Some(found));
        }
        lsn_and_place(u)
    });
}

/// Every LSN has a place, and every place an LSN.
fn lsn_and_place(u: &mut Unstructured<'_>) -> Result<()> {
    let lsn = Lsn(u.arbitrary()?);
    let (sequence, within) = place_of(lsn);
    assert_eq!(lsn_at(sequence, within), lsn);
    let (sequence, within) = (u.arbitrary()?, u.arbitrary()?);
    let _ = lsn_at(sequence, within);
    Ok(())
}

/// Any pointer.
pub fn any_pointer(u: &mut Unstructured<'_>) -> Result<PagePointer> {
    Ok(PagePointer {
        page: PageNo(u.int_in_range(0..=PAGE_NO_MAX)?),
        epoch: Epoch(u.int_in_range(0..=EPOCH_MAX)?),
        checksum: u.arbitrary()?,
    })
}

fn any_superblock(u: &mut Unstructured<'_>) -> Result<Superblock> {
    Ok(Superblock {
        store: StoreId(u.arbitrary()?),
        epoch: Epoch(u.int_in_range(0..=EPOCH_MAX)?),
        incarnation: Incarnation(u.int_in_range(0..=INCARNATION_MAX)?),
        segments: u.int_in_range(1..=VOLUME_SEGMENTS_MAX)?,
        catalogue: any_pointer(u)?,
        catalogue_bytes: u.arbitrary()?,
    })
}

fn any_bitmap(u: &mut Unstructured<'_>, group: u32) -> Result<BitmapBlock> {
    let mut block = BitmapBlock::new(group, Epoch(u.arbitrary()?));
    for _ in 0..u.int_in_range(0..=6)? {
        let slot = u.choose_index(GROUP_SEGMENTS)?;
        block.segments[slot] = SegmentRecord {
            kind: *u.choose(&[SegmentKind::Free, SegmentKind::Tree, SegmentKind::Log])?,
            log: LogId(u.arbitrary()?),
            sequence: u.arbitrary()?,
            live_bytes: u.arbitrary()?,
            pages: u.arbitrary()?,
        };
    }
    Ok(block)
}

fn any_segment_header(u: &mut Unstructured<'_>) -> Result<LogSegmentHeader> {
    Ok(LogSegmentHeader {
        store: StoreId(u.arbitrary()?),
        log: LogId(u.arbitrary()?),
        segment: SegmentId(u.arbitrary()?),
        sequence: u.arbitrary()?,
        incarnation: Incarnation(u.arbitrary()?),
        previous: u.arbitrary::<Option<u32>>()?.map(SegmentId),
        next: u.arbitrary::<Option<u32>>()?.map(SegmentId),
        durable: Lsn(u.arbitrary()?),
    })
}
