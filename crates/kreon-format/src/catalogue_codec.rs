//! Encoding of the catalogue.
//!
//! Mark (4 bytes) | version (1) | next region (4) | count and regions | count and pointers to pages of regions | count
//! and logs | count and groups. A count is 4 bytes. The stream has no checksum; the pages of its chain have. A page of
//! regions is a chain of one page with a mark of its own, a count and regions.
//!
//! Version 2 has no pages of regions. Version 1 has neither mark nor version and its logs have no image; it begins with
//! the next region, which never equals [`MARK`].

use std::collections::BTreeSet;

use kreon_base::{
    Epoch, Error, LogId, PAGE_BYTES, REGION_NAME_BYTES_MAX, RegionId, RegionOptions, Result,
};

use crate::bytes::{ByteReader, u48, u48_bytes};
use crate::catalogue_log::{LOG_BYTES_MIN, encode_log, read_log};
use crate::sealed::newer;
use crate::{
    CATALOGUE_PAGE_PAYLOAD_BYTES, Catalogue, GroupPointer, PAGE_POINTER_BYTES, PagePointer,
    RegionRecord, TREE_LEVELS_MAX, TreeRecord, decode_region_options, encode_region_options,
};

/// First word of a stream that states its version.
const MARK: u32 = u32::MAX;

/// First word of a page of regions.
const REGIONS_MARK: u32 = u32::MAX - 1;

/// The version that this build writes.
const VERSION: u8 = 3;

/// The bit of the count of trees of a region that has options of its own, since format 6. Other regions take no byte for
/// that, so that as many as before go into a page.
const HAS_OPTIONS: u8 = 0x80;

/// Least bytes of an encoded record, to reject a count that cannot fit in the bytes left.
const REGION_BYTES_MIN: usize = 4 + 2 + 2 + 1;
const GROUP_BYTES: usize = 1 + 6 + 4;

impl Catalogue {
    /// The stream, for [`encode_chain`](crate::encode_chain). The caller must keep names and lists within their
    /// documented limits; otherwise the stream cannot be decoded.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(PAGE_BYTES);
        out.extend(MARK.to_le_bytes());
        out.push(VERSION);
        out.extend(self.next_region.0.to_le_bytes());
        encode_list(&self.regions, &mut out, encode_region);
        encode_list(&self.region_pages, &mut out, |page, out| {
            out.extend(page.encode());
        });
        encode_list(&self.logs, &mut out, encode_log);
        encode_list(&self.groups, &mut out, |group, out| {
            out.push(group.copy);
            out.extend(u48_bytes(group.epoch.0));
            out.extend(group.checksum.to_le_bytes());
        });
        out
    }

    /// The catalogue in `bytes`, all of which must belong to it.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let catalogue = match reader.version {
            0..=VERSION => Self::read(&mut reader),
            version => return Err(newer(version)),
        };
        let catalogue = catalogue.ok_or_else(|| {
            Error::corruption(format!(
                "catalogue: damaged before byte {}",
                reader.input.at
            ))
        })?;
        if reader.input.at != bytes.len() {
            let behind = bytes.len() - reader.input.at;
            return Err(Error::corruption(format!(
                "catalogue: {behind} bytes behind its end"
            )));
        }
        catalogue.check_regions()?;
        Ok(catalogue)
    }

    /// Adds the regions read from the pages that the stream points to.
    ///
    /// # Errors
    /// `Corruption` if two regions have the same number, or a number is not below [`next_region`](Self::next_region).
    pub fn add_regions(&mut self, regions: Vec<RegionRecord>) -> Result<()> {
        self.regions.extend(regions);
        self.check_regions()
    }

    fn check_regions(&self) -> Result<()> {
        let mut ids = BTreeSet::new();
        for region in &self.regions {
            if region.id >= self.next_region || !ids.insert(region.id) {
                let id = region.id;
                return Err(Error::corruption(format!(
                    "catalogue: {id} occurs twice or is not below the next number"
                )));
            }
        }
        Ok(())
    }

    /// Numbers, names and options of regions in the first bytes of a catalogue or of a page of regions, as far as they can be
    /// decoded. For a salvage, when the rest is lost.
    pub fn decode_names(start: &[u8]) -> Vec<(RegionId, (String, RegionOptions))> {
        let mut reader = Reader::new(start);
        // The first word is the next region (version 1) or the mark of a page of regions.
        let Some((_, count)) = reader.u32().zip(reader.u32()) else {
            return Vec::new();
        };
        (0..count)
            .map_while(|_| read_region(&mut reader))
            .map(|region| (region.id, (region.name, region.options)))
            .collect()
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            next_region: RegionId(reader.u32()?),
            regions: reader.list(REGION_BYTES_MIN, read_region)?,
            region_pages: match reader.version {
                0..=2 => Vec::new(),
                _ => reader.list(PAGE_POINTER_BYTES, read_pointer)?,
            },
            logs: reader.list(LOG_BYTES_MIN, read_log)?,
            groups: reader.list(GROUP_BYTES, read_group)?,
        })
    }
}

/// The payloads of pages of regions, each for a chain of one page and filled as far as possible.
pub fn encode_region_pages(regions: &[RegionRecord]) -> Vec<Vec<u8>> {
    let mut pages = Vec::new();
    let (mut page, mut count, mut bytes) = (Vec::new(), 0u32, Vec::new());
    let mut finish = |page: &mut Vec<u8>, count: &mut u32| {
        let head = [REGIONS_MARK.to_le_bytes(), count.to_le_bytes()].concat();
        pages.push([head.as_slice(), page].concat());
        page.clear();
        *count = 0;
    };
    for region in regions {
        bytes.clear();
        encode_region(region, &mut bytes);
        if count > 0 && 8 + page.len() + bytes.len() > CATALOGUE_PAGE_PAYLOAD_BYTES {
            finish(&mut page, &mut count);
        }
        page.extend_from_slice(&bytes);
        count += 1;
    }
    if count > 0 {
        finish(&mut page, &mut count);
    }
    pages
}

/// The regions in a payload made by [`encode_region_pages`].
///
/// # Errors
/// `Corruption` if the payload is not valid.
pub fn decode_region_page(payload: &[u8]) -> Result<Vec<RegionRecord>> {
    let mut reader = Reader::new(payload);
    let is_page = reader.u32() == Some(REGIONS_MARK);
    let regions = is_page.then(|| reader.list(REGION_BYTES_MIN, read_region));
    match regions.flatten() {
        Some(regions) if reader.input.at == payload.len() => Ok(regions),
        _ => Err(Error::corruption(format!(
            "catalogue: a page of regions is damaged before byte {}",
            reader.input.at
        ))),
    }
}

fn read_pointer(reader: &mut Reader<'_>) -> Option<PagePointer> {
    Some(PagePointer::decode(&reader.input.array()?))
}

/// A count and that many records, for [`Reader::list`].
pub(crate) fn encode_list<T>(records: &[T], out: &mut Vec<u8>, encode: impl Fn(&T, &mut Vec<u8>)) {
    out.extend((records.len() as u32).to_le_bytes());
    for record in records {
        encode(record, out);
    }
}

fn encode_region(region: &RegionRecord, out: &mut Vec<u8>) {
    out.extend(region.id.0.to_le_bytes());
    out.extend((region.name.len() as u16).to_le_bytes());
    out.extend(region.name.as_bytes());
    out.extend(region.log.0.to_le_bytes());
    let count = region.levels.len() as u8;
    if region.options.is_default() {
        out.push(count);
    } else {
        out.push(count | HAS_OPTIONS);
        out.extend(encode_region_options(&region.options));
    }
    for tree in &region.levels {
        encode_tree(tree, out);
    }
}

pub(crate) fn encode_tree(tree: &TreeRecord, out: &mut Vec<u8>) {
    out.push(tree.height);
    if let Some(root) = tree.root {
        out.extend(root.encode());
        out.extend(tree.entries.to_le_bytes());
        out.extend(tree.leaf_pages.to_le_bytes());
        out.extend(tree.index_pages.to_le_bytes());
    }
}

fn read_region(reader: &mut Reader<'_>) -> Option<RegionRecord> {
    let id = RegionId(reader.u32()?);
    let name_bytes = usize::from(reader.u16()?);
    let name = std::str::from_utf8(reader.input.slice(name_bytes)?).ok()?;
    let log = LogId(reader.u16()?);
    let count = reader.u8()?;
    let options = match count & HAS_OPTIONS {
        0 => RegionOptions::DEFAULT,
        _ => decode_region_options(reader.input.array()?)?,
    };
    let levels = usize::from(count & !HAS_OPTIONS);
    if name_bytes > REGION_NAME_BYTES_MAX || levels > TREE_LEVELS_MAX {
        return None;
    }
    Some(RegionRecord {
        id,
        name: name.to_owned(),
        options,
        log,
        levels: (0..levels)
            .map(|_| read_tree(reader))
            .collect::<Option<_>>()?,
    })
}

/// A tree without root is encoded as height 0 alone.
pub(crate) fn read_tree(reader: &mut Reader<'_>) -> Option<TreeRecord> {
    let height = reader.u8()?;
    if height == 0 {
        return Some(TreeRecord::default());
    }
    Some(TreeRecord {
        root: Some(PagePointer::decode(&reader.input.array()?)),
        height,
        entries: reader.u64()?,
        leaf_pages: reader.u64()?,
        index_pages: reader.u64()?,
    })
}

fn read_group(reader: &mut Reader<'_>) -> Option<GroupPointer> {
    let copy = reader.u8().filter(|&copy| copy <= 1)?;
    Some(GroupPointer {
        copy,
        epoch: Epoch(u48(reader.input.array()?)),
        checksum: reader.u32()?,
    })
}

/// Reads a stream or a page of regions.
pub(crate) struct Reader<'a> {
    pub input: ByteReader<'a>,
    pub version: u8,
}

impl<'a> Reader<'a> {
    /// A reader of a catalogue, behind its version.
    fn new(bytes: &'a [u8]) -> Self {
        let (at, version) = match bytes.split_first_chunk() {
            Some((mark, [version, ..])) if *mark == MARK.to_le_bytes() => (5, *version),
            _ => (0, 1),
        };
        let input = ByteReader { bytes, at };
        Self { input, version }
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.input.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.input.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.input.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.input.array().map(u64::from_le_bytes)
    }

    /// A count and that many records of at least `record_bytes_min` each. Allocates no more than the bytes left can
    /// fill.
    pub fn list<T>(
        &mut self,
        record_bytes_min: usize,
        record: impl Fn(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = self.u32()? as usize;
        if count > (self.input.bytes.len() - self.input.at) / record_bytes_min {
            return None;
        }
        (0..count).map(|_| record(self)).collect()
    }

    pub fn optional<T>(&mut self, value: impl Fn(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.u8()? {
            0 => Some(None),
            1 => value(self).map(Some),
            _ => None,
        }
    }
}
