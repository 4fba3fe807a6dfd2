//! The backup's end of a stream: which packet may come next.

use crate::frame::Frame;
use crate::ids::{FlushNumber, GroupId, StreamNumber, Term};
use crate::role::State;
use crate::room::{Room, Spent};
use crate::stream::{ByteRange, StreamPacket};
use crate::violation::Violation;

/// What a backup knows of one stream, so that it takes each packet of it once, in order, and within its volume. One
/// for each group and term.
#[derive(Clone, Debug)]
pub struct Inlet {
    group: GroupId,
    term: Term,
    state: State,
    last: StreamNumber,
    flush: FlushNumber,
    volume_bytes: u64,
    taken: Spent,
    granted: Room,
}

impl Inlet {
    /// The end of a new stream: of an in-sync backup with a volume of this length.
    pub fn following(group: GroupId, term: Term, volume_bytes: u64, granted: Room) -> Self {
        Self {
            group,
            term,
            state: State::Following,
            last: StreamNumber(0),
            flush: FlushNumber(0),
            volume_bytes,
            taken: Spent::default(),
            granted,
        }
    }

    /// The end of a new stream: of a joiner, which copies are for until `Complete`.
    pub fn joining(group: GroupId, term: Term, volume_bytes: u64, granted: Room) -> Self {
        Self {
            state: State::Joining,
            ..Self::following(group, term, volume_bytes, granted)
        }
    }

    /// Takes the next packet. After a violation nothing has changed, and nothing that follows may be taken: the link is
    /// to be closed.
    pub fn admit<'a>(&mut self, frame: &Frame<'a>) -> Result<StreamPacket<'a>, Violation> {
        let header = frame.header();
        if header.group != self.group {
            return Err(Violation::OtherGroup);
        }
        if header.term != self.term {
            return Err(Violation::OtherTerm);
        }
        self.state.check(header.kind)?;
        let number = StreamNumber(header.number);
        // The last number of all is its own successor, and must not come twice.
        if number != self.last.next() || number == self.last {
            return Err(Violation::Number);
        }
        let packet = StreamPacket::decode(frame)?;
        self.check(&packet)?;
        let taken = self.taken.with(&packet);
        if !taken.fits(&self.granted) {
            return Err(Violation::Credit);
        }
        self.taken = taken;
        self.last = number;
        match packet {
            StreamPacket::Grow { len_bytes } => {
                self.volume_bytes = self.volume_bytes.max(len_bytes);
            }
            StreamPacket::Flush { number, .. } => self.flush = number,
            StreamPacket::Complete => self.state = State::Following,
            _ => {}
        }
        Ok(packet)
    }

    /// What depends on earlier packets.
    fn check(&self, packet: &StreamPacket<'_>) -> Result<(), Violation> {
        match packet {
            StreamPacket::Grow { .. } => Ok(()),
            StreamPacket::Flush { number, .. } if *number <= self.flush => Err(Violation::Order),
            _ => match packet.range() {
                Some(range) => self.check_range(range),
                None => Ok(()),
            },
        }
    }

    fn check_range(&self, range: ByteRange) -> Result<(), Violation> {
        match range.is_within(self.volume_bytes) {
            true => Ok(()),
            false => Err(Violation::Range),
        }
    }

    /// Lets the primary send up to `granted`. What was granted before stays granted.
    pub fn grant(&mut self, granted: Room) {
        self.granted = self.granted.max(granted);
    }

    /// Takes nothing any more: a higher term was sealed.
    pub fn seal(&mut self) {
        self.state = State::Sealed;
    }

    /// The number of the last packet that was taken.
    pub fn last(&self) -> StreamNumber {
        self.last
    }

    /// The term of the stream.
    pub fn term(&self) -> Term {
        self.term
    }

    /// Its state: `Following`, `Joining` or `Sealed`.
    pub fn state(&self) -> State {
        self.state
    }

    /// What was granted.
    pub fn granted(&self) -> Room {
        self.granted
    }

    /// What the packets that were taken used of the credit.
    pub fn taken(&self) -> Spent {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;

    #[test]
    fn the_last_number_of_all_comes_once() {
        let (group, term) = (GroupId(1), Term(2));
        let mut inlet = Inlet::joining(group, term, 0, Room::default());
        inlet.last = StreamNumber(u64::MAX - 1);
        let number = StreamNumber(u64::MAX);
        let bytes = StreamPacket::Flush {
            number: FlushNumber(1),
            log_upto: kreon_base::Lsn(0),
        };
        let bytes = bytes.encode(group, term, number).to_vec();
        let frame = Frame::open(&bytes, Role::PeerStream).unwrap();
        assert!(inlet.admit(&frame).is_ok());
        assert_eq!(inlet.admit(&frame), Err(Violation::Number));
    }
}
