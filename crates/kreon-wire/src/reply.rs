//! What a server answers to a client.

use crate::backups::{Backups, Digests};
use crate::codes::codes;
use crate::failure::Failure;
use crate::fields::Fields;
use crate::found::{Page, Values};
use crate::frame::Frame;
use crate::ids::{ServerId, SnapshotId};
use crate::kind::Kind;
use crate::limits::VALUE_BYTES_MAX;
use crate::violation::Violation;

codes! {
    /// What is answered.
    ReplyKind {
        /// It is done.
        Done = 1,
        /// The value of the key.
        Value = 2,
        /// The key has no value.
        Missing = 3,
        /// The values of keys.
        Values = 4,
        /// A page of a scan.
        Page = 5,
        /// A snapshot.
        Snapshot = 6,
        /// The store was verified.
        Verified = 7,
        /// It was not done, or may not have been.
        Failed = 8,
        /// How far backups and joiners are.
        Backups = 9,
        /// Digests of blocks of a volume.
        Digests = 10,
        /// The copies of a group were compared.
        Compared = 11,
    }
}

/// What a server answers to a client: the body of a packet of kind `Reply`. Group, term and number of the header are those
/// of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply<'a> {
    /// It is done: to a write, a release and an order.
    Done,
    /// What a get found: up to [`VALUE_BYTES_MAX`] bytes.
    Value(Option<&'a [u8]>),
    /// What a get of many keys found.
    Values(Values<'a>),
    /// A page of a scan.
    Page(Page<'a>),
    /// A snapshot was taken; not 0.
    Snapshot(SnapshotId),
    /// The store was verified.
    Verified(Verified),
    /// It was not done, or may not have been.
    Failed(Failure<'a>),
    /// How far the backups and joiners of the group are.
    Backups(Backups<'a>),
    /// Digests of blocks of the volume here.
    Digests(Digests<'a>),
    /// The copies of the group were compared.
    Compared(Compared),
}

/// What a comparison of the copies of a group found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Compared {
    /// Copies that were compared with that of the primary.
    pub copies: u64,
    /// Blocks that were compared in each.
    pub blocks: u64,
    /// Blocks in which a copy differs, of all copies together.
    pub differing: u64,
    /// Blocks that changed all the time: of these nothing is known.
    pub unsettled: u64,
    /// The server whose copy differs in most blocks; 0 if no copy differs.
    pub worst: ServerId,
}

/// What a verification found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Verified {
    /// What does not verify.
    pub problems: u64,
    /// Pages that were read.
    pub pages: u64,
    /// Records of the log that were read.
    pub records: u64,
}

impl<'a> Reply<'a> {
    /// The reply in `frame`. Nothing is copied: all that is long stays where it stands, and is checked.
    pub fn decode(frame: &Frame<'a>) -> Result<Self, Violation> {
        if frame.header().kind != Kind::Reply {
            return Err(Violation::KindForState);
        }
        let mut fields = Fields::of(frame.body());
        match ReplyKind::of(fields.u8()?)? {
            ReplyKind::Values => Values::read(fields).map(Self::Values),
            ReplyKind::Page => Page::read(fields).map(Self::Page),
            ReplyKind::Failed => Failure::read(fields).map(Self::Failed),
            ReplyKind::Backups => Backups::read(fields).map(Self::Backups),
            ReplyKind::Digests => Digests::read(fields).map(Self::Digests),
            kind => {
                fields.zeroes::<7>()?;
                Self::short(kind, fields)
            }
        }
    }

    fn short(kind: ReplyKind, mut fields: Fields<'a>) -> Result<Self, Violation> {
        let reply = match kind {
            ReplyKind::Value => match fields.left() <= VALUE_BYTES_MAX {
                true => return Ok(Self::Value(Some(fields.rest()))),
                false => return Err(Violation::Count),
            },
            ReplyKind::Missing => Self::Value(None),
            ReplyKind::Snapshot => match fields.u64()? {
                0 => return Err(Violation::FieldValue),
                snapshot => Self::Snapshot(SnapshotId(snapshot)),
            },
            ReplyKind::Verified => Self::Verified(Verified {
                problems: fields.u64()?,
                pages: fields.u64()?,
                records: fields.u64()?,
            }),
            ReplyKind::Compared => Self::Compared(Compared {
                copies: fields.u64()?,
                blocks: fields.u64()?,
                differing: fields.u64()?,
                unsettled: fields.u64()?,
                worst: Self::worst(&mut fields)?,
            }),
            _ => Self::Done,
        };
        fields.end().map(|()| reply)
    }

    fn worst(fields: &mut Fields<'a>) -> Result<ServerId, Violation> {
        let server = ServerId(fields.u32()?);
        fields.zeroes::<4>().map(|()| server)
    }

    /// What it is.
    pub const fn kind(&self) -> ReplyKind {
        match self {
            Self::Done => ReplyKind::Done,
            Self::Value(Some(_)) => ReplyKind::Value,
            Self::Value(None) => ReplyKind::Missing,
            Self::Values(_) => ReplyKind::Values,
            Self::Page(_) => ReplyKind::Page,
            Self::Snapshot(_) => ReplyKind::Snapshot,
            Self::Verified(_) => ReplyKind::Verified,
            Self::Failed(_) => ReplyKind::Failed,
            Self::Backups(_) => ReplyKind::Backups,
            Self::Digests(_) => ReplyKind::Digests,
            Self::Compared(_) => ReplyKind::Compared,
        }
    }

    /// Appends the body, for [`Packet::reply`](crate::Packet::reply). Values and pages are better made by
    /// [`ValuesBody`](crate::ValuesBody) and [`PageBody`](crate::PageBody), without a copy.
    pub fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::Values(values) => return values.put(to),
            Self::Page(page) => return page.put(to),
            Self::Backups(backups) => return backups.put(to),
            Self::Digests(digests) => return digests.put(to),
            _ => to.push(self.kind() as u8),
        }
        if let Self::Failed(failure) = self {
            return failure.put(to);
        }
        to.extend_from_slice(&[0; 7]);
        match self {
            Self::Value(Some(value)) => to.extend_from_slice(value),
            Self::Snapshot(snapshot) => to.extend_from_slice(&snapshot.0.to_le_bytes()),
            Self::Verified(verified) => {
                put_counts(to, &[verified.problems, verified.pages, verified.records]);
            }
            Self::Compared(found) => {
                let counts = [found.copies, found.blocks, found.differing, found.unsettled];
                put_counts(to, &counts);
                put_counts(to, &[found.worst.0.into()]);
            }
            _ => {}
        }
    }

    /// The body.
    pub fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        self.put(&mut body);
        body
    }
}

fn put_counts(to: &mut Vec<u8>, counts: &[u64]) {
    counts
        .iter()
        .for_each(|count| to.extend_from_slice(&count.to_le_bytes()));
}
