//! A scan of a region of the engine Tucana.

use std::collections::VecDeque;
use std::ops::Bound;

use tucana::Region;

use super::bounds::{Bounds, Direction};
use crate::failure::Result;

/// A scan takes so many pairs at once, or as many as have so many bytes.
const PAIRS_TAKEN_MAX: usize = 256;
const BYTES_TAKEN_MAX: usize = 1 << 20;

/// The pairs of a range, some at a time: a slow reader of our output must not hold back the space of what is replaced meanwhile.
pub struct PiecewiseScan {
    region: Region,
    direction: Direction,
    /// What has not been taken; none: nothing is left.
    left: Option<Bounds>,
    taken: VecDeque<(Vec<u8>, Vec<u8>)>,
}

impl PiecewiseScan {
    pub fn new(region: &Region, bounds: Bounds, direction: Direction) -> Self {
        Self {
            region: region.clone(),
            direction,
            left: Some(bounds),
            taken: VecDeque::new(),
        }
    }

    pub fn next(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        if self.taken.is_empty()
            && let Some(left) = self.left.take()
        {
            self.take(left)?;
        }
        Ok(self.taken.pop_front())
    }

    fn take(&mut self, mut left: Bounds) -> Result<()> {
        let direction = match self.direction {
            Direction::Ascending => tucana::Direction::Forward,
            Direction::Descending => tucana::Direction::Reverse,
        };
        let mut bytes = 0;
        for pair in self.region.scan(left.clone(), direction) {
            let (key, value) = pair?;
            bytes += key.len() + value.len();
            self.taken.push_back((key, value));
            if self.taken.len() == PAIRS_TAKEN_MAX || bytes >= BYTES_TAKEN_MAX {
                break;
            }
        }
        let is_all = self.taken.len() < PAIRS_TAKEN_MAX && bytes < BYTES_TAKEN_MAX;
        if let Some((last, _)) = self.taken.back().filter(|_| !is_all) {
            let behind = Bound::Excluded(last.clone());
            match self.direction {
                Direction::Ascending => left.0 = behind,
                Direction::Descending => left.1 = behind,
            }
            self.left = Some(left);
        }
        Ok(())
    }
}
