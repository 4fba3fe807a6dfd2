//! A store of the engine Tucana: one region, and no more.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use kreon::Durability;
use tucana::{ScanRange, Store};

use super::bounds::{Bounds, Direction};
use crate::failure::{Code, Failure, Result};
use crate::options::DEFAULT_REGION;

/// A scan takes so many pairs at once, or as many as have so many bytes.
const PAIRS_TAKEN_MAX: usize = 256;
const BYTES_TAKEN_MAX: usize = 1 << 20;

/// The store, which is its region, too. Clones are the same one.
#[derive(Clone)]
pub struct OneRegion(Arc<Store>);

impl OneRegion {
    pub fn new(store: Store) -> Self {
        Self(Arc::new(store))
    }

    pub fn store(&self) -> &Store {
        &self.0
    }

    /// The region to read from or delete in.
    pub fn existing_region(&self, name: &str) -> Result<Self> {
        match name {
            DEFAULT_REGION => Ok(self.clone()),
            _ => Err(Failure::new(
                Code::RegionNotFound,
                format!("not found: region {name:?}: {HAS_ONE}"),
                "leave --region out",
            )),
        }
    }

    /// The region to write to.
    pub fn region(&self, name: &str) -> Result<Self> {
        match name {
            DEFAULT_REGION => Ok(self.clone()),
            _ => Err(Failure::usage(format!(
                "no region {name:?} can be made: {HAS_ONE}"
            ))),
        }
    }

    pub fn region_names(&self) -> Vec<String> {
        vec![DEFAULT_REGION.to_owned()]
    }

    pub fn drop_region(&self, name: &str) -> Result<()> {
        self.existing_region(name)?;
        Err(Failure::usage(format!(
            "region {name:?} cannot be dropped: {HAS_ONE}"
        )))
    }

    pub fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.0.put(key, value)?;
        self.settle(durability)
    }

    /// Puts that need not stand or fall together.
    pub fn put_many(&self, pairs: &[(Vec<u8>, Vec<u8>)], durability: Durability) -> Result<()> {
        for (key, value) in pairs {
            self.0.put(key, value)?;
        }
        self.settle(durability)
    }

    pub fn delete(&self, key: &[u8], durability: Durability) -> Result<()> {
        self.0.delete(key)?;
        self.settle(durability)
    }

    pub fn delete_range(&self, bounds: Bounds, durability: Durability) -> Result<()> {
        let mut scan = PiecewiseScan::new(self, bounds, Direction::Ascending);
        while let Some((key, _)) = scan.next()? {
            self.0.delete(&key)?;
        }
        self.settle(durability)
    }

    /// One flush of the log for all that was written before.
    fn settle(&self, durability: Durability) -> Result<()> {
        match durability {
            Durability::Buffered => Ok(()),
            Durability::Sync => Ok(self.0.sync()?),
        }
    }
}

const HAS_ONE: &str = "a store of the engine tucana has one region, \"default\"";

/// The pairs of a range, some at a time: a slow reader of our output must not hold back the space of what is replaced meanwhile.
pub struct PiecewiseScan {
    store: Arc<Store>,
    direction: Direction,
    /// What has not been taken; none: nothing is left.
    left: Option<ScanRange>,
    taken: VecDeque<(Vec<u8>, Vec<u8>)>,
}

impl PiecewiseScan {
    pub fn new(region: &OneRegion, bounds: Bounds, direction: Direction) -> Self {
        Self {
            store: Arc::clone(&region.0),
            direction,
            left: Some(range_of(bounds)),
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

    fn take(&mut self, mut left: ScanRange) -> Result<()> {
        let direction = match self.direction {
            Direction::Ascending => tucana::Direction::Forward,
            Direction::Descending => tucana::Direction::Reverse,
        };
        let mut bytes = 0;
        for pair in self.store.scan(left.clone(), direction) {
            let (key, value) = pair?;
            bytes += key.len() + value.len();
            self.taken.push_back((key, value));
            if self.taken.len() == PAIRS_TAKEN_MAX || bytes >= BYTES_TAKEN_MAX {
                break;
            }
        }
        let is_all = self.taken.len() < PAIRS_TAKEN_MAX && bytes < BYTES_TAKEN_MAX;
        if let Some((last, _)) = self.taken.back().filter(|_| !is_all) {
            match direction {
                tucana::Direction::Forward => left.low = next_key(last.clone()),
                tucana::Direction::Reverse => left.high = Some(last.clone()),
            }
            self.left = Some(left);
        }
        Ok(())
    }
}

/// The first key behind `key`.
fn next_key(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

fn range_of((low, high): Bounds) -> ScanRange {
    ScanRange {
        low: match low {
            Bound::Included(key) => key,
            Bound::Excluded(key) => next_key(key),
            Bound::Unbounded => Vec::new(),
        },
        high: match high {
            Bound::Included(key) => Some(next_key(key)),
            Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        },
    }
}
