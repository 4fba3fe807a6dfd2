//! The primary's end of a stream: numbers what goes out, and checks what is answered.

use kreon_base::Lsn;

use crate::frame::{Encoded, Frame};
use crate::ids::{FlushNumber, GroupId, StreamNumber, Term};
use crate::progress::Progress;
use crate::role::State;
use crate::room::{Room, Spent};
use crate::stream::StreamPacket;
use crate::violation::Violation;

/// What a primary knows of one stream: it gives the numbers, and no answer acknowledges what was never sent. One for each
/// group, backup and term.
#[derive(Clone, Debug)]
pub struct Outlet {
    group: GroupId,
    term: Term,
    sent: StreamNumber,
    spent: Spent,
    flush: FlushNumber,
    log_sent: Lsn,
    progress: Progress,
}

impl Outlet {
    /// The end of a new stream, whose backup has durable log up to `log_durable` and granted `room`.
    pub fn new(group: GroupId, term: Term, log_durable: Lsn, room: Room) -> Self {
        Self {
            group,
            term,
            sent: StreamNumber(0),
            spent: Spent::default(),
            flush: FlushNumber(0),
            log_sent: log_durable,
            progress: Progress {
                log_durable,
                room,
                ..Progress::default()
            },
        }
    }

    /// Whether the credit is enough for `packet`.
    pub fn has_room(&self, packet: &StreamPacket<'_>) -> bool {
        self.spent.with(packet).fits(&self.progress.room)
    }

    /// Gives `packet` the next number. It must be sent as it is, before any that is numbered later.
    pub fn number<'a>(&mut self, packet: &StreamPacket<'a>) -> Encoded<'a> {
        self.sent = self.sent.next();
        self.spent = self.spent.with(packet);
        if let StreamPacket::Flush { number, .. } = packet {
            self.flush = self.flush.max(*number);
        }
        if let Some(end) = packet.log_end() {
            self.log_sent = self.log_sent.max(end);
        }
        packet.encode(self.group, self.term, self.sent)
    }

    /// Takes an answer. After a violation nothing has changed, and the link is to be closed.
    pub fn admit(&mut self, frame: &Frame<'_>) -> Result<Progress, Violation> {
        let header = frame.header();
        if header.group != self.group {
            return Err(Violation::OtherGroup);
        }
        if header.term != self.term {
            return Err(Violation::OtherTerm);
        }
        State::Shipping.check(header.kind)?;
        let progress = Progress::decode(frame)?;
        let was_sent = progress.received <= self.sent
            && progress.flushed <= self.flush
            && progress.log_durable <= self.log_sent;
        if !was_sent || !progress.continues(&self.progress) {
            return Err(Violation::Order);
        }
        self.progress = progress;
        Ok(progress)
    }

    /// The last answer.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The number of the last packet.
    pub fn sent(&self) -> StreamNumber {
        self.sent
    }

    /// What the packets so far used of the credit.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// The term of the stream.
    pub fn term(&self) -> Term {
        self.term
    }
}
