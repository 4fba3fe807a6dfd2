//! A scan of the volume page by page, without pointers.

use std::collections::BTreeMap;

use kreon_base::{
    Epoch, PAGE_BYTES, PageBytes, PageNo, RegionId, RegionOptions, SEGMENT_BYTES, SEGMENT_PAGES,
    SegmentId,
};
use kreon_device::AlignedBuf;
use kreon_format::{
    BitmapBlock, Catalogue, NodeClaim, PagePointer, SegmentKind, SegmentRecord, StoreId,
    bitmap_page, check_node, claimed_catalogue_page, claimed_node, decode_page, decode_region_page,
    group_first_segment, group_of, groups_of, slot_in_group,
};

use super::doubts;
use super::source::Source;
use kreon_volume::PageBits;

/// Most epochs of catalogue streams in memory; the newest are kept.
const CATALOGUE_EPOCHS_MAX: usize = 64;

/// A page that verifies by itself.
pub enum FoundPage<'a> {
    Node(NodeClaim),
    /// A catalogue page: the pointer to it, its part of the catalogue, and the pointer in it.
    Catalogue(PagePointer, &'a [u8], Option<PagePointer>),
}

/// Shows every valid tree node and catalogue page of `store`, except in segments that `leaves_out` excludes.
pub fn scan(
    source: &Source,
    store: StoreId,
    leaves_out: impl Fn(SegmentId) -> bool,
    mut show: impl FnMut(FoundPage<'_>),
) {
    let mut buffer = AlignedBuf::new(SEGMENT_BYTES as usize);
    for segment in (0..source.segments()).map(SegmentId) {
        if leaves_out(segment) {
            continue;
        }
        source.segment(segment, &mut buffer);
        let pages = buffer.as_chunks::<PAGE_BYTES>().0.iter();
        for (page, bytes) in (segment.first_page().0..).map(PageNo).zip(pages) {
            if let Some(found) = examine(store, page, bytes) {
                show(found);
            }
        }
    }
}

fn examine(store: StoreId, page: PageNo, bytes: &PageBytes) -> Option<FoundPage<'_>> {
    if let Some(claim) = claimed_node(bytes) {
        let is_whole = claim.pointer.page == page
            && check_node(bytes, store, &claim.pointer, claim.level).is_ok();
        return is_whole.then_some(FoundPage::Node(claim));
    }
    let pointer = claimed_catalogue_page(bytes).filter(|pointer| pointer.page == page)?;
    let (payload, next) = decode_page(bytes, store, &pointer).ok()?;
    Some(FoundPage::Catalogue(pointer, payload, next))
}

/// A leaf found without a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundLeaf {
    /// First, so that leaves sort by age.
    pub epoch: Epoch,
    pub page: PageNo,
    pub region: RegionId,
}

impl FoundLeaf {
    /// The node, if it is a leaf.
    pub fn of(node: &NodeClaim) -> Option<Self> {
        (node.level == 0).then_some(Self {
            epoch: node.pointer.epoch,
            page: node.pointer.page,
            region: node.region,
        })
    }
}

/// Catalogue pages found: those of the newest streams, and all region pages.
#[derive(Default)]
pub struct FoundCatalogues {
    streams: BTreeMap<Epoch, Vec<CataloguePage>>,
    /// A region page is rewritten only when its regions change, so it may be older than the stream that points to it.
    regions: BTreeMap<(Epoch, PageNo), (PagePointer, Vec<u8>)>,
}

struct CataloguePage {
    pointer: PagePointer,
    payload: Vec<u8>,
    next: Option<PagePointer>,
}

impl FoundCatalogues {
    pub fn add(&mut self, pointer: PagePointer, payload: &[u8], next: Option<PagePointer>) {
        if next.is_none() && decode_region_page(payload).is_ok() {
            let place = (pointer.epoch, pointer.page);
            self.regions.insert(place, (pointer, payload.to_vec()));
            return;
        }
        self.streams
            .entry(pointer.epoch)
            .or_default()
            .push(CataloguePage {
                pointer,
                payload: payload.to_vec(),
                next,
            });
        if self.streams.len() > CATALOGUE_EPOCHS_MAX {
            self.streams.pop_first();
        }
    }

    /// Numbers, names and options of regions from all pages; newer pages take precedence.
    pub fn names(&self) -> BTreeMap<RegionId, (String, RegionOptions)> {
        let regions = self.regions.values();
        let regions = regions.map(|(pointer, payload)| (pointer.epoch, payload));
        let starts = self.streams.values().flat_map(|pages| starts(pages));
        let starts = starts.map(|page| (page.pointer.epoch, &page.payload));
        let mut all: Vec<_> = regions.chain(starts).collect();
        all.sort_by_key(|(epoch, _)| *epoch);
        all.into_iter()
            .flat_map(|(_, payload)| Catalogue::decode_names(payload))
            .collect()
    }

    /// The newest complete catalogue. `head` tells the valid one of an epoch; others of that epoch are from runs that
    /// crashed before their checkpoint was durable. In other epochs the catalogue of the last run is taken.
    pub fn newest(&self, head: Option<(Epoch, PagePointer)>) -> Option<(Epoch, Catalogue)> {
        self.streams.iter().rev().find_map(|(epoch, pages)| {
            let counts = |start: &&CataloguePage| {
                head.is_none_or(|(of, head)| of != *epoch || head == start.pointer)
            };
            let whole = starts(pages).filter(counts).filter_map(|start| {
                let mut bytes = start.payload.clone();
                let mut next = start.next;
                for _ in 0..pages.len() {
                    let Some(pointer) = next else { break };
                    let page = pages.iter().find(|page| page.pointer == pointer)?;
                    bytes.extend_from_slice(&page.payload);
                    next = page.next;
                }
                self.with_regions(Catalogue::decode(&bytes).ok()?)
            });
            let last_run = |of: &Catalogue| of.logs.iter().map(doubts::last_run).max();
            let whole = whole.max_by_key(last_run);
            whole.map(|catalogue| (*epoch, catalogue))
        })
    }

    /// The catalogue with the regions of all its region pages; none if one is missing.
    fn with_regions(&self, mut catalogue: Catalogue) -> Option<Catalogue> {
        for pointer in catalogue.region_pages.clone() {
            let found = self.regions.get(&(pointer.epoch, pointer.page));
            let (_, payload) = found.filter(|(found, _)| *found == pointer)?;
            catalogue
                .add_regions(decode_region_page(payload).ok()?)
                .ok()?;
        }
        Some(catalogue)
    }
}

/// The pages that no other page of the same epoch points to.
fn starts(pages: &[CataloguePage]) -> impl Iterator<Item = &CataloguePage> {
    pages.iter().filter(|page| {
        let mut others = pages.iter().filter_map(|other| other.next);
        !others.any(|next| next.page == page.pointer.page)
    })
}

/// The used pages of the groups with a readable bitmap block.
#[derive(Default)]
pub struct Live(BTreeMap<u32, BitmapBlock>);

impl Live {
    pub fn insert(&mut self, block: BitmapBlock) {
        self.0.insert(block.group, block);
    }

    /// The newer copy of each buddy pair, for lack of a pointer to the valid one. A group with a damaged copy is left
    /// out, because that copy may have been newer.
    pub fn of_newest_copies(source: &Source, store: StoreId, epoch: Option<Epoch>) -> Self {
        let mut live = Self::default();
        for group in 0..groups_of(source.segments()) {
            let pages = [bitmap_page(group, 0), bitmap_page(group, 1)];
            let mut copies = Vec::new();
            let mut is_sure = true;
            for (copy, page) in (0..).zip(source.pages(&pages)) {
                let decoded = page
                    .as_ref()
                    .and_then(|page| BitmapBlock::decode(page, store, group, copy).ok());
                // A copy that was never written is zero; any other invalid copy may have been newer.
                is_sure &= decoded.is_some() || page.is_some_and(|page| *page == [0; PAGE_BYTES]);
                copies.extend(decoded);
            }
            copies.retain(|block| epoch.is_none_or(|epoch| block.epoch <= epoch));
            let newest = copies.into_iter().max_by_key(|block| block.epoch);
            if let Some(block) = newest.filter(|_| is_sure) {
                live.insert(block);
            }
        }
        live
    }

    /// The newest epoch of any block.
    pub fn newest_epoch(&self) -> Option<Epoch> {
        self.0.values().map(|block| block.epoch).max()
    }

    /// What is recorded of a segment; none: unknown.
    fn record(&self, segment: SegmentId) -> Option<&SegmentRecord> {
        let block = self.0.get(&group_of(segment))?;
        block.segments.get(slot_in_group(segment))
    }

    /// Whether `page` is a used page of a tree; none: unknown.
    pub fn is_live(&self, page: PageNo) -> Option<bool> {
        let record = self.record(page.segment())?;
        let is_used = PageBits(record.pages).contains(page.0 % SEGMENT_PAGES);
        Some(record.kind == SegmentKind::Tree && is_used)
    }

    /// Whether a segment may hold pages of trees.
    pub fn may_have_trees(&self, segment: SegmentId) -> bool {
        let record = self.record(segment);
        record.is_none_or(|record| record.kind == SegmentKind::Tree)
    }

    /// The log segments with their sequences.
    pub fn log_segments(&self) -> Vec<(SegmentId, u64)> {
        let records = self.0.values().flat_map(|block| {
            let first = group_first_segment(block.group).0;
            (first..).map(SegmentId).zip(&block.segments)
        });
        records
            .filter(|(_, record)| record.kind == SegmentKind::Log)
            .map(|(segment, record)| (segment, record.sequence))
            .collect()
    }
}
