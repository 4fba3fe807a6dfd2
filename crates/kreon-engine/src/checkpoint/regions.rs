//! The regions of a catalogue: few stand in its stream, many in pages of their own, of which a checkpoint writes anew
//! those whose regions or trees have changed.

use std::sync::Arc;

use kreon_base::{Epoch, Error, PageBytes, PageNo, Result};
use kreon_format::{PagePointer, RegionRecord, StoreId, encode_chain, encode_region_pages};

use super::catalogue::MAIN_LOG;
use crate::by_region::Chunk;
use crate::level::Levels;
use crate::state::{Ledger, RegionEntry, WrittenChunk, WrittenRegions};

/// Where the regions of a checkpoint go.
pub struct RegionPages {
    /// Those that stand in the stream.
    pub in_stream: Vec<RegionRecord>,
    kept: WrittenRegions,
    fresh: Vec<Fresh>,
}

/// A chunk to be written.
struct Fresh {
    number: u32,
    chunk: WrittenChunk,
    payloads: Vec<Vec<u8>>,
}

impl RegionPages {
    /// Of `ledger`, whose `written` is what the catalogue before has, with the trees of `levels`. More than
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

    /// Pages that it takes to write what has changed.
    pub fn fresh_count(&self) -> usize {
        self.fresh.iter().map(|fresh| fresh.payloads.len()).sum()
    }

    /// All pages of regions that the stream will point to.
    pub fn count(&self) -> usize {
        let kept = self.kept.values().map(|chunk| chunk.pages.len());
        self.fresh_count() + kept.sum::<usize>()
    }

    /// The pages of `written` that are not kept.
    pub fn dropped<'w>(&'w self, written: &'w WrittenRegions) -> impl Iterator<Item = PageNo> + 'w {
        let gone = written
            .iter()
            .filter(|(number, _)| !self.kept.contains_key(number));
        gone.flat_map(|(_, chunk)| chunk.page_numbers())
    }

    /// Encodes what has changed into `pages`, of which there are as many as [`Self::fresh_count`] says; also returns
    /// what is written then.
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

/// The pages that a stream points to, in the order of their regions.
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
        log: MAIN_LOG,
        levels: levels.of(*id).to_vec(),
    })
}
