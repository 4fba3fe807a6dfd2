//! Keys of the shared L0: the region's number, big endian, then the key. So one L0 holds all regions of
//! a log group, each a range of its own, in the order in which a spill takes them.

use kreon_base::RegionId;

const REGION_BYTES: usize = 4;
/// All of it is zeroed for every key: 256 took longer than the rest of a key.
const SHORT_BYTES: usize = 128;

/// A key with its region in front; short ones stand on the stack.
pub enum L0Key {
    /// Bytes and how many count.
    Short([u8; SHORT_BYTES], usize),
    /// A long one.
    Long(Vec<u8>),
}

impl L0Key {
    /// Puts `region` in front of `key`.
    pub fn new(region: RegionId, key: &[u8]) -> Self {
        let len = REGION_BYTES + key.len();
        if len <= SHORT_BYTES {
            let mut bytes = [0; SHORT_BYTES];
            bytes[..REGION_BYTES].copy_from_slice(&region.0.to_be_bytes());
            bytes[REGION_BYTES..len].copy_from_slice(key);
            return Self::Short(bytes, len);
        }
        let mut bytes = Vec::with_capacity(len);
        bytes.extend_from_slice(&region.0.to_be_bytes());
        bytes.extend_from_slice(key);
        Self::Long(bytes)
    }

    /// The whole.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Short(bytes, len) => &bytes[..*len],
            Self::Long(bytes) => bytes,
        }
    }
}

/// Splits a key of L0 into region and key; `None` if it is too short.
pub fn split(l0_key: &[u8]) -> Option<(RegionId, &[u8])> {
    let (region, key) = l0_key.split_first_chunk::<REGION_BYTES>()?;
    Some((RegionId(u32::from_be_bytes(*region)), key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_come_in_order_of_their_numbers_and_keys_part_again() {
        let low = L0Key::new(RegionId(1), &[0xff; 300]);
        let high = L0Key::new(RegionId(256), b"");
        assert!(low.as_slice() < high.as_slice());
        assert_eq!(split(low.as_slice()), Some((RegionId(1), &[0xff; 300][..])));
        assert_eq!(split(high.as_slice()), Some((RegionId(256), &b""[..])));
        assert_eq!(split(b"abc"), None);
    }
}

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

impl Direction {
    /// The other one.
    pub fn opposite(self) -> Self {
        match self {
            Self::Forward => Self::Backward,
            Self::Backward => Self::Forward,
        }
    }
}
