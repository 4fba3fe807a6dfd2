//! The keys that neither end of a scan has fetched, and where a seek puts them.

use std::ops::Bound;

use super::key_bounds::{KeyBounds, is_empty};
use crate::keys::Direction;

/// Where an end of a scan goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Edge {
    /// At the bound of the scan.
    #[default]
    Limit,
    /// Within.
    At(Bound<Vec<u8>>),
}

/// Keys between the two ends of a scan, within its bounds. Copies no bound of the scan.
pub struct Rest {
    /// The bounds of the scan: forward its lower one, backward its upper one.
    limits: [Bound<Vec<u8>>; 2],
    /// Where each end goes on.
    edges: [Edge; 2],
    is_left: bool,
}

impl Rest {
    /// All keys within `bounds`.
    pub fn new(bounds: KeyBounds) -> Self {
        Self {
            is_left: !is_empty(&bounds.0, &bounds.1),
            limits: [bounds.0, bounds.1],
            edges: Default::default(),
        }
    }

    /// Whether keys may be left.
    pub fn is_left(&self) -> bool {
        self.is_left
    }

    /// Nothing is left.
    pub fn end(&mut self) {
        self.is_left = false;
    }

    /// Where the end that goes in `direction` goes on.
    pub fn edge(&self, direction: Direction) -> &Bound<Vec<u8>> {
        let at = direction as usize;
        match &self.edges[at] {
            Edge::Limit => &self.limits[at],
            Edge::At(edge) => edge,
        }
    }

    /// The end that goes in `direction` has fetched all keys up to `edge`; `None`: all that were left. Returns where it
    /// stood before.
    pub fn advance(&mut self, direction: Direction, edge: Option<Bound<Vec<u8>>>) -> Edge {
        self.is_left = edge.is_some();
        let edge = edge.map_or(Edge::Limit, Edge::At);
        std::mem::replace(&mut self.edges[direction as usize], edge)
    }

    /// Lets the end that goes in `direction` go on at `key`, or at its limit if `key` is beyond that. The other end goes on
    /// at `other`, or where it stands.
    pub fn seek(&mut self, direction: Direction, key: &[u8], other: Option<Edge>) {
        let (own, opposite) = (direction as usize, 1 - direction as usize);
        let is_within = match (&self.limits[own], direction) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(limit) | Bound::Excluded(limit), Direction::Forward) => {
                key > limit.as_slice()
            }
            (Bound::Included(limit) | Bound::Excluded(limit), Direction::Backward) => {
                key < limit.as_slice()
            }
        };
        self.edges[own] = match is_within {
            true => Edge::At(Bound::Included(key.to_vec())),
            false => Edge::Limit,
        };
        if let Some(other) = other {
            self.edges[opposite] = other;
        }
        let (low, high) = (Direction::Forward, Direction::Backward);
        self.is_left = !is_empty(self.edge(low), self.edge(high));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(low: &str, high: &str) -> Rest {
        let bound = |key: &str| key.as_bytes().to_vec();
        Rest::new((Bound::Excluded(bound(low)), Bound::Included(bound(high))))
    }

    #[test]
    fn a_seek_stays_within_the_bounds_of_the_scan() {
        let mut rest = between("c", "m");
        rest.seek(Direction::Forward, b"c", None);
        assert_eq!(*rest.edge(Direction::Forward), Bound::Excluded(b"c".into()));
        rest.seek(Direction::Forward, b"ca", None);
        let within = Bound::Included(b"ca".to_vec());
        assert_eq!(*rest.edge(Direction::Forward), within);
        rest.seek(Direction::Backward, b"z", Some(Edge::At(within)));
        assert_eq!(
            *rest.edge(Direction::Backward),
            Bound::Included(b"m".into())
        );
        assert!(rest.is_left());
    }

    #[test]
    fn a_seek_beyond_the_other_end_leaves_nothing_until_it_comes_back() {
        let mut rest = between("c", "m");
        rest.seek(Direction::Forward, b"n", None);
        assert!(!rest.is_left());
        rest.seek(Direction::Forward, b"m", None);
        assert!(rest.is_left());
        rest.seek(
            Direction::Forward,
            b"g",
            Some(Edge::At(Bound::Excluded(b"g".into()))),
        );
        assert!(!rest.is_left());
    }
}
