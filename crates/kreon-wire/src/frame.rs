//! A packet as header and body, coming in and going out.

use std::io::IoSlice;

use crate::fields::Front;
use crate::header::Header;
use crate::ids::{GroupId, Term};
use crate::kind::{Kind, Presence};
use crate::limits::HEADER_BYTES;
use crate::role::Role;
use crate::violation::Violation;

/// A packet that came in: its checked header, and its body, which verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    header: Header,
    body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The packet that is the whole of `bytes`, as one that came in on a link of this role.
    pub fn open(bytes: &'a [u8], role: Role) -> Result<Self, Violation> {
        let header = Header::decode(bytes, role)?;
        Self::verify(header, bytes.get(HEADER_BYTES..).unwrap_or_default())
    }

    /// The packet of a header that was decoded before, and all that came behind it.
    pub fn verify(header: Header, body: &'a [u8]) -> Result<Self, Violation> {
        header.verify(body).map(|()| Self { header, body })
    }

    /// The packet of a header and a body that were verified before and have been in memory since.
    pub fn verified(header: Header, body: &'a [u8]) -> Self {
        Self { header, body }
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The fields of its header that its content does not say: those of an answer to it.
    pub fn address(&self) -> Address {
        Address {
            group: self.header.group,
            term: self.header.term,
            number: self.header.number,
        }
    }

    /// Its body.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }
}

/// Where a packet belongs: the fields of its header that its content does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Address {
    /// The group, or 0 where the kind names none.
    pub group: GroupId,
    /// The term, or 0 where the kind has none.
    pub term: Term,
    /// Number in the stream, of the question or of the beat, or 0 where the kind has none.
    pub number: u64,
}

impl Address {
    /// The same without the fields that the header of this kind has not.
    #[must_use]
    pub fn fitting(self, kind: Kind) -> Self {
        let shape = kind.shape();
        let has = |presence| presence != Presence::None;
        Self {
            group: GroupId(if has(shape.group) { self.group.0 } else { 0 }),
            term: Term(if has(shape.term) { self.term.0 } else { 0 }),
            number: if has(shape.number) { self.number } else { 0 },
        }
    }
}

/// Bytes of the longest fixed fields in front of the data of a body.
const FRONT_BYTES: usize = 64;

/// A packet that goes out: header and fixed fields, and the data, which is borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Encoded<'a> {
    head: Front<{ HEADER_BYTES + FRONT_BYTES }>,
    data: &'a [u8],
}

/// The fixed fields of a body, while they are written.
pub(crate) type BodyFront = Front<FRONT_BYTES>;

impl<'a> Encoded<'a> {
    /// The packet of this kind whose body is `front` and `data`.
    pub(crate) fn seal(kind: Kind, to: &Address, front: &BodyFront, data: &'a [u8]) -> Self {
        let to = to.fitting(kind);
        let mut header = Header {
            kind,
            body_bytes: (front.bytes().len() + data.len()) as u32,
            group: to.group,
            term: to.term,
            number: to.number,
            checksum: 0,
        };
        header.checksum = header.checksum_with(&[front.bytes(), data]);
        let mut head = Front::new();
        head.put(&header.encode()).put(front.bytes());
        Self { head, data }
    }

    /// The bytes in two parts, the second of them borrowed and maybe empty.
    pub fn parts(&self) -> [IoSlice<'_>; 2] {
        [IoSlice::new(self.head.bytes()), IoSlice::new(self.data)]
    }

    /// Header and fixed fields, without the data.
    pub fn head(&self) -> &[u8] {
        self.head.bytes()
    }

    /// Bytes of the whole packet.
    pub fn len_bytes(&self) -> usize {
        self.head.bytes().len() + self.data.len()
    }

    /// A copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        [self.head.bytes(), self.data].concat()
    }
}
