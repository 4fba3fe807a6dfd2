//! Which candidates the trees point at.
//!
//! A record is moved only if the newest version of its key, L0s first, then all trees from the top, is the entry
//! that points at exactly its place. Older versions, which snapshots alone see, stay where they are and keep their
//! segments until the snapshots are gone.

use kreon_base::{Attributes, LogOffset, Lsn, Payload, RegionId, Result, Timestamp, planted};

use super::candidates::Candidates;
use crate::keys::L0Key;
use crate::level::{MappedNodes, View};
use crate::state::Storage;
use crate::tree::{self, prefetch_paths};
use crate::visibility::Visibility;

/// Keys whose leaves are loaded together, in the order of the keys.
const ROUND_KEYS: usize = 256;

/// Lookups in an L0 whose cache misses overlap.
const LOOKUPS_TOGETHER: usize = 16;

/// A record that a tree points at.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    /// Which candidate it is.
    pub index: usize,
    /// What the tree's entry says of its age: it counts for the copy, too.
    pub lsn: Lsn,
    /// Bytes behind its key; none: it is a deletion.
    pub value_bytes: Option<u32>,
    /// What is kept beside its value.
    pub attributes: Attributes,
    /// The value has ended for all readers: its copy is a deletion, which takes the place of the entry.
    pub has_expired: bool,
}

/// What is judged, and by what.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    pub storage: &'a Storage,
    pub view: &'a View,
    /// What is written from here on is left where it is: images of L0 would take its copy for a new write.
    pub marker: Lsn,
    /// Values that end by then have ended for all readers.
    pub horizon: Timestamp,
}

impl<'a> Bench<'a> {
    /// In `view`, as of now.
    pub fn of(storage: &'a Storage, visibility: &Visibility, view: &'a View) -> Self {
        let horizon = visibility.horizon();
        let marker = storage.ledger.lock().marker;
        Self {
            storage,
            view,
            marker,
            horizon,
        }
    }
}

/// Those of the candidates at `indexes`, which are in the order of their keys, that are live, in the order of the
/// candidates.
///
/// # Errors
/// `Corruption`, `Io` of trees.
pub fn judge(bench: Bench<'_>, candidates: &Candidates, indexes: &[usize]) -> Result<Vec<Live>> {
    let mut live = Vec::new();
    let open = unknown_to_l0s(bench.view, candidates, indexes);
    let region_of = |index: &usize| candidates.get(*index).map(|candidate| candidate.region);
    for of_region in open.chunk_by(|a, b| region_of(a) == region_of(b)) {
        let Some(region) = of_region.first().and_then(region_of) else {
            continue;
        };
        for round in of_region.chunks(ROUND_KEYS) {
            judge_round(bench, region, candidates, round, &mut live)?;
        }
    }
    live.sort_unstable_by_key(|live| live.index);
    Ok(live)
}

/// Those of which no L0 has a newer version.
fn unknown_to_l0s(view: &View, candidates: &Candidates, indexes: &[usize]) -> Vec<usize> {
    let mut unknown = Vec::with_capacity(indexes.len());
    for round in indexes.chunks(LOOKUPS_TOGETHER) {
        let keys: Vec<_> = round
            .iter()
            .filter_map(|index| candidates.get(*index))
            .map(|candidate| L0Key::new(candidate.region, candidates.key(candidate)))
            .collect();
        let mut known = [false; LOOKUPS_TOGETHER];
        view.l0s().for_each(|l0| l0.mark_known(&keys, &mut known));
        planted!(RelocationWithoutCompare => let known = [false; LOOKUPS_TOGETHER]);
        let open = round.iter().zip(known).filter(|(_, known)| !known);
        unknown.extend(open.map(|(index, _)| *index));
    }
    unknown
}

fn judge_round(
    bench: Bench<'_>,
    region: RegionId,
    candidates: &Candidates,
    round: &[usize],
    live: &mut Vec<Live>,
) -> Result<()> {
    let Bench { storage, view, .. } = bench;
    let mut open = round.to_vec();
    for (level, record) in (1..).zip(view.levels.of(region)) {
        let nodes = MappedNodes {
            mapping: &storage.mapping,
            log: &storage.log,
            store: storage.store,
            region,
            level,
            counts: None,
            resident_only: false,
        };
        let keys: Vec<&[u8]> = open
            .iter()
            .filter_map(|index| candidates.get(*index))
            .map(|candidate| candidates.key(candidate))
            .collect();
        prefetch_paths(&nodes, record, &keys)?;
        // Of a tree that some or all do not see yet, nothing is moved: it is made one with the others soon.
        let is_hidden = view.levels.hidden_up_to(record) > Lsn(0);
        let mut absent = Vec::new();
        for (index, key) in open.iter().zip(keys) {
            let found = tree::get(&nodes, record, key, Lsn::MAX, |version| {
                let place = place_of(version.payload);
                (version.lsn, version.payload.attributes(), place)
            })?;
            let offset = candidates.get(*index).map(|candidate| candidate.offset);
            match found {
                None => absent.push(*index),
                Some((lsn, attributes, Some((at, value_bytes))))
                    if Some(at) == offset && !is_hidden && lsn < bench.marker =>
                {
                    live.push(Live {
                        index: *index,
                        lsn,
                        value_bytes,
                        attributes,
                        has_expired: attributes.has_expired(bench.horizon),
                    });
                }
                Some(_) => {}
            }
        }
        open = absent;
    }
    Ok(())
}

/// The record that an entry points at, and the bytes behind its key if it is no deletion.
fn place_of(payload: Payload<'_>) -> Option<(LogOffset, Option<u32>)> {
    match payload {
        Payload::Logged {
            offset,
            value_bytes,
            ..
        } => Some((offset, Some(value_bytes))),
        Payload::Tombstone { offset } => Some((offset, None)),
        Payload::Inline { .. } | Payload::Erased { .. } => None,
    }
}
