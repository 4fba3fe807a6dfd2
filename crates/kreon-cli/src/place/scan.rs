//! Pairs and keys of a region in their order.

use kreon::Value;

use crate::failure::Result;

/// From which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

/// Pairs, of one moment.
pub enum Scan {
    Store(kreon::Scan, Direction),
}

impl Scan {
    /// The next pair, in the memory of these buffers; false at the end.
    pub fn next_into(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool> {
        match self {
            Self::Store(scan, Direction::Ascending) => Ok(scan.next_into(key, value)?),
            Self::Store(scan, Direction::Descending) => Ok(scan.next_back_into(key, value)?),
        }
    }
}

/// Keys, of one moment.
pub enum Keys {
    Store(kreon::Keys, Direction),
}

impl Keys {
    /// The next key; none at the end.
    pub fn next(&mut self) -> Result<Option<Value>> {
        match self {
            Self::Store(keys, Direction::Ascending) => Ok(keys.next().transpose()?),
            Self::Store(keys, Direction::Descending) => Ok(keys.next_back().transpose()?),
        }
    }
}
