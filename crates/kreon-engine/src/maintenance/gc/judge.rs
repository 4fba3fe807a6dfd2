//! Which candidates the trees point at.
//!
//! A record is moved only if the newest version of its key, L0s first, then all trees from the top, is the entry
//! that points at exactly its place. Older versions, which snapshots alone see, stay where they are and keep their
//! segments until the snapshots are gone.

use kreon_base::{LogOffset, Lsn, Payload, RegionId, Result, planted};

use super::candidates::Candidates;
use crate::keys::{L0Key, split};
use crate::level::{MappedNodes, Memory, View};
use crate::state::Storage;
use crate::tree::{self, prefetch_paths};

/// Keys whose leaves are loaded together, in the order of the keys.
const ROUND_KEYS: usize = 256;

/// A record that a tree points at.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    /// Which candidate it is.
    pub index: usize,
    /// What the tree's entry says of its age: it counts for the copy, too.
    pub lsn: Lsn,
    /// Length of its value; none: it is a deletion.
    pub value_bytes: Option<u32>,
}

/// What there is to move.
#[derive(Default)]
pub struct Judged {
    /// In the order of the candidates.
    pub live: Vec<Live>,
    /// Bytes in the log of those that a newer version will replace with the next spill.
    pub shadowed: u64,
}

/// Whether L0' or L0 says anything about a key, or of a range that it is in: that is newer than all trees, and an
/// entry in L0' must not come before what L0 says.
pub fn is_in_l0s(view: &View, l0_key: &[u8]) -> bool {
    planted!(RelocationWithoutCompare => return false);
    let has = |l0: &Memory| l0.get(l0_key, Lsn::MAX, |_| true, |_| ()).is_some();
    let erases = |l0: &Memory| {
        let ranges = l0.has_ranges().then(|| l0.ranges());
        let (ranges, key) = (ranges.as_ref(), split(l0_key));
        ranges.zip(key).is_some_and(|(ranges, (region, key))| {
            let of_region = ranges.of(region);
            of_region.is_some_and(|ranges| !ranges.covering(key).is_empty())
        })
    };
    let knows = |l0: &Memory| has(l0) || erases(l0);
    let frozen = view.frozen.as_ref();
    knows(&view.active) || frozen.is_some_and(|frozen| knows(&frozen.l0))
}

/// Asks for the candidates at `indexes`, which are in the order of their keys. What is written from `marker` on is
/// left where it is: images of L0 would take its copy for a new write.
///
/// # Errors
/// `Corruption`, `Io` of trees.
pub fn judge(
    storage: &Storage,
    view: &View,
    marker: Lsn,
    candidates: &Candidates,
    indexes: &[usize],
) -> Result<Judged> {
    let mut judged = Judged::default();
    let mut open = Vec::with_capacity(indexes.len());
    for index in indexes {
        let Some(candidate) = candidates.get(*index) else {
            continue;
        };
        let key = L0Key::new(candidate.region, candidates.key(candidate));
        match is_in_l0s(view, key.as_slice()) {
            true => judged.shadowed += 1,
            false => open.push(*index),
        }
    }
    let region_of = |index: &usize| candidates.get(*index).map(|candidate| candidate.region);
    for of_region in open.chunk_by(|a, b| region_of(a) == region_of(b)) {
        let Some(region) = of_region.first().and_then(region_of) else {
            continue;
        };
        for round in of_region.chunks(ROUND_KEYS) {
            judge_round(
                storage,
                view,
                (region, marker),
                candidates,
                round,
                &mut judged.live,
            )?;
        }
    }
    judged.live.sort_unstable_by_key(|live| live.index);
    Ok(judged)
}

fn judge_round(
    storage: &Storage,
    view: &View,
    (region, marker): (RegionId, Lsn),
    candidates: &Candidates,
    round: &[usize],
    live: &mut Vec<Live>,
) -> Result<()> {
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
                (version.lsn, place_of(version.payload))
            })?;
            let offset = candidates.get(*index).map(|candidate| candidate.offset);
            match found {
                None => absent.push(*index),
                Some((lsn, Some((at, value_bytes))))
                    if Some(at) == offset && !is_hidden && lsn < marker =>
                {
                    live.push(Live {
                        index: *index,
                        lsn,
                        value_bytes,
                    });
                }
                Some(_) => {}
            }
        }
        open = absent;
    }
    Ok(())
}

/// The record that an entry points at, and the length of its value if it is no deletion.
fn place_of(payload: Payload<'_>) -> Option<(LogOffset, Option<u32>)> {
    match payload {
        Payload::Logged {
            offset,
            value_bytes,
        } => Some((offset, Some(value_bytes))),
        Payload::Tombstone { offset } => Some((offset, None)),
        Payload::Inline { .. } | Payload::Erased { .. } => None,
    }
}
