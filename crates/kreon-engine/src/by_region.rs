//! A map from regions to what belongs to them, of which a copy shares all that does not change afterwards: a spill that
//! changes three of a hundred thousand regions copies what belongs to a few neighbours of each, and not the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_base::RegionId;

/// So many numbers share a chunk: in a catalogue, regions with names of a dozen bytes and one tree each fill a page.
const CHUNK_REGIONS: u32 = 64;

/// The regions of a chunk, ascending.
pub type Chunk<T> = Vec<(RegionId, T)>;

/// A map by region whose copies share the chunks that have not changed.
#[derive(Clone, Debug)]
pub struct ByRegion<T> {
    chunks: BTreeMap<u32, Arc<Chunk<T>>>,
    len: usize,
}

impl<T> Default for ByRegion<T> {
    fn default() -> Self {
        Self {
            chunks: BTreeMap::new(),
            len: 0,
        }
    }
}

/// The number of the chunk that a region is in.
pub fn chunk_of(region: RegionId) -> u32 {
    region.0 / CHUNK_REGIONS
}

impl<T: Clone> ByRegion<T> {
    /// How many regions there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// What belongs to `region`.
    pub fn get(&self, region: RegionId) -> Option<&T> {
        let chunk = self.chunks.get(&chunk_of(region))?;
        let at = place(chunk, region).ok()?;
        chunk.get(at).map(|(_, of)| of)
    }

    /// Whether there is `region`.
    pub fn contains(&self, region: RegionId) -> bool {
        self.get(region).is_some()
    }

    /// Puts `of` in; returns what belonged to `region` before.
    pub fn insert(&mut self, region: RegionId, of: T) -> Option<T> {
        let chunk = self.chunks.entry(chunk_of(region)).or_default();
        let chunk = Arc::make_mut(chunk);
        match place(chunk, region) {
            Ok(at) => chunk.get_mut(at).map(|(_, old)| std::mem::replace(old, of)),
            Err(at) => {
                chunk.insert(at, (region, of));
                self.len += 1;
                None
            }
        }
    }

    /// Takes `region` out.
    pub fn remove(&mut self, region: RegionId) -> Option<T> {
        let chunk = self.chunks.get_mut(&chunk_of(region))?;
        let at = place(chunk, region).ok()?;
        let chunk = Arc::make_mut(chunk);
        let (_, old) = chunk.remove(at);
        if chunk.is_empty() {
            self.chunks.remove(&chunk_of(region));
        }
        self.len -= 1;
        Some(old)
    }

    /// All regions, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (RegionId, &T)> {
        let all = self.chunks.values().flat_map(|chunk| chunk.iter());
        all.map(|(region, of)| (*region, of))
    }

    /// The chunks with their numbers, ascending. None is empty.
    pub fn chunks(&self) -> impl Iterator<Item = (u32, &Arc<Chunk<T>>)> {
        self.chunks.iter().map(|(number, chunk)| (*number, chunk))
    }

    /// A chunk, if it is not empty.
    pub fn chunk(&self, number: u32) -> Option<&Arc<Chunk<T>>> {
        self.chunks.get(&number)
    }
}

fn place<T>(chunk: &Chunk<T>, region: RegionId) -> Result<usize, usize> {
    chunk.binary_search_by_key(&region, |(id, _)| *id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_map_in_the_order_of_regions() {
        let (mut map, mut model) = (ByRegion::default(), BTreeMap::new());
        let mut dice = 7u64;
        for _ in 0..4000 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (region, of) = (RegionId((dice >> 33) as u32 % 500), dice);
            if dice >> 63 == 0 {
                assert_eq!(map.insert(region, of), model.insert(region, of));
            } else {
                assert_eq!(map.remove(region), model.remove(&region));
            }
            assert_eq!(
                (map.len(), map.get(region)),
                (model.len(), model.get(&region))
            );
        }
        let all: Vec<_> = map.iter().map(|(region, of)| (region, *of)).collect();
        assert_eq!(all, model.into_iter().collect::<Vec<_>>());
        for (region, _) in all {
            map.remove(region);
        }
        assert_eq!((map.len(), map.chunks().count()), (0, 0));
    }

    #[test]
    fn a_copy_shares_all_chunks_but_those_that_change() {
        let mut map = ByRegion::default();
        for id in 0..1000 {
            map.insert(RegionId(id), id);
        }
        let mut copy = map.clone();
        copy.insert(RegionId(130), 1);
        copy.remove(RegionId(999));
        let is_shared = |(number, chunk): (u32, &Arc<Chunk<u32>>)| {
            map.chunk(number).is_some_and(|old| Arc::ptr_eq(old, chunk))
        };
        let shared: Vec<bool> = copy.chunks().map(is_shared).collect();
        assert_eq!(shared.iter().filter(|shared| !**shared).count(), 2);
        assert!(!shared[2] && !shared[15]);
        assert_eq!(map.get(RegionId(130)), Some(&130));
    }
}
