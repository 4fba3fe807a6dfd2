//! The record that an entry points at: where it is to stand and what it is to be, in full and in 16 bytes.

use kreon_base::{Attributes, KeyHash, LogOffset, Payload, RegionId, planted};
use kreon_format::{FragmentHeader, encode_attributes, fragment_bytes};
use kreon_log::ValueAt;

/// Records up to this length are read in runs; of longer ones each is a large read by itself.
pub const RUN_RECORD_BYTES_MAX: usize = 64 << 10;

/// Bytes of an encoded [`Wanted`].
pub const WANTED_BYTES: usize = 16;

/// Bits of [`Wanted::place`] for the extent, in units of 8 bytes.
const EXTENT_BITS: u32 = 14;

const _: () = assert!(RUN_RECORD_BYTES_MAX / 8 < 1 << EXTENT_BITS);

/// A record as an entry says that it is.
#[derive(Clone, Copy)]
pub struct Pointed<'k> {
    pub at: ValueAt<'k>,
    /// What is to stand in front of the value.
    pub attributes: Attributes,
}

impl<'k> Pointed<'k> {
    /// That of an entry of a region; none: it points at no record.
    pub fn of(region: RegionId, key: &'k [u8], payload: Payload<'_>) -> Option<Self> {
        planted!(VerifySkipsRecords => return None);
        match payload {
            Payload::Logged {
                offset,
                value_bytes,
                attributes,
            } => Some(Self {
                at: ValueAt {
                    offset,
                    region,
                    key,
                    value_bytes,
                    has_attributes: !attributes.is_none(),
                },
                attributes,
            }),
            _ => None,
        }
    }

    /// Bytes of key, attributes and value.
    pub fn payload_bytes(&self) -> usize {
        self.at.key.len() + self.at.value_bytes as usize
    }

    /// Bytes of the log that it takes, in one piece.
    pub fn extent(&self) -> usize {
        fragment_bytes(self.payload_bytes())
    }

    fn fingerprint(&self) -> u64 {
        let attributes = (!self.attributes.is_none()).then(|| encode_attributes(self.attributes));
        fingerprint(self.at.region, self.at.key, self.at.value_bytes, attributes)
    }
}

/// A record that is to be read. In the order of the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// Its offset, and how many bytes of the log it takes.
    place: u64,
    /// Of region, key, attributes, and length of the value.
    fingerprint: u64,
}

impl Wanted {
    /// None: too long, or too far back in the volume.
    pub fn new(pointed: &Pointed<'_>) -> Option<Self> {
        let extent = pointed.extent();
        let (offset, extent_units) = (pointed.at.offset.0 / 8, extent as u64 / 8);
        let fits = extent <= RUN_RECORD_BYTES_MAX && offset >> (64 - EXTENT_BITS) == 0;
        fits.then(|| Self {
            place: offset << EXTENT_BITS | extent_units,
            fingerprint: pointed.fingerprint(),
        })
    }

    pub fn offset(self) -> LogOffset {
        LogOffset((self.place >> EXTENT_BITS) * 8)
    }

    /// Bytes of the log that it takes.
    pub fn extent(self) -> usize {
        (self.place & ((1 << EXTENT_BITS) - 1)) as usize * 8
    }

    /// Bytes behind the key of the record that was found at its place, if it is this one, and whole.
    pub fn value_bytes(self, header: &FragmentHeader, payload: &[u8]) -> Option<u64> {
        let is_whole = header.starts_record && header.ends_record;
        let is_put = header.kind.may_have_attributes();
        let (key, value) = payload.split_at_checked(header.key_bytes as usize)?;
        let attributes = match header.has_attributes {
            true => Some(*value.first_chunk()?),
            false => None,
        };
        let found = fingerprint(header.region, key, value.len() as u32, attributes);
        (is_whole && is_put && found == self.fingerprint).then_some(value.len() as u64)
    }

    pub fn encode(self) -> [u8; WANTED_BYTES] {
        (u128::from(self.place) << 64 | u128::from(self.fingerprint)).to_le_bytes()
    }

    pub fn decode(bytes: [u8; WANTED_BYTES]) -> Self {
        let both = u128::from_le_bytes(bytes);
        Self {
            place: (both >> 64) as u64,
            fingerprint: both as u64,
        }
    }
}

fn fingerprint(
    region: RegionId,
    key: &[u8],
    value_bytes: u32,
    attributes: Option<[u8; Attributes::BYTES]>,
) -> u64 {
    KeyHash::new((key.len() as u64) << 1 | u64::from(attributes.is_some()))
        .word(u64::from(region.0) << 32 | u64::from(value_bytes))
        .word(attributes.map_or(0, u64::from_le_bytes))
        .bytes(key)
        .finish()
}

#[cfg(test)]
mod tests {
    use kreon_base::Timestamp;

    use super::*;

    fn pointed(offset: u64, value_bytes: u32, expires: Option<u64>) -> Pointed<'static> {
        let payload = Payload::Logged {
            offset: LogOffset(offset),
            value_bytes,
            attributes: Attributes::expiring(expires.map(Timestamp::of_ms)),
        };
        Pointed::of(RegionId(3), b"key", payload).unwrap()
    }

    fn wanted(offset: u64, value_bytes: u32, expires: Option<u64>) -> Wanted {
        Wanted::new(&pointed(offset, value_bytes, expires)).unwrap()
    }

    #[test]
    fn a_reference_says_where_and_what() {
        let one = wanted((1 << 50) + 8, 997, None);
        assert_eq!(one.offset(), LogOffset((1 << 50) + 8));
        assert_eq!(one.extent(), fragment_bytes(1000));
        assert!(Wanted::decode(one.encode()) == one);
        let others = [(997, None), (998, None), (998, Some(7)), (998, Some(8))];
        let prints = others.map(|(bytes, expires)| wanted(8, bytes, expires).fingerprint);
        for (at, print) in prints.iter().enumerate() {
            assert!(!prints[..at].contains(print), "{:?}", others[at]);
        }
        let (far, long) = (pointed(1 << 54, 5, None), pointed(0, 64 << 10, None));
        assert!(Wanted::new(&far).is_none() && Wanted::new(&long).is_none());
    }
}
