//! Where something lies on a volume, so that all copies hold the same there.

use std::path::Path;

use kreon_base::{LogOffset, PAGE_BYTES, Result, SEGMENT_BYTES, SegmentId};
use kreon_engine::Engine;
use kreon_format::{
    Fragment, FragmentSeal, LOG_HEADER_BYTES, LogSegmentHeader, SUPERBLOCK_PAGES, StoreId,
    Superblock,
};
use kreon_replica::resync::log_before;
use kreon_wire::limits::BLOCK_BYTES;

use super::blocks::read;

/// Consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub offset: u64,
    pub blocks: u64,
    /// The segment of the log in which they lie.
    pub log: Option<SegmentId>,
}

impl Place {
    fn has(&self, offset: u64) -> bool {
        (self.offset..self.offset + self.blocks * BLOCK_BYTES).contains(&offset)
    }
}

/// Where something lies on a volume at a moment.
#[derive(Clone, Debug, Default)]
pub struct Places(pub Vec<Place>);

impl Places {
    /// Pages in use, and the log up to what is durable everywhere.
    ///
    /// # Errors
    /// `Closed`.
    pub fn of(engine: &Engine) -> Result<Self> {
        let end = engine.log_durable();
        let occupied = engine.occupied()?;
        let log = log_before(&occupied, end).map(|(segment, bytes)| Place {
            offset: segment.offset_bytes(),
            // Of the last block only a part is the log's.
            blocks: bytes / BLOCK_BYTES,
            log: Some(segment),
        });
        let mut places: Vec<Place> = log.collect();
        let pages = occupied.pages.iter().map(|(first, count)| Place {
            offset: first.offset_bytes(),
            blocks: count * (PAGE_BYTES as u64) / BLOCK_BYTES,
            log: None,
        });
        places.extend(pages);
        places.retain(|place| place.blocks > 0);
        Ok(Self(places))
    }

    pub fn blocks(&self) -> u64 {
        self.0.iter().map(|place| place.blocks).sum()
    }

    /// The place in which a block lies.
    pub fn find(&self, offset: u64) -> Option<&Place> {
        self.0.iter().find(|place| place.has(offset))
    }
}

/// Whether a block of the primary's log, which nobody writes any more, holds anything of it: behind the end of each term
/// there is a rest of a block that nobody reads, and that copies need not have in common.
///
/// # Errors
/// `Io`.
pub fn is_of_log(path: &Path, segment: SegmentId, offset: u64) -> Result<bool> {
    let Some(store) = store_of(path)? else {
        return Ok(true);
    };
    let start = segment.offset_bytes();
    let bytes = read(path, start, SEGMENT_BYTES)?;
    let header = bytes
        .first_chunk()
        .and_then(|page| LogSegmentHeader::decode(page, store, segment).ok());
    let Some(header) = header else {
        return Ok(true); // what does not verify is no rest
    };
    let seal = FragmentSeal {
        store,
        sequence: header.sequence,
    };
    let block = (offset - start) as usize..(offset - start + BLOCK_BYTES) as usize;
    let mut at = LOG_HEADER_BYTES as usize;
    if block.start < at {
        return Ok(true);
    }
    while at < block.end {
        let rest = bytes.get(at..).unwrap_or_default();
        let place = LogOffset(start + at as u64);
        match Fragment::decode(rest, &seal, place) {
            Ok(fragment) => {
                at += fragment.extent_bytes();
                if at > block.start {
                    return Ok(true);
                }
            }
            // The next term goes on at the next border.
            Err(_) => at = (at + 1).next_multiple_of(PAGE_BYTES),
        }
    }
    Ok(false)
}

/// The store whose superblock the file has; none without one.
fn store_of(path: &Path) -> Result<Option<StoreId>> {
    for (slot, page) in SUPERBLOCK_PAGES.iter().enumerate() {
        let bytes = read(path, page.offset_bytes(), PAGE_BYTES as u64)?;
        let found = bytes
            .first_chunk()
            .and_then(|page| Superblock::decode(page, slot).ok());
        if let Some(superblock) = found {
            return Ok(Some(superblock.store));
        }
    }
    Ok(None)
}
