//! The trees of a volume: nodes, and the records that leaves point at.

use std::collections::{BTreeMap, BTreeSet};

use kreon_base::{Error, LogOffset, PAGE_BYTES, Payload, Result, SegmentId};
use kreon_format::{
    Fragment, FragmentSeal, IndexNode, LOG_HEADER_BYTES, LONG_KEY_STORED_BYTES, Leaf, PagePointer,
    RegionRecord, StoreId, check_node,
};
use kreon_sim::Image;

use super::part::{Kind, Part, page_at};

/// A walk through the trees.
pub struct TreeWalk<'a> {
    image: &'a Image,
    store: StoreId,
    sequences: BTreeMap<SegmentId, u64>,
    segments: &'a BTreeMap<u64, SegmentId>,
    /// See [`Atlas::needs`](super::atlas::Atlas::needs).
    pub needs: BTreeMap<(String, Vec<u8>), Vec<usize>>,
    /// See [`Atlas::beside`](super::atlas::Atlas::beside).
    pub beside: BTreeMap<(String, Vec<u8>), Vec<usize>>,
    /// See [`Atlas::reached`](super::atlas::Atlas::reached).
    pub reached: BTreeMap<String, BTreeSet<usize>>,
}

/// A record as its fragments say.
struct Record {
    parts: Vec<Part>,
    payload: Vec<u8>,
}

impl<'a> TreeWalk<'a> {
    /// Before the first region.
    pub fn new(image: &'a Image, store: StoreId, segments: &'a BTreeMap<u64, SegmentId>) -> Self {
        Self {
            image,
            store,
            sequences: segments.iter().map(|(s, id)| (*id, *s)).collect(),
            segments,
            needs: BTreeMap::new(),
            beside: BTreeMap::new(),
            reached: BTreeMap::new(),
        }
    }

    /// Walks through the trees of a region.
    pub fn region(&mut self, region: &RegionRecord, parts: &mut Vec<Part>) -> Result<()> {
        for tree in &region.levels {
            if let Some(root) = tree.root {
                self.node(&region.name, &root, tree.height - 1, &mut Vec::new(), parts)?;
            }
        }
        Ok(())
    }

    fn node(
        &mut self,
        region: &str,
        pointer: &PagePointer,
        level: u8,
        above: &mut Vec<usize>,
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        let bytes = page_at(self.image, pointer.page);
        check_node(&bytes, self.store, pointer, level)?;
        let kind = if level == 0 {
            Kind::Leaf
        } else {
            Kind::Index(level)
        };
        let part = Part {
            above: above.clone(),
            ..Part::page(kind, pointer.page)
        };
        let reached = self.reached.entry(region.to_owned()).or_default();
        reached.insert(parts.len());
        above.push(parts.len());
        parts.push(part);
        if level == 0 {
            let leaf = Leaf::open(&bytes)?;
            for index in 0..leaf.len() {
                self.entry(region, &leaf, index, above, parts)?;
            }
        } else {
            let index = IndexNode::open(&bytes)?;
            for child in 0..index.len() {
                self.node(region, &index.child(child)?, level - 1, above, parts)?;
            }
        }
        above.pop();
        Ok(())
    }

    fn entry(
        &mut self,
        region: &str,
        leaf: &Leaf<'_>,
        index: usize,
        above: &[usize],
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        let entry = leaf.entry(index)?;
        let is_long = entry.key_bytes as usize > LONG_KEY_STORED_BYTES;
        let mut key = Vec::new();
        leaf.key_into(index, &mut key)?;
        let mut needs = above.to_vec();
        let record = match entry.payload {
            Payload::Logged { offset, .. } => Some(self.record(offset)?),
            // Only of a long key anything reads it.
            Payload::Tombstone { offset } if is_long => Some(self.record(offset)?),
            Payload::Tombstone { .. } | Payload::Inline { .. } | Payload::Erased { .. } => None,
        };
        if let Some(record) = record {
            if is_long {
                key = record
                    .payload
                    .get(..entry.key_bytes as usize)
                    .unwrap_or_default()
                    .to_vec();
            }
            for part in record.parts {
                needs.push(parts.len());
                let reached = self.reached.entry(region.to_owned()).or_default();
                reached.insert(parts.len());
                let above = above.to_vec();
                parts.push(Part { above, ..part });
            }
        }
        let name = (region.to_owned(), key);
        self.beside.entry(name.clone()).or_default().extend(&needs);
        // The newest version of a key comes first.
        self.needs.entry(name).or_insert(needs);
        Ok(())
    }

    /// The record at `start`, with all its fragments.
    fn record(&self, start: LogOffset) -> Result<Record> {
        let mut record = Record {
            parts: Vec::new(),
            payload: Vec::new(),
        };
        let mut offset = start;
        loop {
            let segment = offset.segment();
            let unknown = || Error::corruption(format!("{segment} is not of the log"));
            let sequence = *self.sequences.get(&segment).ok_or_else(unknown)?;
            let (header, payload, extent) = self.fragment(offset, sequence)?;
            record.parts.push(Part {
                record: start,
                ..Part::of(Kind::Record, offset.0..offset.0 + extent)
            });
            record.payload.extend_from_slice(&payload);
            if header {
                return Ok(record);
            }
            let next = self.segments.get(&(sequence + 1)).ok_or_else(unknown)?;
            offset = LogOffset(next.offset_bytes() + u64::from(LOG_HEADER_BYTES));
        }
    }

    /// Whether the fragment at `offset` is the last of its record, its payload, and its length.
    fn fragment(&self, offset: LogOffset, sequence: u64) -> Result<(bool, Vec<u8>, u64)> {
        let seal = FragmentSeal {
            store: self.store,
            sequence,
        };
        let mut start = [0; 8];
        self.image.read(offset.0, &mut start);
        let bytes = self
            .image
            .bytes(offset.0, kreon_format::fragment_extent(&start));
        match Fragment::decode(&bytes, &seal, offset)? {
            Fragment::Record { header, payload } => {
                Ok((header.ends_record, payload.to_vec(), bytes.len() as u64))
            }
            Fragment::Pad { .. } => Err(Error::corruption("filler")),
        }
    }
}

const _: () = assert!(LOG_HEADER_BYTES as usize == PAGE_BYTES);
