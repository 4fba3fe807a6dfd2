//! Credit of a stream, by class of bytes.

use crate::fields::Fields;
use crate::frame::BodyFront;
use crate::ids::GrantBytes;
use crate::stream::StreamPacket;
use crate::violation::Violation;

/// Credit by class of bytes, each since the stream began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Room {
    /// Data bytes of `Log` packets.
    pub log: GrantBytes,
    /// Data bytes of `Pages` and `Copy` packets.
    pub pages: GrantBytes,
    /// Bytes of `Allocate` for which nobody needs to wait, as the follower keeps space for them.
    pub space: GrantBytes,
}

impl Room {
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Result<Self, Violation> {
        Ok(Self {
            log: GrantBytes(fields.u64()?),
            pages: GrantBytes(fields.u64()?),
            space: GrantBytes(fields.u64()?),
        })
    }

    pub(crate) fn put(&self, front: &mut BodyFront) {
        let Self { log, pages, space } = self;
        front.put_u64(log.0).put_u64(pages.0).put_u64(space.0);
    }

    /// The larger of both, class by class.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            log: self.log.max(other.log),
            pages: self.pages.max(other.pages),
            space: self.space.max(other.space),
        }
    }

    /// Whether nothing in it is less than in `earlier`.
    pub fn continues(&self, earlier: &Self) -> bool {
        self.log >= earlier.log && self.pages >= earlier.pages && self.space >= earlier.space
    }
}

/// What packets used of the credit, all told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spent {
    /// Data bytes of `Log` packets.
    pub log_bytes: u64,
    /// Data bytes of `Pages` and `Copy` packets.
    pub pages_bytes: u64,
}

impl Spent {
    /// With `packet`.
    #[must_use]
    pub fn with(self, packet: &StreamPacket<'_>) -> Self {
        let (log, pages) = match packet {
            StreamPacket::Log { bytes, .. } => (bytes.len(), 0),
            StreamPacket::Pages { bytes, .. } | StreamPacket::Copy { bytes, .. } => {
                (0, bytes.len())
            }
            _ => (0, 0),
        };
        Self {
            log_bytes: self.log_bytes.saturating_add(log as u64),
            pages_bytes: self.pages_bytes.saturating_add(pages as u64),
        }
    }

    /// Whether `granted` is enough for it.
    pub fn fits(&self, granted: &Room) -> bool {
        self.log_bytes <= granted.log.0 && self.pages_bytes <= granted.pages.0
    }
}
