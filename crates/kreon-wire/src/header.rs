//! The header of a packet.

use kreon_base::Checksum;

use crate::ids::{GroupId, Term};
use crate::kind::Kind;
use crate::limits::{HEADER_BYTES, MAGIC, WIRE_VERSION};
use crate::role::Role;
use crate::violation::Violation;

const CHECKSUM_AT: usize = 12;

/// The header of a packet, checked against all that can be known without what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// What follows.
    pub kind: Kind,
    /// Bytes that follow, up to [`Role::body_bytes_max`].
    pub body_bytes: u32,
    /// The group, or 0 where the kind names none.
    pub group: GroupId,
    /// The term, or 0 where the kind has none.
    pub term: Term,
    /// Number in the stream, of the question or of the beat, or 0 where the kind has none.
    pub number: u64,
    /// CRC-32C over the header, with zeroes in its place, and all that follows.
    pub checksum: u32,
}

impl Header {
    /// The header at the start of `bytes`, as one that came in on a link of this role. All that a header alone can
    /// violate is checked, so that [`body_bytes`](Self::body_bytes) may be allocated.
    pub fn decode(bytes: &[u8], role: Role) -> Result<Self, Violation> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(Violation::Short)?;
        if bytes[..4] != MAGIC {
            return Err(Violation::Magic);
        }
        if bytes[4] != WIRE_VERSION {
            return Err(Violation::Version);
        }
        let kind = Kind::of(bytes[5])?;
        if !role.allows(kind) {
            return Err(Violation::KindForRole);
        }
        if bytes[6..8] != [0; 2] || bytes[20..24] != [0; 4] {
            return Err(Violation::ReservedBits);
        }
        let header = Self {
            kind,
            body_bytes: u32_at(bytes, 8),
            checksum: u32_at(bytes, CHECKSUM_AT),
            group: GroupId(u32_at(bytes, 16)),
            term: Term(u64_at(bytes, 24)),
            number: u64_at(bytes, 32),
        };
        header.check_shape(role).map(|()| header)
    }

    fn check_shape(&self, role: Role) -> Result<(), Violation> {
        let shape = self.kind.shape();
        if self.body_bytes > role.body_bytes_max() {
            return Err(Violation::TooLong);
        }
        if !(shape.body_bytes_min..=shape.body_bytes_max).contains(&self.body_bytes) {
            return Err(Violation::Length);
        }
        if !shape.group.fits(self.group.0.into()) {
            return Err(Violation::GroupMisplaced);
        }
        if !shape.term.fits(self.term.0) || self.term > Term::MAX {
            return Err(Violation::TermMisplaced);
        }
        if !shape.number.fits(self.number) {
            return Err(Violation::Number);
        }
        Ok(())
    }

    /// The encoded header.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = WIRE_VERSION;
        bytes[5] = self.kind as u8;
        bytes[8..12].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[CHECKSUM_AT..16].copy_from_slice(&self.checksum.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.group.0.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.term.0.to_le_bytes());
        bytes[32..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    /// The checksum of a packet with this header and a body of these parts.
    pub fn checksum_with(&self, parts: &[&[u8]]) -> u32 {
        let unsealed = Self {
            checksum: 0,
            ..*self
        };
        let start = Checksum::new().with(&unsealed.encode());
        let sum = parts.iter().fold(start, |sum, part| sum.with(part));
        sum.finish()
    }

    /// Checks `body`, all that came behind the header: its length and the checksum.
    pub fn verify(&self, body: &[u8]) -> Result<(), Violation> {
        match (body.len() as u64).cmp(&self.body_bytes.into()) {
            std::cmp::Ordering::Less => return Err(Violation::Cut),
            std::cmp::Ordering::Greater => return Err(Violation::Excess),
            std::cmp::Ordering::Equal => {}
        }
        match self.checksum_with(&[body]) == self.checksum {
            true => Ok(()),
            false => Err(Violation::Checksum),
        }
    }
}

fn u32_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |b| u32::from_le_bytes(*b))
}

fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    bytes[at..]
        .first_chunk()
        .map_or(0, |b| u64::from_le_bytes(*b))
}
