//! Fragments and pads.

use arbitrary::{Arbitrary, Result, Unstructured};
use kreon_base::{KEY_BYTES_MAX, LogOffset, Lsn, RegionId};
use kreon_format::*;

use crate::case::with;
use crate::forge::{Origin, damage, flip};
use crate::seal;

const STORE: StoreId = StoreId(0x0123_4567_89ab_cdef);

/// A stretch of log as replay reads it: from fragment to fragment.
pub fn fragments(bytes: &[u8]) {
    with(bytes, |u| {
        let seal = FragmentSeal {
            store: STORE,
            sequence: u.arbitrary()?,
        };
        let start = LogOffset(u.int_in_range(0..=1 << 40)? & !7);
        let mut stretch = Vec::new();
        let mut starts = Vec::new();
        for _ in 0..u.int_in_range(1..=4)? {
            starts.push(stretch.len());
            let offset = LogOffset(start.0 + stretch.len() as u64);
            add_fragment(u, &seal, offset, &mut stretch)?;
        }
        assert_eq!(walk(&stretch, &seal, start), starts);

        let broken = *u.choose(&starts)?;
        let origin = Origin::arbitrary(u)?;
        let bytes = &mut stretch[broken..];
        let offset = LogOffset(start.0 + broken as u64);
        let whole_bytes = bytes.first_chunk().map_or(0, fragment_extent);
        let given = bytes[..whole_bytes].to_vec();
        match origin {
            Origin::Whole => return Ok(()),
            Origin::Flipped => flip(u, &mut bytes[..whole_bytes])?,
            Origin::Resealed => damage(u, bytes)?,
            Origin::Sealed | Origin::Raw => {
                let taken = u.bytes(u.len().min(bytes.len()))?;
                bytes[..taken.len()].copy_from_slice(taken);
            }
        }
        if matches!(origin, Origin::Resealed | Origin::Sealed) {
            seal::fragment(bytes, &seal, offset);
        }
        if origin == Origin::Flipped {
            let decoded = Fragment::decode(bytes, &seal, offset);
            assert!(decoded.is_err(), "{decoded:?} from {given:?}");
        }
        walk(&stretch, &seal, start);
        Ok(())
    });
}

/// Where the fragments start that are found one behind the other, and what verifies behind what does
/// not. Everything that is found can be written again.
fn walk(stretch: &[u8], seal: &FragmentSeal, start: LogOffset) -> Vec<usize> {
    let (mut at, mut starts) = (0, Vec::new());
    while at < stretch.len() {
        let bytes = &stretch[at..];
        let offset = LogOffset(start.0 + at as u64);
        at += match Fragment::decode(bytes, seal, offset) {
            Ok(fragment) => {
                let extent = fragment.extent_bytes();
                assert!(extent >= PAD_BYTES_MIN && extent.is_multiple_of(RECORD_ALIGN_BYTES));
                assert_eq!(bytes.first_chunk().map(fragment_extent), Some(extent));
                is_written_the_same(&fragment, &bytes[..extent], seal, offset);
                starts.push(at);
                extent
            }
            Err(_) => RECORD_ALIGN_BYTES,
        };
    }
    starts
}

fn is_written_the_same(
    fragment: &Fragment<'_>,
    bytes: &[u8],
    seal: &FragmentSeal,
    offset: LogOffset,
) {
    match fragment {
        Fragment::Record { header, payload } => {
            assert_eq!(payload.len(), header.length_bytes as usize);
            assert!(header.key_bytes as usize <= KEY_BYTES_MAX);
            assert!(fragment.is_of(header.incarnation));
            let fill = &bytes[FRAGMENT_HEADER_BYTES + payload.len()..];
            if fill.iter().all(|&byte| byte == 0) {
                let again = header.encode(seal, offset, &[payload]);
                assert_eq!(again, bytes[..FRAGMENT_HEADER_BYTES]);
            }
        }
        Fragment::Pad {
            pad_bytes,
            incarnation,
            durable,
        } => {
            assert_eq!(*pad_bytes, bytes.len());
            let mut again = vec![0; *pad_bytes];
            let lsn = durable.unwrap_or(Lsn(0));
            let encoded = encode_pad(&mut again, seal, offset, *incarnation, lsn);
            if encoded.is_ok() && bytes.iter().skip(16).all(|&byte| byte == 0) {
                assert_eq!(again, bytes);
            }
        }
    }
}

fn add_fragment(
    u: &mut Unstructured<'_>,
    seal: &FragmentSeal,
    offset: LogOffset,
    stretch: &mut Vec<u8>,
) -> Result<()> {
    if u.ratio(1, 4)? {
        let mut pad = vec![0xee; u.int_in_range(1..=20)? * RECORD_ALIGN_BYTES];
        let encoded = encode_pad(&mut pad, seal, offset, u.arbitrary()?, Lsn(u.arbitrary()?));
        assert!(encoded.is_ok());
        stretch.extend(pad);
        return Ok(());
    }
    let len_bytes = u.int_in_range(0..=100)?;
    let payload = u.bytes(len_bytes)?;
    let ends_record = u.arbitrary()?;
    let kind = *u.choose(&[
        RecordKind::Put,
        RecordKind::Delete,
        RecordKind::Relocation,
        RecordKind::Ingested,
        RecordKind::DeleteRange,
        RecordKind::MakeRegion,
        RecordKind::DropRegion,
        RecordKind::Loaded,
        RecordKind::Followed,
    ])?;
    let header = FragmentHeader {
        length_bytes: payload.len() as u32,
        region: RegionId(u.arbitrary()?),
        key_bytes: u.int_in_range(0..=KEY_BYTES_MAX as u32)?,
        kind,
        has_attributes: kind.may_have_attributes() && u.arbitrary()?,
        starts_record: u.arbitrary()?,
        ends_record,
        ends_unit: ends_record && u.arbitrary()?,
        incarnation: u.arbitrary()?,
    };
    let end = stretch.len() + fragment_bytes(payload.len());
    stretch.extend(header.encode(seal, offset, &[payload]));
    stretch.extend(payload);
    stretch.resize(end, 0);
    Ok(())
}
