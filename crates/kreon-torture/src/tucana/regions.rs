//! The keys of a hunt in several regions: each key has one, by its bytes. So neighbours in a leaf, records in the log and crash states
//! are those of several regions.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::OnceLock;

use ::tucana::{
    Direction, Error, ErrorKind, Region, Result, ScanRange, Store, StoreScan, StoreSnapshot,
};

/// Their names.
const NAMES: [&str; 3] = ["a", "the second", "z"];

/// Which of them a key is in.
fn region_of(key: &[u8]) -> usize {
    let sum: usize = key.iter().map(|byte| usize::from(*byte)).sum();
    (sum + key.len()) % NAMES.len()
}

/// The regions of a store, once they are there: a write makes that of its key.
#[derive(Default)]
pub(super) struct Regions([OnceLock<Region>; NAMES.len()]);

impl Regions {
    /// The region of a key, which is made if it is not there.
    pub(super) fn of(&self, store: &Store, key: &[u8]) -> Result<Region> {
        let number = region_of(key);
        match self.0[number].get() {
            Some(region) => Ok(region.clone()),
            None => {
                let region = store.region(NAMES[number])?;
                Ok(self.0[number].get_or_init(|| region).clone())
            }
        }
    }

    /// The region of a key, if it is there.
    pub(super) fn existing(&self, store: &Store, key: &[u8]) -> Result<Option<Region>> {
        self.numbered(store, region_of(key))
    }

    fn numbered(&self, store: &Store, number: usize) -> Result<Option<Region>> {
        if let Some(region) = self.0[number].get() {
            return Ok(Some(region.clone()));
        }
        match store.existing_region(NAMES[number]) {
            Ok(region) => Ok(Some(self.0[number].get_or_init(|| region).clone())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The pairs of all regions in the order of their keys, of a snapshot or the newest ones.
    pub(super) fn scan(
        &self,
        store: &Store,
        snapshot: Option<&StoreSnapshot>,
        range: &ScanRange,
        direction: Direction,
    ) -> MergedScan {
        let bounds = || {
            let high = range.high.clone();
            let high = high.map_or(Bound::Unbounded, Bound::Excluded);
            (Bound::Included(range.low.clone()), high)
        };
        let scan = |number| {
            let region = self.numbered(store, number)?;
            Ok(region.map(|region| match snapshot {
                Some(snapshot) => snapshot.scan(&region, bounds(), direction),
                None => region.scan(bounds(), direction),
            }))
        };
        MergedScan {
            direction,
            scans: std::array::from_fn(|number| match scan(number) {
                Ok(Some(scan)) => Part::Scan(Box::new(scan)),
                Ok(None) => Part::Ended,
                Err(error) => Part::Refused(error),
            }),
            next: Default::default(),
        }
    }
}

type Pair = (Vec<u8>, Vec<u8>);

/// The scan of a region.
enum Part {
    Scan(Box<StoreScan>),
    /// It could not begin.
    Refused(Error),
    Ended,
}

/// Scans of all regions in one order.
pub(super) struct MergedScan {
    direction: Direction,
    scans: [Part; NAMES.len()],
    /// The next pair of each.
    next: [Option<Pair>; NAMES.len()],
}

impl MergedScan {
    /// Takes the next pair of each region that has none here.
    fn look(&mut self) -> Result<()> {
        for (number, (part, next)) in self.scans.iter_mut().zip(&mut self.next).enumerate() {
            if next.is_some() {
                continue;
            }
            let found = match std::mem::replace(part, Part::Ended) {
                Part::Ended => None,
                Part::Refused(error) => return Err(error),
                Part::Scan(mut scan) => {
                    let found = scan.next();
                    if found.is_some() {
                        *part = Part::Scan(scan);
                    }
                    found.transpose()?
                }
            };
            if let Some((key, _)) = &found
                && region_of(key) != number
            {
                return Err(Error::invalid(format!(
                    "a scan of region {:?} shows a key of another one: {}",
                    NAMES[number],
                    key.escape_ascii()
                )));
            }
            *next = found;
        }
        Ok(())
    }
}

impl Iterator for MergedScan {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.look() {
            return Some(Err(error));
        }
        let before = |a: &Pair, b: &Pair| match self.direction {
            Direction::Forward => a.0.cmp(&b.0),
            Direction::Reverse => b.0.cmp(&a.0),
        };
        let nexts = self.next.iter_mut().filter(|next| next.is_some());
        let first = nexts.min_by(|a, b| match (a, b) {
            (Some(a), Some(b)) => before(a, b),
            _ => Ordering::Equal,
        });
        first.and_then(Option::take).map(Ok)
    }
}
