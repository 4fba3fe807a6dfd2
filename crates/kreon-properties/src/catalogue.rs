//! The catalogue: its stream of bytes, and the chain of pages that holds it.

use std::num::NonZeroU64;

use arbitrary::{Result, Unstructured};
use kreon_base::{
    Codec, Epoch, Incarnation, LogId, Lsn, PageBytes, PageNo, RegionId, RegionOptions, SegmentId,
};
use kreon_format::*;

use crate::case::with;
use crate::forge::{Kind, Origin, damage, forge};
use crate::pages::any_pointer;
use crate::seal;

/// The stream: it has no checksum of its own, and one form only for each catalogue.
pub fn stream(bytes: &[u8]) {
    only_form(bytes);
    with(bytes, |u| {
        let given = any_catalogue(u)?;
        let mut bytes = given.encode();
        assert_eq!(Catalogue::decode(&bytes).ok(), Some(given));
        let cut = u.choose_index(bytes.len())?;
        assert!(Catalogue::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        damage(u, &mut bytes)?;
        only_form(&bytes);
        Ok(())
    });
}

/// If `bytes` are a catalogue of the present version, then it is encoded as just these bytes.
fn only_form(bytes: &[u8]) {
    if let Ok(catalogue) = Catalogue::decode(bytes) {
        let encoded = catalogue.encode();
        let is_present = bytes[..5] == encoded[..5];
        assert!(!is_present || encoded == bytes);
    }
}

/// The chain: what was cut into pages comes back, and damaged pages are refused.
pub fn chain(bytes: &[u8]) {
    with(bytes, |u| {
        let (store, epoch) = (StoreId(u.arbitrary()?), u.int_in_range(0..=EPOCH_MAX)?);
        let pages: Vec<_> = any_pages(u)?;
        let payload_bytes = u.choose_index(pages.len() * CATALOGUE_PAGE_PAYLOAD_BYTES + 1)?;
        let payload: Vec<u8> = (0..payload_bytes).map(|at| (at ^ at >> 8) as u8).collect();
        let encoded = encode_chain(store, Epoch(epoch), &payload, &pages);
        let Ok((mut chain, head)) = encoded else {
            assert!(pages.len() < pages_needed(payload_bytes));
            return Ok(());
        };
        assert_eq!(read_chain(&chain, store, head), Some(payload.clone()));

        let broken = u.choose_index(chain.len())?;
        let (page, bytes) = &mut chain[broken];
        let kind = Kind {
            marks: seal::CATALOGUE,
            store,
            page: *page,
        };
        let origin = forge(u, &kind, bytes)?;
        let read = read_chain(&chain, store, head);
        match origin {
            Origin::Whole => assert_eq!(read, Some(payload)),
            Origin::Flipped => assert_eq!(read, None),
            _ => {}
        }
        // The one page alone, by a pointer that was made for it.
        let (page, bytes) = &chain[broken];
        let (from, found) = (stated_epoch(bytes), stated_checksum(bytes));
        let pointer = PagePointer {
            page: *page,
            epoch: from,
            checksum: found,
        };
        if let Ok((part, _)) = decode_page(bytes, store, &pointer) {
            assert!(part.len() <= CATALOGUE_PAGE_PAYLOAD_BYTES);
            let _ = (Catalogue::decode(part), decode_region_page(part));
        }
        Ok(())
    });
}

/// The payload of a chain, if all its pages verify and it ends.
fn read_chain(
    chain: &[(PageNo, Box<PageBytes>)],
    store: StoreId,
    head: PagePointer,
) -> Option<Vec<u8>> {
    let (mut payload, mut next) = (Vec::new(), Some(head));
    let mut steps = 0;
    while let Some(pointer) = next.filter(|_| steps < chain.len()) {
        let (_, bytes) = chain.iter().find(|(page, _)| *page == pointer.page)?;
        let (part, following) = decode_page(bytes, store, &pointer).ok()?;
        payload.extend_from_slice(part);
        next = following;
        steps += 1;
    }
    next.is_none().then_some(payload)
}

fn any_pages(u: &mut Unstructured<'_>) -> Result<Vec<PageNo>> {
    let mut pages = Vec::new();
    for _ in 0..u.int_in_range(1..=4)? {
        let page = PageNo(u.int_in_range(0..=PAGE_NO_MAX)?);
        if !pages.contains(&page) {
            pages.push(page);
        }
    }
    Ok(pages)
}

fn stated_checksum(bytes: &PageBytes) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn stated_epoch(bytes: &PageBytes) -> Epoch {
    let mut word = [0; 8];
    word[..6].copy_from_slice(&bytes[14..20]);
    Epoch(u64::from_le_bytes(word))
}

fn any_catalogue(u: &mut Unstructured<'_>) -> Result<Catalogue> {
    let mut catalogue = Catalogue::default();
    let mut id = 0;
    for _ in 0..u.int_in_range(0..=3)? {
        id += u.int_in_range(1..=1000)?;
        catalogue.regions.push(any_region(u, RegionId(id))?);
    }
    for _ in 0..u.int_in_range(0..=2)? {
        catalogue.region_pages.push(any_pointer(u)?);
    }
    let pages = encode_region_pages(&catalogue.regions);
    let read = pages
        .iter()
        .map(|page| decode_region_page(page).unwrap_or_default());
    assert_eq!(read.flatten().collect::<Vec<_>>(), catalogue.regions);
    catalogue.next_region = RegionId(id + u.int_in_range(1..=1000)?);
    for _ in 0..u.int_in_range(0..=2)? {
        catalogue.logs.push(any_log(u)?);
    }
    for _ in 0..u.int_in_range(0..=3)? {
        catalogue.groups.push(GroupPointer {
            copy: u.int_in_range(0..=1)?,
            epoch: Epoch(u.int_in_range(0..=EPOCH_MAX)?),
            checksum: u.arbitrary()?,
        });
    }
    Ok(catalogue)
}

fn any_region(u: &mut Unstructured<'_>, id: RegionId) -> Result<RegionRecord> {
    let mut levels = Vec::new();
    for _ in 0..u.int_in_range(0..=2)? {
        let height = u.int_in_range(0..=5)?;
        levels.push(match height {
            0 => TreeRecord::default(),
            height => TreeRecord {
                root: Some(any_pointer(u)?),
                height,
                entries: u.arbitrary()?,
                leaf_pages: u.arbitrary()?,
                index_pages: u.arbitrary()?,
            },
        });
    }
    let name: &str = u.arbitrary()?;
    Ok(RegionRecord {
        id,
        name: name.chars().take(60).collect(),
        options: any_options(u)?,
        log: LogId(u.arbitrary()?),
        levels,
    })
}

fn any_options(u: &mut Unstructured<'_>) -> Result<RegionOptions> {
    Ok(RegionOptions {
        compression: *u.choose(&Codec::ALL)?,
        ttl_ms: NonZeroU64::new(u.int_in_range(0..=(1 << 48) - 1)?),
        inline_value_bytes_max: match u.arbitrary()? {
            true => Some(u.int_in_range(0..=INLINE_VALUE_BYTES_MAX as u16)?),
            false => None,
        },
        growth_factor: match u.arbitrary()? {
            true => Some(u.int_in_range(2..=100)?),
            false => None,
        },
    })
}

fn any_log(u: &mut Unstructured<'_>) -> Result<LogRecord> {
    let mut borders: Vec<u64> = Vec::new();
    let runs = u.int_in_range(0..=2)?;
    for _ in 0..1 + 2 * runs {
        borders.push(any_lsn(u)?.0);
    }
    borders.sort_unstable();
    let mut resumes = Vec::new();
    for pair in borders[1..].chunks_exact(2) {
        resumes.push(LogResume {
            end: Lsn(pair[0]),
            resume: Lsn(pair[1]),
            incarnation: Incarnation(u.arbitrary()?),
        });
    }
    let open = u.arbitrary::<Option<(u32, u32)>>()?;
    let image = any_image(u, Lsn(borders[0]))?;
    Ok(LogRecord {
        id: LogId(u.int_in_range(0..=0x7fff)?),
        followed_from: u.arbitrary::<bool>()?.then(|| any_lsn(u)).transpose()?,
        marker: Lsn(borders[0]),
        incarnation: Incarnation(u.arbitrary()?),
        resumes,
        durable: any_lsn(u)?,
        open: open.map(|(segment, sequence)| OpenSegment {
            segment: SegmentId(segment),
            sequence: sequence.into(),
        }),
        next: u.arbitrary::<Option<u32>>()?.map(SegmentId),
        image,
    })
}

/// Parts that follow one another over `marker`.
fn any_image(u: &mut Unstructured<'_>, marker: Lsn) -> Result<Vec<ImagePart>> {
    let (mut parts, mut start) = (Vec::new(), Lsn(u.int_in_range(0..=marker.0)?));
    let behind = Lsn(marker.0.max(any_lsn(u)?.0));
    for _ in 0..u.int_in_range(0..=2)? {
        let end = Lsn(behind.0.max(start.0) + u.int_in_range(1..=1000)?);
        let needed = Lsn(end.0 + u.int_in_range(0..=1000)?);
        if place_of(needed).0 > LOG_SEQUENCE_MAX {
            break;
        }
        let tree = TreeRecord {
            root: Some(any_pointer(u)?),
            height: u.int_in_range(1..=5)?,
            ..TreeRecord::default()
        };
        let first = PageNo(u.int_in_range(0..=PAGE_NO_MAX)?);
        parts.push(ImagePart {
            start,
            end,
            needed,
            trees: vec![(RegionId(u.arbitrary()?), tree)],
            pages: vec![PageRun { first, count: 1 }],
        });
        start = end;
    }
    Ok(parts)
}

fn any_lsn(u: &mut Unstructured<'_>) -> Result<Lsn> {
    let sequence = u.int_in_range(0..=LOG_SEQUENCE_MAX)?;
    let within = u.int_in_range(0..=LOG_PAYLOAD_BYTES - 1)?;
    Ok(lsn_at(sequence, LOG_HEADER_BYTES + within))
}
