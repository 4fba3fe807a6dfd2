//! Stretches of records.

use std::ops::Bound;

use super::records::prefix_end;

/// Records to scan.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub db: usize,
    pub start: Bound<Vec<u8>>,
    pub end: Bound<Vec<u8>>,
    /// From the last to the first.
    pub is_reverse: bool,
    /// Values are not read, and shown empty.
    pub is_keys: bool,
    /// The scan ends after so many.
    pub limit: Option<usize>,
}

impl Span {
    /// Those behind `place`. A place in front of the span, where a cursor of another one may stand, changes nothing.
    pub(crate) fn behind(mut self, place: &[u8]) -> Self {
        if let Bound::Included(start) = &self.start
            && place >= &start[..]
        {
            self.start = Bound::Excluded(place.to_vec());
        }
        self
    }

    /// All records whose keys begin with `prefix`.
    pub(crate) fn prefix(db: usize, prefix: &[u8]) -> Self {
        Self {
            db,
            start: Bound::Included(prefix.to_vec()),
            end: prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded),
            is_reverse: false,
            is_keys: false,
            limit: None,
        }
    }

    pub(crate) fn keys(mut self) -> Self {
        self.is_keys = true;
        self
    }

    pub(crate) fn reverse(mut self, is_reverse: bool) -> Self {
        self.is_reverse = is_reverse;
        self
    }

    pub(crate) fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Whether it holds no key: its start lies behind its end.
    pub(super) fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end))
            | (Bound::Excluded(start), Bound::Included(end)) => start >= end,
            _ => false,
        }
    }
}
