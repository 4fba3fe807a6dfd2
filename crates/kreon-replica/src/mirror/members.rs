//! Who is a member, and who of them counts.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Lsn, PAGE_BYTES, Result, planted};
use kreon_device::{AlignedBuf, Device};
use kreon_format::SUPERBLOCK_PAGES;
use kreon_sync::Ordering;
use kreon_wire::limits::BLOCK_BYTES;
use kreon_wire::{Member, Progress, Room, StreamNumber, StreamPacket};

use super::carrier::Carrier;
use super::stream::{Sent, Stream};
use super::streams::Mirror;
use super::traffic::StreamTraffic;

/// How a member stands.
#[derive(Clone, Debug)]
pub struct MemberStanding {
    /// Who.
    pub member: Member,
    /// Whether it counts.
    pub is_counted: bool,
    /// The last packet that it was sent.
    pub sent: StreamNumber,
    /// Its last answer.
    pub progress: Progress,
    /// While it does not count: bytes that it was not sent when they were written, and that are read from the primary's file
    /// for it.
    pub owed_bytes: u64,
    /// While it does not count: the log that it lacks has left memory, and is read from the primary's file.
    pub is_log_behind: bool,
    /// Why its stream has ended, if it has.
    pub ended: Option<Error>,
    /// What it was sent in this term.
    pub traffic: StreamTraffic,
}

/// How far a member is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    /// Who.
    pub member: Member,
    /// The last packet that it has, without gaps.
    pub received: StreamNumber,
    /// End of the log that it has in memory.
    pub landed: Lsn,
    /// End of the log that it has durably.
    pub durable: Lsn,
    /// Its stream has ended.
    pub has_ended: bool,
}

impl Mirror {
    /// Adds an in-sync member, which counts from now on, before the store is opened. Its follower expects packet 1, has
    /// durable log up to `log_durable`, and granted `room`.
    ///
    /// # Errors
    /// `InvalidArgument`: it is there already, or the store is open; `Closed`.
    pub fn add(
        &self,
        member: Member,
        carrier: Arc<dyn Carrier>,
        log_durable: Lsn,
        room: Room,
    ) -> Result<()> {
        let mut state = self.state.lock();
        state.check_open()?;
        if state.stream(member).is_some() || state.tap_from.is_some() {
            return Err(Error::invalid("a member that comes twice, or too late"));
        }
        let mut stream = Stream::new((self.group, self.term), member, carrier, log_durable, room);
        stream.is_counted = true;
        state.streams.push(stream);
        self.publish(state);
        Ok(())
    }

    /// Adds a member that does not count, and makes its volume as long as the primary's file, `volume_bytes`: later calls of
    /// the device ship to it, too. Waits for those that were begun before, which do not; what is listed afterwards has them.
    ///
    /// # Errors
    /// `InvalidArgument`: it is there already; `Busy`: a new link has no window; `Closed`.
    pub fn attach(
        &self,
        member: Member,
        carrier: Arc<dyn Carrier>,
        room: Room,
        volume_bytes: u64,
    ) -> Result<()> {
        let mut state = self.state.lock();
        state.check_open()?;
        if state.stream(member).is_some() {
            return Err(Error::invalid("a member that comes twice"));
        }
        let ids = (self.group, self.term);
        let mut stream = Stream::new(ids, member, carrier, Lsn(0), room);
        stream.withholds_slots = true;
        // Before anybody else sends to it: the file may be longer than the store has asked for in this term.
        let len_bytes = volume_bytes - volume_bytes % BLOCK_BYTES;
        match stream.send(&StreamPacket::Grow { len_bytes }) {
            Sent::As(_) => {}
            _ => {
                return Err(stream.ended().cloned().unwrap_or_else(|| {
                    Error::new(ErrorKind::Busy, "a new stream takes no packet")
                }));
            }
        }
        state.streams.push(stream);
        drop(state);
        planted!(AttachWithoutWaiting => return Ok(()));
        self.await_calls()
    }

    /// Removes a member: its stream ends, and it does not count any more. Only when it is known that the group's
    /// configuration does not have it.
    pub fn remove(&self, member: Member) {
        let mut state = self.state.lock();
        state.streams.retain(|stream| stream.member != member);
        self.publish(state);
    }

    /// The stream of a member ends, because its link did; it counts as before.
    pub fn end(&self, member: Member, why: Error) {
        let mut state = self.state.lock();
        if let Some(stream) = state.stream(member) {
            stream.end(why);
        }
        self.publish(state);
    }

    /// What counts as landed does not grow until [`thaw`](Self::thaw); returns how far it is. Comes before the request to
    /// remove a member.
    pub fn freeze(&self) -> Lsn {
        let mut state = self.state.lock();
        let landed = state.landed();
        state.frozen = Some(landed);
        self.publish(state);
        landed
    }

    /// What counts as landed grows again. Comes when the outcome of the removal is known and took effect here.
    pub fn thaw(&self) {
        let mut state = self.state.lock();
        state.frozen = None;
        self.publish(state);
    }

    /// How the members stand.
    pub fn standing(&self) -> Vec<MemberStanding> {
        let state = self.state.lock();
        let of = |stream: &Stream| MemberStanding {
            member: stream.member,
            is_counted: stream.is_counted,
            sent: stream.sent_number(),
            progress: *stream.progress(),
            owed_bytes: stream.owed.blocks.len_bytes(),
            is_log_behind: stream.owed.log_from.is_some(),
            ended: stream.ended().cloned(),
            traffic: stream.traffic,
        };
        state.streams.iter().map(of).collect()
    }

    /// How far each member is.
    pub(crate) fn positions(&self) -> Vec<Position> {
        if self.is_owed.load(Ordering::Acquire) {
            // Whoever was to send it is held up.
            self.wakeup.call();
        }
        let state = self.state.lock();
        let of = |stream: &Stream| Position {
            member: stream.member,
            received: stream.progress().received,
            landed: stream.landed(),
            durable: stream.log_durable(),
            has_ended: stream.ended().is_some(),
        };
        state.streams.iter().map(of).collect()
    }

    /// How far a member has the log in memory, and how far durably; none if it is no member.
    pub(crate) fn position(&self, member: Member) -> Option<(Lsn, Lsn)> {
        let mut state = self.state.lock();
        let stream = state.stream(member)?;
        Some((stream.landed(), stream.log_durable()))
    }

    /// The log of a member that was attached is sent from `from` on.
    ///
    /// # Errors
    /// `NotFound`; `InvalidArgument`: it has begun.
    pub(crate) fn begin_log_of(&self, member: Member, from: Lsn) -> Result<()> {
        let mut state = self.state.lock();
        let stream = state.stream(member).ok_or_else(|| not_there(member))?;
        stream.begin_joiners_log(from)?;
        self.publish(state);
        Ok(())
    }

    /// # Errors
    /// `NotFound`; why its stream has ended.
    pub(crate) fn check_stream(&self, member: Member) -> Result<()> {
        let mut state = self.state.lock();
        state.check_open()?;
        let stream = state.stream(member).ok_or_else(|| not_there(member))?;
        stream.ended().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Waits for all calls of the device that were begun before this one.
    pub(super) fn await_calls(&self) -> Result<()> {
        let mut state = self.state.lock();
        let before = state.calls_begun;
        while state.calls.iter().any(|call| *call <= before) {
            state.check_open()?;
            self.changed.wait(&mut state);
        }
        Ok(())
    }

    /// Sends a member the superblock slots that it was not sent since it counts, as they are in the primary's file: those
    /// that were withheld are there by then.
    ///
    /// # Errors
    /// Those of the device; why the member's stream has ended; `Closed`.
    pub(crate) fn fill_slots(&self, member: Member, below: &dyn Device) -> Result<()> {
        for page in SUPERBLOCK_PAGES {
            let mut state = self.state.lock();
            loop {
                state.check_open()?;
                let stream = state.stream(member).ok_or_else(|| not_there(member))?;
                if stream.has_slot(page) {
                    break;
                }
                // Under the lock: a slot that is written later is sent later.
                let offset = page.offset_bytes();
                let mut bytes = AlignedBuf::new(PAGE_BYTES);
                below.read_at(offset, &mut bytes)?;
                match stream.send(&StreamPacket::Pages {
                    offset,
                    bytes: &bytes,
                }) {
                    Sent::As(_) => break,
                    Sent::Later => self.changed.wait(&mut state),
                    Sent::Ended | Sent::Withheld => return self.check_ended(stream),
                }
            }
        }
        Ok(())
    }

    fn check_ended(&self, stream: &Stream) -> Result<()> {
        stream.ended().map_or(Ok(()), |error| Err(error.clone()))
    }
}

pub(super) fn not_there(member: Member) -> Error {
    Error::new(ErrorKind::NotFound, format!("{member:?} is no member"))
}
