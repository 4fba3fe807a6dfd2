//! A walk over all keys in their order, which finds values that do not lie together.
//!
//! Values move that stand where users wrote them, in the log itself. What was copied once, by a scan, by collection or in
//! idle time, stays, and counts as what the others would lie beside: so a byte given is copied in idle time once at most,
//! in whatever run of the store, and new values of a leaf come to lie together although the older ones stay.

use std::ops::Bound;

use kreon_base::{LogOffset, Lsn, PageNo, Payload, RegionId, Result};
use kreon_format::{MOVED_SEQUENCE_MIN, fragment_bytes, lsn_at};
use kreon_mapping::Fetched;

use super::super::gc::candidates::Candidates;
use crate::level::View;
use crate::read::RECORD_BYTES_MAX;
use crate::read::merge_scan::{self, Step};
use crate::state::Storage;
use crate::tuning::IDLE_RECORDS_PER_READ;
use crate::visibility::ReadPoint;

/// Entries that are looked at together. A leaf over a border counts as two.
const STEP_ENTRIES: usize = 1024;

/// Most entries of one round, where all values lie together: a writer may wait for the end of the round.
const ROUND_ENTRIES: usize = 1 << 16;

/// Where a walk goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// In this region, or in the one behind it.
    pub region: RegionId,
    /// From this key on.
    pub from: Bound<Vec<u8>>,
}

impl Place {
    /// The very first key.
    pub fn first() -> Self {
        Self {
            region: RegionId(0),
            from: Bound::Unbounded,
        }
    }
}

/// What a round found.
pub struct Round {
    /// What is to be moved, in the order of the keys.
    pub candidates: Candidates,
    /// What that takes in the log.
    pub bytes: u64,
    /// Where the next one begins; none: there are no more keys.
    pub next: Option<Place>,
}

/// The value of a key in the log.
struct Value {
    key: Vec<u8>,
    offset: LogOffset,
    len: usize,
    /// The leaf of the lowest tree where the walk met it.
    leaf: Option<PageNo>,
    may_move: bool,
}

/// Walks through one view.
pub struct Walk<'a> {
    pub storage: &'a Storage,
    pub view: &'a View,
    /// What the log has from here on is in no tree.
    pub marker: Lsn,
}

impl Walk<'_> {
    /// Goes on from `place` through `regions`, which are in the order of their numbers, until it has found `bytes_max` or
    /// has gone over many entries.
    ///
    /// # Errors
    /// `Corruption`, `Io` of trees.
    pub fn round(&self, place: Place, regions: &[RegionId], bytes_max: u64) -> Result<Round> {
        let mut round = Round {
            candidates: Candidates::default(),
            bytes: 0,
            next: None,
        };
        let mut entries = 0;
        let behind = regions.partition_point(|region| *region < place.region);
        for region in regions.get(behind..).unwrap_or_default() {
            let mut from = match *region == place.region {
                true => Some(place.from.clone()),
                false => Some(Bound::Unbounded),
            };
            while let Some(start) = from {
                if entries >= ROUND_ENTRIES {
                    return Ok(round.up_to(*region, start));
                }
                let (values, last) = self.step(*region, &start)?;
                entries += STEP_ENTRIES;
                for of_leaf in values.chunk_by(|a, b| a.leaf == b.leaf) {
                    if let Some(first) = of_leaf.first()
                        && round.bytes >= bytes_max
                    {
                        return Ok(round.up_to(*region, Bound::Included(first.key.clone())));
                    }
                    round.add(*region, of_leaf);
                }
                from = last.map(Bound::Excluded);
            }
        }
        Ok(round)
    }

    /// The values of the next keys, and the last key if there are more behind it.
    fn step(
        &self,
        region: RegionId,
        start: &Bound<Vec<u8>>,
    ) -> Result<(Vec<Value>, Option<Vec<u8>>)> {
        if self.view.levels.of(region).is_empty() {
            return Ok((Vec::new(), None));
        }
        let nodes = self.storage.nodes(self.view, region);
        let point = ReadPoint::now(&self.storage.options.clock);
        let step = Step {
            entries_max: STEP_ENTRIES,
            ..Step::whole(region, point, start, &Bound::Unbounded)
        };
        let (mut values, mut last) = (Vec::new(), Vec::new());
        let walked = merge_scan::run(&step, self.view, &nodes, |key, payload, leaf| {
            key.clone_into(&mut last);
            if let Payload::Logged {
                offset,
                value_bytes,
                ..
            } = payload
            {
                let len = fragment_bytes(key.len() + value_bytes as usize);
                if len <= RECORD_BYTES_MAX {
                    values.push(Value {
                        key: key.to_vec(),
                        offset,
                        len,
                        leaf,
                        may_move: self.is_where_it_was_written(offset),
                    });
                }
            }
        })?;
        Ok((values, (!walked.is_exhausted).then_some(last)))
    }

    /// Whether a record stands in the log itself and was spilled.
    fn is_where_it_was_written(&self, offset: LogOffset) -> bool {
        let sequence = self.storage.log.reader().sequence_of(offset.segment());
        sequence.is_some_and(|sequence| {
            sequence < MOVED_SEQUENCE_MIN && lsn_at(sequence, offset.within_segment()) < self.marker
        })
    }
}

impl Round {
    /// The next one begins there.
    fn up_to(self, region: RegionId, from: Bound<Vec<u8>>) -> Self {
        Self {
            next: Some(Place { region, from }),
            ..self
        }
    }

    /// Adds those values of a leaf that may move, if that pays.
    fn add(&mut self, region: RegionId, values: &[Value]) {
        let places = |moves: bool| {
            let chosen = values.iter().filter(move |value| value.may_move == moves);
            chosen.map(|value| (value.offset.0, value.len)).collect()
        };
        let (moving, staying): (Vec<_>, Vec<_>) = (places(true), places(false));
        if !pays(&moving, &staying) {
            return;
        }
        self.bytes += moving.iter().map(|(_, len)| *len as u64).sum::<u64>();
        for value in values.iter().filter(|value| value.may_move) {
            self.candidates.push(region, &value.key, value.offset);
        }
    }
}

/// Whether it pays to lay the records `moving` of a leaf together while those `staying` stay where they are: a scan of
/// the leaf is spared a read for every few of them.
fn pays(moving: &[(u64, usize)], staying: &[(u64, usize)]) -> bool {
    let reads = |parts: &[&[(u64, usize)]]| {
        let mut places = parts.concat();
        places.sort_unstable();
        Fetched::transfers_of(&places)
    };
    let spared = reads(&[moving, staying]).saturating_sub(1 + reads(&[staying]));
    spared > 0 && spared * IDLE_RECORDS_PER_READ >= moving.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: usize = 1000;

    /// Records behind each other from `start` on.
    fn run(start: u64, count: u64) -> Vec<(u64, usize)> {
        let place = |at| (start + at * RECORD as u64, RECORD);
        (0..count).map(place).collect()
    }

    fn apart(count: u64) -> Vec<(u64, usize)> {
        (0..count).map(|at| (at << 24, RECORD)).collect()
    }

    #[test]
    fn scattered_values_move_and_those_that_lie_together_stay() {
        assert!(pays(&apart(80), &[]));
        assert!(!pays(&run(1 << 40, 60), &[]));
        assert!(!pays(&[], &apart(80)));
        assert!(!pays(&[], &[]));
    }

    #[test]
    fn values_that_lie_together_in_a_few_pieces_are_not_worth_a_copy() {
        let pieces = |count: u64, each: u64| -> Vec<_> {
            (0..count).flat_map(|at| run(at << 24, each)).collect()
        };
        assert!(!pays(&pieces(4, 20), &[]));
        assert!(pays(&pieces(20, 4), &[]));
    }

    #[test]
    fn new_values_of_a_leaf_move_without_the_others() {
        assert!(pays(&apart(8), &run(1 << 40, 72)));
        assert!(pays(&apart(2), &run(1 << 40, 72)));
        assert!(!pays(&apart(1), &run(1 << 40, 72)), "one read is as good");
    }

    #[test]
    fn values_that_lie_between_the_others_stay() {
        let (odd, even): (Vec<_>, Vec<_>) =
            run(0, 40).into_iter().partition(|(at, _)| at % 2000 > 0);
        assert!(!pays(&odd, &even));
    }
}
