//! The stream that comes in at a backup or joiner.

use std::sync::{Arc, Weak};

use kreon_base::{Error, ErrorKind, Lsn, Result, SEGMENT_BYTES};
use kreon_device::Device;
use kreon_format::{FORMAT_VERSION, FORMAT_VERSION_MIN, SUPERBLOCK_PAGES, StoreId};
use kreon_sync::Mutex;
use kreon_volume::superblock;
use kreon_wire::{
    Address, Attach, Control, FlushNumber, Frame, GrantBytes, GroupId, Kind, Member, Open, Packet,
    Reason, Refused, Role, Room, StreamPacket, Term,
};

use super::equalising::is_other;
use super::group::{Core, Group};
use super::links::Wire;
use super::worker::Files;
use crate::follower::{Answer, Capacity, Follower, FollowerThread};
use crate::machine::replica::{Event, State, Stream};

/// The end of a stream, with what does its work.
pub(super) struct Following {
    pub stream: Stream,
    pub follower: Arc<FollowerThread>,
    pub device: Arc<dyn Device>,
    pub back: Arc<Back>,
}

/// The way back to the primary, and what is known of the copy of a joiner.
pub(super) struct Back {
    group: Weak<Group>,
    address: Address,
    wire: Mutex<Option<Arc<Wire>>>,
    copy: Mutex<Option<Copy>>,
}

/// How far a copy is: complete when all superblocks came behind its end, and a flush behind them was answered.
#[derive(Clone, Copy, Debug, Default)]
struct Copy {
    is_all_copied: bool,
    slots: [bool; 4],
    flush: Option<FlushNumber>,
}

impl Copy {
    /// The next packet of the stream.
    fn see(&mut self, packet: &StreamPacket<'_>) {
        match packet {
            StreamPacket::Complete => self.is_all_copied = true,
            StreamPacket::Pages { offset, .. } if self.is_all_copied => {
                let is_it = |page: &kreon_base::PageNo| page.offset_bytes() == *offset;
                if let Some(slot) = SUPERBLOCK_PAGES.iter().position(is_it) {
                    self.slots[slot] = true;
                }
            }
            StreamPacket::Flush { number, .. } if self.slots == [true; 4] => {
                self.flush.get_or_insert(*number);
            }
            _ => {}
        }
    }
}

impl Back {
    fn new(group: &Group, term: Term, copy: Option<Copy>) -> Arc<Self> {
        Arc::new(Self {
            group: Weak::clone(&group.weak),
            address: Address {
                group: group.id(),
                term,
                number: 0,
            },
            wire: Mutex::new(None),
            copy: Mutex::new(copy),
        })
    }

    /// Answers go to where the packets come from.
    pub fn set_wire(&self, wire: &Arc<Wire>) {
        let mut held = self.wire.lock();
        if !held.as_ref().is_some_and(|held| Arc::ptr_eq(held, wire)) {
            *held = Some(Arc::clone(wire));
        }
    }

    /// Whether a copy comes by this stream, and is not complete.
    pub fn is_copying(&self) -> bool {
        self.copy.lock().is_some()
    }

    /// A packet was taken. Of a joiner's stream each is looked at, until the copy is complete.
    pub fn saw(&self, frame: &Frame<'_>) {
        if let Some(copy) = &mut *self.copy.lock()
            && let Ok(Packet::Stream(packet)) = Packet::decode(frame)
        {
            copy.see(&packet);
        }
    }

    /// What the follower answers. Called with the follower locked.
    fn tell(&self, answer: &Answer) {
        if let Answer::Progress(progress) = answer {
            let mut copy = self.copy.lock();
            let flush = copy.as_ref().and_then(|copy| copy.flush);
            if flush.is_some_and(|flush| flush <= progress.flushed) {
                *copy = None;
                drop(copy);
                // Before the primary learns of it, which adds this member then.
                if let Some(group) = self.group.upgrade() {
                    let mut core = group.core();
                    core.has_failed = false;
                    core.is_copied = true;
                    group.replica(&mut core, Event::Completed(self.address.term));
                }
            }
        }
        if let Answer::Ended(error) = answer
            && let Some(group) = self.group.upgrade()
        {
            group.fail(&mut group.core(), error, "a stream cannot be written");
        }
        let packet = answer.encode(&self.address).unwrap_or_else(|| {
            let refused = Refused {
                reason: Reason::DeviceFailed,
                kind: Kind::Flush,
                term: self.address.term,
            };
            Control::Refused(refused).encode(&self.address)
        });
        if let Some(wire) = &*self.wire.lock()
            && let Err(error) = wire.send(&packet)
        {
            tracing::debug!(%error, "an answer to a primary is lost");
        }
    }
}

impl Group {
    /// A candidate that this member is equal to opens its stream.
    pub(super) fn on_open(&self, core: &mut Core, from: Member, term: Term, open: &Open) {
        let stream = Stream {
            term,
            primary: from,
        };
        if *core.replica.state() != State::InSync(stream) {
            return self.refuse(core, from, Reason::NotReady);
        }
        if let Err(reason) = check_open(open, core.store()) {
            return self.refuse(core, from, reason);
        }
        let Some((_, about)) = core.message else {
            return;
        };
        let package = core.package.as_ref().filter(|package| package.term == term);
        let chosen = package.map_or(Lsn::MAX, |package| package.log_end);
        let own = core
            .found
            .as_ref()
            .map_or(Lsn(0), |found| found.report.log_end);
        let log_durable = own.min(chosen);
        self.work(Box::new(move |group, files| {
            let begun = group.begin_stream(files, stream, |device, ids, capacity| {
                Ok(Follower::new(
                    ids,
                    device.len_bytes(),
                    log_durable,
                    capacity,
                ))
            });
            match begun {
                Ok((volume_bytes, room)) => {
                    let opened = Control::Opened {
                        volume_bytes,
                        log_durable,
                        room,
                    };
                    group.tell(from, (term, about.number), &opened);
                }
                Err(error) => {
                    tracing::error!(%error, "a stream cannot be followed");
                    let why = (Kind::Open, reason_of(&error));
                    group.refuse_later(from, (term, about.number), why);
                }
            }
        }));
    }

    /// The primary wants to copy its volume here.
    pub(super) fn on_attach(&self, core: &mut Core, from: Member, term: Term, attach: Attach) {
        self.replica(core, Event::Attached { from, term });
        let stream = Stream {
            term,
            primary: from,
        };
        if *core.replica.state() != State::Joining(stream) || core.following.is_some() {
            return self.refuse(core, from, Reason::NotReady);
        }
        let Some((_, about)) = core.message else {
            return;
        };
        core.is_copied = false;
        core.followed = None;
        self.work(Box::new(move |group, files| {
            let prepared = group.prepare_for_copy(files, &attach);
            let begun = prepared.and_then(|()| {
                let begun = group.begin_stream(files, stream, |device, ids, capacity| {
                    Ok(Follower::joining(ids, device.len_bytes(), capacity))
                });
                begun.map_err(|error| (reason_of(&error), error))
            });
            match begun {
                Ok((_, room)) => {
                    let attached = Control::Attached {
                        free_bytes: u64::MAX,
                        room,
                    };
                    group.tell(from, (term, about.number), &attached);
                }
                Err((reason, error)) => {
                    // The file that counts is the one from before.
                    files.close();
                    tracing::error!(%error, "a copy cannot begin");
                    group.refuse_later(from, (term, about.number), (Kind::Attach, reason));
                    let mut core = group.core();
                    if core.replica.stream() == Some(stream) {
                        group.replica(&mut core, Event::StreamClosed);
                    }
                }
            }
        }));
    }

    /// Takes a file for the copy, unless what is here belongs to another store.
    fn prepare_for_copy(&self, files: &mut Files, attach: &Attach) -> Result<(), (Reason, Error)> {
        let failed = |error| (reason_of(&error), error);
        let device = files.device(self).map_err(failed)?;
        let own = match device.len_bytes() < SEGMENT_BYTES {
            true => None,
            // A file that cannot be read is replaced.
            false => superblock::inspect(&*device).map_or(None, |(found, _)| found),
        };
        drop(device);
        check_open(&attach.open, own.map(|found| found.store))
            .map_err(|reason| (reason, Error::invalid("a copy of another store")))?;
        // An older primary does not tell.
        let needed_bytes = match attach.backed_bytes {
            0 => attach.open.volume_bytes,
            backed_bytes => backed_bytes,
        };
        files.begin_resync(self, needed_bytes).map_err(failed)
    }

    /// Tells who asked for something that it cannot be done here.
    fn refuse_later(&self, to: Member, number: (Term, u64), (kind, reason): (Kind, Reason)) {
        let term = number.0;
        let refused = Refused { reason, kind, term };
        self.tell(to, number, &Control::Refused(refused));
    }

    /// Starts the follower that `make` makes, if the stream still counts; length of the volume and first credit.
    fn begin_stream(
        &self,
        files: &mut Files,
        stream: Stream,
        make: impl FnOnce(&dyn Device, (GroupId, Term), Capacity) -> Result<Follower>,
    ) -> Result<(u64, Room)> {
        let device = files.device(self)?;
        let capacity = self.settings.capacity;
        let follower = make(&*device, (self.id(), stream.term), capacity)?;
        let mut core = self.core();
        let copy = match *core.replica.state() {
            State::InSync(held) if held == stream => None,
            State::Joining(held) if held == stream => Some(Copy::default()),
            _ => return Err(Error::invalid("the stream does not count any more")),
        };
        let back = Back::new(self, stream.term, copy);
        let teller = Arc::clone(&back);
        let file = Arc::clone(&device);
        let tell = move |answer: Answer| teller.tell(&answer);
        let follower = FollowerThread::start(follower, file, None, tell)?;
        let volume_bytes = device.len_bytes();
        core.following = Some(Following {
            stream,
            follower: Arc::new(follower),
            device,
            back,
        });
        let room = Room {
            log: GrantBytes(capacity.log_bytes),
            pages: GrantBytes(capacity.pages_bytes),
            space: GrantBytes(capacity.space_bytes),
        };
        Ok((volume_bytes, room))
    }

    /// Does not act upon the message at hand.
    pub(super) fn refuse(&self, core: &Core, to: Member, reason: Reason) {
        let Some((kind, about)) = core.message else {
            return;
        };
        let refused = Refused {
            reason,
            kind,
            term: core.replica.promised(),
        };
        let number = (about.term, about.number);
        self.tell(to, number, &Control::Refused(refused));
    }

    /// Packets of a stream, in their order, all of one term. Those that do not count are refused.
    pub(super) fn take(
        &self,
        wire: &Arc<Wire>,
        frames: &[Frame<'_>],
    ) -> Result<(), kreon_wire::Violation> {
        let Some(first) = frames.first() else {
            return Ok(());
        };
        let (from, term) = (wire.peer().member, first.header().term);
        debug_assert_eq!(wire.peer().role, Role::PeerStream);
        let core = self.core();
        let is_admitted = core.replica.admits(from, term);
        let counts =
            |f: &&Following| is_admitted && f.stream.primary == from && f.stream.term == term;
        let following = core.following.as_ref().filter(counts);
        let Some((follower, back)) =
            following.map(|f| (Arc::clone(&f.follower), Arc::clone(&f.back)))
        else {
            let refused = Refused {
                reason: Reason::LowerTerm,
                kind: first.header().kind,
                term: core.replica.promised(),
            };
            drop(core);
            let packet = Control::Refused(refused).encode(&first.address());
            let _ = wire.send(&packet);
            return Ok(());
        };
        drop(core);
        back.set_wire(wire);
        for frame in frames {
            back.saw(frame);
            if let Err(violation) = follower.take(frame) {
                // Sealed, or stopped, since it was asked.
                let core = self.core();
                let is_over = !core.replica.admits(from, term);
                return if is_over { Ok(()) } else { Err(violation) };
            }
        }
        follower.acknowledge();
        Ok(())
    }
}

fn reason_of(error: &Error) -> Reason {
    match error.kind() {
        ErrorKind::OutOfSpace => Reason::NoSpace,
        // The stream does not count any more.
        ErrorKind::InvalidArgument => Reason::NotReady,
        _ => Reason::DeviceFailed,
    }
}

/// Whether a stream is one of the store that the file here has, `own`, and of a format that can be read here.
fn check_open(open: &Open, own: Option<StoreId>) -> Result<(), Reason> {
    if is_other(own, Some(open.store)) {
        tracing::error!(own = ?own, of_stream = ?open.store, "a stream of another store");
        return Err(Reason::OtherStore);
    }
    match (FORMAT_VERSION_MIN..=FORMAT_VERSION).contains(&open.format) {
        true => Ok(()),
        false => Err(Reason::OtherFormat),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_complete_with_a_flush_behind_all_superblocks_behind_its_end() {
        let mut copy = Copy::default();
        let page = [0; 4096];
        let slot = |number: usize| StreamPacket::Pages {
            offset: SUPERBLOCK_PAGES[number].offset_bytes(),
            bytes: &page,
        };
        let flush = |number| StreamPacket::Flush {
            number: FlushNumber(number),
            log_upto: Lsn(0),
        };
        for number in 0..4 {
            copy.see(&slot(number));
        }
        copy.see(&flush(1));
        assert_eq!(copy.flush, None, "superblocks before the end of the copy");
        copy.see(&StreamPacket::Complete);
        for number in [2, 0, 3] {
            copy.see(&slot(number));
        }
        copy.see(&flush(2));
        assert_eq!(copy.flush, None, "a slot is missing");
        copy.see(&slot(1));
        assert_eq!(copy.flush, None);
        copy.see(&flush(3));
        copy.see(&flush(4));
        assert_eq!(copy.flush, Some(FlushNumber(3)));
    }
}
