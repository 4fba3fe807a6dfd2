//! What a client asks for.

use crate::codes::codes;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::ids::SnapshotId;
use crate::keys::Keys;
use crate::kind::Kind;
use crate::limits::{BLOCK_BYTES, DIGESTS_MAX, VOLUME_BYTES_MAX};
use crate::node::put_sized;
use crate::operations::{Write, table};
use crate::order::Order;
use crate::scan_part::ScanPart;
use crate::violation::Violation;

codes! {
    /// What is asked for.
    RequestKind {
        /// The value of a key.
        Get = 1,
        /// The values of keys.
        GetMany = 2,
        /// Changes.
        Write = 3,
        /// A page of a scan.
        Scan = 4,
        /// A snapshot of the group.
        Snapshot = 5,
        /// The end of a snapshot.
        Release = 6,
        /// An order of an operator.
        Order = 7,
        /// How far backups and joiners are.
        Backups = 8,
        /// Digests of blocks of the volume at this server.
        Digests = 9,
    }
}

/// What a client asks for: the body of a packet of kind `Request`. The header has the group, its term as far as the client
/// knows, and a number that no other request under way on the link has. Orders to the master name no group there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request<'a> {
    /// The value of a key.
    Get {
        /// The table.
        table: &'a str,
        /// Up to 64 KiB.
        key: &'a [u8],
        /// In this snapshot, or at present.
        snapshot: SnapshotId,
    },
    /// The values of keys, all of one moment with a snapshot only.
    GetMany {
        /// The table.
        table: &'a str,
        /// At least one.
        keys: Keys<'a>,
        /// In this snapshot, or at present.
        snapshot: SnapshotId,
    },
    /// Changes, all or none.
    Write(Write<'a>),
    /// A page of a scan.
    Scan(ScanPart<'a>),
    /// A snapshot of the group, which lives until it is released or the link or the term ends.
    Snapshot,
    /// A snapshot is not needed any more. Done also if there is none.
    Release {
        /// The snapshot, not 0.
        snapshot: SnapshotId,
    },
    /// An order of an operator.
    Order(Order<'a>),
    /// How far the backups and joiners of the group are, as its primary sees them.
    Backups,
    /// Digests of blocks of the volume at this server, which need not be the primary.
    Digests {
        /// Where the first one begins, in bytes of the volume: a border of blocks.
        offset: u64,
        /// How many: 1 to [`DIGESTS_MAX`].
        blocks: u32,
    },
}

impl<'a> Request<'a> {
    /// The request in `frame`. Nothing is copied: all that is long stays where it stands, and is checked.
    pub fn decode(frame: &Frame<'a>) -> Result<Self, Violation> {
        if frame.header().kind != Kind::Request {
            return Err(Violation::KindForState);
        }
        let request = Self::read(frame.body())?;
        let named = frame.header().group;
        if request.has_group() != (named.0 != 0) {
            return Err(Violation::GroupMisplaced);
        }
        match &request {
            Self::Order(order) if order.primary_of().is_some_and(|group| group != named) => {
                Err(Violation::OtherGroup)
            }
            _ => Ok(request),
        }
    }

    fn read(body: &'a [u8]) -> Result<Self, Violation> {
        let mut fields = Fields::of(body);
        match RequestKind::of(fields.u8()?)? {
            RequestKind::Get => {
                fields.zeroes::<7>()?;
                let snapshot = SnapshotId(fields.u64()?);
                let table = table(&mut fields)?;
                let key = fields.rest();
                match key.len() <= kreon_base::KEY_BYTES_MAX {
                    true => Ok(Self::Get {
                        table,
                        key,
                        snapshot,
                    }),
                    false => Err(Violation::Count),
                }
            }
            RequestKind::GetMany => {
                fields.zeroes::<3>()?;
                let (count, snapshot) = (fields.u32()?, SnapshotId(fields.u64()?));
                let table = table(&mut fields)?;
                let keys = Keys::read(count, fields)?;
                Ok(Self::GetMany {
                    table,
                    keys,
                    snapshot,
                })
            }
            RequestKind::Write => Write::read(fields).map(Self::Write),
            RequestKind::Scan => ScanPart::read(fields).map(Self::Scan),
            RequestKind::Snapshot => {
                fields.zeroes::<7>()?;
                fields.end().map(|()| Self::Snapshot)
            }
            RequestKind::Release => {
                fields.zeroes::<7>()?;
                let snapshot = SnapshotId(fields.u64()?);
                fields.end()?;
                match snapshot.0 {
                    0 => Err(Violation::FieldValue),
                    _ => Ok(Self::Release { snapshot }),
                }
            }
            RequestKind::Order => Order::read(fields).map(Self::Order),
            RequestKind::Backups => {
                fields.zeroes::<7>()?;
                fields.end().map(|()| Self::Backups)
            }
            RequestKind::Digests => {
                fields.zeroes::<3>()?;
                let (blocks, offset) = (fields.u32()?, fields.u64_upto(VOLUME_BYTES_MAX)?);
                fields.end()?;
                match (1..=DIGESTS_MAX).contains(&blocks) && offset % BLOCK_BYTES == 0 {
                    true => Ok(Self::Digests { offset, blocks }),
                    false => Err(Violation::FieldValue),
                }
            }
        }
    }

    /// What it is.
    pub const fn kind(&self) -> RequestKind {
        match self {
            Self::Get { .. } => RequestKind::Get,
            Self::GetMany { .. } => RequestKind::GetMany,
            Self::Write(_) => RequestKind::Write,
            Self::Scan(_) => RequestKind::Scan,
            Self::Snapshot => RequestKind::Snapshot,
            Self::Release { .. } => RequestKind::Release,
            Self::Order(_) => RequestKind::Order,
            Self::Backups => RequestKind::Backups,
            Self::Digests { .. } => RequestKind::Digests,
        }
    }

    /// Whether it is for the primary of a group, which its header names.
    pub const fn has_group(&self) -> bool {
        match self {
            Self::Order(order) => order.primary_of().is_some(),
            _ => true,
        }
    }

    /// Appends the body, for [`Packet::request`](crate::Packet::request). What [`decode`](Self::decode) refuses costs the
    /// link: check names and lengths before. A write is better made by [`WriteBody`](crate::WriteBody), without a copy.
    pub fn put(&self, to: &mut Vec<u8>) {
        if let Self::Write(write) = self {
            return write.put(to);
        }
        to.push(self.kind() as u8);
        match self {
            Self::Get {
                table,
                key,
                snapshot,
            } => {
                to.extend_from_slice(&[0; 7]);
                to.extend_from_slice(&snapshot.0.to_le_bytes());
                put_sized(to, table.as_bytes());
                to.extend_from_slice(key);
            }
            Self::GetMany {
                table,
                keys,
                snapshot,
            } => {
                to.extend_from_slice(&[0; 3]);
                to.extend_from_slice(&(keys.len() as u32).to_le_bytes());
                to.extend_from_slice(&snapshot.0.to_le_bytes());
                put_sized(to, table.as_bytes());
                to.extend_from_slice(keys.bytes());
            }
            Self::Scan(part) => part.put(to),
            Self::Snapshot | Self::Backups | Self::Write(_) => to.extend_from_slice(&[0; 7]),
            Self::Digests { offset, blocks } => {
                to.extend_from_slice(&[0; 3]);
                to.extend_from_slice(&blocks.to_le_bytes());
                to.extend_from_slice(&offset.to_le_bytes());
            }
            Self::Release { snapshot } => {
                to.extend_from_slice(&[0; 7]);
                to.extend_from_slice(&snapshot.0.to_le_bytes());
            }
            Self::Order(order) => order.put(to),
        }
    }

    /// The body.
    pub fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        self.put(&mut body);
        body
    }
}
