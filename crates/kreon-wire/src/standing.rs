//! How a group stands at one server, for people and for the master.

use kreon_base::Lsn;

use crate::codes::codes;
use crate::fields::Fields;
use crate::frame::BodyFront;
use crate::slot::{Extent, Slot};
use crate::stream::lsn;
use crate::violation::Violation;

codes! {
    /// The state of a replica, or of the primary where it is one.
    Stage {
        /// The server has no volume of the group.
        Absent = 0,
        /// Its volume is being copied.
        Joining = 1,
        /// A backup of the set.
        InSync = 2,
        /// A term was sealed, and no primary of it is known.
        Sealed = 3,
        /// The coming primary makes the members equal.
        Equalising = 4,
        /// The coming primary opens its store.
        Opening = 5,
        /// The primary.
        Serving = 6,
        /// The primary, while the set shrinks.
        Frozen = 7,
        /// The primary with fewer members than the least: reads only.
        Short = 8,
        /// A primary of an earlier term, which ends.
        Deposed = 9,
        /// Not of the set any more; joins anew.
        Stale = 10,
    }
}

/// How a group stands at one server. The header has its term there, 0 if it knows none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Standing {
    /// The state.
    pub stage: Stage,
    /// Its superblock, and the end of its log.
    pub extent: Extent,
    /// The log up to here is in the memory of all counted members.
    pub landed: Lsn,
    /// The log up to here is durable, on all counted members if this is the primary.
    pub durable: Lsn,
    /// Free bytes of the smallest counted device that it knows, divided by the groups there.
    pub free_bytes: u64,
}

impl Standing {
    pub(crate) fn read(mut fields: Fields<'_>) -> Result<Self, Violation> {
        let stage = Stage::of(fields.u8()?)?;
        fields.zeroes::<7>()?;
        let standing = Self {
            stage,
            extent: Extent::read(&mut fields)?,
            landed: lsn(&mut fields)?,
            durable: lsn(&mut fields)?,
            free_bytes: fields.u64()?,
        };
        fields.end().map(|()| standing)
    }

    pub(crate) fn put(&self, front: &mut BodyFront) {
        front.put_u8(self.stage as u8).put_zeroes(7);
        self.extent.put(front);
        front.put_u64(self.landed.0).put_u64(self.durable.0);
        front.put_u64(self.free_bytes);
    }

    /// Nothing of the group is here.
    pub fn absent() -> Self {
        Self {
            stage: Stage::Absent,
            extent: Extent {
                slot: Slot::default(),
                log_end: Lsn(0),
            },
            landed: Lsn(0),
            durable: Lsn(0),
            free_bytes: 0,
        }
    }
}
