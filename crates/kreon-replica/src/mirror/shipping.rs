//! Packets to all members.

use std::time::Duration;

use kreon_base::{Error, ErrorKind, Result};
use kreon_wire::limits::BLOCK_BYTES;
use kreon_wire::{Member, StreamNumber, StreamPacket};

use super::stream::{Sent, Stream};
use super::streams::{Mirror, State};

/// A thread that waits for one member looks so often whether it is still there.
const LOOK: Duration = Duration::from_millis(20);

/// A call of the device that is under way.
pub(super) struct Call<'a> {
    mirror: &'a Mirror,
    number: u64,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut state = self.mirror.state.lock();
        state.calls.retain(|number| *number != self.number);
        drop(state);
        self.mirror.changed.notify_all();
    }
}

impl Mirror {
    /// A call of the device begins; it ends when this is dropped.
    pub(super) fn begin_call(&self) -> Result<Call<'_>> {
        let mut state = self.state.lock();
        state.check_open()?;
        state.calls_begun += 1;
        let number = state.calls_begun;
        state.calls.push(number);
        Ok(Call {
            mirror: self,
            number,
        })
    }

    /// Sends a packet to all members, with the next number of each, and waits for the credit of those that count.
    ///
    /// # Errors
    /// `Closed`.
    pub(super) fn ship(&self, packet: &StreamPacket<'_>) -> Result<Vec<(Member, StreamNumber)>> {
        self.ship_where(packet, None)
    }

    /// The same to one member, if it is still there, and waits for its credit.
    ///
    /// # Errors
    /// `Closed`.
    pub(crate) fn ship_to(&self, member: Member, packet: &StreamPacket<'_>) -> Result<()> {
        self.ship_where(packet, Some(member)).map(drop)
    }

    /// Makes the volumes of all members at least as long as the primary's file is: a power cut may have left it longer, and the
    /// store asks for growth only beyond that.
    ///
    /// # Errors
    /// `Closed`.
    pub(crate) fn ship_length(&self, volume_bytes: u64) -> Result<()> {
        let len_bytes = volume_bytes - volume_bytes % BLOCK_BYTES;
        match len_bytes {
            // A volume that is still to be made: what makes it longer is sent by itself.
            0 => Ok(()),
            _ => self.ship(&StreamPacket::Grow { len_bytes }).map(drop),
        }
    }

    fn ship_where(
        &self,
        packet: &StreamPacket<'_>,
        only: Option<Member>,
    ) -> Result<Vec<(Member, StreamNumber)>> {
        let mut shipped = Shipped::default();
        let mut state = self.state.lock();
        loop {
            state.check_open()?;
            let is_done = try_ship(&mut state, packet, only, &mut shipped);
            self.fail_trials(&mut state);
            if is_done {
                self.room_for_copies(&state);
                return Ok(shipped.sent);
            }
            match packet {
                // Other groups may have sent what a copy gave way to: they do not tell this one.
                StreamPacket::Copy { .. } => _ = self.changed.wait_for(&mut state, LOOK),
                _ => self.changed.wait(&mut state),
            }
        }
    }

    /// Something else than a copy was sent, which a copy may have given way to.
    pub(super) fn room_for_copies(&self, state: &State) {
        if state.streams.iter().any(|stream| !stream.is_counted) {
            self.changed.notify_all();
        }
    }

    /// Waits until all members to which an allocation was sent have answered, unless they granted it ahead.
    ///
    /// # Errors
    /// `OutOfSpace`: a counted member has no space; `Closed`.
    pub(super) fn await_space(&self, shipped: &[(Member, StreamNumber)]) -> Result<()> {
        let mut state = self.state.lock();
        let mut waiting: Vec<_> = shipped.to_vec();
        waiting.retain(|(member, _)| {
            let stream = state.stream(*member);
            stream.is_some_and(|stream| !stream.is_space_granted())
        });
        let mut is_full = false;
        loop {
            state.check_open()?;
            waiting.retain(|(member, number)| {
                // A member that does not count is no reason to wait.
                let Some(stream) = state.stream(*member).filter(|stream| stream.is_counted) else {
                    return false;
                };
                match stream.allocated(*number) {
                    Some(has_space) => {
                        is_full |= !has_space;
                        false
                    }
                    None => true,
                }
            });
            if waiting.is_empty() {
                break;
            }
            self.changed.wait(&mut state);
        }
        match is_full {
            true => Err(Error::new(
                ErrorKind::OutOfSpace,
                "the device of a backup is full",
            )),
            false => Ok(()),
        }
    }

    /// Has a member that does not count allocate a range, and waits for its answer.
    ///
    /// # Errors
    /// `OutOfSpace`: it has no space; why its stream has ended; `Closed`.
    pub(crate) fn reserve_at(&self, member: Member, offset: u64, len_bytes: u64) -> Result<()> {
        let packet = StreamPacket::Allocate { offset, len_bytes };
        let shipped = self.ship_where(&packet, Some(member))?;
        let Some((_, number)) = shipped.first().copied() else {
            return self.check_stream(member);
        };
        match self.await_member(member, |stream| stream.allocated(number))? {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::OutOfSpace,
                "the device of a joiner is full",
            )),
        }
    }

    /// Waits until `knows` says something of a member.
    ///
    /// # Errors
    /// `NotFound`; why its stream has ended; `Closed`.
    pub(super) fn await_member<T>(
        &self,
        member: Member,
        mut knows: impl FnMut(&mut Stream) -> Option<T>,
    ) -> Result<T> {
        loop {
            self.check_stream(member)?;
            let mut state = self.state.lock();
            let stream = state
                .stream(member)
                .filter(|stream| stream.ended().is_none());
            match stream.and_then(&mut knows) {
                Some(known) => return Ok(known),
                // It is looked at again now and then: it may have been removed.
                None => _ = self.changed.wait_for(&mut state, LOOK),
            }
        }
    }

    /// Waits until `is_so` of all counted members.
    ///
    /// # Errors
    /// `Closed`.
    pub(super) fn await_counted(&self, is_so: impl Fn(&Stream) -> bool) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            state.check_open()?;
            let mut counted = state.streams.iter().filter(|stream| stream.is_counted);
            if counted.all(&is_so) {
                return Ok(());
            }
            self.changed.wait(&mut state);
        }
    }
}

/// Who was dealt with.
#[derive(Default)]
struct Shipped {
    sent: Vec<(Member, StreamNumber)>,
    /// Those that do not count, and had no room.
    missed: Vec<Member>,
}

impl Shipped {
    fn has(&self, member: Member) -> bool {
        self.missed.contains(&member) || self.sent.iter().any(|(other, _)| *other == member)
    }
}

/// Sends to those that are to get it and did not, `only` one or all; whether nobody is left. Of all, those that do not count
/// are not waited for.
fn try_ship(
    state: &mut State,
    packet: &StreamPacket<'_>,
    only: Option<Member>,
    shipped: &mut Shipped,
) -> bool {
    let mut is_done = true;
    for stream in &mut state.streams {
        let member = stream.member;
        if shipped.has(member) || only.is_some_and(|only| only != member) {
            continue;
        }
        match stream.send(packet) {
            Sent::As(number) => shipped.sent.push((member, number)),
            Sent::Later if only.is_none() && !stream.is_counted => {
                stream.miss(packet);
                shipped.missed.push(member);
            }
            Sent::Later => is_done = false,
            Sent::Ended | Sent::Withheld => {}
        }
    }
    is_done
}
