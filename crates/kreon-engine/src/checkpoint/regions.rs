//! The regions of a catalogue. A few are in its stream; many get pages of their own, and a checkpoint rewrites only the
//! pages of chunks whose regions or trees have changed.

use std::sync::Arc;

use kreon_base::{Epoch, Error, PageBytes, PageNo, Result};
use kreon_format::{PagePointer, RegionRecord, StoreId, encode_chain, encode_region_pages};

use super::catalogue::MAIN_LOG;
use crate::by_region::Chunk;
use crate::level::Levels;
use crate::state::{Ledger, RegionEntry, WrittenChunk, WrittenRegions};

/// The layout of the regions of a checkpoint.
pub struct RegionPages {
    /// Regions in the stream.
    pub in_stream: Vec<RegionRecord>,
    kept: WrittenRegions,
    fresh: Vec<Fresh>,
}

/// A changed chunk, to be written.
struct Fresh {
    number: u32,
    chunk: WrittenChunk,
    payloads: Vec<Vec<u8>>,
}

impl RegionPages {
    /// The layout for the regions of `ledger` with the trees of `levels`; `ledger.written` is the last one. More than
    /// `in_stream_max` regions get pages of their own.
    pub fn plan(ledger: &Ledger, levels: &Levels, in_stream_max: usize) -> Self {
        let mut plan = Self {
            in_stream: Vec::new(),
            kept: WrittenRegions::new(),
            fresh: Vec::new(),
        };
        let has_pages = ledger.regions.len() > in_stream_max;
        for (number, regions) in ledger.regions.chunks() {
            if !has_pages {
                plan.in_stream.extend(records(regions, levels));
                continue;
            }
            let trees = levels.chunk(number);
            match ledger.written.get(&number) {
                Some(written) if written.is_of(regions, trees) => {
                    plan.kept.insert(number, written.clone());
                }
                _ => plan.fresh.push(Fresh {
                    number,
                    chunk: WrittenChunk {
                        regions: Arc::clone(regions),
                        trees: trees.cloned(),
                        pages: Arc::new([]),
                    },
                    payloads: encode_region_pages(&records(regions, levels).collect::<Vec<_>>()),
                }),
            }
        }
        plan
    }

    /// Number of pages for the changed chunks.
    pub fn fresh_count(&self) -> usize {
        self.fresh.iter().map(|fresh| fresh.payloads.len()).sum()
    }

    /// Number of all region pages that the stream will point to.
    pub fn count(&self) -> usize {
        let kept = self.kept.values().map(|chunk| chunk.pages.len());
        self.fresh_count() + kept.sum::<usize>()
    }

    /// The pages of `written` that this layout does not keep.
    pub fn dropped<'w>(&'w self, written: &'w WrittenRegions) -> impl Iterator<Item = PageNo> + 'w {
        let gone = written
            .iter()
            .filter(|(number, _)| !self.kept.contains_key(number));
        gone.flat_map(|(_, chunk)| chunk.page_numbers())
    }

    /// Encodes the changed chunks into `pages`, exactly [`Self::fresh_count`] of them; returns the pages with their
    /// bytes, and the new layout.
    #[allow(clippy::type_complexity, reason = "pages with their bytes")]
    pub fn seal(
        self,
        store: StoreId,
        epoch: Epoch,
        pages: &[PageNo],
    ) -> Result<(Vec<(PageNo, Box<PageBytes>)>, WrittenRegions)> {
        let (mut encoded, mut written) = (Vec::with_capacity(pages.len()), self.kept);
        let mut pages = pages.chunks(1);
        for fresh in self.fresh {
            let mut pointers = Vec::with_capacity(fresh.payloads.len());
            for payload in &fresh.payloads {
                let page = pages.next().unwrap_or_default();
                let (chain, pointer) = encode_chain(store, epoch, payload, page)?;
                encoded.extend(chain);
                pointers.push(pointer);
            }
            let chunk = WrittenChunk {
                pages: pointers.into(),
                ..fresh.chunk
            };
            written.insert(fresh.number, chunk);
        }
        match pages.next() {
            None => Ok((encoded, written)),
            Some(_) => Err(Error::invalid("more pages than regions need")),
        }
    }
}

/// Pointers to the region pages, in the order of their regions.
pub fn pointers(written: &WrittenRegions) -> Vec<PagePointer> {
    let chunks = written.values();
    chunks
        .flat_map(|chunk| chunk.pages.iter().copied())
        .collect()
}

fn records<'r>(
    regions: &'r Chunk<RegionEntry>,
    levels: &'r Levels,
) -> impl Iterator<Item = RegionRecord> + 'r {
    regions.iter().map(|(id, region)| RegionRecord {
        id: *id,
        name: region.name.to_string(),
        options: region.options,
        log: MAIN_LOG,
        levels: levels.of(*id).to_vec(),
    })
}
