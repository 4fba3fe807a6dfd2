//! The values of some leaves, and where they are.

use std::ops::Bound;

use kreon_base::{Payload, RegionId, Result};
use kreon_format::{TreeRecord, fragment_bytes};
use kreon_mapping::Fetched;

use super::super::gc::candidates::Candidates;
use crate::level::{MappedNodes, View};
use crate::read::merge_scan::{self, Step};
use crate::read::{RECORD_BYTES_MAX, Scattered, ScatteredValues, enough};
use crate::state::Storage;
use crate::tree::Cursor;
use crate::visibility::ReadPoint;

/// Most leaves on each side of one that come along with it: a scan that goes over a border reads on.
const BESIDE_MAX: usize = 8;

/// The share of the credit that those have at least which come along.
const BESIDE_SHARE: u64 = 2;

/// Values that are to be laid together.
pub struct Added {
    region: RegionId,
    /// The last key of the last leaf.
    last: Vec<u8>,
    /// What they take in the log.
    pub bytes: u64,
}

/// Leaves that follow each other.
struct Run {
    first: Vec<u8>,
    last: Vec<u8>,
    leaves: usize,
}

/// Which way the next leaf is.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

impl Added {
    /// Whether `range`, which is not before the first of these values, is among them.
    pub fn covers(&self, range: &Scattered) -> bool {
        range.region == self.region && range.key <= self.last
    }
}

/// Finds leaves and the places of their values.
pub struct Ranges<'a> {
    pub storage: &'a Storage,
    pub scattered: &'a ScatteredValues,
}

impl Ranges<'_> {
    /// Adds the values of the leaf in which `scattered` lies, and of those beside it that have credit, to `candidates`, in
    /// the order of their keys. What lies together already stays: then there is nothing to be moved.
    pub fn add_range(
        &self,
        view: &View,
        scattered: &Scattered,
        candidates: &mut Candidates,
    ) -> Result<Option<Added>> {
        let region = scattered.region;
        let nodes = self.storage.nodes(view, region);
        let mut trees = view.levels.of(region).iter().zip(&nodes);
        let Some((tree, lowest)) = trees.next_back() else {
            return Ok(None);
        };
        let Some(run) = self.run_around(scattered, tree, lowest)? else {
            return Ok(None);
        };
        let (first, last) = (
            Bound::Included(run.first),
            Bound::Included(run.last.clone()),
        );
        let point = ReadPoint::now(&self.storage.options.clock);
        let step = Step::whole(region, point, &first, &last);
        let (mut found, mut places) = (Vec::new(), Vec::new());
        merge_scan::run(&step, view, &nodes, |key, payload, _| {
            if let Payload::Logged {
                offset,
                value_bytes,
                ..
            } = payload
            {
                let len = fragment_bytes(key.len() + value_bytes as usize);
                if len <= RECORD_BYTES_MAX {
                    places.push((offset.0, len));
                    found.push((key.to_vec(), offset));
                }
            }
        })?;
        places.sort_unstable();
        // So many transfers are no reason to move anything: a run of copies may cross the end of a segment.
        if Fetched::transfers_of(&places) <= 1 + run.leaves {
            return Ok(None);
        }
        for (key, offset) in found {
            candidates.push(region, &key, offset);
        }
        Ok(Some(Added {
            region,
            last: run.last,
            bytes: places.iter().map(|(_, len)| *len as u64).sum(),
        }))
    }

    /// The leaf in which `scattered` lies, and those beside it that scans found scattered, too.
    fn run_around(
        &self,
        scattered: &Scattered,
        tree: &TreeRecord,
        nodes: &MappedNodes<'_>,
    ) -> Result<Option<Run>> {
        let mut cursor = Cursor::new(nodes, tree);
        if !cursor.seek(&scattered.key)? {
            return Ok(None);
        }
        let (first, last) = cursor.leaf_ends()?;
        let mut run = Run {
            first,
            last,
            leaves: 1,
        };
        let credit = (enough(tree) / BESIDE_SHARE).max(1);
        for side in [Side::Right, Side::Left] {
            for _ in 0..BESIDE_MAX {
                if !self.extend(&mut run, &mut cursor, side, (scattered.region, credit))? {
                    break;
                }
            }
        }
        Ok(Some(run))
    }

    /// Adds the next leaf on one side, if it has so much credit; whether it had.
    fn extend(
        &self,
        run: &mut Run,
        cursor: &mut Cursor<'_, MappedNodes<'_>>,
        side: Side,
        (region, credit): (RegionId, u64),
    ) -> Result<bool> {
        let is_there = match side {
            Side::Left => cursor.seek_before(&run.first)?,
            Side::Right => go_behind(cursor, &run.last)?,
        };
        let leaf = cursor.leaf_page().filter(|_| is_there);
        let has = leaf.is_some_and(|leaf| self.scattered.credits.take(region, leaf, credit));
        if has {
            let (first, last) = cursor.leaf_ends()?;
            match side {
                Side::Left => run.first = first,
                Side::Right => run.last = last,
            }
            run.leaves += 1;
        }
        Ok(has)
    }
}

/// Goes to the first entry behind `key`, which is there.
fn go_behind(cursor: &mut Cursor<'_, MappedNodes<'_>>, key: &[u8]) -> Result<bool> {
    let mut is_there = cursor.seek(key)?;
    while is_there && cursor.key() == key {
        is_there = cursor.next()?;
    }
    Ok(is_there)
}
