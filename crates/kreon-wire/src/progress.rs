//! What a follower answers on its stream.

use kreon_base::Lsn;

use crate::fields::Fields;
use crate::frame::{Address, BodyFront, Encoded, Frame};
use crate::ids::{FlushNumber, GroupId, StreamNumber, Term};
use crate::kind::Kind;
use crate::room::Room;
use crate::stream::lsn;
use crate::violation::Violation;

/// What the follower has taken from its stream, and what it has room for. Each value only grows, so that of several
/// answers the last one says all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Progress {
    /// All packets up to this one are applied or in memory.
    pub received: StreamNumber,
    /// All packets up to this one are applied to the file.
    pub written: StreamNumber,
    /// The last flush that was answered: all before it, its log included, is durable.
    pub flushed: FlushNumber,
    /// The log up to here is durable.
    pub log_durable: Lsn,
    /// What the primary may have sent.
    pub room: Room,
}

impl Progress {
    /// The answer in `frame`; an error for other kinds, and if its numbers contradict each other.
    pub fn decode(frame: &Frame<'_>) -> Result<Self, Violation> {
        if frame.header().kind != Kind::Progress {
            return Err(Violation::KindForState);
        }
        let mut fields = Fields::of(frame.body());
        let progress = Self {
            received: StreamNumber(fields.u64()?),
            written: StreamNumber(fields.u64()?),
            flushed: FlushNumber(fields.u64()?),
            log_durable: lsn(&mut fields)?,
            room: Room::decode(&mut fields)?,
        };
        fields.end()?;
        match progress.written <= progress.received {
            true => Ok(progress),
            false => Err(Violation::Order),
        }
    }

    /// Whether it may follow `earlier` on one stream.
    pub fn continues(&self, earlier: &Self) -> bool {
        self.received >= earlier.received
            && self.written >= earlier.written
            && self.flushed >= earlier.flushed
            && self.log_durable >= earlier.log_durable
            && self.room.continues(&earlier.room)
    }

    /// The packet.
    pub fn encode(&self, group: GroupId, term: Term) -> Encoded<'static> {
        let mut front = BodyFront::new();
        front.put_u64(self.received.0).put_u64(self.written.0);
        front.put_u64(self.flushed.0).put_u64(self.log_durable.0);
        self.room.put(&mut front);
        let to = Address {
            group,
            term,
            number: 0,
        };
        Encoded::seal(Kind::Progress, &to, &front, &[])
    }
}
