//! Pairs and keys of a region in their order.

use std::ops::Bound;
use std::time::SystemTime;

use kreon::{Expiry, Value};
use kreon_client::ErrorKind;

use super::bounds::{Bounds, Direction};
use super::piecewise_scan::PiecewiseScan;
use crate::failure::{Result, tell};

/// Pairs, of one moment; of a cluster one moment for each group, of KVell and Tucana each of its own.
pub enum Scan {
    Store(kreon::Scan, Direction),
    Kvell(Box<kvell::Scan>, Direction),
    Tucana(PiecewiseScan),
    Cluster(Box<TableScan>),
}

impl Scan {
    /// When the next pair expires; none: it stays, as all pairs do but for those of Kreon, or there is no other one.
    pub fn peek_expiry(&mut self) -> Result<Option<SystemTime>> {
        let expiry = match self {
            Self::Store(scan, Direction::Ascending) => scan.peek_expiry()?,
            Self::Store(scan, Direction::Descending) => scan.peek_back_expiry()?,
            Self::Kvell(..) | Self::Tucana(_) | Self::Cluster(_) => None,
        };
        Ok(match expiry {
            Some(Expiry::At(moment)) => Some(moment),
            Some(Expiry::Never) | None => None,
        })
    }

    /// The next pair, in the memory of these buffers; false at the end.
    pub fn next_into(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool> {
        let pair = match self {
            Self::Store(scan, Direction::Ascending) => return Ok(scan.next_into(key, value)?),
            Self::Store(scan, Direction::Descending) => {
                return Ok(scan.next_back_into(key, value)?);
            }
            Self::Kvell(scan, Direction::Ascending) => scan.next().transpose()?,
            Self::Kvell(scan, Direction::Descending) => scan.next_back().transpose()?,
            Self::Tucana(scan) => scan.next()?,
            Self::Cluster(scan) => scan.next()?,
        };
        let is_there = pair.is_some();
        if let Some(pair) = pair {
            (*key, *value) = pair;
        }
        Ok(is_there)
    }
}

/// Keys, as the pairs of [`Scan`].
pub enum Keys {
    Store(kreon::Keys, Direction),
    Kvell(Box<kvell::Keys>, Direction),
    Tucana(PiecewiseScan),
    Cluster(Box<TableScan>),
}

impl Keys {
    /// The next key; none at the end.
    pub fn next(&mut self) -> Result<Option<Value>> {
        match self {
            Self::Store(keys, Direction::Ascending) => Ok(keys.next().transpose()?),
            Self::Store(keys, Direction::Descending) => Ok(keys.next_back().transpose()?),
            Self::Kvell(keys, Direction::Ascending) => {
                Ok(keys.next().transpose()?.map(Value::from))
            }
            Self::Kvell(keys, Direction::Descending) => {
                Ok(keys.next_back().transpose()?.map(Value::from))
            }
            Self::Tucana(scan) => Ok(scan.next()?.map(|(key, _)| Value::from(key))),
            Self::Cluster(scan) => {
                let next = scan.next()?;
                Ok(next.map(|(key, _)| Value::from(key)))
            }
        }
    }
}

/// Entries of a table. Where a primary is lost it goes on behind the last entry, with its successor, and says so.
pub struct TableScan {
    region: kreon_client::Region,
    /// What has not been shown.
    left: Bounds,
    direction: Direction,
    keys_only: bool,
    scan: kreon_client::Scan,
    /// Breaks without an entry between them.
    breaks: u32,
}

/// So often a scan begins anew without getting on.
const BREAKS_MAX: u32 = 5;

impl TableScan {
    pub fn new(
        region: &kreon_client::Region,
        bounds: Bounds,
        direction: Direction,
        keys_only: bool,
    ) -> Box<Self> {
        Box::new(Self {
            scan: begin(region, &bounds, direction, keys_only),
            region: region.clone(),
            left: bounds,
            direction,
            keys_only,
            breaks: 0,
        })
    }

    fn next(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        loop {
            match self.scan.next().transpose() {
                Ok(Some((key, value))) => {
                    self.breaks = 0;
                    // The key is the bound of what is left, in memory that is used again.
                    let bound = match self.direction {
                        Direction::Ascending => &mut self.left.0,
                        Direction::Descending => &mut self.left.1,
                    };
                    match bound {
                        Bound::Excluded(last) => last.clone_from(&key),
                        bound => *bound = Bound::Excluded(key.clone()),
                    }
                    return Ok(Some((key, value)));
                }
                Ok(None) => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Closed && self.breaks < BREAKS_MAX => {
                    self.breaks += 1;
                    tell(
                        "kreon: the primary of a group changed: what follows is of a later moment",
                    );
                    let direction = self.direction;
                    self.scan = begin(&self.region, &self.left, direction, self.keys_only);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn begin(
    region: &kreon_client::Region,
    bounds: &Bounds,
    direction: Direction,
    keys_only: bool,
) -> kreon_client::Scan {
    let scan = match direction {
        Direction::Ascending => region.scan(bounds.clone()),
        Direction::Descending => region.scan_rev(bounds.clone()),
    };
    match keys_only {
        true => scan.keys_only(),
        false => scan,
    }
}
