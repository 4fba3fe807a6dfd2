//! The survey of a damaged store: its identity, its newest catalogue, its log.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kreon_base::{Epoch, Error, Incarnation, Lsn, PageNo, RegionId, RegionOptions, Result};
use kreon_device::Device;
use kreon_format::{
    BitmapBlock, Catalogue, FORMAT_VERSION, LogSegmentHeader, PagePointer, SUPERBLOCK_PAGES,
    StoreId, Superblock, SuperblockSlot, bitmap_page, claimed_store, decode_page,
    decode_region_page,
};

use super::doubts;
use super::found::{FoundCatalogues, FoundLeaf, FoundPage, Live, scan};
use super::log_map::{LogMap, read_headers};
use super::report::{PageRole, SalvageReport};
use super::source::Source;
use crate::checkpoint::catalogue::MAIN_LOG;
use kreon_log::LOG_START;

/// Most store identities from damaged first pages of segments that are tried if no log segment header verifies.
const CLAIMS_MAX: usize = 16;

/// A surveyed damaged store, ready to be salvaged.
pub struct Survey {
    pub(super) seen: Seen,
    pub(super) basis: Basis,
    /// Known names of regions.
    pub(super) names: BTreeMap<RegionId, (String, RegionOptions)>,
    pub(super) live: Live,
    pub(super) map: LogMap,
    pub(super) report: SalvageReport,
}

pub(super) enum Basis {
    /// The catalogue of the last checkpoint.
    Checkpoint(Catalogue),
    /// Pages found on the volume, because that catalogue is lost.
    Pieces(Pieces),
}

/// Pages found on a volume without the catalogue of its last checkpoint.
pub(super) struct Pieces {
    /// Leaves, oldest first.
    pub leaves: Vec<FoundLeaf>,
    /// All of `leaves` are known to be in use.
    pub are_live: bool,
    /// An older catalogue, for its replay marker and the regions dropped before it.
    pub older: Option<Catalogue>,
}

impl Survey {
    /// Surveys the store on `device`. Reads superblock, catalogue, bitmap and one page of every segment; the whole
    /// volume if the catalogue is lost.
    ///
    /// # Errors
    /// `InvalidArgument` if no page verifies as part of a store, or if the store has a newer format.
    pub fn take(device: Arc<dyn Device>) -> Result<Self> {
        let source = Source::new(device);
        let mut report = SalvageReport::default();
        let superblock = read_slots(&source, &mut report)?;
        let store = match superblock {
            Some(superblock) => superblock.store,
            None => identify(&source).ok_or_else(nothing_here)?,
        };
        let seen = Seen {
            headers: read_headers(&source, store),
            source,
            store,
            superblock,
        };
        if let Some(superblock) = superblock {
            let (head, len) = (superblock.catalogue, superblock.catalogue_bytes);
            match read_catalogue(&seen.source, store, head, len) {
                Ok(catalogue) => {
                    report.epoch = Some(superblock.epoch);
                    return Ok(Self::of_catalogue(seen, catalogue, report));
                }
                Err(page) => report.damaged(page, PageRole::Catalogue),
            }
        }
        Self::of_pieces(seen, report)
    }

    fn of_catalogue(seen: Seen, catalogue: Catalogue, mut report: SalvageReport) -> Self {
        let mut live = Live::default();
        for (group, pointer) in (0..).zip(&catalogue.groups) {
            let page = bitmap_page(group, pointer.copy);
            let block = seen.source.page(page).and_then(|bytes| {
                BitmapBlock::decode_pointed(&bytes, seen.store, group, pointer).ok()
            });
            match block {
                Some(block) => live.insert(block),
                None => report.damaged(page, PageRole::Bitmap),
            }
        }
        let mut known = live.log_segments();
        for log in catalogue.logs.iter().filter(|log| log.id == MAIN_LOG) {
            let open = log.open.map(|open| (open.segment, open.sequence));
            let next = log.open.zip(log.next);
            let next = next.map(|(open, next)| (next, open.sequence.saturating_add(1)));
            known.extend(open.into_iter().chain(next));
        }
        if doubts::headers_are_newer(&catalogue, seen.superblock.as_ref(), &seen.headers, &known) {
            report.is_older_than_log();
        }
        let map = LogMap::new(&seen.headers, &known);
        let names = catalogue.regions.iter();
        Self {
            seen,
            names: names
                .map(|region| (region.id, (region.name.clone(), region.options)))
                .collect(),
            basis: Basis::Checkpoint(catalogue),
            live,
            map,
            report,
        }
    }

    /// The survey without a superblock or without its catalogue.
    fn of_pieces(seen: Seen, mut report: SalvageReport) -> Result<Self> {
        let (source, store) = (&seen.source, seen.store);
        let epoch = seen.superblock.map(|superblock| superblock.epoch);
        let live = Live::of_newest_copies(source, store, epoch);
        let mut leaves = Vec::new();
        let mut catalogues = FoundCatalogues::default();
        let mut newest = live.newest_epoch().unwrap_or(Epoch(0));
        let counts = |of: Epoch| epoch.is_none_or(|epoch| of <= epoch);
        scan(
            source,
            store,
            |_| false,
            |found| match found {
                FoundPage::Node(node) if counts(node.pointer.epoch) => {
                    newest = newest.max(node.pointer.epoch);
                    leaves.extend(FoundLeaf::of(&node));
                }
                FoundPage::Catalogue(pointer, payload, next) if counts(pointer.epoch) => {
                    newest = newest.max(pointer.epoch);
                    catalogues.add(pointer, payload, next);
                }
                FoundPage::Node(_) | FoundPage::Catalogue(..) => {}
            },
        );
        if newest == Epoch(0) && seen.headers.is_empty() && epoch.is_none() {
            return Err(nothing_here());
        }
        let head = seen.superblock.map(|of| (of.epoch, of.catalogue));
        let whole = catalogues.newest(head);
        if let Some((found, catalogue)) = &whole
            && *found == epoch.unwrap_or(newest)
        {
            report.notes.push(format!(
                "the catalogue of {found} was found by looking at every page"
            ));
            report.epoch = Some(*found);
            let catalogue = catalogue.clone();
            return Ok(Self::of_catalogue(seen, catalogue, report));
        }
        let older = whole.map(|(_, catalogue)| catalogue);
        let are_live = leaves.iter().all(|leaf| live.is_live(leaf.page).is_some());
        leaves.retain(|leaf| live.is_live(leaf.page) != Some(false));
        leaves.sort_unstable();
        let map = map_of_pieces(&seen.headers, &live);
        Ok(Self {
            names: catalogues.names(),
            basis: Basis::Pieces(Pieces {
                leaves,
                are_live,
                older,
            }),
            seen,
            live,
            map,
            report,
        })
    }
}

/// Superblock and segment headers of the store.
pub(super) struct Seen {
    pub source: Source,
    pub store: StoreId,
    superblock: Option<Superblock>,
    headers: Vec<LogSegmentHeader>,
}

impl Seen {
    /// The last run that may have written to the log.
    pub fn newest_run(&self) -> Incarnation {
        doubts::newest_run(self.superblock.as_ref(), &self.headers)
    }

    /// Whether the log may have segments that no readable page names.
    pub fn hides_segments(&self) -> bool {
        doubts::hides_segments(&self.source, self.superblock.as_ref())
    }
}

impl Pieces {
    /// Whether the region was dropped before the older catalogue.
    pub fn is_dropped(&self, region: RegionId) -> bool {
        self.older.as_ref().is_some_and(|older| {
            region < older.next_region && older.regions.iter().all(|known| known.id != region)
        })
    }

    /// The marker of the older catalogue, or the start of the log: all writes before it were in trees.
    pub fn marker(&self) -> Lsn {
        let logs = self.older.iter().flat_map(|older| &older.logs);
        logs.map(|log| log.marker).max().unwrap_or(LOG_START)
    }
}

/// The log by its segment headers. Bitmap blocks may be older, so they only fill in segments and sequences without a
/// header.
fn map_of_pieces(headers: &[LogSegmentHeader], live: &Live) -> LogMap {
    let map = LogMap::new(headers, &[]);
    let mut missing = live.log_segments();
    missing.retain(|(segment, sequence)| {
        map.get(*sequence).is_none() && map.sequence(*segment).is_none()
    });
    match missing.is_empty() {
        true => map,
        false => LogMap::new(headers, &missing),
    }
}

fn nothing_here() -> Error {
    Error::invalid(
        "nothing here verifies as part of a Kreon store: no superblock, log segment or tree page",
    )
}

/// The newest valid superblock.
fn read_slots(source: &Source, report: &mut SalvageReport) -> Result<Option<Superblock>> {
    let mut newest: Option<Superblock> = None;
    let pages = source.pages(&SUPERBLOCK_PAGES);
    for (slot, (page, bytes)) in SUPERBLOCK_PAGES.iter().zip(pages).enumerate() {
        let examined = bytes.map(|bytes| Superblock::examine(&bytes, slot));
        match examined {
            Some(SuperblockSlot::Valid(found)) => {
                if newest.is_none_or(|newest| newest.epoch < found.epoch) {
                    newest = Some(found);
                }
            }
            Some(SuperblockSlot::Newer { version }) => {
                return Err(Error::invalid(format!(
                    "the store was written by a newer format, {version}; this build reads up to \
                     {FORMAT_VERSION}"
                )));
            }
            _ => report.damaged(*page, PageRole::Superblock),
        }
    }
    Ok(newest)
}

/// The identity of the store without a superblock: from log segment headers, else from damaged pages.
fn identify(source: &Source) -> Option<StoreId> {
    let (mut verified, mut claimed) = (BTreeMap::<u64, u32>::new(), BTreeSet::new());
    for (segment, page) in source.first_pages() {
        let Some((page, store)) = page.and_then(|page| claimed_store(&page).map(|s| (page, s)))
        else {
            continue;
        };
        if LogSegmentHeader::decode(&page, store, segment).is_ok() {
            *verified.entry(store.0).or_default() += 1;
        } else if claimed.len() < CLAIMS_MAX {
            claimed.insert(store.0);
        }
    }
    // A device may hold remains of other stores.
    if let Some((store, _)) = verified.iter().max_by_key(|(_, count)| **count) {
        return Some(StoreId(*store));
    }
    for page in source.pages(&SUPERBLOCK_PAGES).into_iter().flatten() {
        claimed.extend(claimed_store(&page).map(|store| store.0));
    }
    claimed.into_iter().map(StoreId).find(|store| {
        let is_found = Cell::new(false);
        scan(source, *store, |_| is_found.get(), |_| is_found.set(true));
        is_found.get()
    })
}

/// The catalogue at `head`, or its first damaged page.
fn read_catalogue(
    source: &Source,
    store: StoreId,
    head: PagePointer,
    len_bytes: u64,
) -> Result<Catalogue, PageNo> {
    let (mut bytes, mut next) = (Vec::new(), Some(head));
    let mut pages = BTreeSet::new();
    while let Some(pointer) = next {
        // A cyclic chain would never end.
        if !pages.insert(pointer.page) {
            return Err(pointer.page);
        }
        let page = source.page(pointer.page).ok_or(pointer.page)?;
        let decoded = decode_page(&page, store, &pointer);
        let (payload, following) = decoded.map_err(|_| pointer.page)?;
        bytes.extend_from_slice(payload);
        if bytes.len() as u64 > len_bytes {
            return Err(pointer.page);
        }
        next = following;
    }
    let mut catalogue = Catalogue::decode(&bytes).map_err(|_| head.page)?;
    for pointer in catalogue.region_pages.clone() {
        let page = source.page(pointer.page).ok_or(pointer.page)?;
        let regions = decode_page(&page, store, &pointer)
            .and_then(|(payload, _)| decode_region_page(payload));
        let added = regions.and_then(|regions| catalogue.add_regions(regions));
        added.map_err(|_| pointer.page)?;
    }
    Ok(catalogue)
}
