//! Deleted ranges of keys, beside an L0.
//!
//! The ranges of a region are cut into *fragments*, intervals of keys that the same deletions cover, so that a lookup
//! is one binary search however the ranges overlap. Sets are immutable: a range deletion, which is rare, copies the
//! set, so readers need no lock.

use std::ops::Bound;
use std::sync::Arc;

use kreon_base::{Lsn, RegionId};
use kreon_l0::Keep;

/// Memory of a fragment besides its keys and deletions, in bytes.
const FRAGMENT_BYTES: usize = size_of::<Fragment>() + 64;

/// A range deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Its LSN.
    pub lsn: Lsn,
    /// It is part of a unit that may be incomplete.
    pub pending: bool,
}

/// The keys from `start` up to, not including, `end` (none: unbounded), all covered by the same deletions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fragment {
    start: Arc<[u8]>,
    end: Option<Arc<[u8]>>,
    /// Newest first; never empty.
    deletions: Arc<[Deletion]>,
}

/// The deleted ranges of one region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionRanges {
    /// Ascending, without overlaps.
    fragments: Vec<Fragment>,
}

/// An interval of keys with the same newest deletion: from `start` up to, not including, `end`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// None: unbounded.
    pub start: Option<Arc<[u8]>>,
    /// None: unbounded.
    pub end: Option<Arc<[u8]>>,
    /// LSN of the newest deletion that covers the keys.
    pub deleted: Option<Lsn>,
}

impl Stretch {
    /// Whether `key` is in the interval.
    pub fn has(&self, key: &[u8]) -> bool {
        self.start.as_ref().is_none_or(|start| &**start <= key)
            && self.end.as_ref().is_none_or(|end| key < &**end)
    }

    /// The intersection, with the newer deletion.
    pub fn meet(self, other: Self) -> Self {
        let end = match (self.end, other.end) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        Self {
            // `None` is less than any start.
            start: self.start.max(other.start),
            end,
            deleted: self.deleted.max(other.deleted),
        }
    }
}

impl RegionRanges {
    /// The deletions that cover `key`, newest first.
    pub fn covering(&self, key: &[u8]) -> &[Deletion] {
        let fragment = self.fragments.get(self.first_behind(key).wrapping_sub(1));
        fragment
            .filter(|fragment| is_before(key, fragment.end.as_deref()))
            .map_or(&[], |fragment| &fragment.deletions)
    }

    /// The interval around `key` with the same newest deletion for a reader at `at`.
    pub fn stretch(&self, key: &[u8], at: Lsn) -> Stretch {
        let behind = self.first_behind(key);
        let next = self.fragments.get(behind);
        let Some(last) = self.fragments.get(behind.wrapping_sub(1)) else {
            return Stretch {
                end: next.map(|next| Arc::clone(&next.start)),
                ..Stretch::default()
            };
        };
        if !is_before(key, last.end.as_deref()) {
            return Stretch {
                start: last.end.clone(),
                end: next.map(|next| Arc::clone(&next.start)),
                deleted: None,
            };
        }
        let seen = last.deletions.iter().find(|deletion| deletion.lsn < at);
        Stretch {
            start: Some(Arc::clone(&last.start)),
            end: last.end.clone(),
            deleted: seen.map(|deletion| deletion.lsn),
        }
    }

    /// Whether a covered key may be at or above `first`, and not above `last` (none: unbounded) or with the prefix
    /// `last`.
    pub fn may_meet(&self, first: &[u8], last: Option<&[u8]>) -> bool {
        let from = self
            .fragments
            .partition_point(|fragment| !is_before(first, fragment.end.as_deref()));
        self.fragments.get(from).is_some_and(|fragment| {
            last.is_none_or(|last| &*fragment.start <= last || fragment.start.starts_with(last))
        })
    }

    /// The newest deletion of any key within `bounds`, and the start of its fragment.
    pub fn newest_within(
        &self,
        (start, end): &(Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> Option<(Lsn, &[u8])> {
        let from = match start {
            Bound::Unbounded => 0,
            Bound::Included(start) | Bound::Excluded(start) => self
                .fragments
                .partition_point(|fragment| !is_before(start, fragment.end.as_deref())),
        };
        let begins_within = |fragment: &&Fragment| match end {
            Bound::Unbounded => true,
            Bound::Included(end) => *fragment.start <= **end,
            Bound::Excluded(end) => *fragment.start < **end,
        };
        let met = self.fragments.iter().skip(from).take_while(begins_within);
        let newest = met.filter_map(|fragment| {
            let newest = fragment.deletions.first()?;
            Some((newest.lsn, &*fragment.start))
        });
        newest.max_by_key(|(lsn, _)| *lsn)
    }

    /// The union, in which no deletion of `other` is pending. Of each fragment of `other` only the newest deletion
    /// counts.
    pub fn and(&self, other: &Self) -> Self {
        let all = other.fragments.iter();
        all.fold(self.clone(), |ranges, fragment| {
            let Some(newest) = fragment.deletions.first() else {
                return ranges;
            };
            let settled = Deletion {
                pending: false,
                ..*newest
            };
            let end = fragment.end.as_deref();
            ranges.with(&fragment.start, end, settled, Keep::default())
        })
    }

    /// The covered intervals, ascending: start (inclusive) and end (exclusive; none: unbounded).
    pub fn bounds(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let fragments = self.fragments.iter();
        fragments.map(|fragment| (&*fragment.start, fragment.end.as_deref()))
    }

    /// Whether no key is covered.
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// Index of the first fragment that begins behind `key`.
    fn first_behind(&self, key: &[u8]) -> usize {
        self.fragments
            .partition_point(|fragment| &*fragment.start <= key)
    }

    /// The set with another deletion of the keys from `start` up to, not including, `end`; an end that is not behind the
    /// start deletes nothing. `keep` decides which older deletions below it stay, by the rules of an insert into L0.
    fn with(&self, start: &[u8], end: Option<&[u8]>, deletion: Deletion, keep: Keep) -> Self {
        if !is_before(start, end) {
            return self.clone();
        }
        let mut made = Self::default();
        let (start, end): (Arc<[u8]>, Option<Arc<[u8]>>) = (start.into(), end.map(Into::into));
        // The rest of the new range; none when it is done.
        let mut from = Some(start);
        for fragment in &self.fragments {
            let begins_behind = !is_before(&fragment.start, end.as_deref());
            let begin = from
                .clone()
                .filter(|from| !begins_behind && is_before(from, fragment.end.as_deref()));
            let Some(begin) = begin else {
                if begins_behind && let Some(begin) = from.take() {
                    made.push(&begin, end.as_ref(), Arc::new([deletion]));
                }
                made.push(
                    &fragment.start,
                    fragment.end.as_ref(),
                    Arc::clone(&fragment.deletions),
                );
                continue;
            };
            let (older, shared) = match begin < fragment.start {
                true => (&begin, &fragment.start),
                false => (&fragment.start, &begin),
            };
            // The front part, covered by only one of the two.
            let in_front = match begin < fragment.start {
                true => Arc::new([deletion]) as Arc<[Deletion]>,
                false => Arc::clone(&fragment.deletions),
            };
            made.push(older, Some(shared), in_front);
            let ends_by = |end: &Arc<[u8]>| fragment.end.as_ref().is_some_and(|own| own <= end);
            let covers_rest = end.as_ref().is_none_or(ends_by);
            let shared_end = if covers_rest { &fragment.end } else { &end };
            let both = added(&fragment.deletions, deletion, keep);
            made.push(shared, shared_end.as_ref(), both);
            from = match (covers_rest, &fragment.end) {
                (true, Some(done)) if is_before(done, end.as_deref()) => Some(Arc::clone(done)),
                _ => None,
            };
            if !covers_rest && let Some(end) = &end {
                let rest = Arc::clone(&fragment.deletions);
                made.push(end, fragment.end.as_ref(), rest);
            }
        }
        if let Some(begin) = from {
            made.push(&begin, end.as_ref(), Arc::new([deletion]));
        }
        made
    }

    /// Adds a fragment behind the others, unless it has no keys; joins it with the one before if both have the same
    /// deletions.
    fn push(&mut self, start: &Arc<[u8]>, end: Option<&Arc<[u8]>>, deletions: Arc<[Deletion]>) {
        if !is_before(start, end.map(|end| &**end)) {
            return;
        }
        if let Some(last) = self.fragments.last_mut()
            && last.end.as_ref() == Some(start)
            && last.deletions == deletions
        {
            last.end = end.cloned();
            return;
        }
        self.fragments.push(Fragment {
            start: Arc::clone(start),
            end: end.cloned(),
            deletions,
        });
    }

    fn bytes(&self) -> usize {
        let bytes = |fragment: &Fragment| {
            let end = fragment.end.as_ref().map_or(0, |end| end.len());
            let deletions = fragment.deletions.len() * size_of::<Deletion>();
            FRAGMENT_BYTES + fragment.start.len() + end + deletions
        };
        self.fragments.iter().map(bytes).sum()
    }
}

/// Whether `key` is before `end` (none: unbounded).
fn is_before(key: &[u8], end: Option<&[u8]>) -> bool {
    end.is_none_or(|end| key < end)
}

/// `old` with `new` inserted by LSN, without deletions that neither readers nor snapshots need.
fn added(old: &[Deletion], new: Deletion, keep: Keep) -> Arc<[Deletion]> {
    let at = old.partition_point(|deletion| deletion.lsn > new.lsn);
    let is_known = old.get(at).is_some_and(|known| known.lsn == new.lsn);
    let (newer, older) = old.split_at(at);
    let new = (!is_known).then_some(new);
    let mut is_hidden = false;
    let all = newer
        .iter()
        .copied()
        .chain(new)
        .chain(older.iter().copied());
    let needed = all.filter(|deletion| {
        // Below a deletion that every reader sees, an older one matters only to snapshots.
        let is_needed = !is_hidden
            || keep
                .snapshot_max
                .is_some_and(|newest| deletion.lsn < newest);
        is_hidden |= !deletion.pending || deletion.lsn < keep.visible_before;
        is_needed
    });
    needed.collect()
}

/// The deleted ranges of all regions.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Ascending.
    regions: Vec<(RegionId, Arc<RegionRanges>)>,
}

impl Ranges {
    /// The deleted ranges of `region`.
    pub fn of(&self, region: RegionId) -> Option<&Arc<RegionRanges>> {
        let at = self.regions.binary_search_by_key(&region, |(id, _)| *id);
        at.ok()
            .and_then(|at| self.regions.get(at))
            .map(|(_, ranges)| ranges)
    }

    /// The regions with deleted ranges, ascending.
    pub fn regions(&self) -> impl Iterator<Item = RegionId> {
        self.regions.iter().map(|(region, _)| *region)
    }

    /// The set with another range deletion; `keep` as in an insert into L0.
    pub fn with(
        &self,
        region: RegionId,
        (start, end): (&[u8], Option<&[u8]>),
        deletion: Deletion,
        keep: Keep,
    ) -> Self {
        let mut regions = self.regions.clone();
        match regions.binary_search_by_key(&region, |(id, _)| *id) {
            Ok(at) => {
                let (_, ranges) = &mut regions[at];
                *ranges = Arc::new(ranges.with(start, end, deletion, keep));
            }
            Err(at) => {
                let ranges = RegionRanges::default().with(start, end, deletion, keep);
                regions.insert(at, (region, Arc::new(ranges)));
            }
        }
        Self { regions }
    }

    /// Number of fragments of all regions.
    pub fn fragments(&self) -> usize {
        let all = self.regions.iter();
        all.map(|(_, ranges)| ranges.fragments.len()).sum()
    }

    /// Memory of all fragments, in bytes.
    pub fn bytes(&self) -> usize {
        self.regions.iter().map(|(_, ranges)| ranges.bytes()).sum()
    }

    /// The lowest LSN of any deletion at or above `start`.
    pub fn first_from(&self, start: Lsn) -> Option<Lsn> {
        let fragments = self
            .regions
            .iter()
            .flat_map(|(_, ranges)| &ranges.fragments);
        let deletions = fragments.flat_map(|fragment| fragment.deletions.iter());
        deletions
            .map(|deletion| deletion.lsn)
            .filter(|lsn| *lsn >= start)
            .min()
    }
}

#[cfg(test)]
mod tests;
