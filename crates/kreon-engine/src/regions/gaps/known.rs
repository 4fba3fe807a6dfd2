//! The gaps and watches of one region: plain data, replaced as a whole.

use std::sync::Arc;

use kreon_base::Lsn;

use super::Direction;

/// Most gaps of a region. A scan looks them up for each stretch of dead entries; a change copies them.
const GAPS_MAX: usize = 32;

/// Most watches of a region.
const WATCHES_MAX: usize = 4;

/// Keys from `start` on, before `end` (none: to the last key).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    pub start: Arc<[u8]>,
    pub end: Option<Arc<[u8]>>,
}

/// Keys of which none has a value at snapshots from `since` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub keys: Keys,
    pub since: Lsn,
    /// How many dead entries lie there, about: what it is worth to a scan.
    pub entries: u64,
}

/// Keys that no put touched whose writer entered the gate after closing number `mark`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    pub keys: Keys,
    pub mark: u64,
    /// Where dead keys are expected: a put leaves the keys in front of it watched, in this direction.
    pub way: Direction,
}

/// The gaps and the watches of a region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Ascending; none overlaps another.
    gaps: Vec<Gap>,
    /// The oldest first.
    watches: Vec<Watch>,
}

impl Keys {
    /// Whether `key` is one of them.
    pub fn has(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.ends_behind(key)
    }

    /// Whether the end lies behind `key`.
    pub fn ends_behind(&self, key: &[u8]) -> bool {
        self.end.as_ref().is_none_or(|end| key < &**end)
    }

    /// Whether all keys right before `end` are among them.
    pub fn reaches(&self, end: &[u8]) -> bool {
        self.end.as_ref().is_none_or(|own| end <= &**own)
    }

    fn is_empty(&self) -> bool {
        !self.ends_behind(&self.start)
    }

    /// Whether some key is in both.
    fn meets(&self, other: &Self) -> bool {
        self.ends_behind(&other.start) && other.ends_behind(&self.start)
    }

    /// The keys that are in both.
    fn shared(&self, other: &Self) -> Self {
        let end = match (&self.end, &other.end) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.as_ref().or(two.as_ref()),
        };
        Self {
            start: Arc::clone((&self.start).max(&other.start)),
            end: end.cloned(),
        }
    }

    /// Those before `key`, which is one of them.
    fn before(&self, key: &Arc<[u8]>) -> Self {
        Self {
            start: Arc::clone(&self.start),
            end: Some(Arc::clone(key)),
        }
    }

    /// Those from `start` on.
    fn from(&self, start: &Arc<[u8]>) -> Self {
        Self {
            start: Arc::clone(start),
            end: self.end.clone(),
        }
    }
}

impl Known {
    /// Whether nothing is known and nothing is watched.
    pub fn is_empty(&self) -> bool {
        self.gaps.is_empty() && self.watches.is_empty()
    }

    /// The gaps, ascending.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Whether a put of `key` changes anything.
    pub fn has(&self, key: &[u8]) -> bool {
        self.gap_around(key).is_some() || self.watches.iter().any(|watch| watch.keys.has(key))
    }

    /// The gap that has `key`.
    pub fn gap_around(&self, key: &[u8]) -> Option<&Gap> {
        let at = self.first_behind(key);
        self.gaps.get(at).filter(|gap| gap.keys.has(key))
    }

    /// The place of the first gap that ends behind `key`.
    fn first_behind(&self, key: &[u8]) -> usize {
        self.gaps.partition_point(|gap| !gap.keys.ends_behind(key))
    }

    /// `key` is put: it is in no gap any more.
    pub fn cut(&mut self, key: &[u8]) {
        let at: Arc<[u8]> = key.into();
        let behind = successor(key);
        self.watches.retain_mut(|watch| {
            if watch.keys.has(key) {
                watch.keys = match watch.way {
                    Direction::Forward => watch.keys.before(&at),
                    Direction::Backward => watch.keys.from(&behind),
                };
            }
            !watch.keys.is_empty()
        });
        let place = self.first_behind(key);
        let Some(gap) = self.gaps.get(place).filter(|gap| gap.keys.has(key)) else {
            return;
        };
        let (since, entries) = (gap.since, gap.entries / 2);
        let parts = [gap.keys.before(&at), gap.keys.from(&behind)];
        let parts = parts.into_iter().filter(|keys| !keys.is_empty());
        let parts = parts.map(|keys| Gap {
            keys,
            since,
            entries,
        });
        self.gaps.splice(place..=place, parts);
        self.trim();
    }

    /// Watches more keys. What else expects dead keys in the same direction among them is replaced.
    pub fn watch(&mut self, watch: Watch) {
        self.watches
            .retain(|old| old.way != watch.way || !old.keys.meets(&watch.keys));
        if self.watches.len() >= WATCHES_MAX {
            self.watches.remove(0);
        }
        self.watches.push(watch);
    }

    /// `keys`, with `entries` dead entries, had no value at the snapshot at `at`, which was opened with closing number
    /// `moment` of the gate: those that were watched by then are a gap.
    pub fn confirm(&mut self, keys: &Keys, at: Lsn, moment: u64, entries: u64) {
        let mut confirmed = Vec::new();
        self.watches.retain_mut(|watch| {
            if watch.mark >= moment || !watch.keys.meets(keys) {
                return true;
            }
            let shared = watch.keys.shared(keys);
            let rest = match (watch.way, &shared.end) {
                (Direction::Backward, _) => watch.keys.before(&shared.start),
                (Direction::Forward, Some(end)) => watch.keys.from(end),
                (Direction::Forward, None) => watch.keys.before(&watch.keys.start),
            };
            watch.keys = rest;
            confirmed.push(shared);
            !watch.keys.is_empty()
        });
        for keys in confirmed {
            self.fill(&keys, at, entries);
        }
    }

    /// What is to be watched so that all of `keys` becomes known, and what lies behind it on each of the `ways`: nothing
    /// on those on which it is watched already.
    pub fn unwatched(&self, keys: &Keys, ways: &[Direction]) -> Vec<(Keys, Direction)> {
        let Some(rest) = self.unknown(keys) else {
            return Vec::new();
        };
        let begins_in = |watch: &Watch| match (watch.way, &rest.end) {
            (Direction::Backward, Some(end)) => watch.keys.meets(&rest) && watch.keys.reaches(end),
            _ => watch.keys.has(&rest.start),
        };
        let is_watched = |way| {
            let mut watches = self.watches.iter();
            watches.any(|watch| watch.way == way && begins_in(watch))
        };
        let unwatched = ways.iter().filter(|way| !is_watched(**way));
        let wide = unwatched.map(|way| {
            let keys = match way {
                Direction::Forward => Keys {
                    start: Arc::clone(&rest.start),
                    end: None,
                },
                Direction::Backward => Keys {
                    start: Arc::from([]),
                    end: rest.end.clone(),
                },
            };
            (keys, *way)
        });
        wide.collect()
    }

    /// `keys` without the gaps at their ends.
    fn unknown(&self, keys: &Keys) -> Option<Keys> {
        let mut rest = keys.clone();
        while let Some(gap) = self.gap_around(&rest.start) {
            rest.start = gap.keys.end.clone()?;
        }
        let at = |rest: &Keys| {
            self.gaps
                .partition_point(|gap| rest.ends_behind(&gap.keys.start))
        };
        while let Some(last) = at(&rest).checked_sub(1).and_then(|at| self.gaps.get(at))
            && rest.end.as_ref().is_some_and(|end| last.keys.reaches(end))
        {
            rest.end = Some(Arc::clone(&last.keys.start));
        }
        Some(rest).filter(|rest| !rest.is_empty())
    }

    /// What is left of the watch `mark` is a gap from `since` on.
    pub fn confirm_watch(&mut self, mark: u64, since: Lsn, entries: u64) {
        let is_meant = |watch: &Watch| watch.mark == mark;
        let Some(at) = self.watches.iter().position(is_meant) else {
            return;
        };
        let watch = self.watches.remove(at);
        self.fill(&watch.keys, since, entries);
    }

    /// Makes `keys` a gap, as far as they are in none: an older gap is good for more snapshots.
    fn fill(&mut self, keys: &Keys, since: Lsn, entries: u64) {
        let mut all = Vec::with_capacity(self.gaps.len() + 2);
        let new = |keys| Gap {
            keys,
            since,
            entries,
        };
        let mut rest = Some(keys.clone());
        for gap in self.gaps.drain(..) {
            if let Some(left) = rest.take() {
                let (front, behind) = apart(left, &gap.keys);
                all.extend(front.map(new));
                rest = behind;
            }
            all.push(gap);
        }
        all.extend(rest.map(new));
        self.gaps = all;
    }

    /// Makes one gap of neighbours between which no snapshot is open, as `is_open_within` says of positions from the
    /// first on, before the second; of more than [`GAPS_MAX`] whatever is open.
    pub fn join(&mut self, is_open_within: impl Fn(Lsn, Lsn) -> bool) {
        let is_harmless = |one: &Gap, two: &Gap| {
            let (low, high) = (one.since.min(two.since), one.since.max(two.since));
            low == high || !is_open_within(low, high)
        };
        self.join_where(is_harmless);
        if self.gaps.len() > GAPS_MAX {
            self.join_where(|_, _| true);
        }
        self.trim();
    }

    fn join_where(&mut self, may_join: impl Fn(&Gap, &Gap) -> bool) {
        self.gaps.dedup_by(|next, gap| {
            let are_neighbours = gap.keys.end.as_ref() == Some(&next.keys.start);
            let joins = are_neighbours && may_join(gap, next);
            if joins {
                gap.keys.end = next.keys.end.take();
                gap.since = gap.since.max(next.since);
                gap.entries = gap.entries.saturating_add(next.entries);
            }
            joins
        });
    }

    /// Forgets the gaps that are worth least, of too many.
    fn trim(&mut self) {
        while self.gaps.len() > GAPS_MAX {
            let places = 0..self.gaps.len();
            let worth = |place: &usize| self.gaps.get(*place).map(|gap| gap.entries);
            let Some(least) = places.min_by_key(worth) else {
                return;
            };
            self.gaps.remove(least);
        }
    }
}

/// The part of `keys` in front of `other`, and the part behind it.
fn apart(keys: Keys, other: &Keys) -> (Option<Keys>, Option<Keys>) {
    if !keys.meets(other) {
        return match keys.start < other.start {
            true => (Some(keys), None),
            false => (None, Some(keys)),
        };
    }
    let front = (keys.start < other.start).then(|| keys.before(&other.start));
    let behind = other.end.as_ref().map(|end| keys.from(end));
    (front, behind.filter(|behind| !behind.is_empty()))
}

/// The least key greater than `key`.
pub fn successor(key: &[u8]) -> Arc<[u8]> {
    let next = [key, &[0]].concat();
    next.into()
}
