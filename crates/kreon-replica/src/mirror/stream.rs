//! The stream to one member.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Lsn, PageNo, Result, planted};
use kreon_format::SUPERBLOCK_PAGES;
use kreon_wire::limits::BLOCK_BYTES;
use kreon_wire::{
    ByteRange, Control, FlushNumber, Frame, GroupId, Kind, Member, Outlet, Packet, Progress,
    Reason, Room, StreamNumber, StreamPacket, Term, Violation,
};

use super::carrier::Carrier;
use super::owed::Owed;
use super::share::{Share, Waiting};
use super::traffic::StreamTraffic;

/// Whether a packet was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// With this number.
    As(StreamNumber),
    /// Not yet: the credit or the window of the link is used up.
    Later,
    /// Never: the stream has ended.
    Ended,
    /// Never: it is a superblock, and the member's copy is not complete.
    Withheld,
}

/// One member and its stream.
pub(super) struct Stream {
    pub member: Member,
    carrier: Arc<dyn Carrier>,
    outlet: Outlet,
    share: Arc<Share>,
    /// Something else than a copy found the window of the link full.
    waiting: Option<Waiting>,
    /// While the member does not count: what it was not sent.
    pub owed: Owed,
    /// The member counts for what is landed and durable.
    pub is_counted: bool,
    /// It counts, and has not yet shown that it keeps up: its log may have left memory when it began to count.
    pub is_on_trial: bool,
    /// It gets no superblocks, as its copy of the volume is not complete.
    pub withholds_slots: bool,
    /// Offsets of the superblock slots that it was sent.
    slots_sent: BTreeSet<u64>,
    /// The log was sent up to here; `None`: it begins with the tap, or its next bytes have left memory.
    pub log_sent: Option<Lsn>,
    /// Behind the last byte of log that was sent in this term.
    pub log_packets_end: Lsn,
    /// Where that stands on the volume.
    pub log_packets_offset: u64,
    /// Of one that was attached: where its log began, or went on last. All before was copied, or sent as pages.
    log_begun: Lsn,
    /// Ends of the log packets that were not acknowledged, with their numbers.
    in_flight: VecDeque<(StreamNumber, Lsn)>,
    landed: Lsn,
    flush_sent: FlushNumber,
    /// Bytes of allocations so far.
    asked_bytes: u64,
    /// Allocations that the member had no space for.
    refused: BTreeSet<StreamNumber>,
    ended: Option<Error>,
    pub traffic: StreamTraffic,
}

impl Stream {
    pub fn new(
        (group, term): (GroupId, Term),
        member: Member,
        carrier: Arc<dyn Carrier>,
        log_durable: Lsn,
        room: Room,
    ) -> Self {
        Self {
            member,
            share: carrier.share().cloned().unwrap_or_default(),
            waiting: None,
            owed: Owed::default(),
            carrier,
            outlet: Outlet::new(group, term, log_durable, room),
            is_counted: false,
            is_on_trial: false,
            withholds_slots: false,
            slots_sent: BTreeSet::new(),
            log_sent: None,
            log_packets_end: Lsn(0),
            log_packets_offset: 0,
            log_begun: Lsn(0),
            in_flight: VecDeque::new(),
            landed: log_durable,
            flush_sent: FlushNumber(0),
            asked_bytes: 0,
            refused: BTreeSet::new(),
            ended: None,
            traffic: StreamTraffic::default(),
        }
    }

    /// Gives the packet the next number and sends it, if it can be sent now.
    pub fn send(&mut self, packet: &StreamPacket<'_>) -> Sent {
        if self.ended.is_some() {
            return Sent::Ended;
        }
        let withholds = self.withholds_slots;
        planted!(SuperblockDuringResync => let withholds = false);
        if withholds && is_slot(packet) {
            return Sent::Withheld;
        }
        if let Some(len_bytes) = self.owed.len_bytes
            && !matches!(packet, StreamPacket::Grow { .. })
        {
            match self.carry(&StreamPacket::Grow { len_bytes }) {
                Sent::As(_) => {}
                not => return not,
            }
        }
        if self.replaces_open_block(packet) {
            // The segment is no log any more: the log that is still to come is elsewhere.
            self.fall_behind();
        }
        match self.fill_block() {
            None | Some(Sent::As(_)) => self.carry(packet),
            Some(not) => not,
        }
    }

    /// The last bytes of log that a member was sent whose next ones have left memory: fills their block with zeroes and notes
    /// it as owed, so that other bytes may take its place, and log may go on elsewhere. `None`: the block is full.
    pub fn fill_block(&mut self) -> Option<Sent> {
        let lsn = self.owed.log_from?;
        let (offset, rest) = (self.log_packets_offset, self.open_bytes());
        // What was sent last may have been before the place where it goes on.
        if rest == 0 || self.log_packets_end != lsn {
            return None;
        }
        let zeroes = [0; BLOCK_BYTES as usize];
        let bytes = zeroes.get(..rest as usize)?;
        let sent = self.carry(&StreamPacket::Log { lsn, offset, bytes });
        if let Sent::As(_) = sent {
            self.owed.blocks.add(&(offset..offset + rest));
        }
        Some(sent)
    }

    /// What is missing of the block of the last bytes of log.
    fn open_bytes(&self) -> u64 {
        self.log_packets_offset.next_multiple_of(BLOCK_BYTES) - self.log_packets_offset
    }

    /// Whether a packet changes the block of the last bytes of log, of a member whose log may be behind.
    fn replaces_open_block(&self, packet: &StreamPacket<'_>) -> bool {
        // A copy of what was there before the log does nothing at the member.
        let is_change = matches!(
            packet,
            StreamPacket::Pages { .. } | StreamPacket::Discard { .. }
        );
        let is_open = !self.is_counted && self.log_sent.is_some() && self.open_bytes() > 0;
        let end = self.log_packets_offset + self.open_bytes();
        let touches = |range: ByteRange| {
            range.offset < end && end <= range.offset.saturating_add(range.len_bytes)
        };
        is_change && is_open && packet.range().is_some_and(touches)
    }

    fn carry(&mut self, packet: &StreamPacket<'_>) -> Sent {
        let is_copy = matches!(packet, StreamPacket::Copy { .. });
        if !self.outlet.has_room(packet) || is_copy && !self.share.may_copy() {
            return Sent::Later;
        }
        // A packet that the link does not take has no number.
        let mut outlet = self.outlet.clone();
        let encoded = outlet.number(packet);
        let parts = encoded.parts();
        match self.carrier.carry(&parts) {
            Ok(()) => {
                let bytes = parts.iter().map(|part| part.len() as u64).sum();
                self.outlet = outlet;
                match is_copy {
                    true => self.share.copied(bytes),
                    false => {
                        self.waiting = None;
                        self.share.sent_other(bytes);
                    }
                }
                self.sent(packet);
                Sent::As(self.outlet.sent())
            }
            Err(error) if error.kind() == ErrorKind::Busy => {
                if !is_copy && self.waiting.is_none() {
                    self.waiting = Some(self.share.wait());
                }
                Sent::Later
            }
            Err(error) => {
                self.end(error);
                Sent::Ended
            }
        }
    }

    fn sent(&mut self, packet: &StreamPacket<'_>) {
        let number = self.outlet.sent();
        self.owed.forget(packet);
        self.traffic.add(packet);
        if let StreamPacket::Log { offset, bytes, .. } = packet {
            self.log_packets_offset = offset + bytes.len() as u64;
        }
        if let Some(end) = packet.log_end() {
            match &mut self.owed.log_from {
                Some(from) => *from = end,
                None => self.log_sent = Some(end),
            }
            self.log_packets_end = end;
            self.in_flight.push_back((number, end));
            planted!(AcknowledgedBeforeReceipt => self.landed = end);
        }
        if let StreamPacket::Pages { offset, .. } = packet
            && is_slot(packet)
        {
            self.slots_sent.insert(*offset);
        }
        if let StreamPacket::Flush { number, .. } = packet {
            self.flush_sent = *number;
        }
        if let StreamPacket::Allocate { len_bytes, .. } = packet {
            self.asked_bytes = self.asked_bytes.saturating_add(*len_bytes);
        }
    }

    /// Notes what a member that does not count was not sent.
    pub fn miss(&mut self, packet: &StreamPacket<'_>) {
        self.waiting = None;
        self.owed.miss(packet);
    }

    /// Nobody will try again to send what it had no room for.
    pub fn give_up(&mut self) {
        self.waiting = None;
    }

    /// The log that a member which does not count lacks has left memory.
    pub fn fall_behind(&mut self) {
        self.waiting = None;
        self.owed.log_from = self.log_sent.take().or(self.owed.log_from);
    }

    /// The member has all log before `at`, which is in memory, the border of a block and not before what it was sent: the
    /// tap sends the rest.
    pub fn resume_log(&mut self, at: Lsn) {
        self.owed.log_from = None;
        self.log_sent = Some(at);
        self.landed = self.landed.max(at);
        self.log_begun = at;
    }

    /// The log of a member that was attached begins at `from`: what is before is copied.
    pub fn begin_joiners_log(&mut self, from: Lsn) -> Result<()> {
        self.begin_log(from)?;
        self.log_begun = from;
        Ok(())
    }

    /// It counts from now on, and gets superblocks: all that it was sent before its last flush is durable there.
    pub fn count(&mut self) {
        self.withholds_slots = false;
        self.is_counted = true;
        self.is_on_trial = true;
    }

    /// Ends the counting of a member whose stream has ended on trial: nobody was asked yet to add it to the configuration, so it
    /// cannot be promoted. Whether it did.
    pub fn fail_trial(&mut self) -> bool {
        let has_failed = self.is_counted && self.is_on_trial && self.ended.is_some();
        self.is_counted &= !has_failed;
        has_failed
    }

    /// Whether it was sent the superblock slot in this page.
    pub fn has_slot(&self, page: PageNo) -> bool {
        self.slots_sent.contains(&page.offset_bytes())
    }

    /// Takes what the member answered.
    pub fn admit(&mut self, frame: &Frame<'_>) -> Result<(), Violation> {
        if frame.header().kind != Kind::Refused {
            let progress = self.outlet.admit(frame)?;
            self.land(&progress);
            return Ok(());
        }
        let header = frame.header();
        let number = StreamNumber(header.number);
        let Packet::Control(Control::Refused(refused)) = Packet::decode(frame)? else {
            return Err(Violation::KindForState);
        };
        if number > self.outlet.sent() {
            return Err(Violation::Order);
        }
        match (refused.kind, refused.reason) {
            (Kind::Allocate, Reason::NoSpace) => _ = self.refused.insert(number),
            (kind, reason) => self.end(Error::new(
                ErrorKind::Closed,
                format!("a backup refuses {kind:?}: {reason:?}"),
            )),
        }
        Ok(())
    }

    fn land(&mut self, progress: &Progress) {
        while let Some((_, end)) = self
            .in_flight
            .pop_front_if(|(number, _)| *number <= progress.received)
        {
            self.landed = self.landed.max(end);
        }
    }

    /// Everything before this is in the member's memory.
    pub fn landed(&self) -> Lsn {
        self.landed
    }

    /// Everything before this is durable there. A joiner knows of no log before the first that it was sent; when it counts
    /// all of that is durable, though an idle store has sent none behind it.
    pub fn log_durable(&self) -> Lsn {
        let told = self.outlet.progress().log_durable;
        match self.is_counted {
            true => told.max(self.log_begun),
            false => told,
        }
    }

    /// The last flush that it was sent.
    pub fn flush_sent(&self) -> FlushNumber {
        self.flush_sent
    }

    /// The last flush that it has answered.
    pub fn flushed(&self) -> FlushNumber {
        self.outlet.progress().flushed
    }

    /// Its last answer.
    pub fn progress(&self) -> &Progress {
        self.outlet.progress()
    }

    /// The number of the last packet.
    pub fn sent_number(&self) -> StreamNumber {
        self.outlet.sent()
    }

    /// Whether the allocations so far are within what the member has granted.
    pub fn is_space_granted(&self) -> bool {
        self.asked_bytes <= self.outlet.progress().room.space.0
    }

    /// The outcome of an allocation that was sent with this number; `None`: not known yet.
    pub fn allocated(&mut self, number: StreamNumber) -> Option<bool> {
        if self.refused.remove(&number) {
            return Some(false);
        }
        (self.outlet.progress().written >= number).then_some(true)
    }

    /// Whether the member had no space for something that nobody asked about.
    pub fn lacks_space(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Why the stream has ended, if it has.
    pub fn ended(&self) -> Option<&Error> {
        self.ended.as_ref()
    }

    /// Sends nothing any more. The first reason counts.
    pub fn end(&mut self, why: Error) {
        self.waiting = None;
        self.ended.get_or_insert(why);
    }

    /// Its log goes on at `from`, where the tap starts. `InvalidArgument` if that leaves a gap.
    pub fn begin_log(&mut self, from: Lsn) -> Result<()> {
        match self.log_sent {
            Some(sent) if sent != from => Err(Error::invalid(format!(
                "the log of a member was sent up to {sent}, and the tap starts at {from}"
            ))),
            _ => {
                self.log_sent = Some(from);
                self.landed = self.landed.max(from);
                Ok(())
            }
        }
    }
}

/// Whether a packet writes a superblock slot.
fn is_slot(packet: &StreamPacket<'_>) -> bool {
    let StreamPacket::Pages { offset, .. } = packet else {
        return false;
    };
    SUPERBLOCK_PAGES
        .iter()
        .any(|page| page.offset_bytes() == *offset)
}
