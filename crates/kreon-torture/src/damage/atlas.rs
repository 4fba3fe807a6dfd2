//! Which byte of a volume belongs to what, found with the format alone: an independent reader beside
//! the store's own.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use kreon_base::{Error, Lsn, Result, SegmentId};
use kreon_format::{
    BitmapBlock, Catalogue, LogRecord, SUPERBLOCK_PAGES, SegmentKind, Superblock, bitmap_page,
    decode_page, decode_region_page, group_first_segment,
};
use kreon_sim::Image;

use super::log_atlas::LogWalk;
use super::part::{Kind, Part, page_at};
use super::tree_atlas::TreeWalk;

/// Everything in use.
pub struct Atlas {
    /// By offset; no two overlap.
    pub parts: Vec<Part>,
    /// The parts that a reader of a key in a tree needs: by region name and key.
    pub needs: BTreeMap<(String, Vec<u8>), Vec<usize>>,
    /// The parts that a reader of a key may read: those of all versions of it.
    pub beside: BTreeMap<(String, Vec<u8>), Vec<usize>>,
    /// All parts that the trees of a region reach, by its name.
    pub reached: BTreeMap<String, BTreeSet<usize>>,
    /// Units behind the marker.
    pub units: usize,
    /// What the catalogue says is durable of the log.
    pub durable: Lsn,
    /// Keys written behind the marker, by region name.
    pub fresh: BTreeSet<(String, Vec<u8>)>,
}

impl Atlas {
    /// Reads `image`.
    ///
    /// # Errors
    /// `Corruption` if it is not whole.
    pub fn read(image: &Image) -> Result<Self> {
        let superblock = newest(image)?;
        let mut parts = Vec::new();
        let slots = SUPERBLOCK_PAGES.into_iter();
        parts.extend(slots.map(|page| Part::page(Kind::Superblock, page)));
        let catalogue = read_catalogue(image, &superblock, &mut parts)?;
        let log = catalogue.logs.first();
        let log = log.ok_or_else(|| Error::corruption("a catalogue without a log"))?;
        let segments = read_bitmaps(image, &superblock, &catalogue, log, &mut parts)?;
        let mut trees = TreeWalk::new(image, superblock.store, &segments);
        for region in &catalogue.regions {
            trees.region(region, &mut parts)?;
        }
        let (needs, beside, reached) = (trees.needs, trees.beside, trees.reached);
        let mut walk = LogWalk::new(image, superblock.store, log, &segments);
        walk.run(&mut parts)?;
        walk.old_headers(&mut parts);
        let names: BTreeMap<_, _> = catalogue.regions.iter().map(|r| (r.id, &r.name)).collect();
        let fresh = walk.written.iter();
        let fresh = fresh.filter_map(|(id, key)| Some(((*names.get(id)?).clone(), key.clone())));
        let atlas = Self {
            fresh: fresh.collect(),
            units: walk.units,
            durable: walk.durable,
            needs,
            beside,
            reached,
            parts,
        };
        atlas.sorted()
    }

    /// Sorts the parts, which are numbered by then.
    fn sorted(mut self) -> Result<Self> {
        let mut order: Vec<usize> = (0..self.parts.len()).collect();
        order.sort_by_key(|&index| self.parts[index].range.start);
        let mut places = vec![0; order.len()];
        for (to, &from) in order.iter().enumerate() {
            places[from] = to;
        }
        let renumber = |list: &mut Vec<usize>| {
            for index in list {
                *index = places[*index];
            }
        };
        self.needs.values_mut().for_each(renumber);
        self.beside.values_mut().for_each(renumber);
        for reached in self.reached.values_mut() {
            *reached = reached.iter().map(|&index| places[index]).collect();
        }
        for part in &mut self.parts {
            renumber(&mut part.above);
        }
        self.parts = order.iter().map(|&from| self.parts[from].clone()).collect();
        for pair in self.parts.windows(2) {
            if pair[0].range.end > pair[1].range.start {
                let text = format!("{:?} and {:?} overlap", pair[0], pair[1]);
                return Err(Error::corruption(text));
            }
        }
        Ok(self)
    }

    /// The parts that a range of the volume touches.
    pub fn touched(&self, range: &Range<u64>) -> Range<usize> {
        let from = self
            .parts
            .partition_point(|part| part.range.end <= range.start);
        let to = self
            .parts
            .partition_point(|part| part.range.start < range.end);
        from..to.max(from)
    }
}

fn newest(image: &Image) -> Result<Superblock> {
    let slots = SUPERBLOCK_PAGES.into_iter().enumerate();
    slots
        .filter_map(|(slot, page)| Superblock::decode(&page_at(image, page), slot).ok())
        .max_by_key(|superblock| superblock.epoch)
        .ok_or_else(|| Error::corruption("no superblock"))
}

fn read_catalogue(
    image: &Image,
    superblock: &Superblock,
    parts: &mut Vec<Part>,
) -> Result<Catalogue> {
    let (mut bytes, mut next) = (Vec::new(), Some(superblock.catalogue));
    while let Some(pointer) = next {
        let page = page_at(image, pointer.page);
        let (payload, following) = decode_page(&page, superblock.store, &pointer)?;
        bytes.extend_from_slice(payload);
        parts.push(Part::page(Kind::Catalogue, pointer.page));
        next = following;
    }
    let mut catalogue = Catalogue::decode(&bytes)?;
    for pointer in catalogue.region_pages.clone() {
        let page = page_at(image, pointer.page);
        let (payload, _) = decode_page(&page, superblock.store, &pointer)?;
        catalogue.add_regions(decode_region_page(payload)?)?;
        parts.push(Part::page(Kind::Catalogue, pointer.page));
    }
    Ok(catalogue)
}

/// The segments of the log by sequence.
fn read_bitmaps(
    image: &Image,
    superblock: &Superblock,
    catalogue: &Catalogue,
    log: &LogRecord,
    parts: &mut Vec<Part>,
) -> Result<BTreeMap<u64, SegmentId>> {
    let mut segments = BTreeMap::new();
    for (group, pointer) in (0..).zip(&catalogue.groups) {
        let page = bitmap_page(group, pointer.copy);
        let bytes = page_at(image, page);
        let block = BitmapBlock::decode_pointed(&bytes, superblock.store, group, pointer)?;
        parts.push(Part::page(Kind::Bitmap, page));
        for (id, record) in (group_first_segment(group).0..).zip(&block.segments) {
            if record.kind == SegmentKind::Log && record.log == log.id {
                segments.insert(record.sequence, SegmentId(id));
            }
        }
    }
    Ok(segments)
}
