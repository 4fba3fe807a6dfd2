//! What comes in on links for streams: packets of primaries, and answers of members.

use std::sync::Arc;

use kreon_fabric::Bytes;
use kreon_wire::{Control, Frame, GroupId, Header, Kind, Member, Packet, Reason, Role, Violation};

use super::group::{Core, Group};
use super::links::Wire;
use crate::machine::{primary, replica};
use crate::mirror::Mirror;

/// Consecutive packets of one group and one direction.
struct Batch<'a> {
    group: GroupId,
    is_answer: bool,
    frames: Vec<Frame<'a>>,
}

/// Hands packets to their groups, batch by batch in their order; those of groups that are not here do nothing.
pub(super) fn hand_out(
    wire: &Arc<Wire>,
    packets: &[Bytes],
    group_of: impl Fn(GroupId) -> Option<Arc<Group>>,
) -> Result<(), Violation> {
    let mut batch: Option<Batch<'_>> = None;
    for packet in packets {
        let frame = Frame::open(packet, Role::PeerStream)?;
        let Header {
            kind, group, term, ..
        } = *frame.header();
        let is_answer = matches!(kind, Kind::Progress | Kind::Refused);
        let fits = |batch: &&mut Batch<'_>| {
            let first = batch.frames.first().map(|first| first.header().term);
            batch.group == group && batch.is_answer == is_answer && first == Some(term)
        };
        match batch.as_mut().filter(fits) {
            Some(batch) => batch.frames.push(frame),
            None => {
                if let Some(batch) = batch.take() {
                    give(wire, &batch, &group_of)?;
                }
                batch = Some(Batch {
                    group,
                    is_answer,
                    frames: vec![frame],
                });
            }
        }
    }
    batch.map_or(Ok(()), |batch| give(wire, &batch, &group_of))
}

fn give(
    wire: &Arc<Wire>,
    batch: &Batch<'_>,
    group_of: impl Fn(GroupId) -> Option<Arc<Group>>,
) -> Result<(), Violation> {
    match (group_of(batch.group), batch.is_answer) {
        (Some(group), true) => group.take_answers(wire.peer().member, &batch.frames),
        (Some(group), false) => group.take(wire, &batch.frames),
        (None, _) => Ok(()),
    }
}

impl Core {
    /// The streams that go out.
    pub(super) fn mirror(&self) -> Option<Arc<Mirror>> {
        let of_office = self
            .office
            .as_ref()
            .map(|office| Arc::clone(office.store.mirror()));
        let candidate = self.candidate.as_ref();
        of_office.or_else(|| candidate.and_then(|candidate| candidate.mirror.clone()))
    }
}

impl Group {
    /// What a member answers on its stream, all of one term.
    fn take_answers(&self, from: Member, frames: &[Frame<'_>]) -> Result<(), Violation> {
        let Some(mirror) = self.core().mirror() else {
            return Ok(());
        };
        let mut refused = None;
        for frame in frames {
            // Late answers to a stream of an earlier term.
            if frame.header().term != mirror.term() {
                continue;
            }
            if let Packet::Control(Control::Refused(why)) = Packet::decode(frame)? {
                refused = Some(why)
                    .filter(|why| why.reason != Reason::NoSpace)
                    .or(refused);
            }
            mirror.admit(from, frame)?;
        }
        let mut core = self.core();
        if let Some(why) = refused {
            tracing::warn!(?from, ?why, "a member refuses its stream");
            self.primary(&mut core, primary::Event::Refused(why.term));
            self.primary(&mut core, primary::Event::Failed(from));
            self.replica(&mut core, replica::Event::Failed(from));
            return Ok(());
        }
        let Some(office) = &core.office else {
            return Ok(());
        };
        let tail = office.store.engine().log_tail();
        let Some((landed, durable)) = office.store.mirror().position(from) else {
            return Ok(());
        };
        self.primary(&mut core, primary::Event::Appended(tail));
        let progress = primary::Event::Progress {
            from,
            landed,
            durable,
        };
        self.primary(&mut core, progress);
        Ok(())
    }

    /// A link for streams takes packets again.
    pub(super) fn room(&self) {
        let (mirror, follower) = {
            let core = self.core();
            let following = core.following.as_ref();
            (core.mirror(), following.map(|f| Arc::clone(&f.follower)))
        };
        if let Some(mirror) = mirror {
            mirror.room();
        }
        // An answer may have been lost because the link was busy.
        if let Some(follower) = follower {
            follower.acknowledge();
        }
    }

    /// A link for streams to a server has ended.
    pub(super) fn stream_closed(&self, peer: Member, why: &kreon_base::Error) {
        let mut core = self.core();
        let following = core.following.as_ref();
        if following.is_some_and(|following| following.stream.primary == peer) {
            self.replica(&mut core, replica::Event::StreamClosed);
        }
        if let Some(mirror) = core.mirror()
            && mirror.position(peer).is_some()
        {
            mirror.end(peer, why.clone());
            self.sample(&mut core);
            self.primary(&mut core, primary::Event::Failed(peer));
            self.replica(&mut core, replica::Event::Failed(peer));
        }
    }
}
